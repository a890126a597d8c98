"""How much of a coin's money came from a list, with proven bounds, and in words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from coinhaze.amounts import Bools, Floats, Ints
from coinhaze.explore.describe import NOT_TOUCHED, TOUCHED, at_most_words, share_words
from coinhaze.explore.ledger_index import is_accounts
from coinhaze.explore.models import Exposure, ListedEntry
from coinhaze.explore.nodes import Nodes
from coinhaze.explore.views import Listed, ViewOptions, Views
from coinhaze.measures.mixture import bits_beyond
from coinhaze.observer import AbsorbingChain
from coinhaze.observer.chain import NO_COLUMN
from coinhaze.solve import Lots
from coinhaze.solve.local.mixing import mix
from coinhaze.solve.local.past import Past
from coinhaze.solve.lots.scores import origins_in_order

SLACK = 1e-9  # by which a share may be off in its last places
LARGEST = 5  # entries of a list that are named
NO_ANSWER = "no answer: its past never ends"


@dataclass(frozen=True)
class Met:
    """What of some money met a list: share and its bounds, which entries, moves to the nearest.

    A share that is not a number says that there is no answer.
    """

    share: float
    low: float
    high: float
    entries: frozenset[int]
    hops: int | None = None
    touched: bool | None = None  # all that poison says
    parts: Mapping[int, float] = field(default_factory=dict)  # of entries, as each was met first

    @property
    def known(self) -> bool:
        """Whether there is an answer."""
        return not math.isnan(self.share)


def met(views: Views, options: ViewOptions, listed: Listed, node: int, past: Past | None) -> Met:
    """Find how much of a node's money met the list."""
    if past is None:
        return _in_lots(views, options, node) if listed.names else Met(0.0, 0.0, 0.0, frozenset())
    chain, nodes = past.chain, listed.nodes
    reached = frozenset(nodes.entry[past.nodes].tolist()) - {-1}
    steps = past.nearest_end(nodes.nodes)
    hops = None if steps is None else steps - 1
    if not options.rule.shares:
        touched = chain.clean is not None and not bool(chain.clean[node])
        touched = touched and bool(listed.names)
        return Met(0.0, 0.0, 1.0, reached if touched else frozenset(), hops, touched)
    share, low, high = _bounds(views, options, listed, node, past)
    if views.max_origins is not None:  # all that was not followed may be listed
        row = mix(views.session(options).structure, [node], [1])
        high = min(high + bits_beyond(row, views.max_origins).open, 1.0)
    if math.isnan(share):
        return Met(share, low, high, frozenset())
    return Met(share, low, high, reached, hops, parts=_parts(past, listed))


def _bounds(
    views: Views, options: ViewOptions, listed: Listed, node: int, past: Past
) -> tuple[float, float, float]:
    """Give a share and where it is proven to lie; not a number where the walk may never end."""
    exact = views.listed_row(options, node)
    if exact is not None:
        return exact
    if views.lost(options, node):
        return views.listed_exactly(options, node) if listed.names else (math.nan,) * 3
    nodes = listed.nodes.nodes
    if not listed.names:
        return 0.0, 0.0, 0.0
    if past.whole and not nodes[past.nodes].any():
        return 0.0, 0.0, 0.0
    meets, apart = past.passing(nodes)[past.start].tolist()
    share = min(meets, 1.0)
    # Nothing of a whole past ends but at the list: all of it came from there.
    if past.whole and apart == 0:
        return 1.0, 1.0, 1.0
    return share, max(share - SLACK, 0.0), max(min(1.0 - apart + SLACK, 1.0), share)


def threads(past: Past, listed: Bools, outcomes: Ints, shares: Floats) -> Floats:
    """Give of the shares of some outcomes what met a listed node on its way."""
    cut = past.cut_at(listed)
    ends = np.flatnonzero((past.column != NO_COLUMN) & ~listed[past.nodes])
    n = len(past.chain.outcomes)
    never = np.bincount(past.column[ends], cut.visits[ends] * past.own[ends], n)[outcomes]
    part = np.clip(shares - never, 0.0, 1.0)
    found: Floats = np.where(part <= SLACK * shares, 0.0, part)
    return found


def _parts(past: Past, listed: Listed) -> dict[int, float]:
    """Give for each entry the chance that it is the first of the list that is met."""
    places = np.flatnonzero(listed.nodes.nodes[past.nodes])
    if not len(places):
        return {}
    visits = past.cut_at(listed.nodes.nodes).visits[places]
    entries = listed.nodes.entry[past.nodes[places]]
    total = np.bincount(entries, visits, len(listed.names))
    return {int(k): min(float(total[k]), 1.0) for k in np.flatnonzero(total > 0)}


