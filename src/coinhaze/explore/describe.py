"""How numbers are said: bands of words, digits, ranges, shares and amounts; sizes, never grades.

One place, so that the page, its data and its tests say the same of the same number.
"""

from __future__ import annotations

import math

from coinhaze.measures.summary import AT_LEAST
from coinhaze.observer.policies import POLICIES

EVEN_WIDTH, WIDE = 0.1, 1.0  # widths of a range, in bits, from which digits are dropped
EXACT = 1e-6  # a range this narrow is said to be exact
NOTABLE_SHARE, NOTABLE_TIMES = 0.10, 3.0  # when one origin is worth a clause of its own
# Upper ends in bits, of equal origins 2, 10, 100 and 1 000, and what is said up to there.
# From 1.9 on, equal origins are said as two: one cannot be said to hold most beside that.
_BANDS = (
    (math.log2(1.9), "One origin holds most of it"),
    (1.0, "Two likely origins"),
    (math.log2(10), "A few likely origins"),
    (math.log2(100), "Tens of likely origins"),
    (math.log2(1000), "Hundreds of likely origins"),
)
ONE_ORIGIN = "One possible origin under this rule"
THOUSANDS = "Thousands of likely origins"
OWNERSHIP = (
    "Spending together also shows that one person holds these coins; bits do not count that."
)
LUMPED = (
    "Coins of unknown value that were spent together count as one origin: bits are a lower bound."
)
TOUCHED, NOT_TOUCHED = "touched", "not touched"


def band_words(bits: float) -> str:
    """Name the size of an uncertainty.

    >>> [band_words(b) for b in (0.0, 0.4, 3.0, 6.98)][::3]
    ['One possible origin under this rule', 'Hundreds of likely origins']
    """
    if bits <= 0:
        return ONE_ORIGIN
    return next((words for end, words in _BANDS if bits <= end), THOUSANDS)


def bits_words(bits: float, low: float, high: float, *, lower_bound: bool = False) -> str:
    """Say bits with the digits their range allows.

    >>> bits_words(6.981, 6.962, 7.004), bits_words(6.981, 6.8, 7.3), bits_words(4.2, 3.1, 4.6)
    ('6.98', '7.0', 'between 3 and 5')
    """
    digits = digits_of(low, high)
    if lower_bound:
        minimum = math.floor(max(low, 0.0) * 10**digits + EXACT) / 10**digits
        return f"{AT_LEAST}{minimum:.{digits}f}"
    if high <= EXACT:
        return "0"
    if digits == 0:
        return f"between {math.floor(low):d} and {math.ceil(high):d}"
    return f"{_unsigned(bits):.{digits}f}"


def digits_of(low: float, high: float) -> int:
    """Give the decimals a range allows: two, one from 0.1 bits on, none from 1 bit on."""
    width = high - low
    return 2 if width <= EVEN_WIDTH else 1 if width <= WIDE else 0


def range_words(low: float, high: float, *, miss: float = 0.0, lower_bound: bool = False) -> str:
    """Say a range, its ends rounded outward; it is arithmetic, no confidence about the world.

    >>> range_words(6.962, 7.004), range_words(2.0, 2.0)
    ('proven range 6.96–7.01', 'exact')
    >>> range_words(6.01, 8.04, miss=1e-9)
    'range 6.0–8.1, misses with probability at most 1e-09'
    """
    proven = miss == 0
    if lower_bound:
        return "lower bound" if proven else "estimate of a lower bound"
    kind = "proven range" if proven else "range"
    if proven and high - low <= EXACT:
        return "exact"
    # One decimal more than the number would hide nothing, but reads as precision: keep its own.
    scale = 10.0 ** max(digits_of(low, high), 1)
    floor, ceil = math.floor(low * scale + EXACT) / scale, math.ceil(high * scale - EXACT) / scale
    digits = max(digits_of(low, high), 1)
    chance = "" if proven else f", misses with probability at most {miss:.0e}"
    return f"{kind} {_unsigned(floor):.{digits}f}\N{EN DASH}{ceil:.{digits}f}{chance}"


def equal_words(bits: float) -> str:
    """Say how many equally likely origins are as uncertain.

    >>> equal_words(1.44), equal_words(6.98), equal_words(10.34), equal_words(0.0)
    ('2.7', '126', 'about 1,300', '1')
    """
    equal = 2.0**bits
    if bits <= 0:
        return "1"
    if equal < 9.95:
        return f"{equal:.1f}"
    if equal < 999.5:
        return f"{equal:.0f}"
    step = 10 ** (math.floor(math.log10(equal)) - 1)
    return f"about {round(equal / step) * step:,}"


def though_words(top_share: float | None, bits: float) -> str | None:
    """Give the clause that entropy hides: one origin that holds far more than an even share.

    >>> though_words(0.221, 6.98)
    'though one origin alone holds 22.1 %'
    >>> though_words(0.09, 6.98) is None, though_words(0.5, 1.0) is None
    (True, True)
    """
    if top_share is None or top_share < NOTABLE_SHARE or top_share < NOTABLE_TIMES / 2.0**bits:
        return None
    return f"though one origin alone holds {share_words(top_share)}"


