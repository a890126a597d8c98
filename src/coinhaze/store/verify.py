"""A store checked from the ground up: keys, chain of blocks, references, conservation of money."""

from __future__ import annotations

from collections.abc import Mapping

from coinhaze.errors import LedgerError, UsageError, first_few
from coinhaze.ledger.accounts import AccountLedger
from coinhaze.ledger.batches import ACCOUNT_TABLES, COIN_TABLES, KEYS
from coinhaze.ledger.completeness import Completeness
from coinhaze.store.checks import account_completeness, coin_completeness
from coinhaze.store.conservation import begins_with_chain, check_coins, check_token, unknown_coins
from coinhaze.store.read import read_store
from coinhaze.store.store import Store

SHOWN = 5  # tokens, those with most transfers


class Verified(list[str]):
    """What holds in a store, one line each; `completeness` says whether anything is missing."""

    completeness = Completeness()


def verify(
    store: Store, *, complete: bool | None = None, pool_values: Mapping[str, int] | None = None
) -> Verified:
    """Raise the error that names the first rule broken; else say what holds, with its figures.

    What is missing breaks no rule: the checks that failed are in `completeness` of the result.

    `complete` says whether the store begins with its chain; of coins that is seen by its blocks.
    `pool_values` tells what pools held before the store begins.
    """
    said = Verified()
    for name in store.tables:
        _check_keys(store, name)
        ((rows,),) = store.ask(f"SELECT count(*) FROM {name}")
        if rows:
            said.append(f"{name}: {rows:,} rows, no key twice")
    if store.kind is not None:
        check = coin_completeness if store.kind == "coins" else account_completeness
        said.completeness = check(store)
        said += [check.words() for check in said.completeness.checks]
    for table in (*COIN_TABLES, *ACCOUNT_TABLES):
        if table not in ("transactions", "transfers"):
            _check_transactions(store, table)
    said += _check_money(store, complete, pool_values or {})
    said.append(f"digest {store.digest()}")
    return said


def _check_keys(store: Store, name: str) -> None:
    keys = ", ".join(KEYS[name])
    twice = store.ask(f"SELECT {keys} FROM {name} GROUP BY {keys} HAVING count(*) > 1 LIMIT 4")
    _refuse(store, name, twice, "a key that is there twice")


def _check_transactions(store: Store, table: str) -> None:
    lost = store.ask(
        f"SELECT height, txid FROM {table} ANTI JOIN transactions USING (height, txid) "
        "ORDER BY ALL LIMIT 4"
    )
    _refuse(store, table, lost, "a row of a transaction that is not there")


def _check_money(store: Store, complete: bool | None, pool_values: Mapping[str, int]) -> list[str]:
    """Build the whole ledger, which checks all that must hold between rows, and add it up."""
    if store.kind is None:
        return ["the store is empty"]
    if store.kind == "coins":
        whole = begins_with_chain(store) if complete is None else complete
        said = check_coins(store, complete=whole, pool_values=pool_values)
        return said + _check_coin_ledger(store)
    if pool_values:
        raise UsageError("accounts have no pools: leave their values out")
    return _check_tokens(store, complete=bool(complete))


def _check_tokens(store: Store, *, complete: bool) -> list[str]:
    said = []
    tokens = store.ask("SELECT token FROM transfers GROUP BY token ORDER BY count(*) DESC, token")
    for number, (token,) in enumerate(tokens):
        ledger = read_store(store, token=token)
        assert isinstance(ledger, AccountLedger)
        found = check_token(store, ledger, token, complete=complete)
        if number < SHOWN:
            said.append(f"ledger {token or 'of the chain itself'}: {len(ledger):,} transfers")
            said += found
    if len(tokens) > SHOWN:
        more = len(tokens) - SHOWN
        said.append(f"{more:,} more tokens: in each, mints - burns = balances")
    return said


def _check_coin_ledger(store: Store) -> list[str]:
    unknown = unknown_coins(store)
    if unknown:
        # Nothing is wrong with such a store, but not all of it can be scored.
        return [f"ledger: values of {unknown:,} coins spent are unknown: see score --unknown"]
    ledger = read_store(store)
    return [f"ledger: {len(ledger):,} transactions, no value from nothing, no coin spent twice"]


def _refuse(store: Store, table: str, rows: list[tuple[object, ...]], what: str) -> None:
    if rows:
        shown = first_few([" ".join(str(v) for v in row) for row in rows])
        raise LedgerError(f"{store.path}: {table}", what, value=shown)
