"""What a coin's number means, the facts below it, and the same coin by other rules and measures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from coinhaze.errors import count_words
from coinhaze.explore.coin.comparators import NO_COINS
from coinhaze.explore.describe import (
    NOT_TOUCHED,
    TOUCHED,
    at_most_words,
    equal_words,
    reading_words,
    share_words,
    short_id,
    steps_words,
)
from coinhaze.explore.models import (
    BoundedFigure,
    CoinAnswer,
    Comparators,
    Exposure,
    LedgerCard,
    ListCard,
    Measure,
    Rule,
    SharedAnswer,
)
from coinhaze.explore.query import Settings, thing_link
from coinhaze.graph.opening import assumed_words
from coinhaze.observer.owners import sure_words
from coinhaze.observer.policies import POLICIES
from coinhaze.report.page import Html
from coinhaze.report.shared import NOT, WORDS
from coinhaze.web.pages.render import render, render_part
from coinhaze.web.pages.words import DASH, bits_text, noun_of, share_or_dash


@dataclass(frozen=True)
class Fact:
    """One of the facts below a number: what it is, how much, and a word more."""

    title: str
    value: str
    words: str
    id: str
    warn: bool = False
    named: bool = False  # the words are a name, whose direction is its own
    amount: str = ""  # before the words; people may hide it
    href: str | None = None  # of the page that states it in full


def verdict_words(answer: CoinAnswer) -> Html:
    """Say the bits, their range and one sentence; under poison only whether money touched."""
    exposure, harder = answer.exposure, ""
    # A bound does not tell where the coin stands among others.
    if answer.place is not None and answer.place.coins > 1 and not answer.lower_bound:
        many = noun_of(answer.kind, many=True)
        harder = f" Harder than {_whole_percent(answer.place.fewer)} of {many} in this ledger."
    # The count of equal origins is set in bold.
    sentence = answer.sentence.text.partition(f"{answer.sentence.equal} equally likely origins")
    return render_part(
        "verdict.html",
        answer=answer,
        policy=POLICIES[answer.settings.policy],
        touched=exposure is not None and bool(exposure.touched),
        text=(exposure.text if exposure else answer.sentence.text).rstrip("."),
        sentence=sentence,
        harder=harder,
    )


def _whole_percent(share: float) -> str:
    """Say a share of other coins, never all of them.

    >>> _whole_percent(0.684), _whole_percent(0.9999)
    ('68 %', 'over 99 %')
    """
    return "over 99 %" if share > 0.99 else f"{100 * share:.0f} %"


def whose_view(answer: CoinAnswer, card: LedgerCard, ask: Settings) -> str:
    """Say for whom the number holds, and what it is not."""
    used = answer.settings
    ordered = ""
    # A rule that turns the time round unrequested says so.
    turned = used.time == "temporal" and ask.time is None and card.times[:1] == ("stationary",)
    rule = POLICIES[used.policy]
    if turned and rule.ordered:
        ordered = f" {rule.label} needs payments in order of time, so they are taken so."
    read = reading_words(used.view, used.time, used.policy)
    believes = f"sees only the public ledger and {rule.words}" if rule.shares else rule.words
    return (
        f"Read by {read}: for someone who {believes}.{ordered} Exchange records, "
        "network logs or your own address list tell more. This is not a promise of privacy."
    )


def facts_of(
    answer: CoinAnswer, lists: Sequence[ListCard], *, screen: str | None = None
) -> list[Fact]:
    """Return four facts: the likeliest origin, exposure, possible origins, steps.

    `screen` is where exposure is stated in full.
    """
    poison = not POLICIES[answer.settings.policy].shares
    return [
        _likeliest(answer, poison),
        replace(_exposed(answer.exposure, lists, answer), href=screen),
        _possible(answer, poison),
        _steps(answer, poison),
    ]


def _likeliest(answer: CoinAnswer, poison: bool) -> Fact:
    title = "Likeliest single origin"
    if poison:
        return Fact(title, DASH, "poison gives no shares", id="fact-top")
    if answer.top_share is None or not answer.origins:
        return Fact(title, DASH, "not known", id="fact-top")
    first = answer.origins[0]
    words = f"{first.label} (label)" if first.label else first.words
    same = [
        origin.share for origin in answer.origins if first.label and origin.label == first.label
    ]
    if len(same) > 1:
        words += f"; {share_words(sum(same))} from {len(same):,} origins of that label"
    return Fact(title, share_words(answer.top_share), words, id="fact-top", named=True)


def _exposed(exposure: Exposure | None, lists: Sequence[ListCard], answer: CoinAnswer) -> Fact:
    title = "Exposure to loaded lists"
    if exposure is None:
        words = "choose a list below" if lists else "no list loaded; start with --listed NAME=FILE"
        return Fact(title, DASH, words, id="fact-exposure")
    one = "listed account" if answer.kind == "account" else "listed address"
    many = "listed accounts" if answer.kind == "account" else "listed addresses"
    read = reading_words(exposure.view, exposure.time, exposure.policy)
    of = f"of {count_words(exposure.listed, one, many)}; {read}"
    if exposure.touched is not None:
        words = f"by {exposure.entries:,} {of}" if exposure.touched else of
        said = TOUCHED if exposure.touched else NOT_TOUCHED
        return Fact(title, said, words, id="fact-exposure", warn=exposure.touched)
    if exposure.share is None:
        return Fact(title, DASH, exposure.text, id="fact-exposure")
    if not exposure.share:
        high = exposure.share_high or 0.0
        said = f"none found, {at_most_words(high)}" if high > 0 else "none found"
        return Fact(title, "none", f"{said} {of}" if not high else said, id="fact-exposure")
    amount = "" if exposure.amount is None else exposure.amount.shown
    words = f"{_held(exposure)} was at {exposure.entries:,} {of}"
    if exposure.largest:
        first = exposure.largest[0]
        words = f"{words}; most at {short_id(first.label or first.name)}"
    share = share_words(exposure.share)
    return Fact(title, share, words, id="fact-exposure", warn=True, amount=amount)


def _held(exposure: Exposure) -> str:
    """Say what an exposed amount is a part of, where some of that is assumed."""
    if exposure.holds is None or exposure.assumed is None:
        return ""
    holds, assumed = exposure.holds, exposure.assumed
    part = assumed_words(int(holds.smallest), int(assumed.smallest), assumed.shown)
    return f" of {holds.shown} held{part},"


def _possible(answer: CoinAnswer, poison: bool) -> Fact:
    title = "Possible origins"
    if poison:
        reached = 0 if answer.exposure is None else answer.exposure.entries
        return Fact(title, f"{reached:,}", "listed addresses reached", id="fact-sources")
    if answer.sources is None:
        return Fact(title, DASH, "not counted", id="fact-sources")
    shown = len(answer.origins)
    if answer.other.count == 0:
        words = "all shown"
    else:
        words = f"{shown} carry {share_words(1 - answer.other.share)} of the {noun_of(answer.kind)}"
    return Fact(title, f"{answer.sources:,}", words, id="fact-sources")


def _steps(answer: CoinAnswer, poison: bool) -> Fact:
    title = "Steps back to a listed address" if poison else "Steps back to an origin"
    nearest = "" if answer.steps_nearest is None else f"; nearest {answer.steps_nearest}"
    if answer.steps is None:
        words = "not known" if not nearest else nearest.removeprefix("; ")
        return Fact(title, DASH, words, id="fact-steps")
    return Fact(title, steps_words(answer.steps), f"on average{nearest}", id="fact-steps")


IN_ORDER = "needs payments in order of time: choose this rule above, and they are taken so"


def comparators_page(found: Comparators, card: LedgerCard) -> str:
    """Return two tables; a rule or measure that has no answer says why."""
    refused: dict[str, list[str]] = {}
    measures = []
    accounts = card.kind == "accounts"
    for measure in found.measures if not accounts else map(_of_accounts, found.measures):
        if measure.value is None:
            if accounts and measure.refused == NO_COINS:
                continue
            refused.setdefault(measure.refused or measure.words, []).append(measure.name)
        else:
            unit = measure.unit.removesuffix("s") if measure.value == 1 else measure.unit
            measures.append((measure, f"{measure.value:,.4g} {unit}".strip()))
    used = found.settings
    return render(
        "comparators.html",
        f"{found.name} by other rules",
        card=card,
        read=_read(found),
        rules=[_rule(rule) for rule in found.rules],
        observed=found.observed,
        observers=[
            (each, sure_words(each.confidence, each.confidence_origin), f"{each.bits:.2f}")
            for each in found.observers
        ],
        shared=f"{thing_link(card.id, 'coin', found.name)}/shared" if found.observers else None,
        used=[]
        if used is None
        else [("policy", used.policy), ("view", used.view), ("time", used.time)],
        measures=measures,
        refused=refused,
    )


NOUNS = (("coinbases", "mints"), ("coin", "account"))


def _of_accounts(measure: Measure) -> Measure:
    """Say what a measure is in the words of a ledger of accounts."""
    words, unit = measure.words, measure.unit
    for coins, accounts in NOUNS:
        words, unit = words.replace(coins, accounts), unit.replace(coins, accounts)
    return measure.model_copy(update={"words": words, "unit": unit})


def shared_page(found: SharedAnswer, card: LedgerCard) -> str:
    """Return what two coins share, to every observer, with the origins that tell most."""
    return render(
        "shared.html",
        "Shared origins",
        card=card,
        found=found,
        first=thing_link(card.id, "coin", found.first),
        second=thing_link(card.id, "coin", found.second),
        figure=_figure,
        read=reading_words(found.settings.view, found.settings.time, found.settings.policy),
        caution=NOT,
        words=WORDS,
    )


def _figure(figure: BoundedFigure) -> str:
    """Write a figure, or its interval where that is wide."""
    if figure.value is None or figure.low is None or figure.high is None:
        return DASH if figure.high is None else f"at most {figure.high:.4f}"
    if figure.high - figure.low < 5e-5:
        return f"{figure.value:.4f}"
    return f"{figure.low:.4f} to {figure.high:.4f}"


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
