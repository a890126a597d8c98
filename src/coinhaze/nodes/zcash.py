"""A node of Zcash, Zebra or zcashd, as a source of batches: `getblock` with verbosity 2.

Only whole zatoshi are read, never the decimal numbers beside them. The flows into and out of each
pool are checked, block by block, against the change of the pool that the node reports; a node that
omits part of a transaction (older Zebras omit JoinSplits) is refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

import msgspec
import pyarrow as pa

from coinhaze.errors import LedgerError
from coinhaze.formats.bitcoin_raw.networks import ZCASH_MAGICS, Network
from coinhaze.formats.bitcoin_raw.scripts import owners_of
from coinhaze.formats.tabular.coin_rows import (
    InputRows,
    OutputRows,
    Place,
    StatedBlock,
    at_parents,
    coin_batch,
    numbered,
    rows_of,
    rows_of_blocks,
    texts,
    whole_numbers,
)
from coinhaze.ledger.batches import FLAG, Batch
from coinhaze.nodes.best_chain import ChainChanged, ChainNode, RawBlock, WrongNetwork, check_follows
from coinhaze.nodes.rpc import JsonRpc

POOLS = ("sprout", "sapling", "orchard", "ironwood")
# Transparent coins are not a pool, and no transaction pays into the lockbox.
OUTSIDE = {"transparent", "lockbox"}
WITH_JOINSPLITS = range(2, 5)  # versions of transactions
NETWORKS = {network.name: network for network in ZCASH_MAGICS.values()}


class _Script(msgspec.Struct):
    hex: str
    addresses: list[str] | None = None


class _Output(msgspec.Struct):
    zat: int = msgspec.field(name="valueZat")
    n: int
    script: _Script = msgspec.field(name="scriptPubKey")


class _Input(msgspec.Struct):
    coinbase: str | None = None
    txid: str | None = None
    vout: int | None = None
    zat: int | None = msgspec.field(name="valueSat", default=None)
    address: str | None = None


class _JoinSplit(msgspec.Struct):
    entering: int = msgspec.field(name="vpub_oldZat")
    leaving: int = msgspec.field(name="vpub_newZat")


class _Bundle(msgspec.Struct):
    actions: list[msgspec.Raw] = []
    leaving: int | None = msgspec.field(name="valueBalanceZat", default=None)


class _Transaction(msgspec.Struct):
    txid: str
    version: int
    vin: list[_Input] = []
    vout: list[_Output] = []
    joinsplits: list[_JoinSplit] | None = msgspec.field(name="vjoinsplit", default=None)
    spends: list[msgspec.Raw] = msgspec.field(name="vShieldedSpend", default=[])
    notes: list[msgspec.Raw] = msgspec.field(name="vShieldedOutput", default=[])
    leaving: int | None = msgspec.field(name="valueBalanceZat", default=None)
    orchard: _Bundle | None = None
    ironwood: _Bundle | None = None


class _Pool(msgspec.Struct):
    id: str = ""
    change: int | None = msgspec.field(name="valueDeltaZat", default=None)


class ZcashBlock(msgspec.Struct):
    """A block as returned by `getblock` with verbosity 2."""

    hash: str
    height: int
    time: int
    tx: list[_Transaction]
    previous: str | None = msgspec.field(name="previousblockhash", default=None)
    confirmations: int = 1
    root: str | None = msgspec.field(name="merkleroot", default=None)
    pools: list[_Pool] = msgspec.field(name="valuePools", default=[])


_decoder = msgspec.json.Decoder(ZcashBlock)


class ZcashNode(ChainNode):
    """A node of Zcash; `network` names the network it must belong to: zcash, zcash testnet, ..."""

    def __init__(self, rpc: JsonRpc, *, network: str | None = None) -> None:
        super().__init__(rpc, network=network)
        if not self.network.startswith(("zcash", "unknown")):
            raise WrongNetwork(f"{rpc.node}: a node of {self.network}, not of Zcash")

    def batches(self, first: int, last: int, *, before: str = "") -> Iterator[Batch]:
        """Read a range of blocks in order, both ends included; the first follows `before`."""
        network = NETWORKS.get(self.network)
        for some, read in self.chunks(self._request, first, last):
            place = self._place(some)
            blocks = [decode_block(raw.body, place(n)) for n, raw in enumerate(some)]
            before = _check_links(some, blocks, place, before)
            yield zcash_batch(blocks, place, network, read)

    def _request(self, heights: range) -> list[RawBlock]:
        return self.getblocks(heights, 2)

    def _place(self, blocks: Sequence[RawBlock]) -> Place:
        return lambda number: f"{self.rpc.node}: block {blocks[number].height}"


def decode_block(raw: bytes, where: str) -> ZcashBlock:
    """Decode a block of `getblock` with verbosity 2."""
    try:
        return _decoder.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        fix = "ask getblock for verbosity 2"
        raise LedgerError(where, f"no block of Zcash: {error}", value=raw[:400], fix=fix) from None


def zcash_batch(
    blocks: Sequence[ZcashBlock], where: Place, network: Network | None, read: int = 0
) -> Batch:
    """Make a batch of blocks; `where` maps the number of a block to its origin."""
    stated = [StatedBlock(b.height, b.hash, b.previous, b.time, root=b.root) for b in blocks]
    transactions, block_rows = rows_of_blocks(
        stated, [[t.txid for t in b.tx] for b in blocks], where
    )
    records, place = [t for b in blocks for t in b.tx], transactions.place
    flows = [flows_of(t, place(row)) for row, t in enumerate(records)]
    start = 0
    for number, block in enumerate(blocks):
        _check_coinbase(block, where(number))
        _check_pools(block, flows[start : start + len(block.tx)], where(number))
        start += len(block.tx)
    return coin_batch(
        transactions,
        _outputs(records, place, network),
        _inputs(records, place),
        digits=64,
        blocks=block_rows,
        flows=[(row, pool, zat) for row, of in enumerate(flows) for pool, zat in of.items()],
        read=read,
    )


def flows_of(t: _Transaction, where: str) -> dict[str, int]:
    """Return what a transaction brings into each pool, negative if out; unmoved pools are omitted.

    Balances count what leaves a pool, so their sign is reversed.
    """
    for joinsplit in t.joinsplits or []:
        if joinsplit.entering < 0 or joinsplit.leaving < 0:
            raise LedgerError(where, "a JoinSplit of a negative amount", value=joinsplit)
    if (t.spends or t.notes) and t.leaving is None:
        raise LedgerError(where, "shielded, but the node does not tell valueBalanceZat")
    flows = {
        "sprout": sum(j.entering - j.leaving for j in t.joinsplits or []),
        "sapling": -(t.leaving or 0),
    }
    for pool, bundle in (("orchard", t.orchard), ("ironwood", t.ironwood)):
        if bundle is not None:
            if bundle.actions and bundle.leaving is None:
                raise LedgerError(where, f"the node does not tell valueBalanceZat of {pool}")
            flows[pool] = -(bundle.leaving or 0)
    return {pool: zat for pool, zat in flows.items() if zat}


def _check_links(
    requested: Sequence[RawBlock], blocks: Sequence[ZcashBlock], place: Place, before: str
) -> str:
    """Raise an error unless blocks are the requested ones and each follows the one before."""
    for number, (raw, block) in enumerate(zip(requested, blocks, strict=True)):
        if (block.height, block.hash.lower()) != (raw.height, raw.hash):
            raise LedgerError(place(number), "the node gave another block", value=block.hash)
        if block.confirmations < 0:
            what = "left the best chain while it was read"
            raise ChainChanged(place(number), what, value=block.hash)
        check_follows(block.previous, before, place(number))
        before = raw.hash
    return before


def _check_coinbase(block: ZcashBlock, where: str) -> None:
    if not block.tx:
        raise LedgerError(where, "a block without transactions")
    for number, t in enumerate(block.tx):
        coinbase = [i.coinbase is not None for i in t.vin]
        if coinbase != [True] if number == 0 else any(coinbase):
            what = "a coinbase anywhere but first" if number else "a first that is no coinbase"
            raise LedgerError(f"{where} transaction {number}", what, value=t.txid)


def _check_pools(block: ZcashBlock, flows: Sequence[Mapping[str, int]], where: str) -> None:
    """Check that the flows of all transactions add up to the change of each pool."""
    stated = {p.id: p.change for p in block.pools if p.id not in OUTSIDE and p.change is not None}
    moved: Counter[str] = Counter()
    for of in flows:
        moved.update(of)
    for pool, change in stated.items():
        if moved[pool] != change:
            what = f"transactions bring {moved[pool]} zatoshi into pool {pool}, the block says"
            fix = f"one of {', '.join(POOLS)}" if pool not in POOLS else "a newer node tells all"
            raise LedgerError(where, what, value=change, fix=fix)
    silent = [t.txid for t in block.tx if t.joinsplits is None and t.version in WITH_JOINSPLITS]
    if silent and "sprout" not in stated:
        what = "the node tells neither JoinSplits nor the change of pool sprout"
        raise LedgerError(where, what, value=silent[0], fix="ask a newer node")


def _outputs(records: Sequence[_Transaction], place: Place, network: Network | None) -> OutputRows:
    parent = rows_of([len(t.vout) for t in records])
    coins = list(chain.from_iterable(t.vout for t in records))

    of_row = at_parents(parent, place)
    scripts = [_octets(o.script, row, of_row) for row, o in enumerate(coins)]
    if network:
        owner, spendable = owners_of(scripts, network)
        is_data = pa.compute.invert(spendable)
    else:
        named = [",".join(sorted(set(o.script.addresses or ()))) or None for o in coins]
        owner = texts(named, of_row, field="address")
        is_data = pa.array([script[:1] == b"\x6a" for script in scripts], FLAG)
    return OutputRows(
        parent,
        vout=whole_numbers([o.n for o in coins], of_row, field="n"),
        value=whole_numbers([o.zat for o in coins], of_row, field="valueZat"),
        owner=owner,
        is_data=is_data,
    )


def _octets(script: _Script, row: int, place: Place) -> bytes:
    try:
        return bytes.fromhex(script.hex)
    except ValueError:
        raise LedgerError(place(row), "a script that is no hex", value=script.hex) from None


def _inputs(records: Sequence[_Transaction], place: Place) -> InputRows:
    spends = [[i for i in t.vin if i.coinbase is None] for t in records]
    parent = rows_of([len(s) for s in spends])
    flat = list(chain.from_iterable(spends))

    of_row = at_parents(parent, place)
    return InputRows(
        parent,
        vin=pa.array(numbered(parent)),
        spent_txid=texts([i.txid for i in flat], of_row, field="txid of an input"),
        spent_vout=whole_numbers([i.vout for i in flat], of_row, field="vout of an input"),
        value=whole_numbers([i.zat for i in flat], of_row, field="valueSat"),
        owner=texts([i.address for i in flat], of_row, field="address"),
    )
