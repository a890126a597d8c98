"""Bits as blocks go by: what later transactions tell an observer of coins that are there already.

A coin's past is fixed, and so are its bits to the naive observer. An informed one at some moment
is the ladder over the ledger up to that moment: later spends join owners, so that origins are
merged. Beside it, outputs of CoinJoins whose owners turn out to be payers are taken apart from the
others (`owner_links`), which changes the chain itself and may raise bits as well as lower them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Unpack

import numpy as np

from coinhaze.amounts import Floats, Ints
from coinhaze.errors import UsageError
from coinhaze.graph.clusters.coinjoins import CoinJoin, coinjoin_kinds
from coinhaze.graph.find import find_node
from coinhaze.graph.graph import Kind
from coinhaze.graph.holes import incomplete_notes
from coinhaze.ledger import CoinLedger
from coinhaze.measures import Scores
from coinhaze.measures.since import NAIVE, UNMIXED, Since
from coinhaze.observer import AbsorbingChain, absorbing_chain
from coinhaze.observer.chain import SourceNames
from coinhaze.observer.coinjoin_links import owner_links
from coinhaze.observer.owners import inferences, ladder
from coinhaze.options import ModelKeywords, SinceOptions
from coinhaze.solve.informed import informed
from coinhaze.solve.progress import Progress, silent
from coinhaze.solve.score import score
from coinhaze.solve.source import CHAIN_SETTINGS, Source, chain_of

COINJOINS, EVERY = "coinjoins", "all"


def since(
    source: Source,
    nodes: str | Sequence[str] = COINJOINS,
    *,
    points: int = SinceOptions.points,
    owners: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    threads: int | None = None,
    progress: Progress = silent,
    **settings: Unpack[ModelKeywords],
) -> Since:
    """Say what observers at later and later moments lack of some coins' origins.

    `nodes` are coins by name, "all" of the ledger, or "coinjoins": what CoinJoins made. There are
    `points` moments, evenly spread over the transactions from the first coin's on. An observer at
    a moment knows all transactions up to it and infers owners from them as `informed` does;
    `owners` and `labels` are known from the start. `source` and settings are those of `score`.

    >>> import coinhaze
    >>> found = [{"txid": c, "vout": 0, "value": 1, "address": c} for c in "abcd"]
    >>> ledger = coinhaze.CoinLedger.from_transactions([
    ...     {"txid": "s", "inputs": found[:1], "outputs": [{"value": 1, "address": "x"}]},
    ...     {"txid": "u", "inputs": found[1:2], "outputs": [{"value": 1, "address": "x"}]},
    ...     {"txid": "t", "inputs": [{"txid": c, "vout": 0} for c in "su"],
    ...      "outputs": [{"value": 2, "address": "y"}]}])
    >>> coinhaze.since(ledger, ["t:0"], points=1).bits["naive"].tolist()
    [[1.0]]
    """
    if points < 1:
        raise UsageError(f"points are 1 or more, not {points}")
    chain = chain_of(source, **settings)
    graph, ledger = chain.graph, chain.graph.ledger
    if not isinstance(ledger, CoinLedger) or graph.settings.get("view") != "coin":
        raise UsageError(
            "later spends inform about coins: take a ledger of coins, in the coin view"
        )
    if type(chain.outcomes) is not SourceNames or ledger.output_value is None:
        raise UsageError(
            "bits at later moments are over all sources and need known amounts: leave lists out, "
            "and take a ledger that states its amounts"
        )
    rows = _rows(chain, ledger, nodes)
    coins = graph.names.party[rows].astype(np.int64)
    made = ledger.output_tx[coins].astype(np.int64)
    until = _moments(ledger, int(made.min()), points)
    names = graph.names.of(rows).to_pylist()
    scores = score(chain, nodes=names, threads=threads)
    inferred = inferences(ledger)
    joins = np.flatnonzero(coinjoin_kinds(ledger) != CoinJoin.none)
    bits: dict[str, list[Floats]] = {}
    links: dict[str, dict[str, float]] | None = None
    apart: Scores | None = None  # over the chain with these links
    for step, moment in enumerate(until.tolist()):
        observers = ladder(ledger, owners=owners, labels=labels, inferred=inferred, until=moment)
        found = informed(scores, observers=observers, threads=threads)
        seen = {NAIVE: scores.bits} | {k: v.bits for k, v in found.informed.items()}
        known = observers[-1].persons
        now = owner_links(ledger, known, joins[joins < moment].tolist())
        seen[UNMIXED] = found.informed[observers[-1].name].bits
        if now:
            if apart is None or now != links:
                apart = score(_taken_apart(chain, now, settings), nodes=names, threads=threads)
            seen[UNMIXED] = (
                informed(apart, observers=observers[-1:], threads=threads)
                .informed[observers[-1].name]
                .bits
            )
        links = now
        there = made < moment
        for name, values in seen.items():
            bits.setdefault(name, []).append(np.where(there, values, np.nan))
        progress((step + 1) / len(until))
    return Since(
        graph=graph,
        nodes=rows,
        made=made,
        spent=_spent(ledger)[coins],
        until=until,
        bits={name: np.stack(values) for name, values in bits.items()},
        linked=len(links or {}),
        settings=chain.settings,
        notes=chain.notes + incomplete_notes(graph, rows),
    )


def _rows(chain: AbsorbingChain, ledger: CoinLedger, nodes: str | Sequence[str]) -> Ints:
    """Find the coins, each once, all made inside the window."""
    graph = chain.graph
    if isinstance(nodes, str):
        if nodes not in (COINJOINS, EVERY):
            raise UsageError(f"nodes are names of coins, 'all' or 'coinjoins', not {nodes!r}")
        coins = np.flatnonzero(graph.kinds == Kind.coin)
        tx = ledger.output_tx[graph.names.party[coins]]
        wanted = ledger.inside[tx]
        if nodes == COINJOINS:
            wanted &= coinjoin_kinds(ledger)[tx] != CoinJoin.none
        rows = coins[wanted]
        if not len(rows):
            none = "looks like a CoinJoin: name coins" if nodes == COINJOINS else "made a coin"
            raise UsageError(f"no transaction of this ledger {none}")
        return rows
    rows = np.array(list(dict.fromkeys(find_node(graph, name) for name in nodes)), dtype=np.int64)
    for row in rows.tolist():
        if (
            graph.kinds[row] != Kind.coin
            or not ledger.inside[ledger.output_tx[graph.names.party[row]]]
        ):
            name = graph.names.of(np.array([row]))[0].as_py()
            raise UsageError(
                f"{name} is no coin that was made in this ledger: name an output of one of its "
                "transactions, TXID:0, or read the ledger from where it was made"
            )
    if not len(rows):
        raise UsageError("name at least one coin")
    return rows


def _moments(ledger: CoinLedger, first: int, points: int) -> Ints:
    """Spread moments evenly over the transactions from one to the last, each at a block's end.

    A moment is the row of the first transaction that is not yet there.
    """
    until = np.unique(np.linspace(first + 1, len(ledger.txids), points).astype(np.int64))
    until[-1] = len(ledger.txids)
    for clock in (ledger.heights, ledger.times):
        inside = clock.slice(first)
        if inside.null_count == 0:
            values = np.asarray(inside, dtype=np.int64)
            ends = np.append(np.flatnonzero(np.diff(values)), len(values) - 1)
            place = np.searchsorted(ends, until - 1 - first)
            return np.unique(first + 1 + ends[place])
    return until


def _spent(ledger: CoinLedger) -> Ints:
    """Give the transaction that spends each coin, one after the last for unspent coins."""
    spent = np.full(len(ledger.output_tx), len(ledger.txids), dtype=np.int64)
    spent[ledger.input_output] = ledger.input_tx
    return spent


def _taken_apart(
    chain: AbsorbingChain, links: dict[str, dict[str, float]], settings: ModelKeywords
) -> AbsorbingChain:
    """Give the chain of an observer who knows these links, on top of those given."""
    given = {k: v for k, v in settings.items() if k in CHAIN_SETTINGS}
    before = given.pop("links", None) or {}
    return absorbing_chain(chain.graph, links={**links, **before}, **given)  # type: ignore[arg-type, dict-item]
