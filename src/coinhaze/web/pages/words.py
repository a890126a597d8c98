"""Words that all pages share: moments, windows, bits, states of ledgers and jobs, table heads."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import NamedTuple
from urllib.parse import unquote

from coinhaze.errors import count_words
from coinhaze.explore.describe import (
    bits_words,
    range_words,
    reading_words,
    share_words,
    short_id,
)
from coinhaze.explore.models import (
    Bits,
    LedgerCard,
    MergePoint,
    TableRow,
    Window,
)
from coinhaze.explore.query import Settings
from coinhaze.measures.summary import AT_LEAST
from coinhaze.observer.owners import ASSUMES
from coinhaze.web.schema import Job

EN = "\N{EN DASH}"  # between the ends of a range
DASH = EN  # where there is no number
STATES = {
    "ready": "",
    "loading": "loading",
    "not scored": "not scored yet",
    "nothing followed": "nothing followed yet",
    "missing": "file missing",
    "locked": "in use by another process",
    "damaged": "cannot be read",
}


def moment(seconds: int | None) -> str:
    """Say a moment.

    >>> moment(1612620120), moment(None)
    ('6 Feb 2021 14:02 UTC', '')
    """
    if seconds is None:
        return ""
    when = _when(seconds)
    return f"{when.day} {when:%b %Y %H:%M} UTC" if when else f"time {seconds}"


def span_words(first: int, last: int) -> str:
    """Say a span of time by its days.

    >>> span_words(1612137600, 1612742399), span_words(1612137600, 1612137600)
    ('1–7 Feb 2021', '1 Feb 2021')
    """
    start, end = _when(first), _when(last)
    if start is None or end is None:
        return f"time {first}{EN}{last}"
    if start.date() == end.date():
        return f"{start.day} {start:%b %Y}"
    if (start.year, start.month) == (end.year, end.month):
        return f"{start.day}{EN}{end.day} {end:%b %Y}"
    year = f" {start.year}" if start.year != end.year else ""
    return f"{start.day} {start:%b}{year} {EN} {end.day} {end:%b %Y}"


def hours_words(first: int, last: int) -> str:
    """Say a short span of time by its hours.

    >>> hours_words(1612137600, 1612140000), hours_words(1612137600, 1612137601)
    ('1 Feb 00:00–00:40', '1 Feb 00:00')
    """
    start, end = _when(first), _when(last)
    if start is None or end is None:
        return f"time {first}{EN}{last}"
    text = f"{start.day} {start:%b %H:%M}"
    if f"{start:%d%H%M}" == f"{end:%d%H%M}":
        return text
    day = "" if start.date() == end.date() else f"{end.day} {end:%b} "
    return f"{text}{EN}{day}{end:%H:%M}"


def window_words(window: Window) -> str:
    """Say what part of a chain a ledger holds.

    >>> window_words(Window(first_height=5, last_height=9000))
    'blocks 5–9,000'
    """
    if window.first_time is not None and window.last_time is not None:
        return span_words(window.first_time, window.last_time)
    if window.first_height is not None and window.last_height is not None:
        return f"blocks {window.first_height:,}{EN}{window.last_height:,}"
    return ""


def noun_of(kind: str, *, many: bool = False) -> str:
    """Name what a page is of: an account, an address, or else a coin.

    >>> noun_of("account"), noun_of("address", many=True), noun_of("ring")
    ('account', 'addresses', 'coin')
    """
    one = kind if kind in ("account", "address") else "coin"
    return (one + ("es" if one == "address" else "s")) if many else one


def bits_text(value: Bits) -> str:
    """Say bits with their digits; a dash where there is no answer.

    >>> bits_text(Bits(bits=6.981, bits_low=6.98, bits_high=6.99))
    '6.98'
    """
    if value.bits is None:
        return DASH
    low, high = ends(value)
    return bits_words(value.bits, low, high, lower_bound=value.lower_bound)


def informed_text(row: TableRow) -> str:
    """Say the bits that the most informed observer lacks; a dash where nobody found them.

    >>> informed_text(TableRow.model_construct(informed={"common-input-no-coinjoins": 0.0}))
    '0.00'
    """
    last = [bits for bits in row.informed.values() if bits is not None][-1:]
    return f"{last[0]:.2f}" if last else DASH


def informed_title(row: TableRow) -> str:
    """Say what each observer lacks, and what they assume, for those who want it."""
    stated = ((ASSUMES[name], bits) for name, bits in row.informed.items() if bits is not None)
    return "; ".join(f"{bits:.2f} if {assumes}" for assumes, bits in stated)


def merge_words(merge: MergePoint) -> str:
    """Say what came together at a merge, how far back, and how much of the money came by.

    >>> merge = MergePoint(words="Payment", name="t", inputs=3, hops=2, passing=0.5, bits=0.79)
    >>> merge_words(merge)
    '3 ways back, 2 hops away; 50.0 % of the money came by here'
    """
    away = "" if merge.hops is None else f", {count_words(merge.hops, 'hop')} away"
    came = share_words(min(merge.passing, 1.0))
    return f"{count_words(merge.inputs, 'way')} back{away}; {came} of the money came by here"


def bits_of_many(bits: float | None, *, lower_bound: bool) -> str:
    """Say a median or mean; a dash where there is none.

    >>> bits_of_many(2.345, lower_bound=False), bits_of_many(None, lower_bound=False)
    ('2.35', '–')
    """
    return DASH if bits is None else f"{AT_LEAST if lower_bound else ''}{bits:.2f}"


def bits_title(value: Bits) -> str | None:
    """Say the range of bits, for those who want it."""
    if value.bits is None:
        return None
    return range_words(*ends(value), miss=value.miss or 0.0, lower_bound=value.lower_bound)


def ends(value: Bits) -> tuple[float, float]:
    """Give the ends of a range; the number itself where they are not known."""
    bits = value.bits or 0.0
    low = bits if value.bits_low is None else value.bits_low
    high = bits if value.bits_high is None else value.bits_high
    return low, high


def ledger_words(card: LedgerCard) -> str:
    """Name a ledger and its window."""
    return " · ".join(filter(None, (card.name, window_words(card.window))))


def can_screen(card: LedgerCard) -> bool:
    """Tell whether a ledger can be screened: not parts, histories, and hidden amounts."""
    return not (card.source or card.standing or card.hides_amounts)


def standing_words(card: LedgerCard) -> str:
    """Say at which block a whole history stands, and to which its figures go."""
    found = card.standing
    if found is None or found.at is None:
        return "Accounts in the order of time" if card.kind == "accounts" else "No heights known"
    if found.scored_to is None or found.at == found.scored_to:
        return f"At block {found.at:,}"
    return (
        f"At block {found.at:,}{_at_time(found.time)}; figures are of block {found.scored_to:,}, "
        "the last commit"
    )


def _at_time(seconds: int | None) -> str:
    return "" if seconds is None else f" ({moment(seconds)})"


def state_words(card: LedgerCard) -> str:
    """Say in what state a ledger is; of one that is ready, its network."""
    message = card.message if card.state != "ready" else None
    if card.state == "not scored" and message:
        return message  # it says so itself
    return " · ".join(filter(None, (STATES[card.state], message))) or card.network or ""


def share_or_dash(share: float | None) -> str:
    """Say a share; a dash where it is not known."""
    return DASH if share is None else share_words(share)


def capitalize_first(text: str) -> str:
    """Begin a sentence; other letters stay as they are.

    >>> capitalize_first("touched by 1 of 2 listed addresses of DAI")
    'Touched by 1 of 2 listed addresses of DAI'
    """
    return text[:1].upper() + text[1:]


def job_words(job: Job) -> str:
    """Say how far a job is.

    >>> job_words(Job(id="1", ledger="a", words="w", state="running", share=0.5, seconds=65,
    ...               seconds_left=65.0, page="/"))
    '50 % done · about 1 min 5 s left'
    """
    if job.state != "running":
        return job.state
    done = "running" if job.share is None else f"{100 * job.share:.0f} % done"
    if job.seconds_left is None:
        return f"{done} · {_span(job.seconds)} so far"
    return f"{done} · about {_span(job.seconds_left)} left"


TASKS = {"coin": "Coin", "tx": "Transaction", "address": "Address", "block": "Block"}
PAGES = {"wallet": "Wallet", "screen": "Screening", "table": "Table"}


def task_words(words: str) -> str:
    """Say what a job works out: a page is named by what it shows, anything else as it is.

    >>> task_words("/l/week/coin/a%2Fb:1/destinations?policy=fifo"), task_words("/l/week/wallet")
    ('Coin a/b:1 of week, where it went', 'Wallet in week')
    >>> task_words("/compare?l=a,b"), task_words("scoring week")
    ('Comparison of ledgers', 'scoring week')
    """
    parts = [unquote(part) for part in words.partition("?")[0].split("/")]
    match parts:
        case ["", "compare"]:
            return "Comparison of ledgers"
        case ["", "l", ledger]:
            return f"Ledger {ledger}"
        case ["", "l", ledger, page] if page in PAGES:
            return f"{PAGES[page]} in {ledger}"
        case ["", "l", ledger, kind, name, *more] if kind in TASKS:
            went = ", where it went" if "destinations" in more else ""
            return f"{TASKS[kind]} {short_id(name)} of {ledger}{went}"
    return words


def _span(seconds: float) -> str:
    whole = round(seconds)
    return f"{whole // 60} min {whole % 60} s" if whole >= 60 else f"{whole} s"


def _when(seconds: int | None) -> datetime | None:
    try:
        return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, OSError, ValueError):
        return None


# What a column is called, the name it is sorted by, and whether it holds numbers.
COLUMNS = (
    ("Coin", "name", False),
    ("Amount", "amount", True),
    ("Bits", "bits", True),
    ("Informed bits", "informed", True),
    ("Steps", "steps", True),
    ("Possible origins", "sources", True),
    ("Likeliest origin", "top_share", False),
)
OPTIONAL = ("sources", "top_share")  # left out where it is narrow


class Head(NamedTuple):
    """The head of a column; `href` sorts by it, `order` is how the table is sorted by it now."""

    key: str
    words: str
    kind: str
    href: str | None
    order: str | None


def heads(
    sort: str = "", link: Callable[[str], str] | None = None, first: str = "Coin"
) -> list[Head]:
    """Return the heads of a table of coins; with `link` they sort."""
    found = []
    for words, key, number in COLUMNS:
        kind = " ".join(filter(None, ("num" if number else "", "opt" if key in OPTIONAL else "")))
        now, falls = link is not None and sort.lstrip("-") == key, sort.startswith("-")
        # A second press turns the order round; numbers begin with the largest.
        to = (key if falls else f"-{key}") if now else (f"-{key}" if number else key)
        order = ("descending" if falls else "ascending") if now else None
        href = None if link is None else link(to)
        found.append(Head(key, first if key == "name" else words, kind, href, order))
    return found


def table_caption(used: Settings, exposure: str | None = None) -> str:
    """Say how a table's bits are read, and its exposure; `exposure` is the time of that.

    >>> table_caption(Settings(view="account", time="stationary", list="known"), "temporal")
    'Bits: accounts, all at once, haircut. Exposure: accounts, in order of time, haircut.'
    """
    words = f"Bits: {reading_words(used.view, used.time, used.policy)}."
    if used.list is None or (exposure is None and used.view != "coin"):
        return words
    return f"{words} Exposure: {reading_words(used.view, exposure, used.policy)}."
