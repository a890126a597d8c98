"""Models of transactions, addresses and blocks: groups of coins."""

from __future__ import annotations

from typing import Literal

from coinhaze.explore.models.coins import Exposure
from coinhaze.explore.models.ledgers import Histogram, TableRow
from coinhaze.explore.models.values import Amount, Count, MaybeShare, Number
from coinhaze.explore.query import Id, Model, Settings


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
