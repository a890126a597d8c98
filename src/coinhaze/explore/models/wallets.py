"""Models of coins spent together and of lists: what-if questions, wallets and screenings."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from coinhaze.explore.models.coins import ObservedBits
from coinhaze.explore.models.values import Amount, Bits, MaybeShare, Number
from coinhaze.explore.query import Id, Model, ScreenQuery, Settings


class Before(Bits):
    """A coin as it is, before it is spent."""

    name: str
    amount: Amount | None
    label: str | None = None
    exposure: MaybeShare
    exposure_high: MaybeShare = None
    href: str | None = None
    observers: tuple[ObservedBits, ...] = ()  # of a wallet's coins
    observed: str = ""  # what each observer lacks, in a sentence, where they differ much


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
    informed: str = ""  # who the informed observers of these coins are, or why there is none
    parties: tuple[PartyKnows, ...] = ()
    proposal: Proposed | None = None
    groups: tuple[Group, ...]
    pairs: tuple[Together, ...] | None  # None: too many to look at
    suggestion: Suggested | None
    how_sure: str
    would_change: tuple[str, ...]
    is_not: tuple[str, ...]
    notes: tuple[str, ...] = ()


# Amounts are digits of the smallest unit, and may be larger than any machine's integers.
Value = str | bool | int | float | None


class ListedName(Model):
    """A name of the list that is in the ledger, and what the list says of it."""

    name: str
    entity: str | None
    programme: str | None


class ScreenPath(Model):
    """One path from a listed source to a node, and the share of its money that came that way."""

    node: str
    source: str
    names: tuple[str, ...]
    share: float
    listed: float


class ScreenAnswer(Model):
    """A screening statement, as `coinhaze screen --json` prints it."""

    provenance: dict[str, Any]
    match: bool
    verdict: tuple[str, ...]
    limit: Number
    above_limit: tuple[str, ...] | None
    dust: int
    listed: tuple[ListedName, ...]
    view: str
    time: str | None
    policy: tuple[str, ...]
    completeness: str
    totals: tuple[dict[str, Value], ...]
    nodes: tuple[dict[str, Value], ...]
    paths: tuple[ScreenPath, ...]


class StatementSection(Model):
    """A part of a statement: sentences, and a table under them."""

    title: str
    lines: tuple[str, ...]
    warnings: tuple[str, ...]
    columns: tuple[tuple[str, Literal["left", "right"]], ...]  # heading, and on which side
    rows: tuple[tuple[str, ...], ...]
    annex: bool  # behind the page to read


class StatementAnswer(Model):
    """A statement to read."""

    ledger: Id
    query: ScreenQuery
    title: str
    match: bool
    above: bool = Field(description="whether anything is above the limit")
    sections: tuple[StatementSection, ...]


class StatementFile(Model):
    """A statement to hand over: a file's name, its type, and what is in it."""

    name: str
    media: str
    text: str
