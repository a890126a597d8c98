"""Tables with accounts by number -> an account ledger, every rule checked, and back."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from coinhaze.errors import LedgerError
from coinhaze.ledger.accounts import AccountLedger
from coinhaze.ledger.columns import TableColumns, TablePlace, default_place

TABLES = ("accounts", "transfers")


def account_tables(ledger: AccountLedger) -> dict[str, pa.Table]:
    """Give accounts by name, and transfers that name them by row."""
    columns = {"from": ledger.sender, "to": ledger.receiver, "amount": ledger.amounts.packed()}
    if ledger.ids is not None:
        columns["id"] = ledger.ids
    if ledger.times is not None:
        columns["time"] = ledger.times
    if ledger.fees is not None:
        columns["fee"] = ledger.fees.packed()
    return {"accounts": pa.table({"name": ledger.accounts}), "transfers": pa.table(columns)}


def ledger_from_account_tables(
    tables: Mapping[str, pa.Table], *, place: TablePlace = default_place
) -> AccountLedger:
    """Build an account ledger from its tables."""
    for name in TABLES:
        if name not in tables:
            raise LedgerError(place(name, None), "this table is missing")
    accounts, transfers = (TableColumns(name, tables[name], place) for name in TABLES)
    return AccountLedger(
        accounts=accounts.names("name", unique=True),
        sender=transfers.rows("from", accounts),
        receiver=transfers.rows("to", accounts),
        amounts=transfers.amounts("amount"),
        ids=transfers.names("id", unique=True) if transfers.has("id") else None,
        times=transfers.times("time") if transfers.has("time") else None,
        fees=transfers.amounts("fee") if transfers.has("fee") else None,
    )
