"""Round trips: a value that leaves a shielded pool soon after the same value entered it.

Quesnelle (arXiv 1712.01210, 2017) found that 31.5 % of the coins sent into Zcash's pool came back
as the same, or nearly the same, value. Kappos et al. (USENIX Security 2018), heuristic 5, link a
shielding and a de-shielding transaction if they are the only two of their value and lie within a
small number of blocks. Here several may be of one value: with k deposits before it that fit, and m
withdrawals that compete for them, each is the origin with chance 1 / max(k, m).

How often equal values are one person's money has not been measured on a set with known truth: the
confidence is *assumed*, and nothing here is used unless its links are given to `absorbing_chain`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coinhaze.amounts import Ints
from coinhaze.errors import UsageError
from coinhaze.graph import TransactionGraph
from coinhaze.graph.graph import Kind
from coinhaze.ledger import CoinLedger

BLOCKS = 100  # some two hours of Zcash
NO_HEIGHT = -1


@dataclass(frozen=True)
class Crossing:
    """What one transaction moved into a pool, or, below zero, out of it."""

    txid: str
    pool: str
    height: int
    into: int


@dataclass(frozen=True)
class RoundTrip:
    """A withdrawal and the deposits it may be, each with chance 1 / `among` if it is one at all."""

    withdrawal: Crossing
    deposits: tuple[Crossing, ...]
    among: int  # the deposits that fit, or the withdrawals that compete for one, if those are more

    @property
    def alone(self) -> bool:
        """Whether deposit and withdrawal are the only two of their value: the published rule."""
        return self.among == 1


def find_round_trips(
    crossings: Sequence[Crossing],
    *,
    blocks: int = BLOCKS,
    fees: Sequence[int] = (0,),
    min_amount: int = 0,
) -> list[RoundTrip]:
    """Match values out of a pool with equal ones that entered it within so many blocks before.

    Crossings come in ledger order; both sides are of one pool, and a transaction never matches
    itself. `fees` are the amounts that may have been lost on the way inside the pool; values below
    `min_amount` are left out.

    >>> deposit, other = Crossing("a", "sapling", 10, 500), Crossing("b", "sapling", 11, 90)
    >>> trips = find_round_trips([deposit, other, Crossing("c", "sapling", 15, -500)])
    >>> [(t.withdrawal.txid, t.deposits[0].txid, t.alone) for t in trips]
    [('c', 'a', True)]
    """
    if blocks < 0 or not fees or min(fees) < 0:
        raise UsageError("blocks and fees are not below 0, and at least one fee (0) is named")
    deposits: dict[tuple[str, int], list[Crossing]] = {}
    fitting: list[tuple[Crossing, tuple[Crossing, ...]]] = []
    # In ledger order, so that only deposits made before a withdrawal are there to be found.
    for c in crossings:
        if abs(c.into) < max(min_amount, 1) or c.height == NO_HEIGHT:
            continue
        if c.into > 0:
            deposits.setdefault((c.pool, c.into), []).append(c)
            continue
        same = (d for fee in dict.fromkeys(fees) for d in deposits.get((c.pool, fee - c.into), ()))
        near = tuple(d for d in same if c.height - d.height <= blocks and d.txid != c.txid)
        if near:
            fitting.append((c, near))
    return _shared_out(fitting)


def _shared_out(fitting: Sequence[tuple[Crossing, tuple[Crossing, ...]]]) -> list[RoundTrip]:
    """Count for each withdrawal among how many its deposits are shared out."""
    wanted: dict[Crossing, int] = {}
    for _, near in fitting:
        for deposit in near:
            wanted[deposit] = wanted.get(deposit, 0) + 1
    return [
        RoundTrip(withdrawal, near, max(len(near), *(wanted[d] for d in near)))
        for withdrawal, near in fitting
    ]


def crossings_of(graph: TransactionGraph) -> list[Crossing]:
    """List what each transaction of a graph moved into and out of pools, in ledger order."""
    ledger = _ledger_of(graph)
    assert graph.amounts is not None
    is_pool, is_tx = graph.kinds == Kind.pool, graph.kinds == Kind.transaction
    into = np.flatnonzero(is_tx[graph.tail] & is_pool[graph.head])
    out = np.flatnonzero(is_pool[graph.tail] & is_tx[graph.head])
    tx = np.concatenate([graph.tail[into], graph.head[out]])
    pool = np.concatenate([graph.head[into], graph.tail[out]])
    value = graph.amounts.take(into).ints() + [-v for v in graph.amounts.take(out).ints()]
    txids = [name.partition(":")[2] for name in _names(graph, tx)]
    found = pc.index_in(pa.array(txids, ledger.txids.type), value_set=ledger.txids)
    heights = pc.fill_null(ledger.heights.take(found), NO_HEIGHT).to_pylist()
    # Nodes of transactions are numbered in ledger order.
    order = np.lexsort((pool, tx)).tolist()
    pools = _parties(graph, pool)
    return [Crossing(txids[k], pools[k], heights[k], value[k]) for k in order]


def round_trip_links(
    graph: TransactionGraph, trips: Sequence[RoundTrip], *, confidence: float
) -> dict[str, dict[str, float]]:
    """Turn round trips into links for `absorbing_chain`: every output of a withdrawal gets one.

    `confidence` is the chance that a withdrawal of a fitting value is a round trip at all, and is
    yours to state: none was measured. What it leaves, and money the withdrawal had from elsewhere,
    comes from where it came from without the link.
    """
    if not 0 < confidence <= 1:
        raise UsageError(f"confidence is a chance above 0, up to 1, not {confidence!r}")
    ledger = _ledger_of(graph)
    found: dict[str, list[RoundTrip]] = {}
    for trip in trips:
        found.setdefault(trip.withdrawal.txid, []).append(trip)
    links: dict[str, dict[str, float]] = {}
    for txid, of_tx in found.items():
        origins = _origins(graph, f"tx:{txid}", of_tx, confidence)
        made = np.flatnonzero(ledger.output_tx == pc.index(ledger.txids, txid).as_py())
        paid = made[graph.payment_edge[made] >= 0]
        links |= {name: dict(origins) for name in ledger.output_names(paid).to_pylist()}
    return links


def _origins(
    graph: TransactionGraph, name: str, trips: Sequence[RoundTrip], confidence: float
) -> dict[str, float]:
    """Give the row of a withdrawal, its pools' shares gone to the deposits that fit."""
    assert graph.amounts is not None
    edges = np.flatnonzero(graph.head == graph.names.node(name))
    amounts, tails = graph.amounts.take(edges).ints(), graph.tail[edges]
    by_pool = {trip.withdrawal.pool: trip for trip in trips}
    origins: dict[str, float] = {}
    for node, party, amount in zip(
        _names(graph, tails), _parties(graph, tails), amounts, strict=True
    ):
        share = amount / sum(amounts)
        trip = by_pool.get(party)
        if trip is not None:
            each = share * confidence / trip.among
            for deposit in trip.deposits:
                origins[f"tx:{deposit.txid}"] = origins.get(f"tx:{deposit.txid}", 0.0) + each
            share *= 1 - confidence * (len(trip.deposits) / trip.among)
        if share > 0:
            origins[node] = origins.get(node, 0.0) + share
    return origins


def _ledger_of(graph: TransactionGraph) -> CoinLedger:
    if not isinstance(graph.ledger, CoinLedger) or graph.amounts is None:
        raise UsageError("round trips need a ledger of coins with pools and known values")
    return graph.ledger


def _names(graph: TransactionGraph, nodes: Ints) -> list[str]:
    names: list[str] = graph.names.of(nodes).to_pylist()
    return names


def _parties(graph: TransactionGraph, nodes: Ints) -> list[str]:
    """Name pools without the number of their snapshot."""
    names: list[str] = graph.names.parties.take(graph.names.party[nodes]).to_pylist()
    return names
