"""Models of what spending coins would do: what-if and wallets."""

from __future__ import annotations

from typing import Literal

from coinhaze.web.asks import Id, Model, Settings
from coinhaze.web.models_parts import (
    Amount,
    Bits,
    MaybeShare,
    Number,
)


class Before(Bits):
    """A coin as it is, before it is spent."""

    name: str
    amount: Amount | None
    label: str | None = None
    exposure: MaybeShare
    exposure_high: MaybeShare = None
    href: str | None = None


class Together(Bits):
    """Coins spent together; `ties` where it would put exposed coins with others."""

    coins: tuple[str, ...]
    amount: Amount | None
    equal_origins: Number
    exposure: MaybeShare
    exposure_high: MaybeShare = None
    ties: bool | None = None


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


class WalletAnswer(Model):
    """A wallet's coins, what goes with what, and what to spend."""

    ledger: Id
    settings: Settings
    total: Amount | None
    limit: float
    coins: tuple[Before, ...]
    groups: tuple[Group, ...]
    pairs: tuple[Together, ...] | None  # None: too many to look at
    suggestion: Suggested | None
    how_sure: str
    would_change: tuple[str, ...]
    is_not: tuple[str, ...]
    notes: tuple[str, ...] = ()
