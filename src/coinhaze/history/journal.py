"""The journal of a history that follows a node: blocks that came after its last commit.

A block counts from the moment its record is on the disk. A record is its length, its SHA-256 and
the block; one that was cut short, and all behind it, do not count.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from coinhaze.errors import InputError, ResourceError
from coinhaze.history.files import JOURNAL
from coinhaze.ledger.coin_blocks import HASH, CoinBlocks, PoolFlows
from coinhaze.ledger.coins import POOLS
from coinhaze.report.files import write_whole

_LENGTH = 8
_DIGEST = 32
# The columns of a block as they are written, and how many entries each has: by transaction, by
# input or by output.
_COLUMNS = (
    ("ids", "u1", "transactions"),
    ("coinbase", "?", "transactions"),
    ("inputs", "<u4", "transactions"),
    ("outputs", "<u4", "transactions"),
    ("spent_ids", "u1", "inputs"),
    ("spent_vouts", "<u4", "inputs"),
    ("spent_values", "<i8", "inputs"),
    ("made_vouts", "<u4", "outputs"),
    ("made_values", "<i8", "outputs"),
    ("made_spendable", "?", "outputs"),
    ("made_scripts", "u1", "outputs"),
    ("flow_tx", "<u4", "flows"),
    ("flow_pool", "<u4", "flows"),
    ("flow_into", "<i8", "flows"),
)
_PLAIN = {"?": np.bool_, "u1": np.uint8}


@dataclass(frozen=True, eq=False)
class NamedBlock:
    """One block with its own hash and that of the block before."""

    hash: str
    previous: str
    content: CoinBlocks
    base: str = ""  # the id of the last transaction before it

    @property
    def height(self) -> int:
        """Its height."""
        return int(self.content.heights[0])


class _Head(msgspec.Struct):
    hash: str
    previous: str
    base: str
    height: int
    time: int
    transactions: int
    inputs: int
    outputs: int
    flows: int


_head = msgspec.json.Decoder(_Head)


def packed(block: NamedBlock) -> bytes:
    """Write a block as bytes."""
    content = block.content
    sizes = len(content), len(content.spent_vouts), len(content.made_vouts)
    columns = vars(content) | {f"flow_{name}": np.zeros(0) for name in ("tx", "pool", "into")}
    if content.pools is not None:
        columns |= {f"flow_{name}": column for name, column in vars(content.pools).items()}
    if content.made_scripts is None:  # types that are not known
        columns["made_scripts"] = np.zeros(sizes[2])
    flows = len(columns["flow_tx"])
    time = int(content.times[0])
    names = block.hash, block.previous, block.base
    head = msgspec.json.encode(_Head(*names, block.height, time, *sizes, flows))
    parts = [len(head).to_bytes(_LENGTH, "little"), head]
    for name, kind, _ in _COLUMNS:
        parts.append(np.ascontiguousarray(columns[name]).astype(kind).tobytes())
    return b"".join(parts)


def unpacked(octets: bytes) -> NamedBlock:
    """Read a block from bytes."""
    at = _LENGTH + int.from_bytes(octets[:_LENGTH], "little")
    head = _head.decode(octets[_LENGTH:at])
    columns: dict[str, Any] = {}
    for name, kind, each in _COLUMNS:
        hashes = name.endswith("ids")
        column = np.frombuffer(octets, kind, getattr(head, each) * (HASH if hashes else 1), at)
        at += column.nbytes
        if hashes:
            columns[name] = column.reshape(-1, HASH)
        else:
            columns[name] = column.astype(_PLAIN.get(kind, np.int64))
    # A chain that is followed has been read from its first block: pools held nothing before.
    tx, pool, into = (columns.pop(f"flow_{name}") for name in ("tx", "pool", "into"))
    pools = PoolFlows(tx, pool, into, np.zeros(len(POOLS), np.int64)) if head.flows else None
    content = CoinBlocks(
        pools=pools,
        heights=np.array([head.height]),
        times=np.array([head.time]),
        sizes=np.array([head.transactions]),
        **columns,
    )
    return NamedBlock(head.hash, head.previous, content, head.base)


class Journal:
    """The file of blocks after the last commit of a history."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / JOURNAL
        self.size = 0  # bytes of whole records
        self.places: list[int] = []  # where those that were read begin

    def read(self) -> list[NamedBlock]:
        """Read all whole records; what is behind them is taken away."""
        octets = self.path.read_bytes() if self.path.exists() else b""
        blocks: list[NamedBlock] = []
        self.places = []
        at = 0
        while True:
            begin = at + _LENGTH + _DIGEST
            end = begin + int.from_bytes(octets[at : at + _LENGTH], "little")
            if begin > len(octets) or end > len(octets):
                break
            body = octets[begin:end]
            if sha256(body).digest() != octets[at + _LENGTH : begin]:
                break
            blocks.append(unpacked(body))
            self.places.append(at)
            at = end
        self.size = at
        if at < len(octets):
            self.cut(at)
        return blocks

    def append(self, block: NamedBlock) -> None:
        """Let a block count from now on."""
        record = _record(block)
        try:
            with open(self.path, "ab") as file:
                file.write(record)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise _unwritten(self.path, error) from None
        self.size += len(record)

    def cut(self, size: int) -> None:
        """Leave only so many bytes."""
        try:
            with open(self.path, "r+b") as file:
                file.truncate(size)
                os.fsync(file.fileno())
        except OSError as error:
            raise _unwritten(self.path, error) from None
        self.size = size

    def replace(self, blocks: Sequence[NamedBlock]) -> list[int]:
        """Let these blocks count in place of all; give where each begins."""
        records = [_record(block) for block in blocks]
        whole = b"".join(records)
        try:
            write_whole(self.path, lambda place: place.write_bytes(whole))
        except OSError as error:
            raise _unwritten(self.path, error) from None
        ends = np.cumsum([len(record) for record in records], dtype=np.int64).tolist()
        self.size = len(whole)
        return [0, *ends[:-1]] if ends else []


def last_block(folder: Path) -> NamedBlock | None:
    """Give the last whole block of a journal, which another process may be writing; None if none.

    Heads of records are enough to come to the last; only that one is held against its digest.
    """
    try:
        with open(folder / JOURNAL, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            places, at = [], 0
            while at + _LENGTH + _DIGEST <= size:
                file.seek(at)
                end = at + _LENGTH + _DIGEST + int.from_bytes(file.read(_LENGTH), "little")
                if end > size:
                    break
                places.append(at)
                at = end
            for place in reversed(places):
                file.seek(place)
                length = int.from_bytes(file.read(_LENGTH), "little")
                digest, body = file.read(_DIGEST), file.read(length)
                if sha256(body).digest() == digest:
                    return unpacked(body)
    except (OSError, ValueError, msgspec.DecodeError):
        return None
    return None


def _record(block: NamedBlock) -> bytes:
    body = packed(block)
    return len(body).to_bytes(_LENGTH, "little") + sha256(body).digest() + body


def _unwritten(path: Path, error: OSError) -> InputError | ResourceError:
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    kind = ResourceError if full else InputError
    said = f"cannot be written: {error.strerror}; the history is as it was at its last block"
    return kind(f"{path}: {said}")
