"""Withdrawals of validators, as a cell of a table or a record of a file gives them."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pyarrow as pa

from coinhaze.errors import LedgerError
from coinhaze.formats.tabular.table_rows import (
    Withdrawal,
)
from coinhaze.ledger.batches import NUMBER, TEXT
from coinhaze.ledger.checks import exact_amount, whole_number
from coinhaze.ledger.columns import ADDRESS_DIGITS, CheckedColumns

WEI_IN_GWEI = 10**9
# Gwei are 64 bits wide (EIP-4895).
MAX_GWEI = 2**64 - 1
_ADDRESS = re.compile(f"(0x)?[0-9a-f]{{{ADDRESS_DIGITS}}}")
_decoder = msgspec.json.Decoder(list[Withdrawal])
LAST_PLACE = 2**31 - 1  # of a transaction in its block, or a record in it


def withdrawals(columns: CheckedColumns) -> pa.Table:
    """List the withdrawals of all rows: row, index, address and amount in wei."""
    found: dict[str, list[Any]] = {"row": [], "index": [], "address": [], "wei": []}
    for row, cell in enumerate(_cells(columns)):
        for paid in _listed(cell, columns, row) if cell else []:
            for name, value in _checked(paid, columns.where, row).items():
                found[name].append(value)
    types = {"row": NUMBER, "index": NUMBER, "address": TEXT, "wei": TEXT}
    return pa.table({name: pa.array(found[name], kind) for name, kind in types.items()})


def _cells(columns: CheckedColumns) -> list[Any]:
    if not columns.has("withdrawals"):
        return []
    cells = columns.table["withdrawals"]
    kind = cells.type
    lists = pa.types.is_list(kind) and pa.types.is_struct(kind.value_type)
    if not (lists or pa.types.is_string(kind) or pa.types.is_null(kind)):
        raise LedgerError(columns.where(0), f"column withdrawals holds {kind}, not lists")
    try:
        return list(cells.to_pylist())
    except (ArithmeticError, ValueError) as error:  # times in them beyond what Python can hold
        raise LedgerError(columns.where(0), f"withdrawals cannot be read: {error}") from None


def _listed(cell: Any, columns: CheckedColumns, row: int) -> list[Withdrawal]:
    try:
        if isinstance(cell, str):
            # In CSV the objects of a list stand side by side, without its brackets.
            text = cell if cell.lstrip().startswith("[") else f"[{cell}]"
            return _decoder.decode(text)
        return msgspec.convert(cell, list[Withdrawal])
    except (msgspec.MsgspecError, UnicodeError, RecursionError, TypeError) as error:
        what = f"withdrawals that cannot be read: {error}"
        raise LedgerError(columns.where(row), what, value=cell) from None


def _checked(paid: Withdrawal, where: Any, row: int) -> dict[str, object]:
    address = (paid.address or "").lower()
    if not _ADDRESS.fullmatch(address):
        what = f"the address of a withdrawal is not {ADDRESS_DIGITS} hexadecimal digits"
        raise LedgerError(where(row), what, value=paid.address)
    field = "amount of a withdrawal"
    if not _is_whole(paid.index):
        raise LedgerError(where(row), "index of a withdrawal is no number", value=paid.index)
    gwei = exact_amount(paid.amount, where(row), field=field)
    return {
        "row": row,
        "index": whole_number(int(paid.index or 0), where(row), field="index of a withdrawal"),
        "address": "0x" + address.removeprefix("0x"),
        "wei": str(whole_number(gwei, where(row), field=field, maximum=MAX_GWEI) * WEI_IN_GWEI),
    }


def _is_whole(value: int | str | None) -> bool:
    if isinstance(value, str):
        return value.isascii() and value.isdigit() and len(value) < 20
    return value is not None
