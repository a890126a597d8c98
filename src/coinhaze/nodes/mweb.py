"""Litecoin's MWEB in blocks of `getblock`: what enters and leaves the shielded pool.

The last transaction of a block, the integrating one (HogEx), spends all peg-ins of the block and
the coin that holds the pool, and creates the peg-outs and a new coin that holds the pool. Taken
literally it would tie each peg-out to the peg-ins of its block. So a peg-in counts as a flow into
the pool from the transaction that created it, and the integrating transaction brings peg-outs and
the fees of shielded payments out of the pool; the coins in between are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from coinhaze.errors import LedgerError
from coinhaze.formats.json.bitcoin import CoreTransaction, satoshi
from coinhaze.ledger.batches import Rows

POOL = "shielded"
PEG_IN, HOLDER = "witness_mweb_pegin", "witness_mweb_hogaddr"

Coin = tuple[str, int]  # transaction and output


class _Block(msgspec.Struct):
    tx: list[CoreTransaction]


_decoder = msgspec.json.Decoder(_Block, float_hook=Decimal)


@dataclass(frozen=True)
class Holder:
    """The coin that holds the pool after a block; none before the pool began."""

    coin: Coin | None = None
    value: int = 0


@dataclass
class Pegs:
    """The rows to remove from the tables of a block, and the flows to add."""

    flows: dict[str, int] = field(default_factory=dict)
    made: set[Coin] = field(default_factory=set)
    integrating: str = ""
    is_empty: bool = False


def holder_after(block: bytes, where: str) -> Holder:
    """Find the coin that holds the pool after a block."""
    found = _decode(block, where)
    last = found.tx[-1] if found.tx else None
    if last is None or not last.vout or last.vout[0].script.type != HOLDER:
        return Holder()
    return Holder((last.txid, last.vout[0].n), satoshi(last.vout[0].value, where))


def read_pegs(block: bytes, before: Holder, where: str) -> tuple[Pegs, Holder]:
    """Read a block's peg-ins and peg-outs, and check that the pool's money adds up."""
    after = holder_after(block, where)
    if after.coin is None:
        raise LedgerError(where, "a block with MWEB that has no integrating transaction")
    transactions = _decode(block, where).tx
    pegs, entered = Pegs(integrating=after.coin[0]), 0
    for t in transactions[:-1]:
        for o in t.vout:
            if o.script.type == PEG_IN:
                value = satoshi(o.value, where)
                pegs.made.add((t.txid, o.n))
                pegs.flows[t.txid] = pegs.flows.get(t.txid, 0) + value
                entered += value
    last = transactions[-1]
    _check_inputs(last, pegs.made, before, where)
    left = sum(satoshi(o.value, where) for o in last.vout[1:])
    fee = before.value + entered - after.value - left
    if fee < 0:
        raise LedgerError(where, "more money leaves MWEB than was in it", value=-fee)
    pegs.made.add(after.coin)
    pegs.flows[last.txid] = -(left + fee)
    pegs.is_empty = len(last.vout) == 1 and fee == 0
    return pegs, after


def without_pegs(tables: Mapping[str, pa.Table], pegs: Mapping[int, Pegs]) -> dict[str, pa.Table]:
    """Remove the coins in between from tables and add the flows; `pegs` are by height."""
    flows = Rows("pool_flows")
    for height, block in pegs.items():
        for txid, value in block.flows.items():
            if value:
                flows.add(height=height, txid=txid, pool=POOL, into_pool=value)
    integrating = {p.integrating for p in pegs.values()}
    empty = {p.integrating for p in pegs.values() if p.is_empty}
    made = {coin for p in pegs.values() for coin in p.made}
    retained = dict(tables)
    retained["transactions"] = _without(tables["transactions"], "txid", empty)
    if "inputs" in tables:
        retained["inputs"] = _without(tables["inputs"], "txid", integrating)
    outputs = tables["outputs"]
    names = zip(outputs["txid"].to_pylist(), outputs["vout"].to_pylist(), strict=True)
    retained["outputs"] = outputs.filter(pa.array([name not in made for name in names]))
    if "stated_blocks" in tables:
        # Without its integrating transaction a block lacks an id that it lists.
        stated = tables["stated_blocks"]
        shorter = pa.array([height for height, p in pegs.items() if p.is_empty], pa.int64())
        retained["stated_blocks"] = stated.filter(pc.invert(pc.is_in(stated["height"], shorter)))
    if len(flows):
        retained["pool_flows"] = flows.table()
    return {name: table for name, table in retained.items() if len(table)}


def _without(table: pa.Table, column: str, names: set[str]) -> pa.Table:
    return table.filter(pc.invert(pc.is_in(table[column], pa.array(sorted(names), pa.string()))))


def _check_inputs(last: CoreTransaction, made: set[Coin], before: Holder, where: str) -> None:
    spent = [(i.txid or "", i.vout or 0) for i in last.vin]
    due = made | ({before.coin} if before.coin else set())
    if len(spent) != len(due) or set(spent) != due:
        odd = sorted(set(spent) ^ due) or spent
        what = "an integrating transaction that does not spend the pool and all peg-ins"
        raise LedgerError(where, what, value=odd)


def _decode(block: bytes, where: str) -> _Block:
    try:
        return _decoder.decode(block)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ArithmeticError) as error:
        raise LedgerError(where, f"not a block of Litecoin: {error}", value=block[:60]) from None
