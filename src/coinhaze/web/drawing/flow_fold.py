"""A flow folded further, for a narrow drawing: the smallest boxes of each column become one."""

from __future__ import annotations

from coinhaze.explore.describe import count_words
from coinhaze.explore.models import (
    Flow,
    FlowBand,
    FlowNode,
)


def fold_flow(flow: Flow, *, per_column: int) -> Flow:
    """Keep the largest boxes between coin and origins; bands of the others are added up.

    Origins and the coin stay: letters of the table stand for them.
    """
    last = max((node.column for node in flow.nodes), default=0)
    reached = {band.after for band in flow.bands}
    into: dict[str, str] = {}
    nodes: list[FlowNode] = []
    for column in range(last + 1):
        here = [node for node in flow.nodes if node.column == column]
        nodes += [node for node in here if node.id not in reached]
        here = [node for node in here if node.id in reached]
        if column in (0, last) or len(here) <= per_column:
            nodes += here
            continue
        ranked = sorted(here, key=lambda n: (n.folded or n.kind == "other", -n.share, n.id))
        kept, rest = ranked[: per_column - 1], ranked[per_column - 1 :]
        nodes += [*kept, _bucket(rest)]
        into |= {node.id: rest[0].id for node in rest}
    return flow.model_copy(update={"nodes": tuple(nodes), "bands": _bands(flow, into)})


def _bucket(rest: list[FlowNode]) -> FlowNode:
    count = sum(node.count for node in rest)
    return rest[0].model_copy(
        update={
            "kind": "other",
            "name": None,
            "words": count_words(count, "other"),
            "share": min(sum(node.share for node in rest), 1.0),
            "ended": min(sum(node.ended for node in rest), 1.0),
            "listed": min(sum(node.listed for node in rest), 1.0),
            "count": count,
            "folded": True,
            "opens": False,
            "also": (),
            "twin": None,
            "label": None,
            "href": None,
        }
    )


def _bands(flow: Flow, into: dict[str, str]) -> tuple[FlowBand, ...]:
    share: dict[tuple[str, str], float] = {}
    listed: dict[tuple[str, str], float] = {}
    for band in flow.bands:
        key = into.get(band.before, band.before), into.get(band.after, band.after)
        share[key] = share.get(key, 0.0) + band.share
        listed[key] = listed.get(key, 0.0) + band.listed
    return tuple(
        FlowBand(before=a, after=b, share=min(total, 1.0), listed=min(listed[a, b], 1.0))
        for (a, b), total in share.items()
    )
