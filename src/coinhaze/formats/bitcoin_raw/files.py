"""Files of a node, blk*.dat and rev*.dat: frames of a magic number, a length and bytes.

A record of an undo file, rev*.dat, has values and owners of the coins that a block spends. It does
not name its block. It has one entry for every transaction but the coinbase, with one coin for every
input, and ends in a hash of itself and the hash of the block before: that finds it.

Since version 28 Bitcoin Core hides them under a key of eight bytes, kept in xor.dat beside them.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa

from coinhaze.errors import LedgerError, ResourceError
from coinhaze.formats.bitcoin_raw.networks import Network
from coinhaze.formats.bitcoin_raw.scripts import owner_column
from coinhaze.formats.bitcoin_raw.wire import Ints, Malformed, Octets, double_sha256, read_uint32
from coinhaze.formats.compression import errors_of_reading, open_plain, packing

LARGEST_FRAME = 0x02000000  # Bitcoin Core writes none larger
KEY_FILE = "xor.dat"
KEY_SIZE = 8
_CHUNK = 1 << 20
_NUMBERED = re.compile(r"(blk)(\d{5})(\.dat(?:\.gz|\.xz|\.zst)?)")

_CHECKSUM = 32


@contextmanager
def errors_named(path: Path) -> Iterator[None]:
    """Turn what reading a damaged file can raise into errors that name it."""
    try:
        with errors_of_reading(path):
            yield
    except Malformed as error:
        raise LedgerError(str(path), str(error)) from None
    except MemoryError:
        raise ResourceError(f"{path}: not enough memory to read it") from None


@dataclass
class BlockFile:
    """A file of frames, read from its start to its end."""

    path: Path
    networks: Mapping[bytes, Network]
    network: Network | None = None
    at: int = 0
    _key: bytes = b""
    _size: int | None = None
    _ahead: bytes = b""
    _file: BinaryIO = field(init=False)

    def __post_init__(self) -> None:
        self._key = key_beside(self.path)
        # Only of a plain file is the size known, and only there can bytes be stepped over.
        self._size = None if packing(self.path) else self.path.stat().st_size
        self._file = open_plain(self.path)

    def __enter__(self) -> BlockFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def lengths(self) -> Iterator[int]:
        """Go from frame to frame: give its length, with the file at its first byte.

        All of it, and what its format has behind it, must be taken or skipped before the next.
        """
        while head := self._head():
            magic, length = head[:4], read_uint32(head, 4)
            network = self.networks.get(magic)
            if network is None or network is not (self.network or network):
                what = "no known network's block begins so, or not that of the first block"
                fix = f"if the node hides its files, {KEY_FILE} must lie beside them"
                raise LedgerError(self._here(-8), what, value=magic, fix=fix)
            if length > LARGEST_FRAME:
                raise LedgerError(self._here(-8), "a block larger than 32 MiB", value=length)
            self.network = network
            yield length

    def take(self, size: int) -> bytes:
        """Give the next bytes, in the clear."""
        octets = self._raw(size)
        if len(octets) < size:
            what = f"the file ends {size - len(octets)} bytes before its last block does"
            fix = "the file is cut short, or its node is still writing it"
            raise LedgerError(self._here(), what, fix=fix)
        return reveal(octets, self._key, self.at - size)

    def take_at(self, at: int, size: int) -> bytes:
        """Give bytes from any place of a file that is not packed."""
        self._file.seek(at)
        self._ahead, self.at = b"", at
        return self.take(size)

    def skip(self, size: int) -> None:
        """Step over bytes."""
        if self._size is None or self.at + size > self._size:
            self.take(size)
            return
        beyond = max(0, size - len(self._ahead))
        self._ahead = self._ahead[size:]
        self._file.seek(beyond, 1)
        self.at += size

    def _here(self, step: int = 0) -> str:
        return f"{self.path}: byte {self.at + step}"

    def _head(self) -> bytes:
        """Give magic and length of the next frame; nothing at the end.

        Zeros before it are room that the node set aside, written without the key.
        """
        raw = self._raw(8)
        if len(raw) == 8 and reveal(raw[:4], self._key, self.at - 8) in self.networks:
            return reveal(raw, self._key, self.at - 8)
        while raw and not raw.strip(b"\0"):
            raw = self._raw(_CHUNK)
        self._ahead = raw.lstrip(b"\0") + self._ahead
        self.at -= len(self._ahead)
        return self.take(8) if self._ahead else b""

    def _raw(self, size: int) -> bytes:
        octets, self._ahead = self._ahead[:size], self._ahead[size:]
        if len(octets) < size:
            octets += self._file.read(size - len(octets))
        self.at += len(octets)
        return octets


def key_beside(path: Path) -> bytes:
    """Give the key that hides the files of a folder; nothing if none does."""
    file = path.with_name(KEY_FILE)
    if not file.is_file():
        return b""
    with open(file, "rb") as opened:
        key = opened.read(KEY_SIZE + 1)
    if len(key) != KEY_SIZE:
        raise LedgerError(str(file), f"a key has {KEY_SIZE} bytes", value=key)
    return key if any(key) else b""


def reveal(octets: bytes, key: bytes, at: int) -> bytes:
    """Take the key off bytes that stand at a place in a file."""
    if not key:
        return octets
    turned = key[at % KEY_SIZE :] + key[: at % KEY_SIZE]
    hidden = np.frombuffer(octets, np.uint8)
    mask = np.resize(np.frombuffer(turned, np.uint8), len(hidden))
    return (hidden ^ mask).tobytes()


def begins_with(head: bytes, networks: Mapping[bytes, Network]) -> bool:
    """Tell by the first bytes of a file whether it has frames of these networks.

    Where a key hides them, that key shows through zeros: the last four bytes of the hash of the
    block before are zeros on every chain whose blocks are work, and before the first block.
    """
    shown = bytes(a ^ b for a, b in zip(head[:4], head[40:44], strict=False))
    return head[:4] in networks or (len(shown) == 4 and shown in networks)


def numbered(path: Path, step: int) -> Path | None:
    """Give the file of blocks so many numbers on, if it is there."""
    match = _NUMBERED.fullmatch(path.name)
    if not match or not 0 <= int(match[2]) + step <= 99999:
        return None
    other = path.with_name(f"{match[1]}{int(match[2]) + step:05}{match[3]}")
    return other if other.is_file() else None


def undo_beside(path: Path) -> Path | None:
    """Give the undo file of a file of blocks, if it is there."""
    match = _NUMBERED.fullmatch(path.name)
    other = path.with_name(f"rev{match[2]}{match[3]}") if match else None
    return other if other and other.is_file() else None


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
