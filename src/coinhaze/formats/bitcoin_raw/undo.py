"""Undo files of a node, rev*.dat: values and owners of the coins that blocks spend.

A record does not name its block. It has one entry for every transaction but the coinbase, with one
coin for every input, and ends in a hash of itself and the hash of the block before: that finds it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from coinhaze.errors import LedgerError
from coinhaze.formats.bitcoin_raw.files import BlockFile, errors_named
from coinhaze.formats.bitcoin_raw.networks import Network
from coinhaze.formats.bitcoin_raw.scripts import owner_column
from coinhaze.formats.bitcoin_raw.wire import Ints, Octets, double_sha256
from coinhaze.formats.compression import packing

_CHECKSUM = 32


class UndoFile:
    """The records of one undo file, found by the shape of their blocks."""

    def __init__(self, path: Path, network: Network) -> None:
        self.path = path
        self._network = network
        # Place, length and, as a packed file cannot be gone back in, all bytes of a packed one.
        self._places: dict[bytes, list[tuple[int, int, bytes]]] = defaultdict(list)
        packed = packing(path)
        with errors_named(path), self._open() as file:
            for length in file.lengths():
                at = file.at
                record = file.take(length + _CHECKSUM)
                shape, _ = read_coins(record[:length], f"{path}: byte {at}")
                self._places[shape.tobytes()].append((at, length, record if packed else b""))

    def _open(self) -> BlockFile:
        return BlockFile(self.path, {self._network.magic: self._network})

    def find(self, blocks: Sequence[tuple[bytes, Ints]]) -> list[bytes | None]:
        """Find records of blocks, given by the hash before them and their inputs by transaction.

        The coinbase is left out of the inputs. A block that its node never took has no record.
        """
        with errors_named(self.path), self._open() as file:
            return [self._record(file, *block) for block in blocks]

    def _record(self, file: BlockFile, previous: bytes, inputs: Ints) -> bytes | None:
        places = self._places.get(inputs.astype(np.int64).tobytes(), []) if len(inputs) else []
        for at, length, kept in places:
            both = kept or file.take_at(at, length + _CHECKSUM)
            record = both[:length]
            if double_sha256(previous + record) == both[length:]:
                return record
        if places:
            where = f"{self.path}: byte {places[0][0]}"
            fix = "the file is damaged: let the node write it again, or take it away"
            raise LedgerError(where, "undo data that fails its checksum", fix=fix)
        return None


def read_coins(record: bytes, where: str) -> tuple[Ints, Ints]:
    """Give the number of coins by transaction, and value, kind, place and size of each."""
    from coinhaze.formats.bitcoin_raw.kernels import FAULTS, spent_coins

    octets: Octets = np.frombuffer(record, np.uint8)
    fault, shape, coins = spent_coins(octets, 0, len(octets))
    if fault:
        raise LedgerError(where, f"undo data that {FAULTS[fault]}")
    return shape, coins


def spent_columns(record: bytes | None, number: int, network: Network) -> tuple[pa.Array, pa.Array]:
    """Give values and owners of the coins in a record; `number` nulls if there is none."""
    if record is None:
        return pa.nulls(number, pa.int64()), pa.nulls(number, pa.string())
    _, coins = read_coins(record, "undo data")
    value, kinds, places, sizes = (np.ascontiguousarray(column) for column in coins.T)
    octets = np.frombuffer(record, np.uint8)
    return pa.array(value), owner_column(octets, kinds, places, sizes, network)
