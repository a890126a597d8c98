"""Models of coins: where the money of one came from, and of many together."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from coinhaze.web.asks import By, CoinAsk, Id, Model, Settings
from coinhaze.web.models_ledger import Histogram, Place, TableRow
from coinhaze.web.models_parts import (
    Amount,
    Bits,
    Count,
    MaybeShare,
    NodeKind,
    Number,
    OriginKind,
    Share,
)


class Sentence(Model):
    """What the bits mean, in words."""

    text: str  # the whole sentence
    equal_origins: Number  # 2^bits
    equal: str  # as people write it: "126", "about 1,300"
    band: str  # "Hundreds"
    though: str | None  # "one origin alone holds 22.1 %"
    shown: str  # the bits with as many digits as are proven
    range: str  # "proven range 6.96-7.01", "exact", "estimate"


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
    settings: CoinAsk  # as used: no default left open
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


class Comparators(Model):
    """A coin under other rules and by other people's measures."""

    ledger: Id
    name: str
    settings: Settings | None = None  # those of bits; poison is read as exposure is
    exposure_time: str | None = None
    rules: tuple[Rule, ...]
    measures: tuple[Measure, ...]


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
