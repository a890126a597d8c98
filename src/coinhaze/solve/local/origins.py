"""One coin: where its money came from, solved on the coin's own past alone."""

from __future__ import annotations

from typing import Literal, Unpack

import numpy as np
import scipy.sparse

from coinhaze.amounts import Floats, Ints
from coinhaze.errors import AccuracyError, UnknownName
from coinhaze.measures import Origins
from coinhaze.measures.elementary import log2
from coinhaze.measures.scores import reached
from coinhaze.observer import AbsorbingChain
from coinhaze.observer.chain import NO_COLUMN
from coinhaze.options import ModelKeywords
from coinhaze.solve.exact.engines import score_exactly, width_of
from coinhaze.solve.local.past import Past, trace
from coinhaze.solve.local.row import LocalRow, no_answer
from coinhaze.solve.lots.scores import is_ordered, lots_of, origins_in_order
from coinhaze.solve.planner import thresholds
from coinhaze.solve.source import Source, structure_of
from coinhaze.solve.structure.reduce import NO_STATE
from coinhaze.solve.structure.structure import Structure


def origins(
    source: Source,
    node: str | int,
    *,
    accuracy: Literal["exact"] | float = "exact",
    **settings: Unpack[ModelKeywords],
) -> Origins:
    """Give the distribution over sources of one node, largest first, and the flow that led there.

    `source` is a chain, or anything `score` takes, with the same settings. `accuracy` is the
    widest interval allowed, in bits: with one above 1e-6 only the largest flows are followed,
    every probability is a lower bound, and `missing` says how much was not followed to its end.
    Where the accuracy is not reached AccuracyError is raised, and its `origins` are what was.
    Under ordered policies (fifo, lifo) the answer is exact, and there are no steps and no flow.

    >>> import coinhaze
    >>> ledger = coinhaze.AccountLedger.from_transfers([("a", "c", 1), ("b", "c", 3)])
    >>> chain = coinhaze.absorbing_chain(coinhaze.transaction_graph(ledger))
    >>> origins(chain, "c").sources().to_pylist()[0]
    {'source': 'b', 'probability': 0.75}
    """
    if is_ordered(source, settings):
        width_of(accuracy)
        return origins_in_order(lots_of(source, settings), node)
    structure = structure_of(source, **settings)
    chain = structure.chain
    start = chain.graph.names.node(node) if isinstance(node, str) else int(node)
    if not 0 <= start < len(chain):
        raise UnknownName(f"no node {start}: the graph has {len(chain)}")
    width = width_of(accuracy)
    found = None
    if width > thresholds.MIN_LOCAL_WIDTH:
        found = _nearly(structure, start, width)
    # Loops can hold mass for long; a small chain is then solved whole.
    if found is None or (found.shortfall and len(chain) <= thresholds.MAX_SOLVED_NODES):
        found = _exactly(structure, start, width)
    if found.shortfall is not None:
        raise AccuracyError(found.shortfall, origins=found)
    return found


def origins_or_reached(
    source: Source, node: str | int, *, accuracy: Literal["exact"] | float = "exact"
) -> Origins:
    """Give origins as `origins` does, or what was reached: its `shortfall` says so."""
    try:
        return origins(source, node, accuracy=accuracy)
    except AccuracyError as error:
        if error.origins is None:
            raise
        return error.origins


def local_row(
    chain: AbsorbingChain | Structure,
    node: int,
    *,
    width: float,
    moves: int = thresholds.MAX_LOCAL_MOVES,
) -> LocalRow:
    """Bound one node's entropy to a width in bits.

    Bounding a chain takes time and memory that grow with it; every question to its `Structure`
    then touches only what it needs. Raises where the walk may never end; where the width was
    not reached within so many moves, the row's `shortfall` says so.

    >>> import coinhaze
    >>> ledger = coinhaze.AccountLedger.from_transfers([("a", "c", 1), ("b", "c", 3)])
    >>> chain = coinhaze.absorbing_chain(coinhaze.transaction_graph(ledger))
    >>> round(local_row(chain, chain.graph.names.node("c"), width=0.01).bits, 4)
    0.8113
    """
    structure = Structure.of(chain)
    if structure.bounded.lost(node):
        raise no_answer(structure.chain, node)
    return structure.local.row(node, width=width, moves=moves)


