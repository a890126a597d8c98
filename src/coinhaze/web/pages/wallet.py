"""A wallet's page: paste coins and exposed addresses, see what goes with what; not in the link."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from coinhaze.explore.describe import OWNERSHIP, reading_words, short_id
from coinhaze.explore.links import ledger_link
from coinhaze.explore.models import Before, LedgerCard, Together, WalletAnswer
from coinhaze.web.pages.render import render
from coinhaze.web.pages.say import DASH
from coinhaze.web.schema import Problem

MOST_PAIRS = 60  # rows of pairs that a page shows
MOST_NAMES = 12
NO_LINK, APART, UNTOLD = "Groups that add no new link", "Keep apart", "Spent together"
NOT_TOLD = "Exposure is not told, since no exposed address was named: no group can be set apart."


@dataclass(frozen=True)
class WalletForm:
    """What was pasted."""

    coins: str = ""
    exposed: str = ""
    amount: str = ""


def wallet_page(card: LedgerCard, form: WalletForm, answer: WalletAnswer | Problem | None) -> str:
    """Return the form as it was filled, and the answer; accounts have no wallets."""
    problem = answer if isinstance(answer, Problem) else None
    told = answer if isinstance(answer, WalletAnswer) else None
    return render(
        "wallet.html",
        "Wallet",
        card=card,
        here=f"{ledger_link(card.id)}/wallet" if answer is None else "",
        form=form,
        problem=problem,
        answer=told,
        effect_words=effect_words,
        **(_groups(told) if told is not None else {}),
    )


def _groups(answer: WalletAnswer) -> dict[str, Any]:
    """Sort groups by what they do, those that put no coin with exposed ones first; then pairs."""
    used = answer.settings
    read = reading_words(used.view, used.time, used.policy)
    panels = []
    # Either some group is told to add no link, or nothing is told of any: ownership stands once.
    for title, ties, notes in (
        (NO_LINK, False, (OWNERSHIP,)),
        (APART, True, ()),
        (UNTOLD, None, (NOT_TOLD, OWNERSHIP)),
    ):
        rows = [(each.kind.capitalize(), each) for each in answer.groups if each.ties is ties]
        if rows:
            panels.append({"title": title, "rows": rows, "notes": notes})
    seen = {frozenset(group.coins) for group in answer.groups}
    pairs = [pair for pair in answer.pairs or () if frozenset(pair.coins) not in seen]
    pairs.sort(key=lambda pair: not pair.ties)
    return {
        "read": f"Bits and exposure: {read}. Amounts are those of the coins, none is assumed.",
        "panels": panels,
        "pairs": {
            "too_many": answer.pairs is None and len(answer.coins) > 1,
            "count": len(pairs),
            "rows": [("", pair) for pair in pairs[:MOST_PAIRS]],
            "left": len(pairs) - MOST_PAIRS,
        },
    }


def exposed_by(coins: Sequence[Before], spend: Together, limit: float) -> tuple[str, ...]:
    """Name the coins that are not exposed, and would or may be if these were spent together."""
    if not spend.ties:
        return ()
    known = {coin.name: coin for coin in coins}
    return tuple(name for name in spend.coins if name in known and _within(known[name], limit))


def effect_words(coins: Sequence[Before], spend: Together, limit: float) -> str:
    """Say what spending coins together does to those that are not exposed."""
    if spend.ties is None:
        return DASH
    if spend.ties:
        names = ", ".join(short_id(name) for name in exposed_by(coins, spend, limit)[:MOST_NAMES])
        left = len(exposed_by(coins, spend, limit)) - MOST_NAMES
        more = f" and {left:,} more" if left > 0 else ""
        sure = spend.exposure_high is None or (spend.exposure or 0.0) > limit
        return f"keep apart: {'would' if sure else 'may'} expose {names}{more}"
    if (spend.exposure_high or spend.exposure or 0.0) > limit:
        return "exposed already"
    return "no coin becomes exposed"


def _within(coin: Before, limit: float) -> bool:
    high = coin.exposure if coin.exposure_high is None else coin.exposure_high
    return high is not None and high <= limit
