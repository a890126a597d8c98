"""What a coin's number means: bits, range, sentence, and four facts below."""

from __future__ import annotations

from collections.abc import Sequence

from coinhaze.explore.describe import (
    NOT_TOUCHED,
    TOUCHED,
    at_most_words,
    count_words,
    reading_words,
    share_words,
    short_id,
    steps_words,
)
from coinhaze.explore.models import (
    CoinAnswer,
    Exposure,
    LedgerCard,
    ListCard,
)
from coinhaze.graph.assumed import assumed_words
from coinhaze.observer.policies import POLICIES
from coinhaze.report.page import Html, escape
from coinhaze.web.asks import Settings
from coinhaze.web.pages.say import DASH, fact, noun_of, tag


def verdict_words(answer: CoinAnswer) -> Html:
    """Say the bits, their range and one sentence; under poison only whether money touched."""
    if not POLICIES[answer.settings.policy].shares:
        return _poison_words(answer)
    if answer.bits is None:
        return Html(
            '<p class="big"><b id="bits">No answer</b></p>'
            f'<p class="say" id="say">{escape(answer.sentence.text)}</p>'
        )
    said = answer.sentence
    kind = "ivt" if answer.certified else "ivt estimate"
    harder = ""
    # A bound does not tell where the coin stands among others.
    if answer.place is not None and answer.place.coins > 1 and not answer.lower_bound:
        many = noun_of(answer.kind, many=True)
        harder = f" Harder than {_whole_percent(answer.place.fewer)} of {many} in this ledger."
    return Html(
        f'<p class="big"><b id="bits" data-bits="{answer.bits!r}">{escape(said.shown)}</b> '
        f'<span class="unit">bits</span> <span class="{kind}" id="range">{escape(said.range)}'
        f'</span></p><p class="say" id="say">{_strong(said.text, said.equal)}{escape(harder)}</p>'
    )


def _whole_percent(share: float) -> str:
    """Say a share of other coins, never all of them.

    >>> _whole_percent(0.684), _whole_percent(0.9999)
    ('68 %', 'over 99 %')
    """
    return "over 99 %" if share > 0.99 else f"{100 * share:.0f} %"


def _poison_words(answer: CoinAnswer) -> Html:
    exposure = answer.exposure
    touched = exposure is not None and bool(exposure.touched)
    words = TOUCHED if touched else NOT_TOUCHED
    bits = ""
    if touched and answer.bits is not None:
        bits = f"{answer.sentence.shown} bits, counting listed addresses only"
    text = (exposure.text if exposure else answer.sentence.text).rstrip(".")
    return Html(
        f'<p class="big"><b id="bits">{words.capitalize()}</b> '
        f'<span class="ivt" id="range">{escape(bits)}</span></p>'
        f'<p class="say" id="say">{escape(text[:1].upper() + text[1:])}. '
        "Poison says yes or no, not how much.</p>"
    )


def _strong(sentence: str, equal: str) -> Html:
    """Set the count of equal origins in bold."""
    words = f"{equal} equally likely origins"
    before, found, after = sentence.partition(words)
    return (
        Html(f"{escape(before)}<b>{escape(found)}</b>{escape(after)}")
        if found
        else escape(sentence)
    )


def whose_view(answer: CoinAnswer, card: LedgerCard, ask: Settings) -> str:
    """Say for whom the number holds, and what it is not."""
    used = answer.settings
    ordered = ""
    # A rule that turns the time round without being asked to says so.
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


def facts(answer: CoinAnswer, lists: Sequence[ListCard]) -> Html:
    """Give four facts: the likeliest origin, exposure, possible origins, steps."""
    poison = not POLICIES[answer.settings.policy].shares
    cells = [_likeliest(answer, poison), _exposed(answer.exposure, lists, answer)]
    cells += [_possible(answer, poison), _steps(answer, poison)]
    return Html(f'<dl class="facts">{"".join(cells)}</dl>')


def _likeliest(answer: CoinAnswer, poison: bool) -> str:
    title = "Likeliest single origin"
    if poison:
        return fact(title, DASH, "poison gives no shares", name="fact-top")
    if answer.top_share is None or not answer.origins:
        return fact(title, DASH, "not known", name="fact-top")
    first = answer.origins[0]
    words = tag("bdi", f"{first.label} (label)" if first.label else first.words)
    return fact(title, share_words(answer.top_share), words, name="fact-top")


def _exposed(exposure: Exposure | None, lists: Sequence[ListCard], answer: CoinAnswer) -> str:
    title = "Exposure to loaded lists"
    if exposure is None:
        words = "choose a list below" if lists else "no list loaded; start with --list NAME=FILE"
        return fact(title, DASH, words, name="fact-exposure")
    one = "listed account" if answer.kind == "account" else "listed address"
    many = "listed accounts" if answer.kind == "account" else "listed addresses"
    read = reading_words(exposure.view, exposure.time, exposure.policy)
    of = f"of {count_words(exposure.listed, one, many)}; {read}"
    if exposure.touched is not None:
        words = f"by {exposure.entries:,} {of}" if exposure.touched else of
        said = TOUCHED if exposure.touched else NOT_TOUCHED
        return fact(title, said, words, name="fact-exposure", warn=exposure.touched)
    if exposure.share is None:
        return fact(title, DASH, exposure.text, name="fact-exposure")
    if not exposure.share:
        high = exposure.share_high or 0.0
        said = f"none found, {at_most_words(high)}" if high > 0 else "none found"
        return fact(title, "none", f"{said} {of}" if not high else said, name="fact-exposure")
    amount = "" if exposure.amount is None else exposure.amount.shown
    lead = tag("span", amount, kind="amt inline") if amount else ""
    words = Html(f"{lead}{_held(exposure)} was at {exposure.entries:,} {escape(of)}")
    if exposure.largest:
        first = exposure.largest[0]
        words = Html(f"{words}; most at {escape(short_id(first.label or first.name))}")
    return fact(title, share_words(exposure.share), words, name="fact-exposure", warn=True)


def _held(exposure: Exposure) -> str:
    """Say what an exposed amount is a part of, where some of that is assumed."""
    if exposure.holds is None or exposure.assumed is None:
        return ""
    holds, assumed = exposure.holds, exposure.assumed
    part = assumed_words(int(holds.smallest), int(assumed.smallest), assumed.shown)
    return escape(f" of {holds.shown} held{part},")


def _possible(answer: CoinAnswer, poison: bool) -> str:
    title = "Possible origins"
    if poison:
        reached = 0 if answer.exposure is None else answer.exposure.entries
        return fact(title, f"{reached:,}", "listed addresses reached", name="fact-sources")
    if answer.sources is None:
        return fact(title, DASH, "not counted", name="fact-sources")
    shown = len(answer.origins)
    if answer.other.count == 0:
        words = "all shown"
    else:
        words = f"{shown} carry {share_words(1 - answer.other.share)} of the {noun_of(answer.kind)}"
    return fact(title, f"{answer.sources:,}", words, name="fact-sources")


def _steps(answer: CoinAnswer, poison: bool) -> str:
    title = "Steps back to a listed address" if poison else "Steps back to an origin"
    nearest = "" if answer.steps_nearest is None else f"; nearest {answer.steps_nearest}"
    if answer.steps is None:
        words = "not known" if not nearest else nearest.removeprefix("; ")
        return fact(title, DASH, words, name="fact-steps")
    return fact(title, steps_words(answer.steps), f"on average{nearest}", name="fact-steps")