def sentence(
    bits: float,
    *,
    top_share: float | None = None,
    lower_bound: bool = False,
    noun: str = "coin",
) -> str:
    """Say in one sentence how hard a coin, an account or an address is to trace.

    >>> sentence(6.98, top_share=0.221)[:64]
    'As hard to trace as a coin with 126 equally likely origins, thou'
    >>> sentence(0.0)
    'One possible origin under this rule.'
    """
    one = f"{'a' if noun == 'coin' else 'an'} {noun}"
    if lower_bound:
        return f"At least as hard to trace as {one} with {_count_of_origins(bits)}. {LUMPED}"
    if bits <= 0:
        return f"{ONE_ORIGIN}."
    clause = though_words(top_share, bits)
    text = f"As hard to trace as {one} with {equal_words(bits)} equally likely origins"
    return f"{text}, {clause}." if clause else f"{text}."


def part_sentence(low: float, high: float, not_followed: float) -> tuple[str, str]:
    """Say what is known where only a part of the past was followed, and the count it names.

    >>> part_sentence(1.0, 6.98, 0.3)[0][:70]
    'As hard to trace as a coin with 2.0 to 126 equally likely origins: 30.'
    """
    ends = [equal_words(end) for end in (low, high)]
    equal = ends[0] if ends[0] == ends[1] else " to ".join(ends)
    rest = f"{share_words(not_followed)} of its money was not followed to where it began"
    return f"As hard to trace as a coin with {equal} equally likely origins: {rest}.", equal


def _count_of_origins(bits: float) -> str:
    return "one origin" if bits <= 0 else f"{equal_words(bits)} equally likely origins"


def share_words(share: float) -> str:
    """Say a share in per cent with one decimal; what is there never reads as nothing or as all.

    >>> share_words(0.2209), share_words(0.00002), share_words(0.99999), share_words(0.0)
    ('22.1 %', 'under 0.1 %', 'over 99.9 %', '0 %')
    """
    if share <= 0:
        return "0 %"
    if share < 0.0005:
        return "under 0.1 %"
    # Sums of shares end a few units in the last place from 1.
    if share >= 1 - 1e-9:
        return "100 %"
    return "over 99.9 %" if share >= 0.9995 else f"{100 * share:.1f} %"


def at_most_words(share: float) -> str:
    """Say an upper end of a share, rounded up.

    >>> at_most_words(0.00031), at_most_words(0.0)
    ('at most 0.04 %', 'none at all')
    """
    if share <= 0:
        return "none at all"
    return f"at most {math.ceil(share * 10_000 - EXACT) / 100:.2f} %"


def amount_words(amount: str, decimals: int, unit: str, *, shortest: bool = False) -> str:
    """Say an amount given in the smallest unit, digits in threes after the point.

    >>> amount_words("8421907", 8, "BTC"), amount_words("260000", 8, "BTC", shortest=True)
    ('0.084 219 07 BTC', '0.0026 BTC')
    >>> amount_words("12345678", 0, "")
    '12,345,678'
    """
    digits = amount.rjust(decimals + 1, "0")
    whole, part = digits[: len(digits) - decimals], digits[len(digits) - decimals :]
    text = f"{int(whole):,}"
    if shortest:
        retained = part.rstrip("0")
        # Four digits that count are enough beside a share.
        lead = len(retained) - len(retained.lstrip("0")) if int(whole) == 0 else 0
        retained = retained[: max(lead + 4, 2)].rstrip("0")
        text += f".{retained}" if retained else ""
    elif part:
        text += "." + " ".join(part[k : k + 3] for k in range(0, decimals, 3))
    return f"{text} {unit}".rstrip()


def steps_words(steps: float) -> str:
    """Say a mean number of steps.

    >>> steps_words(9.81), steps_words(1234.5)
    ('9.8', '1,235')
    """
    return f"{steps:.1f}" if steps < 999.95 else f"{math.floor(steps + 0.5):,}"


def short_id(name: str, keep: int = 6) -> str:
    """Shorten an identifier in its middle, an output's number kept.

    >>> short_id("4f1e07" + "0" * 54 + "a93c:1"), short_id("bc1q9x0k2fe")
    ('4f1e07…a93c:1', 'bc1q9x0k2fe')
    """
    head, mark, tail = name.rpartition(":")
    body, end = (head, mark + tail) if mark and tail.isdigit() else (name, "")
    if len(body) <= 2 * keep + 2:
        return name
    return f"{body[:keep]}…{body[-4:]}{end}"


def _unsigned(value: float) -> float:
    return value + 0.0 if value > 0 else 0.0


VIEWS = {"coin": "coins", "address": "addresses", "account": "accounts"}
TIMES = {"stationary": "all at once", "temporal": "in order of time"}


def reading_words(view: str | None, time: str | None, policy: str | None = None) -> str:
    """Say how figures are read: what nodes are, whether order counts, the rule.

    >>> reading_words("account", "stationary", "haircut"), reading_words("coin", None)
    ('accounts, all at once, haircut', 'coins, in order of time')
    """
    time = "temporal" if view == "coin" else time
    rule = POLICIES.get(policy)
    policy = policy if rule is None else rule.column
    parts = (VIEWS.get(view or "", view), TIMES.get(time or "", time), policy)
    return ", ".join(part for part in parts if part)
