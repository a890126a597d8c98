"""Ledgers as Arrow tables that refer to each other by row -> ledgers, every rule checked."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coinhaze.amounts import LARGEST, Amounts
from coinhaze.errors import LedgerError
from coinhaze.ledger.accounts import AccountLedger
from coinhaze.ledger.checks import (
    TableColumns,
    TablePlace,
    check_pool_values,
    default_place,
    exact_amount,
)
from coinhaze.ledger.coin_rules import check_rules
from coinhaze.ledger.coins import MAX_OUTPUTS, POOLS, CoinLedger

COIN_TABLES = ("transactions", "owners", "outputs", "inputs", "pool_flows", "rings")
ACCOUNT_TABLES = ("accounts", "transfers")


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
    for name in COIN_TABLES:
        if name not in tables:
            raise LedgerError(place(name, None), "this table is missing")
    check_pool_values(pool_values, POOLS)
    transactions, owners, outputs, inputs, flows, rings = (
        TableColumns(name, tables[name], place) for name in COIN_TABLES
    )
    ledger = CoinLedger(
        txids=transactions.names("txid", unique=True),
        inside=transactions.flags("inside"),
        coinbase=transactions.flags("coinbase"),
        heights=transactions.optional_integers("height"),
        times=transactions.optional_integers("time"),
        owners=owners.names("name", unique=True),
        owner_is_coin=owners.flags("is_coin"),
        output_tx=outputs.rows("tx", transactions),
        output_vout=outputs.integers("vout", most=MAX_OUTPUTS),
        output_value=_values(outputs, rings),
        output_owner=outputs.rows("owner", owners),
        output_spendable=outputs.flags("spendable"),
        input_tx=inputs.rows("tx", transactions),
        input_output=inputs.rows("output", outputs),
        flow_tx=flows.rows("tx", transactions),
        flow_pool=_pools(flows),
        flow_into=_into_pools(flows),
        ring_tx=rings.rows("tx", transactions),
        ring_vin=rings.integers("vin", most=MAX_OUTPUTS),
        ring_output=rings.rows("output", outputs),
        ring_probability=rings.chances("probability") if rings.has("probability") else None,
        complete=complete,
        pool_values=dict(pool_values),
    )
    check_rules(ledger, place)
    return ledger


def _values(outputs: TableColumns, rings: TableColumns) -> Amounts | None:
    """Take values of coins; all of them missing means that the ledger hides amounts."""
    if len(outputs) and outputs.has("value") and outputs.table["value"].null_count == len(outputs):
        return None
    if len(rings):
        raise LedgerError(
            outputs.where(),
            "values beside rings",
            fix="a ledger with rings hides amounts: all null",
        )
    return outputs.amounts("value")


def _pools(flows: TableColumns) -> np.typing.NDArray[np.int64]:
    names = flows.text("pool")
    number = pc.index_in(names, value_set=pa.array(POOLS))
    if number.null_count:
        row = pc.index(number.is_null(), True).as_py()
        raise LedgerError(
            flows.where(row),
            "unknown pool",
            value=names[row].as_py(),
            fix=f"one of {', '.join(POOLS)}",
        )
    return np.asarray(number.to_numpy(zero_copy_only=False), dtype=np.int64)


def _into_pools(flows: TableColumns) -> Amounts:
    """Take flows, negative out of the pool; decimal text where they do not fit 64 bits."""
    if flows.has("into_pool") and pa.types.is_signed_integer(flows.table["into_pool"].type):
        return Amounts.of(flows.signed_integers("into_pool"))
    values = []
    for row, text in enumerate(flows.text("into_pool").to_pylist()):
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
    for name in ACCOUNT_TABLES:
        if name not in tables:
            raise LedgerError(place(name, None), "this table is missing")
    accounts, transfers = (TableColumns(name, tables[name], place) for name in ACCOUNT_TABLES)
    return AccountLedger(
        accounts=accounts.names("name", unique=True),
        sender=transfers.rows("from", accounts),
        receiver=transfers.rows("to", accounts),
        amounts=transfers.amounts("amount"),
        ids=transfers.names("id", unique=True) if transfers.has("id") else None,
        times=transfers.times("time") if transfers.has("time") else None,
        fees=transfers.amounts("fee") if transfers.has("fee") else None,
    )
