"""Hops condensed for display: the largest nodes of each hop, all others in one bucket."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coinhaze.amounts import Floats, Ints
from coinhaze.report.labels import UNLABELLED, Labelled
from coinhaze.solve.local.hops import Hops, WalkHop

LONGEST = 24  # letters of a name that is shown in full
SMALLEST = 0.0005  # the smallest share of a box that is shown by itself


@dataclass(frozen=True)
class FlowBox:
    """Some nodes of a hop drawn as one: one node, those of one label, or all the others."""

    name: str
    nodes: int
    share: float
    ended: float
    label: str | None = None
    other: bool = False

    def words(self, longest: int = LONGEST) -> str:
        """Return the text beside the box."""
        if self.other:
            return f"other ({self.nodes:,}, {self.share:.2%})"
        name = self.name if self.label is None else self.label
        return f"{short_name(name, longest)} {self.share:.2%}"


@dataclass(frozen=True)
class LayerBand:
    """Money that moved from a box of hop `hop + 1` to one of hop `hop`."""

    hop: int
    box: int
    before: int
    share: float


@dataclass(frozen=True)
class Layers:
    """Boxes hop by hop, largest first, the bucket last; and the bands between them."""

    boxes: tuple[tuple[FlowBox, ...], ...]
    bands: tuple[LayerBand, ...]
    earlier: float  # the share from before the last hop


def fold_hops(hops: Hops, labelled: Labelled, *, most: int = 6) -> Layers:
    """Keep the `most` largest boxes of each hop; the others become one."""
    folded = [_folded(hop, labelled, most) for hop in hops.hops]
    bands = []
    for k, hop in enumerate(hops.hops[:-1]):
        here, before = folded[k], folded[k + 1]
        width = len(before.boxes)
        pair = here.of_node[hop.at] * width + before.of_node[hop.to]
        total = np.bincount(pair, hop.flow, len(here.boxes) * width)
        for at in np.flatnonzero(total).tolist():
            bands.append(LayerBand(k, at // width, at % width, float(total[at])))
    return Layers(tuple(f.boxes for f in folded), tuple(bands), hops.earlier)


def short_name(name: str, longest: int = LONGEST) -> str:
    """Shorten a name in its middle.

    >>> short_name("0123456789abcdef0123456789abcdef")
    '0123456789…6789abcdef'
    """
    retained = longest // 2 - 2
    return name if len(name) <= longest else f"{name[:retained]}…{name[-retained:]}"


@dataclass(frozen=True)
class _Folded:
    boxes: tuple[FlowBox, ...]
    of_node: Ints  # the box of each node of the hop


def _folded(hop: WalkHop, labelled: Labelled, most: int) -> _Folded:
    label = labelled.number[hop.nodes]
    # Nodes with the same label share a key below all others'.
    key = np.where(label == UNLABELLED, hop.parties, UNLABELLED - 1 - label)
    _, first, group = np.unique(key, return_index=True, return_inverse=True)
    share, ended = (_sums(group, values) for values in (hop.share, hop.ended))
    count = np.bincount(group)
    largest = np.argsort(-share, kind="stable")
    shown = min(most, int(np.sum(share >= SMALLEST)))
    # A bucket of one would save nothing.
    retained = largest[: shown if len(largest) > shown + 1 else len(largest)]
    rest = largest[len(retained) :]
    nodes = hop.nodes[first[retained]]
    names = labelled.graph.names.parties.take(hop.parties[first[retained]]).to_pylist()
    boxes = [
        FlowBox(name, int(count[k]), float(share[k]), float(ended[k]), text)
        for name, text, k in zip(names, labelled.of(nodes), retained.tolist(), strict=True)
    ]
    if len(rest):
        all_, ends = (float(values[rest].sum()) for values in (share, ended))
        boxes.append(FlowBox("other", int(count[rest].sum()), all_, ends, other=True))
    place = np.full(len(share), len(retained))
    place[retained] = np.arange(len(retained))
    return _Folded(tuple(boxes), place[group])


def _sums(group: Ints, values: Floats) -> Floats:
    return np.bincount(group, values).astype(np.float64)
