"""The same coin under other rules, and by other people's measures."""

from __future__ import annotations

from coinhaze.explore.describe import NOT_TOUCHED, TOUCHED, equal_words, reading_words, share_words
from coinhaze.explore.models import (
    Comparators,
    Measure,
    Rule,
)
from coinhaze.observer.policies import POLICIES
from coinhaze.report.page import Html, escape
from coinhaze.web.pages.say import DASH, bits_text, tag

IN_ORDER = "needs payments in order of time: choose this rule above, and they are taken so"


def comparators_part(found: Comparators) -> Html:
    """Give two tables; a rule or measure that has no answer says why."""
    rules = "".join(_rule(rule) for rule in found.rules)
    measures = "".join(_measure(m) for m in found.measures if m.value is not None)
    why: dict[str, list[str]] = {}
    for measure in found.measures:
        if measure.value is None:
            why.setdefault(measure.refused or measure.words, []).append(measure.name)
    refused = "".join(
        tag("p", f"No {', '.join(names)}: {reason}.", kind="sub") for reason, names in why.items()
    )
    table = (
        f'<table id="rules"><caption>{escape(_read(found))}</caption><thead><tr><th>Rule</th>'
        '<th class="num">Bits</th><th class="num">Equal origins</th><th class="num">Exposure</th>'
        f"</tr></thead><tbody>{rules}</tbody></table>"
    )
    other = (
        f'<h3>Other measures</h3><table id="measures"><tbody>{measures}</tbody></table>{refused}'
        if measures or refused
        else ""
    )
    return Html(f'<div class="others">{table}{other}</div>')


def _read(found: Comparators) -> str:
    """Say how the figures are read; their rules are in the first column."""
    used = found.settings
    if used is None:
        return ""
    bits, time = reading_words(used.view, used.time), found.exposure_time
    listed = f" Exposure: {reading_words(used.view, time)}." if used.list else ""
    return f"Bits: {bits}.{listed}"


def _rule(rule: Rule) -> str:
    policy = POLICIES[rule.policy]
    name = escape(policy.label)
    if rule.refused:
        why = IN_ORDER if "time=temporal" in rule.refused else rule.refused
        return f'<tr><td>{name}</td><td colspan="3" class="dim">{escape(why)}</td></tr>'
    bits = DASH if not policy.shares else bits_text(rule)
    equal = DASH if not policy.shares or rule.bits is None else equal_words(rule.bits)
    exposure = DASH if rule.exposure is None else share_words(rule.exposure)
    if rule.touched is not None:
        exposure = TOUCHED if rule.touched else NOT_TOUCHED
    cells = "".join(tag("td", text, kind="num") for text in (bits, equal, exposure))
    return f"<tr><td>{name}</td>{cells}</tr>"


def _measure(measure: Measure) -> str:
    unit = measure.unit.removesuffix("s") if measure.value == 1 else measure.unit
    value = f"{measure.value:,.4g} {unit}".strip()
    return (
        f'<tr><td>{escape(measure.name)}<span class="sub">{escape(measure.words)}</span></td>'
        f'<td class="num">{escape(value)}</td></tr>'
    )