def _in_lots(views: Views, options: ViewOptions, node: int) -> Met:
    belief = views.session(options, listed=True).belief
    assert isinstance(belief, Lots)
    found = origins_in_order(belief, node)
    there = found.outcomes != belief.labels.elsewhere
    share = min(float(found.probability[there].sum()), 1.0)
    parts = dict(
        zip(found.outcomes[there].tolist(), found.probability[there].tolist(), strict=True)
    )
    return Met(share, share, share, frozenset(parts), parts=parts)


def tell_exposure(
    found: Met, listed: Listed, options: ViewOptions, nodes: Nodes, at: Ints
) -> Exposure:
    """Say it of some nodes: a share and an amount, or under poison whether it was touched."""
    noun = "accounts" if is_accounts(nodes.index.ledger) else "addresses"
    of = f"{len(found.entries):,} of {listed.total:,} listed {noun}"
    how: dict[str, Any] = {
        "view": options.view,
        "time": None if options.view == "coin" else options.time,
    }
    if not options.rule.shares:
        text = f"{TOUCHED} by {of}" if found.touched else NOT_TOUCHED
        return Exposure(
            list=listed.id, policy=options.policy, listed=listed.total, entries=len(found.entries),
            share=None, share_low=None, share_high=None, touched=bool(found.touched),
            hops=found.hops if found.touched else None, largest=_largest(found, listed, nodes),
            text=text, **how,
        )  # fmt: skip
    if not found.known:
        return Exposure(
            list=listed.id, policy=options.policy, listed=listed.total, entries=0, share=None,
            share_low=None, share_high=None, text=NO_ANSWER, **how,
        )  # fmt: skip
    balances = [nodes.balance(node) for node in at.tolist()]
    balance = None if None in balances else sum(value or 0 for value in balances)
    amount = None if balance is None else nodes.index.part(balance, found.share)
    assumed = nodes.assumed_in(at)
    worth = "" if amount is None else f" ({amount.shown})"
    text = f"{share_words(found.share)}{worth} from {of}"
    if found.share <= 0:
        text = "none found" if found.high <= 0 else f"none found, {at_most_words(found.high)}"
    return Exposure(
        list=listed.id, policy=options.policy, listed=listed.total, entries=len(found.entries),
        share=found.share, share_low=found.low, share_high=found.high, amount=amount,
        hops=found.hops, largest=_largest(found, listed, nodes), text=text, **how,
        holds=None if balance is None else nodes.index.amount(balance),
        assumed=None if not assumed else nodes.index.amount(assumed),
    )  # fmt: skip


def _largest(found: Met, listed: Listed, nodes: Nodes) -> tuple[ListedEntry, ...]:
    """Name the entries most came from; under poison the first of those that were met."""
    order = sorted(found.parts or found.entries, key=lambda k: (-found.parts.get(k, 0.0), k))
    return tuple(
        ListedEntry(
            name=listed.names[k], share=found.parts.get(k), label=nodes.labels.get(listed.names[k]),
            href=nodes.named_href(listed.names[k]),
        )
        for k in order[:LARGEST]
    )  # fmt: skip


def met_together(parts: Sequence[tuple[Met, float]]) -> Met:
    """Put coins together, each by its weight; those worth nothing do not count."""
    total = sum(weight for _, weight in parts)
    entries = frozenset().union(*(m.entries for m, _ in parts)) if parts else frozenset[int]()
    touched = None
    if any(m.touched is not None for m, _ in parts):
        touched = any(bool(m.touched) for m, _ in parts)
    if total <= 0:
        return Met(0.0, 0.0, 0.0, entries, touched=touched)
    some = [(m, weight / total) for m, weight in parts if weight > 0]
    share, low, high = (
        min(sum(getattr(m, name) * weight for m, weight in some), 1.0)
        for name in ("share", "low", "high")
    )
    each: dict[int, float] = {}
    for m, weight in some:
        for entry, part in m.parts.items():
            each[entry] = min(each.get(entry, 0.0) + part * weight, 1.0)
    return Met(share, low, high, entries, touched=touched, parts=each)


def is_untouched(belief: AbsorbingChain | Lots, node: int) -> bool:
    """Tell whether poison never reached a node."""
    clean = belief.clean if isinstance(belief, AbsorbingChain) else None
    return clean is not None and bool(clean[node])
