"""Why a coin has its bits: which merges on the way back added how many.

A walk back is a sequence of choices, one at every node it comes by, so its entropy is the sum over
nodes of how often it comes by times the entropy of the choice there. Walks that end at the same
origin tell no origin apart: what they differ by is taken off once, at the end.
"""

from __future__ import annotations

import numpy as np

from coinhaze.amounts import Floats
from coinhaze.explore.models import MergePoint, Why
from coinhaze.explore.nodes import Nodes
from coinhaze.measures.intervals import surprise
from coinhaze.solve.local.past import Past
from coinhaze.solve.local.past_kernels import nearest

MAX_MERGES = 8  # that are named
MINIMUM = 5e-4  # bits of a merge that is named


def added_bits(past: Past) -> Floats:
    """Give of each node of a past the bits that the choice there adds to a walk."""
    of_moves = np.bincount(past.at, surprise(past.chance), len(past))
    added: Floats = past.visits * (of_moves + surprise(past.own))
    return added


def why(past: Past, nodes: Nodes, bits: float) -> Why:
    """Say which merges made a coin's bits; its past must be whole."""
    added = added_bits(past)
    largest = np.argsort(-added, kind="stable")[:MAX_MERGES]
    largest = largest[added[largest] >= MINIMUM]
    shown = np.sort(largest)[::-1]  # later nodes have higher numbers
    nodes.fetch(past.nodes[shown])
    rest = np.delete(added, shown)
    return Why(
        merges=tuple(_merge(past, nodes, int(place), float(added[place])) for place in shown),
        others=int(np.count_nonzero(rest > 0)),
        others_bits=max(float(rest.sum()), 0.0),
        again=max(float(added.sum()) - bits, 0.0),
    )


def _merge(past: Past, nodes: Nodes, place: int, bits: float) -> MergePoint:
    node = int(past.nodes[place])
    there = np.zeros(len(past), dtype=np.bool_)
    there[place] = True
    moves = int(nearest(past.first, past.to, there, past.start))
    return MergePoint(
        words=nodes.words(node),
        name=nodes.name(node),
        inputs=int(past.first[place + 1] - past.first[place]) + int(past.own[place] > 0),
        # Of coins every other move leads to a coin, which is passed over.
        hops=None if moves < 0 else (moves + 1) // 2 if nodes.coin_view else moves,
        passing=float(past.visits[place]),
        bits=bits,
        href=nodes.href(node),
    )
