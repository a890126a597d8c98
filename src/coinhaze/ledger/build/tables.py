"""Ledgers as Arrow tables that refer to each other by row -> ledgers, every rule checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coinhaze.amounts import LARGEST, Amounts, Ints
from coinhaze.errors import LedgerError
from coinhaze.ledger.accounts import AccountLedger
from coinhaze.ledger.build.rules import check_rules
from coinhaze.ledger.checks import (
    TablePlace,
    check_pool_values,
    default_place,
    exact_amount,
)
from coinhaze.ledger.coins import MAX_OUTPUTS, POOLS, CoinLedger
from coinhaze.ledger.columns import CheckedColumns, flags_of, is_text
from coinhaze.threads import each

# The tables, and the columns each must have.
COIN_TABLES = {
    "transactions": ("txid", "inside", "coinbase", "height", "time"),
    "owners": ("name", "is_coin"),
    "outputs": ("tx", "vout", "value", "owner", "spendable"),
    "inputs": ("tx", "output"),
    "pool_flows": ("tx", "pool", "into_pool"),
    "rings": ("tx", "vin", "output"),
}
ACCOUNT_TABLES = {"accounts": ("name",), "transfers": ("from", "to", "amount")}


def coin_tables(ledger: CoinLedger) -> dict[str, pa.Table]:
    """Give the tables of the data model, amounts in their fast form."""
    tables = ledger.tables(packed=True)
    return {name: tables[name] for name in COIN_TABLES}


def ledger_from_tables(
    tables: Mapping[str, pa.Table],
    *,
    complete: bool,
    pool_values: Mapping[str, int],
    place: TablePlace,
) -> CoinLedger:
    """Build a coin ledger from its tables."""
    found = _checked(tables, COIN_TABLES, place)
    check_pool_values(pool_values, POOLS)
    transactions, owners, outputs, inputs, flows, rings = found.values()

    def row(table: CheckedColumns, column: str, other: str) -> Ints:
        return _rows(table, column, other, found[other])

    columns: dict[str, Callable[[], Any]] = {
        "txids": lambda: transactions.names("txid", unique=True),
        "inside": lambda: flags_of(transactions.flags("inside")),
        "coinbase": lambda: flags_of(transactions.flags("coinbase")),
        "heights": lambda: transactions.numbers("height", 2**63 - 1, optional=True),
        "times": lambda: transactions.numbers("time", 2**63 - 1, optional=True),
        "owners": lambda: owners.names("name", unique=True),
        "owner_is_coin": lambda: flags_of(owners.flags("is_coin")),
        "output_tx": lambda: row(outputs, "tx", "transactions"),
        "output_vout": lambda: outputs.whole("vout", MAX_OUTPUTS),
        "output_value": lambda: _values(outputs, rings),
        "output_owner": lambda: row(outputs, "owner", "owners"),
        "output_spendable": lambda: flags_of(outputs.flags("spendable")),
        "input_tx": lambda: row(inputs, "tx", "transactions"),
        "input_output": lambda: row(inputs, "output", "outputs"),
        "flow_tx": lambda: row(flows, "tx", "transactions"),
        "flow_pool": lambda: _pools(flows),
        "flow_into": lambda: _into_pools(flows),
        "ring_tx": lambda: row(rings, "tx", "transactions"),
        "ring_vin": lambda: rings.whole("vin", MAX_OUTPUTS),
        "ring_output": lambda: row(rings, "output", "outputs"),
        "ring_probability": lambda: (
            rings.probabilities("probability") if rings.has("probability") else None
        ),
    }
    checked = zip(columns, each(len(outputs), *columns.values()), strict=True)
    ledger = CoinLedger(**dict(checked), complete=complete, pool_values=dict(pool_values))
    check_rules(ledger, place)
    return ledger


def _checked(
    tables: Mapping[str, pa.Table], wanted: Mapping[str, tuple[str, ...]], place: TablePlace
) -> dict[str, CheckedColumns]:
    """Give the tables as columns to check, or say which table or column is not there."""
    for name, columns in wanted.items():
        if name not in tables:
            raise LedgerError(place(name, None), "this table is missing")
        table = tables[name]
        for column in columns:
            if column not in table.column_names:
                what = f"no column {column!r}"
                raise LedgerError(place(name, None), what, value=table.column_names[:10])
        for field in table.schema:
            # Views of bytes that are no UTF-8 would only be found when somebody prints them.
            if is_text(field.type):
                try:
                    table[field.name].validate(full=True)
                except pa.ArrowInvalid as error:
                    what = f"{field.name} is damaged"
                    raise LedgerError(place(name, None), what, value=str(error)) from None
    return {name: CheckedColumns(tables[name], partial(place, name)) for name in wanted}


def _rows(table: CheckedColumns, column: str, name: str, other: CheckedColumns) -> Ints:
    """Take rows of another table by number."""
    rule = f"is not one of the {len(other)} {name}"
    return table.whole(column, len(other) - 1, rule=rule)


def _values(outputs: CheckedColumns, rings: CheckedColumns) -> Amounts | None:
    """Take values of coins; all of them missing means that the ledger hides amounts."""
    if len(outputs) and outputs.table["value"].null_count == len(outputs):
        return None
    if len(rings):
        raise LedgerError(
            outputs.where(0),
            "values beside rings",
            fix="a ledger with rings hides amounts: all null",
        )
    return outputs.exact("value")


def _pools(flows: CheckedColumns) -> Ints:
    names = flows.names("pool", optional=True)
    number = pc.index_in(names, value_set=pa.array(POOLS, names.type))
    if number.null_count:
        row = pc.index(number.is_null(), True).as_py()
        raise LedgerError(
            flows.where(row),
            "unknown pool",
            value=names[row].as_py(),
            fix=f"one of {', '.join(POOLS)}",
        )
    return np.asarray(number.to_numpy(zero_copy_only=False), dtype=np.int64)


def _into_pools(flows: CheckedColumns) -> Amounts:
    """Take flows, negative out of the pool; decimal text where they do not fit 64 bits."""
    if pa.types.is_signed_integer(flows.table["into_pool"].type):
        return Amounts.of(np.asarray(flows.signed("into_pool")))
    values = []
    for row, text in enumerate(flows.names("into_pool", optional=True).to_pylist()):
        size = text.removeprefix("-") if text is not None else None
        exact = exact_amount(size, flows.where(row), field="into_pool")
        assert exact <= LARGEST
        values.append(-exact if size != text else exact)
    return Amounts.of(values)


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
    found = _checked(tables, ACCOUNT_TABLES, place)
    accounts, transfers = found.values()
    return AccountLedger(
        accounts=accounts.names("name", unique=True),
        sender=_rows(transfers, "from", "accounts", accounts),
        receiver=_rows(transfers, "to", "accounts", accounts),
        amounts=transfers.exact("amount"),
        ids=transfers.names("id", unique=True) if transfers.has("id") else None,
        times=transfers.times("time") if transfers.has("time") else None,
        fees=transfers.exact("fee") if transfers.has("fee") else None,
    )
