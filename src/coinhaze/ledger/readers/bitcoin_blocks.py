"""Raw blocks in a node's own files, blk*.dat, of Bitcoin and chains that share its framing.

Every block is checked against its Merkle root. Values and owners of spent coins come from the undo
file beside (rev*.dat); without it they are null.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np
import pyarrow as pa

from coinhaze.errors import LedgerError
from coinhaze.ledger.batches import Batch
from coinhaze.ledger.readers.block_files import (
    BlockFile,
    begins_with,
    errors_named,
    numbered,
    undo_beside,
)
from coinhaze.ledger.readers.block_heights import Header, all_known, height_told, place
from coinhaze.ledger.readers.coin_tables import (
    Blocks,
    Inputs,
    Outputs,
    Transactions,
    make_batch,
)
from coinhaze.ledger.readers.networks import BITCOIN, BITCOIN_MAGICS, MERGED, Network
from coinhaze.ledger.readers.scripts import owner_column
from coinhaze.ledger.readers.undo import UndoFile, spent_columns
from coinhaze.ledger.readers.wire import (
    Cursor,
    Ints,
    Malformed,
    Octets,
    double_sha256,
    id_text,
    merkle_root,
    read_uint32,
)

HEADER = 80
BATCH_BYTES = 1 << 22  # some 50,000 rows
_HEAD = 512  # of a block: enough to see the height in its coinbase, unless another chain's work is
# Bitcoin Core's IsBIP30Unspendable: later blocks made coins of the same names, so these are lost.
_OVERWRITTEN = {
    "00000000000271a2dc26e7667f8419f2e15416dc6955e5a6c6cdf3f2574dd08e",
    "00000000000af0aed4792b1acee3d966af36cf5def14935db8de83d6f9306f2f",
}


def recognises(head: bytes) -> bool:
    """Tell whether a file begins with a frame of a known network, hidden by a key or not."""
    return begins_with(head, BITCOIN_MAGICS)


def batches(path: Path) -> Iterator[Batch]:
    """Read the blocks of a file that are on the chain, in the order of the file.

    Looks into the files beside it, by number, where heights or lost races cannot be told without.
    """
    with errors_named(path):
        network, headers = _headers_around(path)
        if network is None:
            return
        heights = place(headers, network)
        names = _hashes(headers, heights)
        beside = undo_beside(path)
        undo = UndoFile(beside, network) if beside else None
        with BlockFile(path, BITCOIN_MAGICS) as file:
            for blocks in _bundles(file, heights, names):
                yield _batch(blocks, path, network, undo, file.at)


@dataclass(frozen=True)
class _Block:
    height: int
    hash: bytes  # empty where not known
    octets: bytes
    body: int  # where the transactions begin


def _headers_around(path: Path) -> tuple[Network | None, list[Header]]:
    """Give the headers of a file, then those of files beside it as far as needed."""
    network, headers = _headers(path, own=True)
    if network is None:
        return None, []
    # The next file tells which of two last blocks won; both neighbours, as blocks may be shuffled.
    for step in (1, -1):
        headers += _headers_beside(path, step)
    step = -2
    if not all_known(headers, network):
        while beside := _headers_beside(path, step):
            headers += beside
            step -= 1
    return network, headers


def _headers_beside(path: Path, step: int) -> list[Header]:
    other = numbered(path, step)
    if other is None:
        return []
    with errors_named(other):
        return _headers(other, own=False)[1]


def _headers(path: Path, *, own: bool) -> tuple[Network | None, list[Header]]:
    headers = []
    with BlockFile(path, BITCOIN_MAGICS) as file:
        for length in file.lengths():
            assert file.network is not None
            where = f"{path}: byte {file.at}"
            merged = file.network.rules & MERGED
            octets = file.take(length if merged else min(length, _HEAD))
            file.skip(length - len(octets))
            headers.append(_header(octets, where, file.network, own))
        return file.network, headers


def _header(octets: bytes, where: str, network: Network, own: bool) -> Header:
    if len(octets) < HEADER:
        raise LedgerError(where, "a block without a whole header", value=octets)
    time = read_uint32(octets, 68)
    told = None
    version = int.from_bytes(octets[:4], "little", signed=True)
    if network.rules & MERGED:
        version &= 0xFF  # above it stand the number of the chain and a mark of merged mining
    if version >= 2:
        try:
            told = height_told(version, _coinbase_script(octets, network), time)
        except Malformed as error:
            raise LedgerError(where, f"no block: {error}") from None
    hash_ = double_sha256(octets[:HEADER]) if network.hash_known else b""
    return Header(where, hash_, octets[4:36], time, told, own)


def _coinbase_script(octets: bytes, network: Network) -> bytes:
    cursor = Cursor(octets, _body(octets, network))
    cursor.compact_size()
    cursor.skip(4)
    if cursor.compact_size() == 0:
        cursor.skip(2)
    cursor.skip(36)
    return cursor.take(min(cursor.compact_size(), 8))


def _body(octets: bytes, network: Network) -> int:
    """Give the place behind the header of a block, and behind another chain's work if it has it."""
    if not network.rules & MERGED or not octets[1] & 1:
        return HEADER
    cursor = Cursor(octets, HEADER)
    _skip_other_work(cursor)
    return cursor.at


