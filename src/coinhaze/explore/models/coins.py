"""Models of one coin, where its money came from and went, and of the coins of a transaction."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from coinhaze.explore.models.ledgers import Histogram, Place, TableRow
from coinhaze.explore.models.values import (
    Amount,
    Bits,
    Count,
    DestinationKind,
    Direction,
    MaybeShare,
    NodeKind,
    Number,
    OriginKind,
    Share,
)
from coinhaze.explore.query import By, CoinQuery, Id, Model, Settings


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
    """A coin's money over its past, or forward, folded for people: at most 300 boxes."""

    by: By
    direction: Direction = "backward"  # forward: columns lead on from the coin
    columns: tuple[FlowColumn, ...]
    nodes: tuple[FlowNode, ...]
    bands: tuple[FlowBand, ...]
    text: str  # the description for readers who cannot see it

    def turned(self) -> Flow:
        """Give it the other way round: what a band led from, it leads to."""
        bands = (
            band.model_copy(update={"before": band.after, "after": band.before})
            for band in self.bands
        )
        way: Direction = "forward" if self.direction == "backward" else "backward"
        return self.model_copy(update={"bands": tuple(bands), "direction": way})


class ObservedBits(Bits):
    """The same coin to an observer who takes origins of one owner for one origin."""

    observer: str
    assumes: str
    confidence: Number  # null where it is as sure as what was given
    confidence_origin: str
    owners: Count


class MergePoint(Model):
    """A place on the way where money of several came together, and the bits that added."""

    words: str
    name: str
    inputs: Count
    hops: Count | None  # back from the coin, by the shortest way
    passing: float  # of the coin's money, how much came by here; above 1 if it came by again
    bits: float
    href: str | None = None


class Why(Model):
    """Where a coin's bits come from: merges, newest first, all that are smaller, and what repeats.

    Bits of merges and of `others`, less `again`, are the coin's bits: a walk back lacks what every
    merge adds, but ways that lead to the same origin tell no origin apart.
    """

    merges: tuple[MergePoint, ...]
    others: Count
    others_bits: float
    again: float


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
    spent: bool = False  # where it is not known by what
    method: str
    sentence: Sentence
    observed: str = ""  # what informed observers lack, in a sentence; large ledgers tell it apart
    observers: tuple[ObservedBits, ...] = ()
    why: Why | None = None  # None where not all of the past was followed
    place: Place | None
    steps: Number
    steps_nearest: Count | None
    sources: Count | None  # how many origins are possible
    top_share: MaybeShare
    not_followed: Share = 0.0  # of the money, where a chain is walked back on demand
    origins: tuple[Origin, ...]
    other: Other
    exposure: Exposure | None  # None without a list
    flow: Flow
    notes: tuple[str, ...] = ()
    provenance: dict[str, Any] = Field(default_factory=dict)


class Destination(Model):
    """A place where a coin's money is at the end of the ledger."""

    rank: Count
    name: str
    words: str
    kind: DestinationKind
    share: Share
    amount: Amount | None = None
    label: str | None = None
    time: int | None = None
    height: int | None = None
    href: str | None = None


class DestinationsAnswer(Model):
    """Where the money that a coin, account, address or transaction had went."""

    ledger: Id
    digest: str
    settings: CoinQuery  # as used: no default left open
    name: str
    kind: NodeKind
    label: str | None = None
    held: Amount  # all the money it had
    time: int | None = None
    height: int | None = None
    sentence: str
    totals: dict[str, Share]  # by kind of destination
    not_followed: Share = 0.0  # of the money
    reached: MaybeShare = None  # what passed a listed name; None without a list
    reached_high: MaybeShare = None
    destinations: tuple[Destination, ...]
    other: Other
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


class HeuristicFinding(Model):
    """A heuristic that speaks about a transaction: what it says, and how sure it is."""

    name: str
    says: str
    confidence: float
    confidence_origin: str


class EqualCoins(Model):
    """Inputs or outputs of a transaction that have the same amount."""

    amount: Amount
    count: Count
    first: str


class TransactionLinks(Model):
    """Which inputs paid which outputs, over all ways to read the amounts; equal amounts together.

    A row of `probabilities` is an output, a column an input. Without them `refused` says why.
    """

    interpretations: str = ""  # digits
    bits: Number = None
    efficiency: MaybeShare = None
    inputs: tuple[EqualCoins, ...] = ()
    outputs: tuple[EqualCoins, ...] = ()
    probabilities: tuple[tuple[float, ...], ...] = ()
    refused: str | None = None


class TransactionFacts(Model):
    """What a transaction looks like to somebody who looks at it alone."""

    inputs: Count
    outputs: Count
    fee: Amount | None
    coinjoin: str | None  # what kind of CoinJoin it looks like
    sentence: str
    findings: tuple[HeuristicFinding, ...] = ()
    links: TransactionLinks


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
    transaction: TransactionFacts | None = None  # of a transaction whose amounts are known
    spends: tuple[Spent, ...] = ()  # of a transaction, the first 100
    transactions: tuple[str, ...] = ()  # of a block, the first 100
    rows: tuple[TableRow, ...]
    after: str | None = None
    notes: tuple[str, ...] = ()
