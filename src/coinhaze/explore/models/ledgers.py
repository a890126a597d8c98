"""Models of ledgers and lists: their cards, tables, searches and comparisons."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from coinhaze.explore.models.values import (
    Amount,
    Bits,
    Count,
    MaybeShare,
    NodeKind,
    Number,
    Share,
    State,
    ThingKind,
)
from coinhaze.explore.query import Id, Model, Settings, TableQuery


class Window(Model):
    """What part of a chain a ledger holds: heights, and seconds since 1970."""

    first_height: int | None = None
    last_height: int | None = None
    first_time: int | None = None
    last_time: int | None = None


class Standing(Model):
    """Where a whole history stands: the block its scores end with, and the last that followed."""

    scored_to: int | None
    at: int | None
    hash: str | None = None  # of the last that followed
    time: int | None = None


class LedgerCard(Model):
    """A ledger being served: whether it answers queries, or what is wrong and what to do."""

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
    unit: str | None = None  # what amounts are shown in; None: the smallest unit
    decimals: Count = 0
    window: Window = Window()
    coins: Count | None = None  # scored
    bits_median: Number = None
    lower_bounds: bool = False  # whether bits of some are lower bounds
    standing: Standing | None = None  # of a whole history
    policies: tuple[str, ...] = ()  # its policies, the default first
    views: tuple[str, ...] = ()
    times: tuple[str, ...] = ()
    source: str | None = None  # the node or server that it is walked back from, on demand


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
    bits_mean_low: Number = None
    bits_mean_high: Number = None
    widest_interval: Number
    certified: bool
    miss: Share = 0.0  # that an interval misses; 0 where all are proven
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
    informed: dict[str, Number] = Field(default_factory=dict)  # bits to observers, by their names
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


class WalkedCoin(Bits):
    """A coin that was walked back; its interval holds over the whole chain."""

    name: str
    amount: Amount | None
    not_followed: Share  # of its money, as far as it was walked back
    href: str


class WalkAnswer(Model):
    """What was walked back, and how many transactions are there now."""

    ledger: Id
    coins: tuple[WalkedCoin, ...]
    transactions: Count
    notes: tuple[str, ...] = ()


class MonthOfCoins(Model):
    """What was unspent at the end of a month of a whole history: mean bits, by count and value."""

    month: str  # 2013-01
    coins: Count
    amount: Amount
    bits_mean: Number
    bits_mean_low: Number
    bits_mean_high: Number
    bits_by_value: Number
    bits_by_value_low: Number
    bits_by_value_high: Number
    miss: Share = 0.0


class CoinsOfType(Model):
    """The unspent coins of a whole history whose scripts are of one type."""

    script_type: str  # p2wpkh
    coins: Count
    amount: Amount
    bits_mean: Number
    bits_median: Number
    bits_by_value: Number
    one_origin: Share  # of the coins, proven


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
    followed: tuple[WalkedCoin, ...] = ()  # of a chain that is walked back on demand
    notes: tuple[str, ...] = ()
    provenance: dict[str, Any] = Field(default_factory=dict)
    months: tuple[MonthOfCoins, ...] = ()  # of a whole history, where they were found
    script_types: tuple[CoinsOfType, ...] = ()  # of a whole history, where they are known


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
    query: TableQuery
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
    steps_log: bool = False  # rows are equal ratios of steps, not equal numbers
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