def _skip_other_work(cursor: Cursor) -> None:
    """Step over the coinbase that holds the work, which may carry witnesses, and its branches."""
    cursor.skip(4)
    inputs = cursor.count(41)
    witness = inputs == 0
    if witness:
        cursor.skip(1)
        inputs = cursor.count(41)
    for _ in range(inputs):
        cursor.skip(36)
        cursor.skip(cursor.compact_size() + 4)
    for _ in range(cursor.count(9)):
        cursor.skip(8)
        cursor.skip(cursor.compact_size())
    for _ in range(inputs if witness else 0):
        for _ in range(cursor.count(1)):
            cursor.skip(cursor.compact_size())
    cursor.skip(4 + 32)
    for _ in range(2):
        cursor.skip(32 * cursor.count(32) + 4)
    cursor.skip(HEADER)


def _hashes(headers: Sequence[Header], heights: Mapping[int, int]) -> dict[int, bytes]:
    """Give hashes; where they cannot be computed, what the block above says of the one below."""
    above = {height: headers[i].previous for i, height in heights.items()}
    return {i: headers[i].hash or above.get(height + 1, b"") for i, height in heights.items()}


def _bundles(
    file: BlockFile, heights: Mapping[int, int], names: Mapping[int, bytes]
) -> Iterator[list[_Block]]:
    """Gather blocks of the chain to some four million bytes at a time."""
    blocks: list[_Block] = []
    octets = 0
    for i, length in enumerate(file.lengths()):
        if i not in heights:
            file.skip(length)
            continue
        assert file.network is not None
        blocks.append(_block(heights[i], names[i], file.take(length), file.network, file.path))
        octets += length
        if octets >= BATCH_BYTES:
            yield blocks
            blocks, octets = [], 0
    if blocks:
        yield blocks


def _block(height: int, name: bytes, octets: bytes, network: Network, path: Path) -> _Block:
    try:
        return _Block(height, name, octets, _body(octets, network))
    except Malformed as error:
        where = f"{path}: block {height}"
        raise LedgerError(where, f"its proof of work cannot be read: {error}") from None


def _batch(
    blocks: Sequence[_Block], path: Path, network: Network, undo: UndoFile | None, read: int
) -> Batch:
    from coinhaze.ledger.readers.block_kernels import FAULTS, walk

    sizes = np.fromiter((len(b.octets) for b in blocks), np.int64, len(blocks))
    octets = np.frombuffer(b"".join(b.octets for b in blocks), np.uint8)
    ends = np.cumsum(sizes)
    starts = ends - sizes
    bodies = np.fromiter((b.body for b in blocks), np.int64, len(blocks))
    (fault, block, at), *found = walk(octets, starts + bodies, ends, network.rules)
    if fault:
        where = f"{path}: block {blocks[block].height}"
        what = f"the block {FAULTS[fault]}; see the transaction at byte {at - starts[block]} of it"
        raise LedgerError(where, what, value=id_text(blocks[block].hash))
    layout = _Layout(octets, starts, *found)
    txids = _checked_txids(blocks, layout, path)
    return make_batch(
        path,
        read,
        _blocks(blocks, layout),
        Transactions(txids, layout.per_transaction(1), layout.per_transaction(2)),
        _inputs(blocks, layout, network, undo),
        _outputs(blocks, layout, network),
    )


