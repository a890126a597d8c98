"""The same coin under other rules, and by other people's measures."""

from __future__ import annotations

from coinhaze.explore.describe import NOT_TOUCHED, TOUCHED, equal_words, reading_words
from coinhaze.explore.models import Comparators, LedgerCard, Rule
from coinhaze.observer.policies import POLICIES
from coinhaze.web.pages.render import render
from coinhaze.web.pages.say import DASH, bits_text, share_or_dash

IN_ORDER = "needs payments in order of time: choose this rule above, and they are taken so"


def comparators_page(found: Comparators, card: LedgerCard) -> str:
    """Return two tables; a rule or measure that has no answer says why."""
    refused: dict[str, list[str]] = {}
    measures = []
    for measure in found.measures:
        if measure.value is None:
            refused.setdefault(measure.refused or measure.words, []).append(measure.name)
        else:
            unit = measure.unit.removesuffix("s") if measure.value == 1 else measure.unit
            measures.append((measure, f"{measure.value:,.4g} {unit}".strip()))
    return render(
        "comparators.html",
        f"{found.name} by other rules",
        card=card,
        read=_read(found),
        rules=[_rule(rule) for rule in found.rules],
        measures=measures,
        refused=refused,
    )


def _read(found: Comparators) -> str:
    """Say how the figures are read; their rules are in the first column."""
    used = found.settings
    if used is None:
        return ""
    bits, time = reading_words(used.view, used.time), found.exposure_time
    listed = f" Exposure: {reading_words(used.view, time)}." if used.list else ""
    return f"Bits: {bits}.{listed}"


def _rule(rule: Rule) -> dict[str, str | None]:
    policy = POLICIES[rule.policy]
    refused = rule.refused
    if refused and "time=temporal" in refused:
        refused = IN_ORDER
    exposure = share_or_dash(rule.exposure)
    if rule.touched is not None:
        exposure = TOUCHED if rule.touched else NOT_TOUCHED
    return {
        "name": policy.label,
        "refused": refused,
        "bits": DASH if not policy.shares else bits_text(rule),
        "equal": DASH if not policy.shares or rule.bits is None else equal_words(rule.bits),
        "exposure": exposure,
    }
