"""One origin's money through a flow: how much of each band it is, and where in the band it runs.

A walk that stands at a box does not remember how it came there, so the origins of what passes a box
are in the same proportion in every band that leaves it. Where a box stands for many that is the
mean over them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from coinhaze.explore.models import Flow
from coinhaze.report.flow_layout import Layout, Ribbon, Stop

NOTHING = 5e-4  # of share: less is no line that can be seen


def thread_shares(flow: Flow, origin: str) -> dict[int, float]:
    """Give for each band that carries an origin's money how much of it.

    >>> from coinhaze.explore.models import Flow, FlowBand, FlowNode
    >>> nodes = [FlowNode(id=i, column=c, kind="coin", name=i, words=i, share=s)
    ...          for i, c, s in (("a", 2, 0.25), ("b", 2, 0.75), ("c", 1, 1.0), ("d", 0, 1.0))]
    >>> bands = [FlowBand(before=a, after=b, share=s)
    ...          for a, b, s in (("a", "c", 0.25), ("b", "c", 0.75), ("c", "d", 1.0))]
    >>> thread_shares(Flow(by="hop", columns=(), nodes=nodes, bands=bands, text=""), "a")
    {0: 0.25, 2: 0.25}
    """
    column = {node.id: node.column for node in flow.nodes}
    share = {node.id: node.share for node in flow.nodes}
    inside = {origin: share[origin]}
    carried: dict[int, float] = {}
    # Bands lead to smaller columns: a box is complete before anything leaves it.
    for b in sorted(range(len(flow.bands)), key=lambda b: (-column[flow.bands[b].before], b)):
        band = flow.bands[b]
        whole = share[band.before]
        part = band.share * inside.get(band.before, 0.0) / whole if whole > 0 else 0.0
        if part > 0:
            inside[band.after] = inside.get(band.after, 0.0) + part
        if part >= NOTHING:
            carried[b] = min(part, band.share)
    return carried


def thread_ribbons(flow: Flow, layout: Layout, carried: Mapping[int, float]) -> list[Ribbon]:
    """Lead threads inside their bands, each going on where the one before it arrived."""
    column = {node.id: node.column for node in flow.nodes}
    by_band = {ribbon.band: ribbon for ribbon in layout.ribbons}
    arrived: dict[str, list[tuple[float, float]]] = {}
    ribbons = []
    for b in sorted(carried, key=lambda b: (-column[flow.bands[b].before], b)):
        band, ribbon = flow.bands[b], by_band[b]
        width = carried[b] * layout.scale
        first = ribbon.stops[0].at
        offset = _offset(arrived.get(band.before, ()), first, width, ribbon.width)
        stops = tuple(Stop(s.column, s.at + offset, width) for s in ribbon.stops)
        arrived.setdefault(band.after, []).append((stops[-1].at, width))
        ribbons.append(Ribbon(b, stops, width))
    return ribbons


def _offset(
    arrived: Sequence[tuple[float, float]], first: float, width: float, room: float
) -> float:
    """Give how far into its band a thread begins: as near as may be to where it arrived."""
    total = sum(w for _, w in arrived)
    if total <= 0:
        return 0.0
    middle = sum((at + w / 2) * w for at, w in arrived) / total
    return min(max(middle - width / 2 - first, 0.0), max(room - width, 0.0))
