"""Routes: the single paths that carried most listed money to a node, by name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from coinhaze.amounts import Ints
from coinhaze.errors import AccuracyError, InputError
from coinhaze.observer import AbsorbingChain
from coinhaze.solve import origins
from coinhaze.solve.local.paths import largest_paths
from coinhaze.solve.planner import thresholds
from coinhaze.solve.structure.structure import Structure

# Paths through the same accounts at other times are one route: this many are examined per route.
LOOKED_AT = 10


@dataclass(frozen=True)
class Route:
    """One path from a listed source to a node, and the share of its money that came that way."""

    node: str
    source: str
    names: tuple[str, ...]  # hop by hop, the source first; all snapshots of an account are one hop
    share: float
    listed: float  # the share that came from the list over all paths


def find_routes(chain: AbsorbingChain, nodes: Ints, *, most: int) -> Iterator[Route]:
    """Yield for each node the paths that carried most of its listed money, largest first.

    >>> import coinhaze
    >>> ledger = coinhaze.AccountLedger.from_transfers(
    ...     [("thief", "shop", 1), ("bob", "shop", 3), ("shop", "carol", 2)])
    >>> graph = coinhaze.transaction_graph(ledger, time="temporal")
    >>> chain = coinhaze.absorbing_chain(graph, listed=["thief"])
    >>> [route.names for route in find_routes(chain, np.array([graph.names.node("carol")]), most=1)]
    [('thief', 'shop', 'carol')]
    """
    graph, structure = chain.graph, Structure(chain)
    for node in nodes.tolist():
        try:
            large = len(chain) > thresholds.MAX_EXACT_NODES
            found = origins(structure, int(node), accuracy=thresholds.NEARLY if large else "exact")
        except (AccuracyError, InputError):
            continue  # its past never ends or is too long to examine: there is no path to show
        listed = float(found.probability[found.outcomes != chain.elsewhere].sum())
        shares: dict[tuple[int, tuple[int, ...]], float] = {}
        for path in largest_paths(found, most=most * LOOKED_AT):
            party = graph.names.party[list(path.nodes)]
            # Money that stays in an account passes from snapshot to snapshot.
            moved = np.append(True, party[1:] != party[:-1])
            key = path.outcome, tuple(party[moved].tolist())
            shares[key] = shares.get(key, 0.0) + path.share
        for (outcome, parties), share in sorted(shares.items(), key=lambda item: -item[1])[:most]:
            yield Route(
                node=found.name,
                source=str(chain.outcomes[outcome].as_py()),
                names=tuple(graph.names.parties.take(np.array(parties)).to_pylist()),
                share=share,
                listed=listed,
            )
