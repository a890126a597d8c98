"""Blocks of Bitcoin and chains that share its form, byte by byte -> a batch of what they hold.

Every block is checked against its Merkle root.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np
import pyarrow as pa

from coinhaze.errors import LedgerError
from coinhaze.formats.bitcoin_raw.networks import BITCOIN, MERGED, MWEB, Network
from coinhaze.formats.bitcoin_raw.scripts import owner_column
from coinhaze.formats.bitcoin_raw.tables import (
    BlockColumns,
    InputColumns,
    OutputColumns,
    TransactionColumns,
    make_batch,
)
from coinhaze.formats.bitcoin_raw.undo import UndoFile, spent_columns
from coinhaze.formats.bitcoin_raw.wire import Cursor, Ints, Malformed, Octets, id_text, merkle_root
from coinhaze.ledger.batches import Batch

HEADER = 80
_POOL_SCRIPT = b"\x58\x20"  # version 8 of a witness program: of the coin that holds the pool
# Bitcoin Core's IsBIP30Unspendable: later blocks made coins of the same names, so these are lost.
OVERWRITTEN = {
    "00000000000271a2dc26e7667f8419f2e15416dc6955e5a6c6cdf3f2574dd08e",
    "00000000000af0aed4792b1acee3d966af36cf5def14935db8de83d6f9306f2f",
}


@dataclass(frozen=True)
class BlockBytes:
    """A block: where it stands in the chain, and its bytes."""

    height: int
    hash: bytes  # empty where not known
    octets: bytes
    body: int  # where the transactions begin


def read_block(
    height: int, name: bytes, octets: bytes, *, network: Network, source: Path | str
) -> BlockBytes:
    """Find where a block's transactions begin; `source` is a file or node, for errors."""
    try:
        return BlockBytes(height, name, octets, body_of(octets, network))
    except Malformed as error:
        where = f"{source}: block {height}"
        raise LedgerError(where, f"its proof of work cannot be read: {error}") from None


def body_of(octets: bytes, network: Network) -> int:
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


def block_batch(
    blocks: Sequence[BlockBytes],
    *,
    network: Network,
    source: Path | str,
    undo: UndoFile | None = None,
    read: int = 0,
) -> Batch:
    """Make a batch of blocks; without undo data values and owners of coins spent are null."""
    from coinhaze.formats.bitcoin_raw.kernels import FAULTS, walk

    sizes = np.fromiter((len(b.octets) for b in blocks), np.int64, len(blocks))
    octets = np.frombuffer(b"".join(b.octets for b in blocks), np.uint8)
    ends = np.cumsum(sizes)
    starts = ends - sizes
    bodies = np.fromiter((b.body for b in blocks), np.int64, len(blocks))
    (fault, block, at), *found = walk(octets, starts + bodies, ends, network.rules)
    if fault:
        where = f"{source}: block {blocks[block].height}"
        what = f"the block {FAULTS[fault]}; see the transaction at byte {at - starts[block]} of it"
        raise LedgerError(where, what, value=id_text(blocks[block].hash))
    layout = _Layout(octets, starts, *found)
    txids = _checked_txids(blocks, layout, source)
    if network.rules & MWEB:
        _refuse_pool(blocks, layout, source)
    return make_batch(
        source,
        read,
        _blocks(blocks, layout),
        TransactionColumns(txids, layout.per_transaction(1), layout.per_transaction(2)),
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


def _checked_txids(blocks: Sequence[BlockBytes], layout: _Layout, source: Path | str) -> Octets:
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
            raise LedgerError(f"{source}: block {block.height}", str(error)) from None
        if root != block.octets[36:68]:
            what = "the transactions do not give the Merkle root in the header"
            raise LedgerError(f"{source}: block {block.height}", what, value=id_text(root))
        first = last
    return np.frombuffer(b"".join(txids), np.uint8).reshape(-1, 32)


def _refuse_pool(blocks: Sequence[BlockBytes], layout: _Layout, source: Path | str) -> None:
    """Refuse blocks that end in the transaction which moves coins into and out of MWEB.

    Taken as it stands it would tie each coin that comes out to those that go in beside it.
    """
    last = layout.after - 1
    first_output = np.where(last > 0, layout.lasts[last - 1, 2], 0)
    has_output = first_output < layout.lasts[last, 2]
    for number in np.flatnonzero(has_output).tolist():
        at = int(layout.script_at[first_output[number]])
        if layout.octets[at : at + len(_POOL_SCRIPT)].tobytes() == _POOL_SCRIPT:
            block = blocks[number]
            what = "holds coins of MWEB, Litecoin's shielded pool, which raw blocks do not part"
            fix = "ingest from a node, whose answers tell them: bitcoin+http://HOST:PORT"
            where = f"{source}: block {block.height}"
            raise LedgerError(where, what, value=id_text(block.hash), fix=fix)


def _blocks(blocks: Sequence[BlockBytes], layout: _Layout) -> BlockColumns:
    headers = layout.octets[layout.starts[:, None] + np.arange(HEADER)]
    names = b"".join(b.hash or bytes(32) for b in blocks)
    return BlockColumns(
        height=np.fromiter((b.height for b in blocks), np.int64, len(blocks)),
        time=headers[:, 68:72].copy().view("<u4")[:, 0].astype(np.int64),
        hash=np.frombuffer(names, np.uint8).reshape(-1, 32),
        previous=headers[:, 4:36],
        sizes=layout.sizes,
        root=headers[:, 36:68],
    )


def _outputs(blocks: Sequence[BlockBytes], layout: _Layout, network: Network) -> OutputColumns:
    from coinhaze.formats.bitcoin_raw.script_kernels import NOBODY, kinds_of_scripts

    kinds, places = kinds_of_scripts(layout.octets, layout.script_at, layout.script_size)
    owner = owner_column(layout.octets, kinds, places, layout.script_size, network)
    spendable = kinds != NOBODY
    first = 0
    for block, last in zip(blocks, layout.after.tolist(), strict=True):
        lost = network is BITCOIN and id_text(block.hash) in OVERWRITTEN
        if block.height == 0 or lost:  # the coinbase of the first block was never made spendable
            begin = int(layout.lasts[first - 1, 2]) if first else 0
            spendable[begin : layout.lasts[first, 2]] = False
        first = last
    return OutputColumns(layout.value, owner, pa.array(spendable))


def _inputs(
    blocks: Sequence[BlockBytes], layout: _Layout, network: Network, undo: UndoFile | None
) -> InputColumns:
    named = layout.octets[layout.spent_at[:, None] + np.arange(36)]
    value, owner = _spent(blocks, layout, network, undo)
    return InputColumns(
        spent_txid=named[:, :32],
        spent_vout=named[:, 32:].copy().view("<u4").reshape(-1).astype(np.int64),
        value=value,
        owner=owner,
    )


def _spent(
    blocks: Sequence[BlockBytes], layout: _Layout, network: Network, undo: UndoFile | None
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
