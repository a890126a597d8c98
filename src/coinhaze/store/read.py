"""A store, or files fit for one -> the ledger of a window."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from coinhaze.errors import InputError, LedgerError, UsageError
from coinhaze.ledger.accounts import AccountLedger
from coinhaze.ledger.batches import COIN_TABLES
from coinhaze.ledger.coins import CoinLedger
from coinhaze.ledger.window import ALL, LedgerWindow
from coinhaze.store.accounts import account_ledger, opening_balances
from coinhaze.store.coins import coin_ledger
from coinhaze.store.store import Store
from coinhaze.store.unknown_values import ledger_without_unknown


def read_store(
    store: Store,
    window: LedgerWindow = ALL,
    *,
    token: str | None = None,
    unknown: Literal["error", "leave-out"] = "error",
    complete: bool = False,
) -> CoinLedger | AccountLedger:
    """Give the ledger of a window; of accounts that of one token, or of the chain's own money.

    `unknown` says what to do with coins spent whose value nobody tells; `complete` that the ledger
    begins with its chain, so that an earlier coin is an error.
    """
    if unknown not in ("error", "leave-out"):
        raise UsageError(f"unknown is error or leave-out, not {unknown!r}")
    kind = store.kind
    if kind is None:
        if store.ask("SELECT 1 FROM blocks LIMIT 1"):
            raise InputError(f"{store.name}: holds blocks but no transactions: ingest those too")
        raise InputError(f"{store.name}: the store is empty: ingest something first")
    if kind == "accounts":
        if unknown != "error":
            raise UsageError("`unknown` is for coins: every transfer tells its amount")
        if complete:
            raise UsageError("`complete` is for coins: transfers carry no list of known coins")
        return account_ledger(store, window, token=token)
    if token is not None:
        raise UsageError("a ledger of coins has no tokens")
    # Other readers give each row with its transaction; plain tables come one by one.
    if any(source.format == "plain" for source in store.sources()):
        refuse_orphans(store)
    build = ledger_without_unknown if unknown == "leave-out" else coin_ledger
    return build(store, window, complete=complete)


def refuse_orphans(store: Store) -> None:
    """Refuse rows of coins whose transactions nobody told of: they would be left out unseen."""
    for table in (name for name in COIN_TABLES if name != "transactions"):
        lost = store.ask(
            f"SELECT height, txid FROM {table} ANTI JOIN transactions USING (height, txid) "
            "ORDER BY ALL LIMIT 1"
        )
        if lost:
            what, (height, txid) = "a row of a transaction that is not there", lost[0]
            where, fix = f"{store.name}: {table}", "give the table of transactions too"
            raise LedgerError(where, what, value=f"{height} {txid}", fix=fix)


def opening_of(
    path: Path, window: LedgerWindow, *, token: str | None = None
) -> dict[str, int] | None:
    """Give the balances a window of accounts opens with, if the store tells of the time before."""
    with Store(path, read_only=True) as store:
        if store.kind != "accounts" or window.first is None:
            return None
        return opening_balances(store, window, token=token)
