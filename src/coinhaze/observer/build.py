"""Graph + policy + knowledge -> absorbing chain."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from coinhaze.errors import InputError, UsageError, not_in_ledger
from coinhaze.graph import TransactionGraph
from coinhaze.ledger.links import Links
from coinhaze.observer.chain import NO_COLUMN, AbsorbingChain, Outcomes, SourceNames, Walk
from coinhaze.observer.knowledge import SourceSet, listed_outcomes, pool_history, source_set
from coinhaze.observer.links import with_links
from coinhaze.observer.policies import POLICIES, Policy, default_policy
from coinhaze.observer.walks import custom
from coinhaze.options import PolicyLike


def absorbing_chain(
    graph: TransactionGraph,
    *,
    policy: PolicyLike | None = None,
    listed: Iterable[str] | None = None,
    links: Links | None = None,
    history: Mapping[str, Sequence[int]] | None = None,
) -> AbsorbingChain:
    """Say what an observer believes.

    `policy` is proportional (default), uniform (default where amounts are hidden), poison, one
    that was registered (see `register_policy`), or a matrix or a function from the graph to one.
    `listed` are the nodes, addresses or accounts in question; `links` give payments a
    distribution over the nodes they are known to come from, or a `Link` that also says how sure
    that is; `history` gives a pool the values that entered it before the window.

    >>> import coinhaze
    >>> ledger = coinhaze.AccountLedger.from_transfers([("a", "c", 1), ("b", "c", 3)])
    >>> chain = absorbing_chain(coinhaze.transaction_graph(ledger))
    >>> chain.Q.toarray()[chain.graph.names.node("c")]
    array([0.25, 0.75, 0.  ])
    """
    return chain_over(graph, policy=policy, listed=listed, links=links, history=history)


def chain_over(
    graph: TransactionGraph,
    *,
    policy: PolicyLike | None = None,
    listed: Iterable[str] | None = None,
    links: Links | None = None,
    history: Mapping[str, Sequence[int]] | None = None,
    may_miss: bool = False,
) -> AbsorbingChain:
    """Do what `absorbing_chain` does; `may_miss` allows lists of which the ledger has nothing."""
    if policy is None:
        policy = default_policy(hides_amounts=graph.amounts is None).name
    entry = POLICIES[policy] if isinstance(policy, str) else None
    if listed is not None and not isinstance(listed, str):
        listed = list(listed)
    sources = None if listed is None else source_set(graph, listed)
    if sources is not None and not sources.labels and not may_miss:
        raise InputError(
            "none of the listed names is in the ledger: " + ", ".join(sources.unknown[:5])
        )
    if listed is not None and history:
        raise UsageError(
            "history changes bits over all sources: give a list or a history, not both"
        )
    if entry is None:
        walk, clean = custom(graph, policy), None
    else:
        walk, clean = _walk(graph, entry, sources, links)
    if links:
        walk = with_links(graph, walk, links)
    notes = graph.notes
    column, outcomes, elsewhere = _own_outcomes(graph, walk)
    if sources is not None:
        walk, column, outcomes = listed_outcomes(walk, sources, elsewhere=clean is None)
        elsewhere = len(sources.labels) if clean is None else NO_COLUMN
        if sources.unknown:
            notes += (not_in_ledger(sources.unknown),)
    priors, remarks = pool_history(graph, column, history or {})
    return AbsorbingChain(
        graph=graph,
        walk=walk,
        column=column,
        outcomes=outcomes,
        elsewhere=elsewhere,
        listed=sources is not None,
        names_listed=frozenset(listed or ()),
        clean=clean,
        history=priors,
        conserves=entry is not None and entry.conserves and sources is None and not links,
        settings=graph.settings
        | {
            "policy": "custom" if entry is None else entry.name,
            "listed": None if sources is None else len(sources.labels),
            "links": len(links) if links else None,
            "history": sorted(history) if history else None,
        },
        notes=notes + remarks,
    )


def _walk(
    graph: TransactionGraph, policy: Policy, sources: SourceSet | None, links: Links | None
) -> tuple[Walk, np.typing.NDArray[np.bool_] | None]:
    name = policy.name
    if policy.ordered:
        raise UsageError(f"policy={name} is no walk: take coinhaze.lots(graph, order={name!r})")
    if policy.walk is None:
        raise UsageError(f"policy={name} only follows listed money: take coinhaze.taint")
    if policy.needs_list and sources is None:
        raise UsageError(f"policy={name} needs a list: name the tainted nodes with `listed`")
    if links and not policy.takes_links:
        raise UsageError(f"links have no meaning under policy={name}, which ignores amounts")
    return policy.walk(graph, None if sources is None else sources.nodes)


def _own_outcomes(
    graph: TransactionGraph, walk: Walk
) -> tuple[np.typing.NDArray[np.int64], Outcomes, int]:
    nodes = np.flatnonzero(walk.own > 0)
    column = np.full(len(graph), NO_COLUMN)
    column[nodes] = np.arange(len(nodes))
    return column, SourceNames(graph.names, nodes), NO_COLUMN
