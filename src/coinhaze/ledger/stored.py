"""A store, or files fit for one -> the ledger of a window."""

from __future__ import annotations

from pathlib import Path

from coinhaze.errors import InputError, UsageError
from coinhaze.ledger.accounts import AccountLedger
from coinhaze.ledger.coins import CoinLedger
from coinhaze.ledger.store import Store
from coinhaze.ledger.store_accounts import account_ledger, opening_balances
from coinhaze.ledger.store_coins import coin_ledger
from coinhaze.ledger.window import ALL, Window


def read_store(
    store: Store, window: Window = ALL, *, token: str | None = None
) -> CoinLedger | AccountLedger:
    """Give the ledger of a window; of accounts that of one token, or of the chain's own money."""
    kind = store.kind
    if kind is None:
        raise InputError(f"{store.path}: the store is empty: ingest something first")
    if kind == "accounts":
        return account_ledger(store, window, token=token)
    if token is not None:
        raise UsageError("a ledger of coins has no tokens")
    return coin_ledger(store, window)


def opening_of(path: Path, window: Window, *, token: str | None = None) -> dict[str, int] | None:
    """Give the balances a window of accounts opens with, if the store tells of the time before."""
    with Store(path, read_only=True) as store:
        if store.kind != "accounts" or window.first is None:
            return None
        return opening_balances(store, window, token=token)
