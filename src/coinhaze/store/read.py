"""A store, or files fit for one -> the ledger of a window."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal

import pyarrow as pa

from coinhaze.errors import InputError, LedgerError, UsageError, first_few
from coinhaze.formats.bitcoin_raw.networks import LOOKED_AT
from coinhaze.formats.money import chosen_unit, unit_of_addresses
from coinhaze.formats.registry import money_of
from coinhaze.ledger.accounts import AccountLedger, spaced_names
from coinhaze.ledger.batches import COIN_TABLES
from coinhaze.ledger.coins import CoinLedger
from coinhaze.ledger.window import ALL, LedgerWindow
from coinhaze.store.checks import account_completeness
from coinhaze.store.coins import coin_ledger
from coinhaze.store.store import Store
from coinhaze.store.unknown_values import ledger_without_unknown
from coinhaze.units import Unit, find_token, token_words, unit_of_token


def read_store(
    store: Store,
    window: LedgerWindow = ALL,
    *,
    token: str | None = None,
    unknown: Literal["error", "leave-out"] = "error",
    complete: bool = False,
) -> CoinLedger | AccountLedger:
    """Give the ledger of a window; of accounts that of one token, or of the chain's own money.

    `unknown` says what to do with coins spent whose value no source gives; `complete` that the
    ledger begins with its chain, so that an earlier coin is an error.
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
            raise UsageError("`unknown` is for coins: every transfer states its amount")
        if complete:
            raise UsageError("`complete` is for coins: transfers carry no list of known coins")
        return account_ledger(store, window, token=token)
    if token is not None:
        raise UsageError("a ledger of coins has no tokens")
    # Other readers give each row with its transaction; plain tables come one by one.
    if any(source.format == "plain" for source in store.sources()):
        refuse_orphans(store)
    if store.path is None:
        refuse_two_values(store)
    build = ledger_without_unknown if unknown == "leave-out" else coin_ledger
    return replace(build(store, window, complete=complete), unit=_unit(store))


def refuse_two_values(store: Store) -> None:
    """Refuse a coin that has one value where it is made and another where it is spent.

    Files read without a store on disk are checked so; of one on disk `verify` checks this and more.
    """
    unlike = store.ask(
        "SELECT i.height, i.txid, i.vin, spent_txid || ':' || spent_vout, i.value, o.value FROM "
        "inputs i JOIN outputs o ON o.txid = spent_txid AND o.vout = spent_vout WHERE i.value <> "
        "o.value ORDER BY ALL LIMIT 1"
    )
    if unlike:
        height, txid, vin, coin, stated, made = unlike[0]
        what = f"{coin} with two values"
        where = f"{store.place_of(height, txid)}, input {vin}"
        raise LedgerError(where, what, value=f"{stated} here, {made} where made")


def refuse_orphans(store: Store) -> None:
    """Refuse rows of coins whose transactions no source listed: they would be left out unseen."""
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
    """Give the balances a window of accounts opens with, if the store covers the time before."""
    with Store(path, read_only=True) as store:
        if store.kind != "accounts" or window.first is None:
            return None
        return opening_balances(store, window, token=token)


def account_ledger(store: Store, window: LedgerWindow, *, token: str | None) -> AccountLedger:
    """Give the ledger of a window, of one token or of the chain's own money."""
    chosen = _token(store, token)
    found = store.table(
        "SELECT sender, recipient, CAST(amount AS VARCHAR) AS amount, txid || ':' || step AS id, "
        f"time FROM transfers WHERE token = ? AND {window.inside()} "
        "ORDER BY height, position, step",
        [chosen],
    )
    times = found["time"].combine_chunks()
    ledger = AccountLedger.from_columns(
        found["sender"],
        found["recipient"],
        found["amount"],
        ids=found["id"],
        times=None if times.null_count == len(times) else times.cast(pa.timestamp("s", "UTC")),
    )
    unit = unit_of_token(chosen) if chosen else _unit(store)
    found = account_completeness(store, window, chosen)
    return replace(ledger, completeness=found, unit=unit, notes=spaced_names(ledger.accounts))


def unit_of_coins(store: Store, *, unit: str | None = None) -> Unit:
    """Give the unit that is named, else what sources or addresses of a store of coins show.

    Addresses are looked at without building the ledger, which takes long for a large store.
    """
    owners = store.table(
        f"SELECT DISTINCT owner FROM outputs WHERE owner IS NOT NULL LIMIT {LOOKED_AT}"
    )["owner"]
    ((last,),) = store.ask("SELECT max(height) FROM transactions")
    return chosen_unit(unit, _unit(store) or unit_of_addresses(owners, last))


def _unit(store: Store) -> Unit | None:
    """Give the chain's own money, where the sources of the store state it."""
    kinds = (
        source.name.partition("+")[0] if source.format == "node" else source.format
        for source in store.sources()
    )
    return money_of(list(kinds))


def opening_balances(
    store: Store, window: LedgerWindow, *, token: str | None = None
) -> dict[str, int] | None:
    """Give what each account held when the window began, from what lies before it; None if nothing.

    A balance below zero shows that the store does not hold everything: that is refused.
    """
    moved = f"SELECT * FROM transfers WHERE token = ? AND {window.before()} AND sender <> recipient"
    rows = store.ask(
        "SELECT account, CAST(sum(change) AS VARCHAR) FROM (SELECT recipient AS account, amount AS "
        f"change FROM ({moved}) UNION ALL SELECT sender, -amount FROM ({moved})) GROUP BY account "
        "ORDER BY account",
        [_token(store, token)] * 2,
    )
    if not rows:
        return None
    balances = {account: int(total) for account, total in rows}
    zero = {account: 0 for account in balances if set(account.removeprefix("0x")) == {"0"}}
    below = [account for account, total in (balances | zero).items() if total < 0]
    if below:
        raise InputError(
            f"{store.name}: {len(below)} accounts paid more than they had received before the "
            f"window ({first_few(below)}): earlier transfers are missing; give a table of opening "
            "balances"
        )
    return {account: total for account, total in (balances | zero).items() if total > 0}


def _token(store: Store, token: str | None) -> str:
    tokens = [t for (t,) in store.ask("SELECT DISTINCT token FROM transfers ORDER BY token")]
    holder = "the store holds" if store.path else "the files hold"
    has = first_few([token_words(each) for each in tokens])
    if token is None:
        if len(tokens) > 1:
            raise UsageError(
                f"{holder} {len(tokens)} tokens ({has}): name one (--token on the command line)"
            )
        return tokens[0] if tokens else ""
    meant = find_token(token, tokens)
    if meant is None:
        raise UsageError(f"{holder} no token {token!r}: there is {has}")
    return meant
