"""One node's money hop by hop: a walk back, all its ways at once, a step at a time."""

from __future__ import annotations

import numpy as np

from coinhaze.chain import AbsorbingChain
from coinhaze.errors import UsageError
from coinhaze.ledger.amounts import Floats, Ints
from coinhaze.measure.hops import Hop, Hops
from coinhaze.solve.moves_of import moves_of


def hops_of(chain: AbsorbingChain, node: str | int, *, most: int = 6) -> Hops:
    """Spread a node's money over its past, `most` steps back or until all of it has ended.

    A step leads from an account to one that paid it, from a coin to its transaction, or from a
    transaction to a coin it spent.

    >>> import coinhaze
    >>> ledger = coinhaze.AccountLedger.from_transfers(
    ...     [("a", "c", 1), ("b", "c", 3), ("c", "d", 4)])
    >>> chain = coinhaze.absorbing_chain(coinhaze.transaction_graph(ledger))
    >>> [(hop.reached, hop.ends) for hop in hops_of(chain, "d").hops]
    [(1.0, 0.0), (1.0, 0.0), (1.0, 1.0)]
    """
    if most < 1:
        raise UsageError(f"hops are 1 or more, not {most}")
    start = chain.graph.names.node(node) if isinstance(node, str) else int(node)
    nodes, share = np.array([start]), np.ones(1)
    found: list[Hop] = []
    for left in range(most, -1, -1):
        ended = share * chain.walk.own[nodes]
        at, before, flow = _onward(chain, nodes, share) if left else _nowhere()
        after, to = np.unique(before, return_inverse=True)
        found.append(Hop(nodes, share, ended, at, to, flow))
        if not len(after):
            break
        nodes, share = after, np.bincount(to, flow, len(after)).astype(np.float64)
    return Hops(chain, start, tuple(found))


def _onward(chain: AbsorbingChain, nodes: Ints, share: Floats) -> tuple[Ints, Ints, Floats]:
    at, before, chance = moves_of(chain, nodes)
    return at, before, share[at] * chance


def _nowhere() -> tuple[Ints, Ints, Floats]:
    nothing = np.zeros(0, dtype=np.int64)
    return nothing, nothing, np.zeros(0)
