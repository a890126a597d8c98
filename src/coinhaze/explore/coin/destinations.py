"""Where the money of one coin, account, address or transaction went: shares, words and flow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from coinhaze.amounts import Bools, Floats, Ints
from coinhaze.errors import UsageError, count_words
from coinhaze.explore.coin.answer import NO_TIME, tells_time
from coinhaze.explore.coin.exposure import SLACK, threads
from coinhaze.explore.coin.flow import (
    NOT_FOLLOWED,
    Opened,
    Parts,
    coin_node,
    draw_flow,
    straight_flow,
)
from coinhaze.explore.coin.origins import NOTHING, Row
from coinhaze.explore.describe import share_words
from coinhaze.explore.models import (
    Destination,
    DestinationKind,
    DestinationsAnswer,
    Flow,
    FlowNode,
    Other,
)
from coinhaze.explore.nodes import Nodes
from coinhaze.explore.query import CoinQuery
from coinhaze.explore.views import Listed, ViewOptions, Views
from coinhaze.graph.holes import moved_in_holes
from coinhaze.measures.destinations import FEE, FEES, NONE, counted_once, kinds_of, part_in_fees
from coinhaze.observer.chain import SourceNames
from coinhaze.report.destinations import where_words
from coinhaze.solve.local.destinations import (
    destinations_or_reached,
    oldest_note,
    received_by,
    start_of,
)
from coinhaze.solve.local.past import Past, past_of
from coinhaze.solve.local.row import no_answer

LOTS = "An ordered policy follows lots, not paths: destinations are drawn straight to the coin."
THROUGH = "listed addresses"
PART = "a part of a chain that was walked back says where money came from, not where it went"
LIST_IN_ORDER = "An ordered rule follows money to its end: what reached the list is not shown."


@dataclass(frozen=True)
class EndPlaces:
    """Where money is at the end, largest share first; all fees are one place."""

    nodes: Ints  # NONE for fees, and for what has no node
    names: list[str]
    kinds: list[str]
    share: Floats
    missing: float
    listed: Floats | None = None  # of each share, what passed a listed name
    rank: Mapping[int, Parts] | None = None  # by outcome of the walk
    units: tuple[int, ...] | None = None  # whole ones, of ordered rules

    def __len__(self) -> int:
        return len(self.share)


def answer_destinations(
    views: Views,
    nodes: Nodes,
    options: ViewOptions,
    name: str,
    ask: CoinQuery,
    *,
    digest: str,
    provenance: Mapping[str, Any],
    notes: tuple[str, ...] = (),
) -> DestinationsAnswer:
    """Follow the money that a node had forward, to the end of the ledger."""
    if views.max_origins is not None:
        raise UsageError(PART)
    if not options.rule.shares:
        raise UsageError(
            f"policy {options.policy} marks all that money touched and splits nothing: "
            "screen the ledger with this name as the list instead"
        )
    graph, past = nodes.graph, None
    node = start_of(graph, name)
    listed = views.listed(options)
    reached, high = None, None
    if options.ordered:
        found = destinations_or_reached(graph, name, policy=options.rule.name)
        places = EndPlaces(
            found.nodes, found.names.to_pylist(), list(found.kinds), found.share, found.missing,
            units=found.units,
        )  # fmt: skip
        held = found.held
        notes = (*notes, *found.notes)
        notes += () if listed is None else (LIST_IN_ORDER,)
    else:
        held = received_by(graph, node)
        if held == 0:
            raise UsageError(f"{name} had no money to follow")
        structure = views.forward(options)
        if structure.local.lost(node):
            raise no_answer(structure.chain, node)
        past = past_of(structure, node)
        held = counted_once(held, float(past.visits[past.start]))
        met = _listed_nodes(listed)
        places = _places(nodes, past, met)
        if met is not None:
            reached, high = _reached(past, met)
        notes += moved_in_holes(graph) + oldest_note(graph, node, name)
    opened = Opened.of(ask.open)
    flow, more = _flow(nodes, past, places, node, ask, opened, _listed_nodes(listed), held)
    shown = np.arange(min(ask.top, len(places)))
    totals = {
        kind: float(places.share[[k == kind for k in places.kinds]].sum())
        for kind in dict.fromkeys(places.kinds)
    }
    counted = {kind: (share, places.kinds.count(kind)) for kind, share in totals.items()}
    amount = nodes.index.amount(held)
    where = where_words(counted, places.missing, share_words)
    return DestinationsAnswer(
        ledger=nodes.ledger,
        digest=digest,
        settings=ask,
        name=nodes.name(node),
        kind=nodes.kind(node),
        label=nodes.label(node),
        held=amount,
        time=nodes.time(node),
        height=nodes.height(node),
        sentence=f"Of {amount.shown} that it had, {where}.",
        totals={kind: min(share, 1.0) for kind, share in totals.items()},
        not_followed=min(places.missing, 1.0),
        reached=reached,
        reached_high=high,
        destinations=_destinations(nodes, places, shown, held),
        other=_other(places, shown),
        flow=flow,
        notes=(*notes, *more),
        provenance=dict(provenance),
    )


def _reached(past: Past, met: Bools) -> tuple[float, float]:
    """Give what of the money passed a listed name, at least and at most."""
    if past.whole and not met[past.nodes].any():
        return 0.0, 0.0
    meets, apart = past.passing(met)[past.start].tolist()
    return min(meets, 1.0), min(max(1.0 - apart + SLACK, meets), 1.0)


def _listed_nodes(listed: Listed | None) -> Bools | None:
    return None if listed is None else listed.nodes.nodes


def _places(nodes: Nodes, past: Past, met: Bools | None) -> EndPlaces:
    """Read destinations out of a walk forward, with the fees of all transactions as one."""
    row, outcomes = Row.of_past(past), past.chain.outcomes
    assert isinstance(outcomes, SourceNames)
    at = outcomes.nodes[row.outcomes].astype(np.int64)
    kinds = np.array(kinds_of(nodes.graph, at), dtype=object)
    stayed = past.chain.graph.opening
    assert stayed is not None
    to_fees = np.where(kinds == FEE, 1.0, part_in_fees(nodes.graph, stayed, at))
    part = np.zeros(len(row)) if met is None else threads(past, met, row.outcomes, row.shares)
    share, thread = ((1.0 - to_fees) * each for each in (row.shares, part))
    share, thread = (
        np.append(rest, (to_fees * all_).sum())
        for rest, all_ in ((share, row.shares), (thread, part))
    )
    names = [*nodes.names(at), FEES]
    at, kinds = np.append(at, NONE), np.append(kinds, FEE)
    order = np.argsort(-share, kind="stable")
    order = order[share[order] > 0]
    rank = {int(k): r for r, k in enumerate(order.tolist())}
    by_outcome = {
        int(outcome): tuple(
            (rank[place], of_it)
            for place, of_it in ((k, 1.0 - fee), (len(row), fee))
            if place in rank and of_it > 0
        )
        for k, (outcome, fee) in enumerate(zip(row.outcomes, to_fees.tolist(), strict=True))
    }
    return EndPlaces(
        nodes=at[order],
        names=[names[k] for k in order.tolist()],
        kinds=[str(kinds[k]) for k in order.tolist()],
        share=share[order],
        missing=row.missing if row.missing > NOTHING else 0.0,
        listed=None if met is None else thread[order],
        rank=by_outcome,
    )


def _destinations(
    nodes: Nodes, places: EndPlaces, ranks: Ints, held: int
) -> tuple[Destination, ...]:
    found = []
    for k in ranks.tolist():
        node, share = int(places.nodes[k]), min(float(places.share[k]), 1.0)
        facts: dict[str, Any] = {"words": places.names[k].capitalize()}
        if node != NONE:
            facts = {
                "words": nodes.words(node), "label": nodes.label(node), "time": nodes.time(node),
                "height": nodes.height(node), "href": nodes.href(node),
            }  # fmt: skip
        kind = cast("DestinationKind", places.kinds[k])
        units = places.units
        amount = nodes.index.part(held, share) if units is None else nodes.index.amount(units[k])
        found.append(
            Destination(
                rank=k, name=places.names[k], kind=kind, share=share, amount=amount, **facts
            )
        )
    return tuple(found)


def _other(places: EndPlaces, ranks: Ints) -> Other:
    rest = len(places) - len(ranks)
    share = max(1.0 - float(places.share[ranks].sum()), 0.0)
    return Other(count=rest, share=0.0 if rest == 0 and share <= SLACK else min(share, 1.0))


def _flow(
    nodes: Nodes,
    past: Past | None,
    places: EndPlaces,
    node: int,
    ask: CoinQuery,
    opened: Opened,
    met: Bools | None,
    held: int,
) -> tuple[Flow, tuple[str, ...]]:
    by, notes = ask.by, tuple[str, ...]()
    if by == "time" and not tells_time(nodes, node):
        by, notes = "hop", (NO_TIME,)
    ranks = np.arange(min(ask.top + opened.origins, len(places)))
    boxes = _boxes(nodes, places, ranks, held)
    if past is None or not len(places):
        itself = coin_node(nodes, node, listed=0.0)
        return straight_flow(itself, boxes, by=by, text=LOTS, direction="forward"), notes
    last = len(boxes) - 1
    place = {
        k: tuple((min(rank, last), part) for rank, part in parts)
        for k, parts in (places.rank or {}).items()
    }
    flow = draw_flow(
        past,
        nodes,
        place,
        boxes,
        by=by,
        opened=opened,
        met=met,
        through=THROUGH,
        direction="forward",
    )
    return flow, notes


def _boxes(nodes: Nodes, places: EndPlaces, ranks: Ints, held: int) -> list[FlowNode]:
    """Make the boxes of the last column, the one of all others last."""
    part = np.zeros(len(places)) if places.listed is None else places.listed
    found = [
        FlowNode(
            id=f"o{to.rank}", column=1, kind=to.kind, name=to.name, words=to.words, share=to.share,
            ended=to.share, listed=min(float(part[to.rank]), to.share), label=to.label,
            time=to.time, height=to.height, href=to.href,
        )
        for to in _destinations(nodes, places, ranks, held)
    ]  # fmt: skip
    other = _other(places, ranks)
    if other.share > 0 or other.count > 0:
        words = f"Other, {count_words(other.count, 'destination')}" if other.count else ""
        rest = min(float(part[len(ranks) :].sum()), other.share)
        found.append(
            FlowNode(
                id=f"ox{len(ranks)}", column=1, kind="other", name=None,
                words=words or NOT_FOLLOWED.replace("back", "on"), share=other.share,
                ended=other.share, count=other.count, listed=rest, folded=True,
                opens=other.count > 0,
            )
        )  # fmt: skip
    return found
