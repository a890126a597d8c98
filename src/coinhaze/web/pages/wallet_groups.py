"""What goes with what in a wallet: groups that add no new link, what to keep apart, every pair."""

from __future__ import annotations

from collections.abc import Sequence

from coinhaze.explore.describe import OWNERSHIP, count_words, share_words, short_id
from coinhaze.explore.models import (
    Before,
    Group,
    Together,
    WalletAnswer,
)
from coinhaze.report.page import Html, escape
from coinhaze.web.pages.say import DASH, amount, bits_text, panel, tag, together

MOST_PAIRS = 60  # rows of pairs that a page shows
MOST_NAMES = 12
NO_LINK, APART, UNTOLD = "Groups that add no new link", "Keep apart", "Spent together"
NOT_TOLD = "Exposure is not told, since no exposed address was named: no group can be set apart."


def groups_section(answer: WalletAnswer) -> Html:
    """Give groups by what they do: those that put no coin with exposed ones first."""
    groups = answer.groups
    fine = [group for group in groups if group.ties is False]
    apart = [group for group in groups if group.ties]
    untold = [group for group in groups if group.ties is None]
    # Either some group is told to add no link, or nothing is told of any: it stands once.
    held = tag("p", OWNERSHIP, kind="sub")
    sure = panel("How sure this is", tag("p", answer.how_sure, kind="sub"))
    parts = [
        _panel(NO_LINK, fine, answer, held),
        _panel(APART, apart, answer),
        _panel(UNTOLD, untold, answer, tag("p", NOT_TOLD, kind="sub"), held),
        _pairs(answer),
    ]
    return together([*parts, sure])


def exposed_by(coins: Sequence[Before], spend: Together, limit: float) -> tuple[str, ...]:
    """Name the coins that are not exposed, and would or may be if these were spent together."""
    if not spend.ties:
        return ()
    known = {coin.name: coin for coin in coins}
    return tuple(name for name in spend.coins if name in known and _within(known[name], limit))


def verdict_words(coins: Sequence[Before], spend: Together, limit: float) -> str:
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


def coin_names(names: Sequence[str], most: int = MOST_NAMES) -> Html:
    """Name coins, the first of many."""
    names_shown = (tag("span", short_id(n), kind="mono", title=n) for n in names[:most])
    shown = Html(", ".join(names_shown))
    left = len(names) - most
    return Html(f"{shown} and {left:,} more") if left > 0 else shown


def share_or_dash(share: float | None) -> str:
    """Say a share; a dash where it is not told."""
    return DASH if share is None else share_words(share)


def _within(coin: Before, limit: float) -> bool:
    high = coin.exposure if coin.exposure_high is None else coin.exposure_high
    return high is not None and high <= limit


def _panel(title: str, groups: Sequence[Group], answer: WalletAnswer, *more: object) -> Html:
    if not groups:
        return Html("")
    lines = [(escape(group.kind.capitalize()), group) for group in groups]
    return panel(title, _table(lines, answer), *more)


def _pairs(answer: WalletAnswer) -> Html:
    """Show pairs that are not groups already, those to keep apart first."""
    seen = {frozenset(group.coins) for group in answer.groups}
    pairs = [pair for pair in answer.pairs or () if frozenset(pair.coins) not in seen]
    if answer.pairs is None and len(answer.coins) > 1:
        words = f"{count_words(len(answer.coins), 'coin')} have too many pairs to look at each."
        return tag("p", words, kind="sub")
    if not pairs:
        return Html("")
    pairs.sort(key=lambda pair: not pair.ties)
    left = len(pairs) - MOST_PAIRS
    more = tag("p", f"{count_words(left, 'pair')} more are not shown.", kind="sub")
    rows = [(Html(""), pair) for pair in pairs[:MOST_PAIRS]]
    count = tag("span", count_words(len(pairs), "pair"), kind="sub")
    return panel("In pairs", _table(rows, answer), more if left > 0 else "", beside=count)


def _table(rows: Sequence[tuple[Html, Together]], answer: WalletAnswer) -> Html:
    lines = "".join(_row(words, some, answer) for words, some in rows)
    return Html(
        '<div class="wide"><table><thead><tr><th>Spent together</th><th class="num">Amount</th>'
        '<th class="num">Bits</th><th class="num">Exposure</th><th>What it does</th></tr></thead>'
        f"<tbody>{lines}</tbody></table></div>"
    )


def _row(words: Html, some: Together, answer: WalletAnswer) -> str:
    names = coin_names(some.coins)
    first = Html(f'{words}<span class="sub">{names}</span>') if words else names
    return (
        f'<tr><td>{first}</td><td class="num">{amount(some.amount)}</td>'
        f'<td class="num">{bits_text(some)}</td>'
        f'<td class="num">{share_or_dash(some.exposure)}</td>'
        f"<td>{escape(verdict_words(answer.coins, some, answer.limit))}</td></tr>"
    )
