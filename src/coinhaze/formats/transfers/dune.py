"""Exports of Dune: its table `tokens.transfers`, and the event tables of single contracts, in CSV.

`amount_raw` is exact, `amount` was divided by the token's decimals and rounded: only the first is
read. Event tables have the exact amount in `value`. Nothing is written `<nil>`. Times end in UTC,
and rows often come newest first. Ether in `tokens.transfers` has no `evt_index`, and calls that
failed or borrowed code cannot be recognised there: it is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import pyarrow.compute as pc

from coinhaze.errors import LedgerError
from coinhaze.formats.tabular.column_use import plain_name
from coinhaze.formats.tabular.delimited import Piece
from coinhaze.formats.tabular.table_rows import OpenRows, TableLayout, names_in, open_rows
from coinhaze.formats.transfers.columns import ColumnChoice, DescribedColumns
from coinhaze.formats.transfers.files import readers_of_export
from coinhaze.ledger.columns import CheckedColumns, is_text

NOTHING = "<nil>"
_EVENTS = {"evttxhash", "from", "to", "value"}
_TRANSFERS = {"txhash", "blocktime", "from", "to"}
_EXACT, _ROUNDED, _PRICED = "amountraw", "amount", {"amountusd", "priceusd"}


def recognises(head: bytes) -> bool:
    """Tell by its header whether a file is an export of Dune."""
    return not head.lstrip().startswith((b"{", b"[")) and recognises_columns(names_in(head))


def recognises_columns(names: Sequence[str]) -> bool:
    """Tell by the names of its columns whether a file is an export of Dune."""
    plain = {plain_name(name) for name in names}
    priced = _ROUNDED in plain and bool(_PRICED & plain)
    return plain >= _EVENTS or (plain >= _TRANSFERS and (_EXACT in plain or priced))


def _opened(path: Path, choice: ColumnChoice) -> tuple[OpenRows, DescribedColumns]:
    rows = open_rows(path)
    try:
        stated = _described(rows, choice)
    except BaseException:
        rows.close()
        raise
    return replace(rows, pieces=partial(_pieces, rows, stated)), stated


def _described(rows: OpenRows, choice: ColumnChoice) -> DescribedColumns:
    where = f"{rows.place}:1"
    stated = DescribedColumns.by(rows.names, choice, rows.place)
    if stated is None:
        fix = "export it again with its header, or use --columns"
        raise LedgerError(where, "no export of Dune", value=rows.names, fix=fix)
    name = stated.columns["amount"]
    if "amount" not in choice.columns:
        if plain_name(name) == _ROUNDED:
            fix = "add amount_raw to the query and export it again"
            raise LedgerError(where, f"Dune's {name} is rounded, and not exact", fix=fix)
        if choice.decimals:
            fix = "leave out --decimals"
            raise LedgerError(where, f"Dune's {name} is in the smallest unit already", fix=fix)
    stated.check(rows.names, rows.place)
    return stated


def _pieces(rows: OpenRows, stated: DescribedColumns, layout: TableLayout) -> Iterator[Piece]:
    index, amount = stated.columns.get("log"), stated.columns["amount"]
    for piece in rows.pieces(layout):
        table = piece.columns.table
        for number, name in enumerate(table.column_names):
            column = table[name]
            if is_text(column.type):
                gone = pc.equal(column, NOTHING)
                table = table.set_column(number, name, pc.if_else(gone, None, column))
        columns = CheckedColumns(table, piece.columns.where)
        if stated.decimals is None and columns.has(amount) and is_text(table[amount].type):
            odd = pc.invert(pc.match_substring_regex(columns.plain(amount), "^[0-9]+$"))
            fix = "export it from Dune as CSV: spreadsheets round long numbers"
            columns.refuse(amount, odd, "is not a whole number in plain digits", fix)
        if columns.has(amount):
            gone = pc.is_null(columns.plain(amount))
            columns.refuse(amount, gone, "is missing", "leave out the rows without it in the query")
        if index is not None and columns.has(index):
            gone = pc.is_null(columns.plain(index))
            fix = (
                "export tokens only (where token_standard = 'erc20'); for ether take traces of "
                "ethereum-etl or cryo, or a node"
            )
            columns.refuse(index, gone, "is missing: ether, which no log tells", fix)
        yield replace(piece, columns=columns)


batches, ledger = readers_of_export(_opened)
