"""How much of a coin's money came from a list, with proven bounds, and in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from coinhaze.chain import AbsorbingChain
from coinhaze.solve import Parcels
from coinhaze.solve.in_order import origins_in_order
from coinhaze.solve.past import Past
from coinhaze.web.desk_book import is_accounts
from coinhaze.web.desk_nodes import Nodes
from coinhaze.web.desk_views import Listed, Look, Views
from coinhaze.web.models import Exposure
from coinhaze.web.words import NOT_TOUCHED, TOUCHED, at_most_words, share_words

SLACK = 1e-9  # by which a share may be off in its last places


@dataclass(frozen=True)
class Met:
    """What of some money met a list: least and most share, which entries, moves to the nearest."""

    low: float
    high: float
    entries: frozenset[int]
    hops: int | None = None
    touched: bool | None = None  # all that poison says


def met(views: Views, look: Look, listed: Listed, node: int, past: Past | None) -> Met:
    """Find how much of a node's money met the list."""
    if not listed.names:
        return Met(0.0, 0.0, frozenset(), touched=False if look.policy == "poison" else None)
    if past is None:
        return _in_parcels(views, look, node)
    chain, nodes = past.chain, listed.nodes
    reached = frozenset(nodes.entry[past.nodes].tolist()) - {-1}
    steps = past.nearest_end(nodes.nodes)
    hops = None if steps is None else steps - 1
    if look.policy == "poison":
        touched = chain.clean is not None and not bool(chain.clean[node])
        return Met(0.0, 1.0, reached if touched else frozenset(), hops, touched)
    meets, apart = past.passing(nodes.nodes)[past.start].tolist()
    low, high = min(meets, 1.0), min(1.0 - apart + SLACK, 1.0)
    # A past that is whole leaves nothing open but roundings.
    if past.whole and high - low <= 2 * SLACK:
        high = low
    return Met(low, max(high, low), reached, hops)


def _in_parcels(views: Views, look: Look, node: int) -> Met:
    belief = views.belief(look, listed=True)
    assert isinstance(belief, Parcels)
    found = origins_in_order(belief, node)
    there = found.outcomes != belief.labels.elsewhere
    share = min(float(found.probability[there].sum()), 1.0)
    return Met(share, share, frozenset(found.outcomes[there].tolist()))


def tell_exposure(
    found: Met, listed: Listed, look: Look, nodes: Nodes, balance: int | None
) -> Exposure:
    """Say it: a share and an amount, or under poison whether it was touched."""
    noun = "accounts" if is_accounts(nodes.book.ledger) else "addresses"
    of = f"{len(found.entries):,} of {listed.total:,} listed {noun}"
    if look.policy == "poison":
        text = f"{TOUCHED} by {of}" if found.touched else NOT_TOUCHED
        return Exposure(
            list=listed.id, policy=look.policy, listed=listed.total, entries=len(found.entries),
            share=None, share_low=None, share_high=None, touched=bool(found.touched),
            hops=found.hops if found.touched else None, text=text,
        )  # fmt: skip
    amount = None if balance is None else nodes.book.part(balance, found.low)
    worth = "" if amount is None else f" ({amount.shown})"
    text = f"{share_words(found.low)}{worth} from {of}"
    if found.low <= 0:
        text = "none found" if found.high <= 0 else f"none found, {at_most_words(found.high)}"
    return Exposure(
        list=listed.id, policy=look.policy, listed=listed.total, entries=len(found.entries),
        share=found.low, share_low=found.low, share_high=found.high, amount=amount,
        hops=found.hops, text=text,
    )  # fmt: skip


def met_together(parts: Sequence[tuple[Met, float]]) -> Met:
    """Put coins together, each by its weight."""
    total = sum(weight for _, weight in parts)
    entries = frozenset().union(*(m.entries for m, _ in parts)) if parts else frozenset[int]()
    touched = None
    if any(m.touched is not None for m, _ in parts):
        touched = any(bool(m.touched) for m, _ in parts)
    if total <= 0:
        return Met(0.0, 0.0, entries, touched=touched)
    low = sum(m.low * (weight / total) for m, weight in parts)
    high = sum(m.high * (weight / total) for m, weight in parts)
    return Met(min(low, 1.0), min(max(low, high), 1.0), entries, touched=touched)


def is_untouched(belief: AbsorbingChain | Parcels, node: int) -> bool:
    """Tell whether poison never reached a node."""
    clean = belief.clean if isinstance(belief, AbsorbingChain) else None
    return clean is not None and bool(clean[node])
