"""Simulated weeks of the paper's five ledgers, at any size."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module

from coinhaze.errors import UsageError
from coinhaze.ledger import Ledger
from coinhaze.units import unit_named

# Imported on first use: some weeks compile their loops.
WEEKS = {
    "bitcoin-week": ("bitcoin", "bitcoin_week", "BTC"),
    "dai-week": ("accounts", "dai_week", "DAI"),
    "ethereum-week": ("accounts", "ethereum_week", "ETH"),
    "usdc-week": ("accounts", "usdc_week", "USDC"),
    "zcash-week": ("zcash", "zcash_week", "ZEC"),
}
LARGEST = 10.0


def simulate_week(name: str, *, size: float = 1.0, seed: int = 1) -> Ledger:
    """Simulate a week of a ledger, identical for the same seed; `size` is a fraction of the week.

    >>> simulate_week("dai-week", size=0.001).facts()["kind"]
    'accounts'
    """
    check_week(name, size, seed)
    module, function, unit = WEEKS[name]
    make = getattr(import_module(f"coinhaze.simulate.weeks.{module}"), function)
    ledger: Ledger = make(size=size, seed=seed)
    return replace(ledger, unit=unit_named(unit))


def check_week(name: str, size: float, seed: int) -> None:
    """Raise an error for a week that cannot be simulated."""
    if name not in WEEKS:
        known = ", ".join((*WEEKS, "bitcoin-history"))
        raise UsageError(f"unknown week {name!r}: one of {known}")
    if not 0 < size <= LARGEST:
        raise UsageError(f"size is a fraction of a whole week, up to {LARGEST:g}, not {size!r}")
    if not 0 <= seed < 2**31:
        raise UsageError(f"seed is a whole number from 0 to 2^31 - 1, not {seed!r}")
