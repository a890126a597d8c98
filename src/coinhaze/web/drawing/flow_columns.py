"""A flow rearranged: in columns of time instead of hops, or folded further for a narrow drawing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from coinhaze.errors import count_words
from coinhaze.explore.models import (
    Flow,
    FlowBand,
    FlowColumn,
    FlowNode,
)
from coinhaze.web.pages.words import hours_words, span_words


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
        ranked = sorted(here, key=lambda n: (n.folded, -n.share, n.id))
        retained, rest = ranked[: per_column - 1], ranked[per_column - 1 :]
        nodes += [*retained, _bucket(rest)]
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


SPANS = 5  # of the axis, at most
MAX_COLUMNS = 7  # that leave room for words
CLOSE = 2 * 86_400  # seconds: of a shorter past hours are shown, not days
UNDATED = "No date"


def order_by_time(flow: Flow, *, forward: bool = False) -> Flow:
    """Put boxes in columns of time; as many spans as leave room for words."""
    for spans in range(SPANS, 0, -1):
        columns = _columns(flow, spans, forward=forward)
        if max(columns.values(), default=0) < MAX_COLUMNS or spans == 1:
            break
    nodes = [node.model_copy(update={"column": columns[node.id]}) for node in flow.nodes]
    count = 1 + max(columns.values(), default=0)
    ends = "Destinations" if forward else "Origins"
    heads = [_head([n for n in nodes if n.column == c], flow, c, ends) for c in range(count)]
    return flow.model_copy(update={"nodes": tuple(nodes), "columns": tuple(heads)})


def _columns(flow: Flow, spans: int, *, forward: bool) -> dict[str, int]:
    """Give each box its column: by its span, then by how many boxes of it it leads through."""
    span = _spans(flow, spans, forward=forward)
    keys: dict[str, tuple[int, int]] = {}
    # Bands lead to smaller columns: what a box leads to is placed before it.
    for node in sorted(flow.nodes, key=lambda n: (n.column, n.id)):
        here = (span[node.id], 0)
        for band in flow.bands:
            if band.before == node.id:
                after = keys[band.after]
                # No box is newer than what it leads to; a mean of times may say so.
                here = max(here, (after[0], after[1] + 1))
        keys[node.id] = here
    order = {key: k for k, key in enumerate(sorted(set(keys.values())))}
    return {name: order[key] for name, key in keys.items()}


def _spans(flow: Flow, spans: int, *, forward: bool) -> Mapping[str, int]:
    """Give each box its span: 0 the newest; those without a date after all that have one.

    Forward, 0 is the oldest.
    """
    times = [node.time for node in flow.nodes if node.time is not None]
    first, last = min(times, default=0), max(times, default=0)
    wide = max((last - first) / spans, 1e-9)
    found = {}
    for node in flow.nodes:
        if node.column == 0:
            found[node.id] = 0
        elif node.time is None:
            found[node.id] = spans + 1
        else:
            apart = node.time - first if forward else last - node.time
            found[node.id] = min(int(apart / wide), spans - 1)
    return found


def _head(nodes: Sequence[FlowNode], flow: Flow, column: int, last: str) -> FlowColumn:
    times = [node.time for node in nodes if node.time is not None]
    every = [node.time for node in flow.nodes if node.time is not None]
    if column == 0 and flow.columns:
        title = flow.columns[0].title
    elif not times:
        # Origins have a column to themselves: nothing else ends there.
        ends = {band.after for band in flow.bands}
        title = UNDATED if any(node.id in ends for node in nodes) else f"{last}, no date"
    elif max(every) - min(every) < CLOSE:
        title = hours_words(min(times), max(times))
    else:
        title = span_words(min(times), max(times))
    return FlowColumn(title=title, hop=None, reached=min(sum(n.share for n in nodes), 1.0))
