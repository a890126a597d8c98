"""Everything an `Explorer` tells of a ledger, as frozen models: what pages show and the API gives.

Numbers that are not known are null, never NaN. Amounts are digits of the smallest unit, since JSON
readers round large integers. Shares are of the coin's money and sum to 1 with `other`.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from coinhaze.explore.query import By, CoinQuery, Digits, Id, Model, Settings, TableQuery

State = Literal["ready", "loading", "not scored", "missing", "locked", "damaged"]
# What an origin is; the colour of the flow. `other` are origins folded into one.
OriginKind = Literal["earlier", "service", "mined", "listed", "other"]
NodeKind = Literal[
    "coin", "transaction", "coinjoin", "address", "account", "pool", "ring", "mint", "burn",
    "earlier", "service", "mined", "listed", "other",
]  # fmt: skip
ThingKind = Literal["coin", "transaction", "address", "account", "block"]
GroupKind = Literal["address", "transaction", "block"]


def _known(value: Any) -> Any:
    """Turn what is not a number into None."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


Number = Annotated[float | None, BeforeValidator(_known)]
Share = Annotated[float, Field(ge=0, le=1 + 1e-9)]
MaybeShare = Annotated[Share | None, BeforeValidator(_known)]
Count = Annotated[int, Field(ge=0)]


class Bits(Model):
    """Bits and where they lie: certified, it is proven; else that misses with probability `miss`.

    Where bits are a lower bound, the ends are those of the bound.

    >>> Bits(bits=float("nan"), bits_low=None, bits_high=None).bits is None
    True
    """

    bits: Number
    bits_low: Number
    bits_high: Number
    certified: bool = True
    miss: MaybeShare = 0.0  # at most; 0 where it is proven
    lower_bound: bool = False


class Amount(Model):
    """An amount: exact digits of the smallest unit, and as people write it."""

    smallest: Digits
    shown: str  # "0.0026 BTC"
    unit: str | None = None  # "BTC"; None where the ledger does not say: the smallest unit


class Window(Model):
    """What part of a chain a ledger holds: heights, and seconds since 1970."""

    first_height: int | None = None
    last_height: int | None = None
    first_time: int | None = None
    last_time: int | None = None


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
    unit: str | None = None  # what amounts are shown in; None: the smallest unit
    decimals: Count = 0
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


class Sentence(Model):
    """What the bits mean, in words."""

    text: str  # the whole sentence
    equal_origins: Number  # 2^bits
    equal: str  # as people write it: "126", "about 1,300"
    band: str  # "Hundreds"
    though: str | None  # "one origin alone holds 22.1 %"
    shown: str  # the bits with as many digits as are proven
    range: str  # "proven range 6.96-7.01", "exact", "range 6.0-8.1 that misses with ..."


class Origin(Model):
    """A place a coin's money may have come from."""

    rank: Count
    name: str
    words: str
    kind: OriginKind
    share: Share
    amount: Amount | None = None
    label: str | None = None
    time: int | None = None
    height: int | None = None
    href: str | None = None  # None where there is nothing more to see


class Other(Model):
    """All origins that are not shown one by one."""

    count: Count
    share: Share


class ListedEntry(Model):
    """A name of a list that money came from, and how much of it; poison gives no shares."""

    name: str
    share: MaybeShare
    label: str | None = None
    href: str | None = None


class Exposure(Model):
    """How much of the money came from a list; poison says only whether any did."""

    list: str
    policy: str
    view: str | None = None
    time: str | None = None  # None for coins, which have their own; else in the order of time,
    # unless another was chosen
    listed: Count  # names of the list
    entries: Count  # of them, how many money came from
    share: MaybeShare  # None under poison, and where there is no answer
    share_low: MaybeShare
    share_high: MaybeShare
    amount: Amount | None = None
    holds: Amount | None = None  # what the share is of, by the same view and time ...
    assumed: Amount | None = None  # ... and what of that is assumed: an opening nobody tells
    touched: bool | None = None  # under poison
    hops: Count | None = None  # back to the nearest, where seen
    largest: tuple[ListedEntry, ...] = ()  # the few that most came from, each as it was met first
    text: str