@dataclass(frozen=True)
class _Layout:
    """What `walk` finds in blocks that stand one behind the other."""

    octets: Octets
    starts: Ints
    after: Ints  # transactions up to each block
    lasts: Ints
    plain: Octets
    spent_at: Ints
    value: Ints
    script_at: Ints
    script_size: Ints

    @property
    def sizes(self) -> Ints:
        return np.diff(self.after, prepend=0)

    def per_transaction(self, column: int) -> Ints:
        return np.diff(self.lasts[:, column], prepend=0)


def _checked_txids(blocks: Sequence[_Block], layout: _Layout, path: Path) -> Octets:
    """Hash all transactions, and hold them against the Merkle roots in the headers."""
    plain = layout.plain.tobytes()
    ends = layout.lasts[:, 0].tolist()
    starts = [0, *ends[:-1]]
    txids = [
        sha256(sha256(plain[a:b]).digest()).digest() for a, b in zip(starts, ends, strict=True)
    ]
    first = 0
    for block, last in zip(blocks, layout.after.tolist(), strict=True):
        try:
            root = merkle_root(txids[first:last])
        except Malformed as error:
            raise LedgerError(f"{path}: block {block.height}", str(error)) from None
        if root != block.octets[36:68]:
            what = "the transactions do not give the Merkle root in the header"
            raise LedgerError(f"{path}: block {block.height}", what, value=id_text(root))
        first = last
    return np.frombuffer(b"".join(txids), np.uint8).reshape(-1, 32)


def _blocks(blocks: Sequence[_Block], layout: _Layout) -> Blocks:
    headers = layout.octets[layout.starts[:, None] + np.arange(HEADER)]
    names = b"".join(b.hash or bytes(32) for b in blocks)
    return Blocks(
        height=np.fromiter((b.height for b in blocks), np.int64, len(blocks)),
        time=headers[:, 68:72].copy().view("<u4")[:, 0].astype(np.int64),
        hash=np.frombuffer(names, np.uint8).reshape(-1, 32),
        previous=headers[:, 4:36],
        sizes=layout.sizes,
    )


def _outputs(blocks: Sequence[_Block], layout: _Layout, network: Network) -> Outputs:
    from coinhaze.ledger.readers.script_kernels import NOBODY, kinds_of_scripts

    kinds, places = kinds_of_scripts(layout.octets, layout.script_at, layout.script_size)
    owner = owner_column(layout.octets, kinds, places, layout.script_size, network)
    spendable = kinds != NOBODY
    first = 0
    for block, last in zip(blocks, layout.after.tolist(), strict=True):
        lost = network is BITCOIN and id_text(block.hash) in _OVERWRITTEN
        if block.height == 0 or lost:  # the coinbase of the first block was never made spendable
            begin = int(layout.lasts[first - 1, 2]) if first else 0
            spendable[begin : layout.lasts[first, 2]] = False
        first = last
    return Outputs(layout.value, owner, pa.array(spendable))


def _inputs(
    blocks: Sequence[_Block], layout: _Layout, network: Network, undo: UndoFile | None
) -> Inputs:
    named = layout.octets[layout.spent_at[:, None] + np.arange(36)]
    value, owner = _spent(blocks, layout, network, undo)
    return Inputs(
        spent_txid=named[:, :32],
        spent_vout=named[:, 32:].copy().view("<u4").reshape(-1).astype(np.int64),
        value=value,
        owner=owner,
    )


def _spent(
    blocks: Sequence[_Block], layout: _Layout, network: Network, undo: UndoFile | None
) -> tuple[pa.Array, pa.Array]:
    """Give values and owners of spent coins, null where no undo data tells them."""
    if undo is None:
        number = len(layout.spent_at)
        return pa.nulls(number, pa.int64()), pa.nulls(number, pa.string())
    inputs = layout.per_transaction(1)
    by_block = np.split(inputs, layout.after[:-1])
    wanted = [(b.octets[4:36], shape[1:]) for b, shape in zip(blocks, by_block, strict=True)]
    records = undo.find(wanted)
    values, owners = [], []
    for record, shape in zip(records, by_block, strict=True):
        value, owner = spent_columns(record, int(shape.sum()), network)
        values.append(value)
        owners.append(owner)
    return pa.concat_arrays(values), pa.concat_arrays(owners)
