"""Raw blocks of Zcash: in hex, one per line; bare, one behind the other; or in a node's blk*.dat.

Every block is checked against its Merkle root. Values and owners of spent coins come from the undo
file of a node (rev*.dat), where there is one; otherwise they are null.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coinhaze.errors import LedgerError
from coinhaze.formats.bitcoin_raw.contents import (
    BlockColumns,
    make_batch,
    spent_coins,
)
from coinhaze.formats.bitcoin_raw.files import (
    BlockFile,
    UndoFile,
    begins_with,
    errors_named,
    spent_columns,
    undo_beside,
)
from coinhaze.formats.bitcoin_raw.heights import Header, place, stated_height
from coinhaze.formats.bitcoin_raw.networks import ZCASH, ZCASH_MAGICS, ZCASH_TESTNET, Network
from coinhaze.formats.bitcoin_raw.scripts import owners_of
from coinhaze.formats.bitcoin_raw.wire import (
    Cursor,
    Ints,
    Malformed,
    Octets,
    double_sha256,
    id_text,
    merkle_root,
    read_uint32,
)
from coinhaze.formats.compression import BOM, open_plain
from coinhaze.formats.zcash_raw.transactions import (
    ZcashTransaction,
    read_transaction,
    skip_to_coinbase_script,
)
from coinhaze.ledger.batches import Batch

HEADER = 140  # without the solution and its size
LARGEST = 1 << 22  # consensus allows 2,000,000 bytes
BATCH_BYTES = 1 << 20
_CHUNK = 1 << 20
# A header is known by the size of the solution behind it: 1344 bytes; 36 on regtest, recognised
# by its target as well.
_BEGINS = re.compile(rb".{140}\xfd\x40\x05|.{104}\x0f\x0f\x0f\x20.{32}\x24", re.DOTALL)
_AGAIN = "cut short, damaged or no block: take it from the node again: zcash-cli getblock HASH 0"
_MAIN_LIMIT = 0x0007FFFF << 8 * 0x1C  # the easiest target on the main network: 0x1f07ffff


def recognises(head: bytes) -> bool:
    """Tell whether a file begins with a Zcash block, in hex, bare or in a frame."""
    try:
        start = bytes.fromhex(head.split()[0][: 2 * HEADER + 6].decode("ascii"))
    except (ValueError, IndexError):
        start = b""
    return begins_with(head, ZCASH_MAGICS) or _is_bare(head) or _is_bare(start)


def batches(path: Path) -> Iterator[Batch]:
    """Read the blocks of a file that are on the chain, in the order of the file.

    Bare and hex blocks do not tell their network: it is the test network's if one of them is easier
    to find than any block of the main network may be.
    """
    with errors_named(path):
        frames = _frames(path)
        network, headers = _headers(path, frames)
        heights = place(headers, network)
        beside = undo_beside(path) if frames else None
        undo = UndoFile(beside, network) if beside else None
        blocks: list[_Block] = []
        octets = 0
        for i, raw in enumerate(_raw_blocks(path, frames)):
            if i in heights:
                blocks.append(_parsed(raw, heights[i]))
                octets += len(raw.octets)
            if octets >= BATCH_BYTES:
                yield _batch(blocks, path, network, undo, raw.read)
                blocks, octets = [], 0
        if blocks:
            yield _batch(blocks, path, network, undo, raw.read)


@dataclass(frozen=True)
class _Raw:
    octets: bytes
    where: str
    read: int  # bytes of the file up to its end
    network: Network | None = None


@dataclass(frozen=True)
class _Block:
    height: int
    header: bytes
    transactions: list[ZcashTransaction]


def _is_bare(head: bytes) -> bool:
    return _BEGINS.match(head) is not None


def _frames(path: Path) -> bool | None:
    """Tell whether a file has frames; nothing if it has hex."""
    with open_plain(path) as file:
        head = bytes(file.read(4096))
    if begins_with(head, ZCASH_MAGICS):
        return True
    return False if _is_bare(head) else None


def _raw_blocks(path: Path, frames: bool | None) -> Iterator[_Raw]:
    if frames:
        with BlockFile(path, ZCASH_MAGICS) as file:
            for length in file.lengths():
                where = f"{path}: byte {file.at}"
                yield _Raw(file.take(length), where, file.at, file.network)
    elif frames is None:
        yield from _hex_blocks(path)
    else:
        yield from _bare_blocks(path)


def _hex_blocks(path: Path) -> Iterator[_Raw]:
    read = 0
    for number, line in enumerate(_lines(path), 1):
        read += len(line) + 1
        text = line.removeprefix(BOM).strip()
        if not text:
            continue
        where = f"{path}:{number}"
        try:
            yield _Raw(bytes.fromhex(text.decode("ascii")), where, read)
        except ValueError:
            what = "a block in hex is wanted: an even number of digits 0-9, a-f"
            raise LedgerError(where, what, value=text[:60], fix=f"one per line; {_AGAIN}") from None


def _lines(path: Path) -> Iterator[bytes]:
    """Give lines, refusing one longer than the hex of any block."""
    rest = b""
    with open_plain(path) as file:
        while chunk := bytes(file.read(_CHUNK)):
            *lines, rest = (rest + chunk).split(b"\n")
            yield from lines
            if len(rest) > 2 * LARGEST:
                what = "a line longer than any block"
                raise LedgerError(str(path), what, value=rest[:60], fix="write one block a line")
    if rest:
        yield rest


def _bare_blocks(path: Path) -> Iterator[_Raw]:
    held, start, at = b"", 0, 0
    with open_plain(path) as file:
        while True:
            if len(held) - start < LARGEST:
                held, start = held[start:] + bytes(file.read(2 * LARGEST)), 0
            if start == len(held):
                return
            where = f"{path}: byte {at}"
            cursor = Cursor(held, start)
            with _faults_named(where):
                _read_block(cursor)
            at += cursor.at - start
            yield _Raw(held[start : cursor.at], where, at)
            start = cursor.at


@contextmanager
def _faults_named(where: str) -> Iterator[None]:
    try:
        yield
    except Malformed as error:
        raise LedgerError(where, f"no Zcash block: {error}", fix=_AGAIN) from None


def _read_block(cursor: Cursor) -> tuple[bytes, list[ZcashTransaction]]:
    """Read the header and the transactions of a block."""
    header = _read_header(cursor)
    return header, [read_transaction(cursor) for _ in range(cursor.count(10))]


def _read_header(cursor: Cursor) -> bytes:
    start = cursor.at
    cursor.skip(HEADER)
    cursor.text()
    return cursor.data[start : cursor.at]


def _headers(path: Path, frames: bool | None) -> tuple[Network, list[Header]]:
    """Give the network of a file and the headers of its blocks."""
    headers, network = [], ZCASH
    for raw in _raw_blocks(path, frames):
        with _faults_named(raw.where):
            cursor = Cursor(raw.octets)
            header = _read_header(cursor)
            cursor.compact_size()
            skip_to_coinbase_script(cursor)
            script = cursor.take(min(cursor.compact_size(), 8))
        time = read_uint32(header, 100)
        stated = stated_height(read_uint32(header, 0), script, time)
        headers.append(Header(raw.where, double_sha256(header), header[4:36], time, stated))
        if raw.network:
            network = raw.network
        elif _target(read_uint32(header, 104)) > _MAIN_LIMIT:
            network = ZCASH_TESTNET
    return network, headers


def _target(bits: int) -> int:
    """Give the number that the hash of a block must not pass, from its short form."""
    size, number = bits >> 24, bits & 0x7FFFFF
    return number << 8 * (size - 3) if size > 3 else number >> 8 * (3 - size)


def _parsed(raw: _Raw, height: int) -> _Block:
    """Read a block, and check what its transactions are and that they are all."""
    where = f"{raw.where}: block {height}"
    with _faults_named(where):
        cursor = Cursor(raw.octets)
        header, transactions = _read_block(cursor)
        if cursor.at != len(raw.octets):
            raise Malformed(f"{len(raw.octets) - cursor.at} bytes are left over after it")
        root = merkle_root([t.txid for t in transactions])
        if root != header[36:68]:
            raise Malformed(f"its transactions give another Merkle root: {id_text(root)}")
        first, *others = transactions
        if first.coinbase_script is None:
            raise Malformed("its first transaction is no coinbase")
        if any(t.coinbase_script is not None for t in others):
            raise Malformed("it has two coinbases")
    return _Block(height, header, transactions)


def _batch(
    blocks: Sequence[_Block], path: Path, network: Network, undo: UndoFile | None, read: int
) -> Batch:
    transactions = [t for block in blocks for t in block.transactions]
    flows: dict[str, list[object]] = {"tx": [], "pool": [], "into_pool": []}
    for number, t in enumerate(transactions):
        for pool, amount in t.into.items():
            flows["tx"].append(number)
            flows["pool"].append(pool)
            flows["into_pool"].append(amount)
    return make_batch(
        path,
        read,
        _blocks(blocks),
        _rows((t.txid for t in transactions), 32),
        (_numbers(len(t.spent) for t in transactions), _inputs(blocks, network, undo)),
        (_numbers(len(t.values) for t in transactions), _outputs(blocks, network)),
        flows,
    )


def _numbers(numbers: Iterable[int]) -> Ints:
    return np.fromiter(numbers, np.int64)


def _rows(texts: Iterable[bytes], size: int) -> Octets:
    return np.frombuffer(b"".join(texts), np.uint8).reshape(-1, size)


def _blocks(blocks: Sequence[_Block]) -> BlockColumns:
    return BlockColumns(
        height=_numbers(b.height for b in blocks),
        time=_numbers(read_uint32(b.header, 100) for b in blocks),
        hash=_rows((double_sha256(b.header) for b in blocks), 32),
        previous=_rows((b.header[4:36] for b in blocks), 32),
        sizes=_numbers(len(b.transactions) for b in blocks),
        root=_rows((b.header[36:68] for b in blocks), 32),
    )


def _inputs(blocks: Sequence[_Block], network: Network, undo: UndoFile | None) -> dict[str, object]:
    spent = _rows((s for b in blocks for t in b.transactions for s in t.spent), 36)
    shapes = [_numbers(len(t.spent) for t in b.transactions[1:]) for b in blocks]
    wanted = [(b.header[4:36], shape) for b, shape in zip(blocks, shapes, strict=True)]
    records = undo.find(wanted) if undo else [None] * len(blocks)
    columns = [
        spent_columns(record, int(shape.sum()), network)
        for record, shape in zip(records, shapes, strict=True)
    ]
    value = pa.concat_arrays([value for value, _ in columns])
    return spent_coins(spent, value, pa.concat_arrays([owner for _, owner in columns]))


def _outputs(blocks: Sequence[_Block], network: Network) -> dict[str, object]:
    paying = [t for block in blocks for t in block.transactions]
    owner, spendable = owners_of([s for t in paying for s in t.scripts], network)
    # The coinbase of the first block was never made spendable.
    first = [b.height == 0 for b in blocks for t in b.transactions for _ in t.scripts]
    lost = pa.array(first, pa.bool_())
    return {
        "value": _numbers(v for t in paying for v in t.values),
        "owner": owner,
        "spendable": pc.and_not(spendable, lost),
    }
