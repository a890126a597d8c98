"""Models of ledgers: cards, summaries, distributions, tables, searches, comparisons."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from coinhaze.web.asks import Id, Model, Settings, TableAsk
from coinhaze.web.models_parts import (
    Amount,
    Bits,
    Count,
    MaybeShare,
    NodeKind,
    Number,
    Share,
    State,
    ThingKind,
    Window,
)


class LedgerCard(Model):
    """A ledger being served: whether it can be asked, or what is wrong and what to do."""

    id: Id
    name: str
    state: State
    message: str | None = None  # what is wrong or under way ...
    fix: str | None = None  # ... and what to do
    job: str | None = None  # id of the job that loads or scores it
    changed: bool = False  # the file is newer than what is shown: figures may differ
    digest: str | None = None
    kind: Literal["coins", "accounts"] | None = None
    hides_amounts: bool = False
    network: str | None = None
    unit: str | None = None
    window: Window = Window()
    coins: Count | None = None  # scored
    bits_median: Number = None
    lower_bounds: bool = False  # whether bits of some are lower bounds
    policies: tuple[str, ...] = ()  # what can be asked of it, the default first
    views: tuple[str, ...] = ()
    times: tuple[str, ...] = ()


class Ledgers(Model):
    """All ledgers being served."""

    ledgers: tuple[LedgerCard, ...]


class ListCard(Model):
    """A loaded list of names to look for: `id` is its name, and the first digits of its digest."""

    id: str
    name: str
    entries: Count
    digest: str


class Lists(Model):
    """All lists that were loaded."""

    lists: tuple[ListCard, ...]


class LedgerSummary(Model):
    """Sizes, and how bits and steps are distributed over what was scored."""

    nodes: Count
    edges: Count
    scored: Count
    without_answer: Count
    burns: Count
    at_zero_bits: MaybeShare
    bits_mean: Number
    bits_median: Number
    bits_max: Number
    bits_weighted_mean: Number
    steps_mean: Number
    steps_median: Number
    widest_interval: Number
    certified: bool
    method: str
    lower_bounds: Count = 0  # of the scored, those whose bits are lower bounds
    view: str | None = None
    time: str | None = None  # None for coins, which have their own
    policy: str | None = None
    line: str


class Histogram(Model):
    """Coins by bits: those of exactly 0, then bins of `width`; each holds its upper end."""

    width: float = 0.25
    zeros: Count
    counts: tuple[Count, ...]
    values: tuple[float, ...] | None = None  # every coin's bits, in order, up to 2,000 coins


class Place(Model):
    """Where a coin stands among all of its ledger."""

    bin: Count | None  # None: at exactly 0
    fewer: Share  # of coins that have fewer bits: "harder than 68 % of coins"
    coins: Count


class TableRow(Bits):
    """One scored coin, account or address."""

    name: str
    kind: NodeKind
    amount: Amount | None
    steps: Number
    sources: Count | None
    top: str | None  # the likeliest origin, in words
    top_share: MaybeShare
    exposure: MaybeShare = None
    label: str | None = None
    href: str


class CompletenessCheck(Model):
    """One check of whether the ledger lacks anything."""

    name: str
    status: Literal["passed", "failed", "not checkable"]
    failures: Count = 0
    first: str = ""  # where the first failure is
    detail: str = ""


class CompletenessRecord(Model):
    """What the ledger showed about itself when it was read."""

    line: str
    checks: tuple[CompletenessCheck, ...] = ()
    missing_heights: tuple[tuple[int, int], ...] = ()


class LedgerPage(Model):
    """A ledger's page; only `card` where it is not ready."""

    card: LedgerCard
    settings: Settings = Settings()
    exposure_time: str | None = None  # how exposure is read; None for coins, and without a list
    summary: LedgerSummary | None = None
    histogram: Histogram | None = None
    most: tuple[TableRow, ...] = ()
    fewest: tuple[TableRow, ...] = ()
    completeness: CompletenessRecord | None = None
    notes: tuple[str, ...] = ()
    provenance: dict[str, Any] = Field(default_factory=dict)


class Hit(Model):
    """Something a search found."""

    kind: ThingKind
    ledger: Id
    name: str
    words: str
    href: str


class SearchAnswer(Model):
    """What a search found; `understood` says what the text was taken for."""

    query: str
    understood: str
    hits: tuple[Hit, ...]
    more: bool = False  # there are others
    note: str | None = None  # such as: an address of another network


class TablePage(Model):
    """Rows of a ledger's table; `total` is how many the filter leaves."""

    ledger: Id
    asked: TableAsk
    exposure_time: str | None = None  # how exposure is read; None for coins, and without a list
    total: Count
    rows: tuple[TableRow, ...]
    after: str | None


class Outlier(Model):
    """A coin that stands alone in the field of bits and steps."""

    name: str
    bits: float
    steps: float


class Density(Model):
    """Coins by bits and steps: counts row by row, fewest steps first; lone coins as dots."""

    ledger: Id
    settings: Settings
    columns: Count = 160  # of bits
    rows: Count = 100  # of steps
    bits_low: float
    bits_high: float
    steps_low: float
    steps_high: float
    counts: tuple[Count, ...]
    outliers: tuple[Outlier, ...] = Field(default=(), max_length=500)


class Curve(Model):
    """One ledger of a comparison: share of coins with at most so many bits."""

    card: LedgerCard
    summary: LedgerSummary | None  # None where it is not ready: the card says why
    bits: tuple[float, ...] = Field(default=(), max_length=200)
    share: tuple[float, ...] = Field(default=(), max_length=200)


class Comparison(Model):
    """Up to five ledgers side by side."""

    curves: tuple[Curve, ...] = Field(max_length=5)