class FlowColumn(Model):
    """A column of the flow: column 0 is the coin, the last one the origins."""

    title: str
    hop: Count | None  # None where several hops are folded, and for origins
    reached: Share  # how much of the money passes here or ends here


class FlowNode(Model):
    """A box of the flow; `folded` stands for `count` others."""

    id: Annotated[str, Field(pattern=r"^[a-z0-9]{1,16}$")]
    column: Count
    kind: NodeKind
    name: str | None  # None where folded
    words: str
    share: Share
    ended: Share = 0.0  # of it, what comes from here
    listed: Share = 0.0  # of it, what came from the list: the thread
    count: Count = 1
    folded: bool = False
    opens: bool = False  # ask again with open=id to see 8 more of it
    also: tuple[int, ...] = ()  # other hops the same party is at
    twin: str | None = None  # same text on all boxes of one party
    label: str | None = None
    time: int | None = None
    height: int | None = None
    href: str | None = None


class FlowBand(Model):
    """Money that moved from `before` to `after`; it may pass columns by."""

    before: str
    after: str
    share: Share
    listed: Share = 0.0


class Flow(Model):
    """A coin's money over its past, folded for people: at most 300 boxes."""

    by: By
    columns: tuple[FlowColumn, ...]
    nodes: tuple[FlowNode, ...]
    bands: tuple[FlowBand, ...]
    text: str  # what a reader who cannot see it is told


class CoinAnswer(Bits):
    """Where a coin's money came from, under the settings that are named."""

    ledger: Id
    digest: str
    settings: CoinQuery  # as used: no default left open
    name: str
    kind: NodeKind
    label: str | None = None
    owner: str | None = None  # the address of a coin
    amount: Amount | None
    assumed: Amount | None = None  # of it: an opening balance that nobody tells
    time: int | None = None
    height: int | None = None
    made_by: str | None = None  # transaction
    spent_by: str | None = None
    method: str
    sentence: Sentence
    place: Place | None
    steps: Number
    steps_nearest: Count | None
    sources: Count | None  # how many origins are possible
    top_share: MaybeShare
    origins: tuple[Origin, ...]
    other: Other
    exposure: Exposure | None  # None where no list is asked
    flow: Flow
    notes: tuple[str, ...] = ()
    provenance: dict[str, Any] = Field(default_factory=dict)


class OriginsPage(Model):
    """A coin's origins, largest first."""

    ledger: Id
    name: str
    settings: Settings
    total: Count
    rows: tuple[Origin, ...]
    other: Other  # all that are not on this page
    after: str | None


class Rule(Bits):
    """The same coin under another rule."""

    policy: str
    equal_origins: Number
    exposure: MaybeShare
    touched: bool | None = None
    refused: str | None = None  # why there is no answer


class Measure(Model):
    """Another measure of the same coin."""

    name: str
    value: Number
    unit: str
    words: str
    refused: str | None = None


class ObservedBits(Bits):
    """The same coin to an observer who takes origins of one owner for one origin."""

    observer: str
    assumes: str
    confidence: Number  # null where it is as sure as what was given
    confidence_origin: str
    owners: Count


class Comparators(Model):
    """A coin under other rules, to other observers, and by other people's measures."""

    ledger: Id
    name: str
    settings: Settings | None = None  # those of bits; poison is read as exposure is
    exposure_time: str | None = None
    rules: tuple[Rule, ...]
    measures: tuple[Measure, ...]
    observed: str = ""  # what informed observers lack, in a sentence
    observers: tuple[ObservedBits, ...] = ()


class BoundedFigure(Model):
    """A figure and the interval it is proven to lie in; null where it has no value."""

    value: Number
    low: Number
    high: Number


class CommonOrigin(Model):
    """An origin of both coins; `weight` is its part of the evidence, or of the collision."""

    origin: str
    share_of_first: Share
    share_of_second: Share
    share_of_openings: MaybeShare
    weight: Share


class SharedFigures(Model):
    """What two coins have in common, to one observer."""

    observer: str
    assumes: str
    collision: BoundedFigure
    overlap: BoundedFigure
    divergence: BoundedFigure
    evidence: BoundedFigure
    common: tuple[CommonOrigin, ...]


