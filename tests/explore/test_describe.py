"""How numbers are said: bands, digits, clauses and what is never said."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coinhaze.explore import describe

NEVER = ("anonymous", "safe", "clean", "dirty", "guilt", "owner", "chance that")


@pytest.mark.parametrize(
    ("bits", "said"),
    [
        (0.0, "One possible origin under this rule"),
        (0.5, "One origin holds most of it"),
        (0.92, "One origin holds most of it"),
        (0.971, "Two likely origins"),
        (1.0, "Two likely origins"),
        (1.01, "A few likely origins"),
        (3.32, "A few likely origins"),
        (3.33, "Tens of likely origins"),
        (6.64, "Tens of likely origins"),
        (6.65, "Hundreds of likely origins"),
        (9.96, "Hundreds of likely origins"),
        (9.97, "Thousands of likely origins"),
    ],
    ids=str,
)
def test_bands_name_sizes(bits: float, said: str) -> None:
    assert describe.band_words(bits) == said


@given(st.floats(1e-9, 1.0))
def test_a_band_does_not_speak_against_its_sentence(bits: float) -> None:
    said = describe.band_words(bits)
    assert (said == "One origin holds most of it") == (2.0**bits <= 1.9)
    if describe.equal_words(bits) == "2.0":
        assert said == "Two likely origins"


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (6.97, 7.0, "6.98"),
        (6.94, 7.03, "6.98"),
        (6.9, 7.2, "7.0"),
        (6.5, 7.5, "7.0"),
        (6.4, 7.6, "between 6 and 8"),
    ],
    ids=str,
)
def test_digits_go_as_the_range_widens(low: float, high: float, said: str) -> None:
    assert describe.bits_words(6.981, low, high) == said


@given(st.floats(0, 30), st.floats(0, 3), st.floats(0, 3))
def test_ends_are_rounded_outward(bits: float, below: float, above: float) -> None:
    low, high = max(bits - below, 0.0), bits + above
    said = describe.range_words(low, high)
    if said == "exact":
        assert high - low <= describe.EXACT
        return
    first, last = map(float, said.removeprefix("proven range ").split("\N{EN DASH}"))
    assert first <= low + describe.EXACT
    assert last >= high - describe.EXACT
    assert low - first <= 0.1 + describe.EXACT
    assert last - high <= 0.1 + describe.EXACT


@given(st.floats(0.0, 20.0), st.floats(0.001, 1.0))
def test_the_clause_comes_by_its_rule(bits: float, top: float) -> None:
    wanted = top >= 0.10 and top >= 3 / 2**bits
    assert (describe.though_words(top, bits) is not None) == wanted
    assert (", though one origin alone holds" in describe.sentence(bits, top_share=top)) == (
        wanted and bits > 0
    )


@given(st.floats(0.0, 40.0))
def test_equal_origins_are_said_within_their_digits(bits: float) -> None:
    equal = float(describe.equal_words(bits).removeprefix("about ").replace(",", ""))
    assert math.isclose(equal, 2**bits, rel_tol=0.06)


@given(st.floats(1e-12, 1 - 1e-6))
def test_a_share_is_never_said_to_be_nothing_or_all(share: float) -> None:
    assert describe.share_words(share) not in ("0 %", "0.0 %", "100 %", "100.0 %")


def test_an_upper_end_is_rounded_up() -> None:
    assert describe.at_most_words(0.000301) == "at most 0.04 %"
    assert describe.at_most_words(0.0004) == "at most 0.04 %"


@given(st.floats(0, 25), st.floats(0, 1))
def test_what_is_never_said(bits: float, top: float) -> None:
    said = f"{describe.sentence(bits, top_share=top)} {describe.band_words(bits)}".lower()
    assert not any(word in said for word in NEVER)


@given(st.integers(0, 10**30), st.integers(0, 18))
def test_amounts_keep_every_digit(amount: int, decimals: int) -> None:
    said = describe.amount_words(str(amount), decimals, "BTC")
    digits = said.removesuffix(" BTC").replace(",", "").replace(" ", "").replace(".", "")
    assert int(digits) == amount


def test_a_long_name_keeps_its_output() -> None:
    assert describe.short_id("ab" * 32 + ":17") == "ababab…abab:17"
    assert describe.short_id("short:1") == "short:1"
