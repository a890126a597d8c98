"""Blocks of Bitcoin and chains that share its form, byte by byte -> a batch of what they hold.

Every block is checked against its Merkle root.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coinhaze.amounts import Bools
from coinhaze.errors import LedgerError
from coinhaze.formats.bitcoin_raw.files import UndoFile, spent_columns
from coinhaze.formats.bitcoin_raw.networks import BITCOIN, MERGED, MWEB, Network
from coinhaze.formats.bitcoin_raw.scripts import owner_column
from coinhaze.formats.bitcoin_raw.wire import (
    Cursor,
    Ints,
    Malformed,
    Octets,
    id_letters,
    id_text,
    text_column,
)
from coinhaze.formats.tabular.coin_rows import numbered, rows_of
from coinhaze.ledger.batches import Batch, Where, table_of
from coinhaze.ledger.coin_blocks import NOT_KNOWN, CoinBlocks
from coinhaze.ledger.script_types import (
    MULTISIG,
    OTHER,
    P2PK,
    P2PKH,
    P2SH,
    P2TR,
    P2WPKH,
    P2WSH,
)

DAMAGED = "the file is damaged: copy it again from the node"
HEADER = 80
_POOL_SCRIPT = b"\x58\x20"  # version 8 of a witness program: of the coin that holds the pool
# Types of scripts, by their kinds in script_kernels.
_SCRIPT_TYPE = np.array(
    [OTHER, P2PKH, P2SH, P2WPKH, P2WSH, P2TR, P2PK, MULTISIG, OTHER, P2PK], np.uint8
)
# Bitcoin Core's IsBIP30Unspendable: later blocks made coins of the same names, so these are lost.
OVERWRITTEN = {
    "00000000000271a2dc26e7667f8419f2e15416dc6955e5a6c6cdf3f2574dd08e",
    "00000000000af0aed4792b1acee3d966af36cf5def14935db8de83d6f9306f2f",
}


@dataclass(frozen=True)
class BlockColumns:
    """Blocks of a batch: one array entry each. A hash of zeros is one that is not known."""

    height: Ints
    time: Ints
    hash: Octets  # rows of 32
    previous: Octets
    sizes: Ints  # transactions
    root: Octets  # of the Merkle tree, as the header has it


def make_batch(
    path: Path | str,
    read: int,
    blocks: BlockColumns,
    txids: Octets,
    inputs: tuple[Ints, Mapping[str, object]],
    outputs: tuple[Ints, Mapping[str, object]],
    flows: Mapping[str, Sequence[object]] | None = None,
) -> Batch:
    """Join columns to a batch.

    `txids` are hashes in rows of 32, block by block; the first of each block is its coinbase's.
    `inputs` and `outputs` are how many each transaction has, and their columns: spent_txid,
    spent_vout, value and owner, coinbases left out; value, owner and spendable. `flows` has
    columns tx (a number in this batch), pool, into_pool.
    """
    letters = id_letters(txids)
    block = rows_of(blocks.sizes)
    height, position = blocks.height[block], numbered(block)
    tables = {"blocks": _block_table(blocks), "stated_blocks": _stated(blocks)}
    tables["transactions"] = table_of(
        "transactions",
        {
            "height": height,
            "txid": text_column(letters),
            "coinbase": pa.array(position == 0),
            "position": position,
            "time": blocks.time[block],
        },
    )
    paid, made = outputs
    tx = rows_of(paid)
    names = {"height": height[tx], "txid": text_column(letters[tx])}
    tables["outputs"] = table_of("outputs", {**names, "vout": numbered(tx), **made})
    taken, spent = inputs
    tx = rows_of(taken)
    names = {"height": height[tx], "txid": text_column(letters[tx])}
    tables["inputs"] = table_of("inputs", {**names, "vin": numbered(tx), **spent})
    if flows and flows["tx"]:
        tx = np.array(flows["tx"], np.int64)
        names = {"height": height[tx], "txid": text_column(letters[tx])}
        columns = {"pool": flows["pool"], "into_pool": flows["into_pool"]}
        tables["pool_flows"] = table_of("pool_flows", names | columns)
    tables = {name: table for name, table in tables.items() if table.num_rows}
    return Batch(tables, _place_in(path, tables), read)


def _block_table(blocks: BlockColumns) -> pa.Table:
    known = blocks.hash.any(axis=1)
    # The first block has none before it.
    none = pa.array(~blocks.previous[known].any(axis=1))
    previous = text_column(id_letters(blocks.previous[known]))
    return table_of(
        "blocks",
        {
            "height": blocks.height[known],
            "hash": text_column(id_letters(blocks.hash[known])),
            "previous": pc.if_else(none, pa.scalar(None, pa.string()), previous),
            "time": blocks.time[known],
        },
    )


def _stated(blocks: BlockColumns) -> pa.Table:
    root = text_column(id_letters(blocks.root))
    stated = {"height": blocks.height, "transaction_count": blocks.sizes, "merkle_root": root}
    return table_of("stated_blocks", stated)


def _place_in(path: Path | str, tables: Mapping[str, pa.Table]) -> Where:
    def place(table: str, row: int) -> str:
        of = tables[table]
        txid = f", transaction {of['txid'][row]}" if "txid" in of.column_names else ""
        return f"{path}: block {of['height'][row]}{txid}"

    return place


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
    layout, txids = _laid_out(blocks, network, source)
    return make_batch(
        source,
        read,
        _blocks(blocks, layout),
        txids,
        (layout.per_transaction(1), _inputs(blocks, layout, network, undo)),
        (layout.per_transaction(2), _outputs(blocks, layout, network)),
    )


def coin_blocks(
    blocks: Sequence[BlockBytes], *, network: Network, source: Path | str
) -> CoinBlocks:
    """Give blocks as plain columns; values of coins spent are left to where they were made."""
    layout, txids = _laid_out(blocks, network, source)
    columns = _blocks(blocks, layout)
    inputs, outputs = layout.per_transaction(1), layout.per_transaction(2)
    named = layout.octets[layout.spent_at[:, None] + np.arange(36)]
    coinbase = np.zeros(len(txids), dtype=np.bool_)
    coinbase[layout.after - layout.sizes] = True
    kinds, _, spendable = _kinds(blocks, layout, network)
    return CoinBlocks(
        heights=columns.height,
        times=columns.time,
        sizes=columns.sizes,
        ids=txids,
        coinbase=coinbase,
        inputs=inputs,
        outputs=outputs,
        spent_ids=np.ascontiguousarray(named[:, :32]),
        spent_vouts=named[:, 32:].copy().view("<u4").reshape(-1).astype(np.int64),
        spent_values=np.full(len(named), NOT_KNOWN, dtype=np.int64),
        made_vouts=numbered(rows_of(outputs)),
        made_values=layout.value,
        made_spendable=spendable,
        made_scripts=_SCRIPT_TYPE[kinds],
    )


def _laid_out(
    blocks: Sequence[BlockBytes], network: Network, source: Path | str
) -> tuple[_Layout, Octets]:
    """Find the parts of blocks, and the ids of their transactions."""
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
    return layout, txids


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
    from coinhaze.formats.bitcoin_raw.hash_kernels import double_hashes, merkle_roots

    txids: Octets = double_hashes(layout.plain, layout.lasts[:, 0])
    roots, twice = merkle_roots(txids, layout.after)
    for block, root, repeated in zip(blocks, roots, twice.tolist(), strict=True):
        if repeated:
            what = "transactions that stand in the block twice"
            raise LedgerError(f"{source}: block {block.height}", what)
        if root.tobytes() != block.octets[36:68]:
            what = "the transactions do not give the Merkle root in the header"
            raise LedgerError(
                f"{source}: block {block.height}", what, value=id_text(root.tobytes()), fix=DAMAGED
            )
    return txids


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


def _outputs(blocks: Sequence[BlockBytes], layout: _Layout, network: Network) -> dict[str, object]:
    kinds, places, spendable = _kinds(blocks, layout, network)
    owner = owner_column(layout.octets, kinds, places, layout.script_size, network)
    return {"value": layout.value, "owner": owner, "spendable": pa.array(spendable)}


def _kinds(
    blocks: Sequence[BlockBytes], layout: _Layout, network: Network
) -> tuple[Ints, Ints, Bools]:
    """Tell the kind of every output, where its owner is named, and whether it can be spent."""
    from coinhaze.formats.bitcoin_raw.script_kernels import NOBODY, kinds_of_scripts

    kinds, places = kinds_of_scripts(layout.octets, layout.script_at, layout.script_size)
    spendable = kinds != NOBODY
    first = 0
    for block, last in zip(blocks, layout.after.tolist(), strict=True):
        lost = network is BITCOIN and id_text(block.hash) in OVERWRITTEN
        if block.height == 0 or lost:  # the coinbase of the first block was never made spendable
            begin = int(layout.lasts[first - 1, 2]) if first else 0
            spendable[begin : layout.lasts[first, 2]] = False
        first = last
    return kinds, places, spendable


def _inputs(
    blocks: Sequence[BlockBytes], layout: _Layout, network: Network, undo: UndoFile | None
) -> dict[str, object]:
    named = layout.octets[layout.spent_at[:, None] + np.arange(36)]
    value, owner = _spent(blocks, layout, network, undo)
    return spent_coins(named, value, owner)


def spent_coins(named: Octets, value: pa.Array, owner: pa.Array) -> dict[str, object]:
    """Make the columns of inputs; `named` are rows of 36, each a hash and the number of a coin."""
    return {
        "spent_txid": text_column(id_letters(named[:, :32])),
        "spent_vout": named[:, 32:].copy().view("<u4").reshape(-1).astype(np.int64),
        "value": value,
        "owner": owner,
    }


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