class SharedAnswer(Model):
    """What two coins have in common."""

    ledger: Id
    first: str
    second: str
    settings: Settings
    sentence: str
    observers: tuple[SharedFigures, ...]


class Spent(Model):
    """A coin that a transaction spends."""

    name: str
    amount: Amount | None
    owner: str | None = None
    href: str | None = None


class GroupAnswer(Model):
    """An address, a transaction or a block: its coins together, and a page of them."""

    ledger: Id
    digest: str
    settings: Settings
    kind: Literal["address", "transaction", "block"]
    name: str
    label: str | None = None
    time: int | None = None
    height: int | None = None
    total: Amount | None
    coins: Count
    unspent: Count
    bits_low: Number  # of its coins
    bits_median: Number
    bits_high: Number
    bits_weighted_mean: Number
    lower_bounds: Count = 0  # of its coins, those whose bits are lower bounds
    exposure: Exposure | None
    histogram: Histogram
    spends: tuple[Spent, ...] = ()  # of a transaction, the first 100
    transactions: tuple[str, ...] = ()  # of a block, the first 100
    rows: tuple[TableRow, ...]
    after: str | None = None
    notes: tuple[str, ...] = ()


class Before(Bits):
    """A coin as it is, before it is spent."""

    name: str
    amount: Amount | None
    label: str | None = None
    exposure: MaybeShare
    exposure_high: MaybeShare = None
    href: str | None = None


class PartyLearns(Model):
    """What a spend tells one party: coins newly linked, spent ones and those still there apart."""

    party: str
    coins: tuple[str, ...]
    then_amount: Amount | None
    now_amount: Amount | None
    unknown: tuple[str, ...]  # coins it does not know afterwards
    unknown_amount: Amount | None
    is_payee: bool


class PartyKnows(Model):
    """A party, the coins it knows to be yours, and those it does not."""

    party: str
    knows: tuple[str, ...]
    unknown: tuple[str, ...]


class Together(Bits):
    """Coins spent together; `ties` where it would put exposed coins with others.

    Of a wallet's coins also who learns what: `safe` where nobody learns anything, and no coin
    becomes exposed. Change is that of coins spent for an amount.
    """

    coins: tuple[str, ...]
    amount: Amount | None
    equal_origins: Number
    exposure: MaybeShare
    exposure_high: MaybeShare = None
    ties: bool | None = None
    safe: bool | None = None
    verdict: str = ""
    learns: tuple[PartyLearns, ...] = ()
    change: Amount | None = None
    change_evident: bool | None = None


class WhatIfAnswer(Model):
    """What spending coins together would do."""

    ledger: Id
    settings: Settings
    before: tuple[Before, ...]
    after: Together
    steps: Number
    ownership: str  # what bits do not count
    notes: tuple[str, ...] = ()


class Group(Together):
    """Coins of a wallet that may go together."""

    kind: Literal["not exposed", "exposed", "all coins"]


class Suggested(Model):
    """Coins for an amount, or None; and why."""

    amount: Amount
    spend: Together | None
    instead: tuple[Together, ...]
    why: tuple[str, ...]


class Proposed(Model):
    """A payment that was proposed: who learns what from it, and what tells its change."""

    coins: tuple[str, ...]
    learns: tuple[PartyLearns, ...]
    nobody_but_payee: bool
    change: int | None  # the number of the output
    change_evident: bool
    change_signs: tuple[str, ...]
    unneeded: tuple[str, ...]
    one_coin: str | None
    warnings: tuple[str, ...]


class WalletAnswer(Model):
    """A wallet's coins, what goes with what, and what to spend."""

    ledger: Id
    settings: Settings
    total: Amount | None
    limit: float
    in_short: tuple[str, ...] = ()
    coins: tuple[Before, ...]
    parties: tuple[PartyKnows, ...] = ()
    proposal: Proposed | None = None
    groups: tuple[Group, ...]
    pairs: tuple[Together, ...] | None  # None: too many to look at
    suggestion: Suggested | None
    how_sure: str
    would_change: tuple[str, ...]
    is_not: tuple[str, ...]
    notes: tuple[str, ...] = ()
