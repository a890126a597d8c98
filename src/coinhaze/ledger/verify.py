"""A store checked from the ground up: keys, chain of blocks, references, amounts."""

from __future__ import annotations

from coinhaze.errors import LedgerError, first_few
from coinhaze.ledger.batches import ACCOUNT_TABLES, COIN_TABLES, KEYS, SCHEMAS
from coinhaze.ledger.store import Store
from coinhaze.ledger.stored import read_store


def verify(store: Store) -> list[str]:
    """Raise the error that names the first rule broken; else say what holds."""
    said = []
    for name in SCHEMAS:
        _check_keys(store, name)
        ((rows,),) = store.ask(f"SELECT count(*) FROM {name}")
        if rows:
            said.append(f"{name}: {rows:,} rows, no key twice")
    said += _check_blocks(store)
    for table in (*COIN_TABLES, *ACCOUNT_TABLES):
        if table not in ("transactions", "transfers"):
            _check_transactions(store, table)
    said += _check_ledger(store)
    return [*said, f"digest {store.digest()}"]


def _check_keys(store: Store, name: str) -> None:
    keys = ", ".join(KEYS[name])
    twice = store.ask(f"SELECT {keys} FROM {name} GROUP BY {keys} HAVING count(*) > 1 LIMIT 4")
    _refuse(store, name, twice, "a key that is there twice")


def _check_blocks(store: Store) -> list[str]:
    """Neighbouring blocks must name each other, and rows lie in blocks that are known."""
    torn = store.ask(
        "SELECT b.height, b.previous FROM blocks b JOIN blocks a ON a.height = b.height - 1 "
        "WHERE b.previous <> a.hash ORDER BY ALL LIMIT 4"
    )
    _refuse(store, "blocks", torn, "a block that does not follow the one below it")
    ((links,),) = store.ask(
        "SELECT count(*) FROM blocks b JOIN blocks a ON a.height = b.height - 1 "
        "WHERE b.previous = a.hash"
    )
    return [f"blocks: {links:,} follow the one below them"] if links else []


def _check_transactions(store: Store, table: str) -> None:
    lost = store.ask(
        f"SELECT height, txid FROM {table} ANTI JOIN transactions USING (height, txid) "
        "ORDER BY ALL LIMIT 4"
    )
    _refuse(store, table, lost, "a row of a transaction that is not there")


def _check_ledger(store: Store) -> list[str]:
    """Build the whole ledger, which checks all that must hold between rows."""
    if store.kind is None:
        return ["the store is empty"]
    if store.kind == "coins":
        ledger = read_store(store)
        return [f"ledger: {len(ledger):,} transactions, no value from nothing, no coin spent twice"]
    said = []
    for (token,) in store.ask("SELECT DISTINCT token FROM transfers ORDER BY token"):
        ledger = read_store(store, token=token)
        said.append(f"ledger {token or 'of the chain itself'}: {len(ledger):,} transfers")
    return said


def _refuse(store: Store, table: str, rows: list[tuple[object, ...]], what: str) -> None:
    if rows:
        shown = first_few([" ".join(str(v) for v in row) for row in rows])
        raise LedgerError(f"{store.path}: {table}", what, value=shown)