def _nearly(structure: Structure, start: int, width: float) -> Origins:
    """Bound the bits on as little of the past as that takes, and follow the largest flows."""
    chain = structure.chain
    row = local_row(
        structure,
        start,
        width=width,
        moves=thresholds.FEW_LOCAL_MOVES
        if len(chain) <= thresholds.MAX_SOLVED_NODES
        else thresholds.MAX_LOCAL_MOVES,
    )
    found = trace(structure, start)
    return _origins(
        Past.along(chain, start, found.passed),
        (row.bits, row.bits_low, row.bits_high, row.steps),
        visits=found.visits[found.visits > 0],
        missing=found.missing,
        shortfall=row.shortfall,
    )


def _exactly(structure: Structure, start: int, width: float) -> Origins:
    """Solve the coin's whole past."""
    chain = structure.chain
    rows = np.array([start])
    # Every node of the past is a query by itself, so none is merged with its predecessor.
    lumped = structure.lump(rows, np.zeros(0), merge=False)
    query = lumped.query
    retained, state = query.reduced.retained, query.reduced.state
    if state[start] == NO_STATE:
        raise no_answer(chain, start)
    score = reached(
        lambda: score_exactly(chain, rows, method="origins", width=width, lumped=lumped)
    )
    nodes = np.flatnonzero(retained)
    return _origins(
        Past.along(chain, start, nodes, whole=True),
        tuple(float(v[0]) for v in (score.bits, score.bits_low, score.bits_high, score.steps)),
        visits=query.factor.visits(int(state[start]))[state[nodes]],
        missing=0.0,
        shortfall=score.shortfall,
    )


def _origins(
    past: Past,
    figures: tuple[float, ...],
    *,
    visits: Floats,
    missing: float,
    shortfall: str | None,
) -> Origins:
    """Draw up outcomes, flow and ways from the nodes a walk passes and how often it does."""
    bits, bits_low, bits_high, steps = figures
    outcomes, probability = past.outcomes(visits)
    at = past.at
    flow = visits[at] * past.chance
    largest = np.argsort(-flow, kind="stable")
    way_next, way_end = _ways(past, outcomes)
    return Origins(
        chain=past.chain,
        node=past.node,
        bits=bits,
        bits_low=bits_low,
        bits_high=bits_high,
        steps=steps,
        outcomes=outcomes,
        probability=probability,
        flow_from=past.before[largest],
        flow_to=past.nodes[at[largest]],
        flow_share=flow[largest],
        past=past.nodes,
        way_next=way_next,
        way_end=way_end,
        missing=missing,
        shortfall=shortfall,
    )


def _ways(past: Past, outcomes: Ints) -> tuple[Ints, Ints]:
    """Find likeliest single ways: from each node the next one towards the start, and where the
    likeliest way to each outcome begins."""
    from scipy.sparse.csgraph import dijkstra  # with all of scipy.linalg

    known = past.to >= 0
    # Shortest paths need positive lengths: a certain move costs next to nothing.
    cost = np.maximum(-log2(past.chance[known]), 1e-12)
    shape = (len(past), len(past))
    lengths = scipy.sparse.csr_array((cost, (past.at[known], past.to[known])), shape=shape)
    length, came_from = dijkstra(lengths, indices=past.start, return_predecessors=True)
    way_next = np.where(came_from >= 0, past.nodes[np.maximum(came_from, 0)], NO_COLUMN)
    ends = np.flatnonzero(past.column != NO_COLUMN)
    total = length[ends] - log2(past.own[ends])
    # Of equal ways to an outcome the one from the highest node is taken.
    shortest_first = ends[np.argsort(-total, kind="stable")[::-1]]
    column, first = np.unique(past.column[shortest_first], return_index=True)
    return way_next, past.nodes[shortest_first[first]][np.searchsorted(column, outcomes)]
