"""Etherscan's CSV exports, and those of the explorers made like it: one address's transfers.

Tokens have a `TokenValue`, ether (of transactions, and of calls inside them) has two columns of
which one is 0: what came in and what went out. Amounts have a point and may have been rounded when
they were exported, which nobody can see; so they are read only with `decimals`, and marked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coinhaze.errors import LedgerError
from coinhaze.formats.tabular.column_use import plain_name
from coinhaze.formats.tabular.delimited import Piece
from coinhaze.formats.tabular.table_rows import OpenRows, TableLayout, names_in, open_rows
from coinhaze.formats.transfers.columns import ColumnChoice, DescribedColumns
from coinhaze.formats.transfers.files import readers_of_export
from coinhaze.ledger.columns import CheckedColumns
from coinhaze.units import Unit, unit_named, unit_of_token

MARK = "amounts as exported, may be rounded: they prove no balance"
_THOUSANDS = r"^[0-9]{1,3}(,[0-9]{3})+(\.[0-9]*)?$"
_BOTH = "one of them is 0 in every row of an export: export it again"
_PENDING = "wait until it is in a block and export again, or take the row out if it moved nothing"
_CURRENCY = re.compile(r"Value_IN\(([A-Za-z][A-Za-z0-9]{0,15})\)", re.IGNORECASE)
_ZERO = r"^0*\.?0*$"
# Plain names of what every export has; older ones call the first Txhash.
_SHARED = {
    "txid": ("transactionhash", "txhash"),
    "height": ("blockno",),
    "time": ("unixtimestamp",),
    "from": ("from",),
    "to": ("to", "txto"),
}


@dataclass(frozen=True, eq=False)
class _Export:
    """The columns of an export, as the file calls them."""

    columns: dict[str, str]
    came: str = ""  # of ether: what came in and what went out
    went: str = ""
    created: str = ""  # the contract that a transaction without a recipient made
    status: str = ""
    fault: str = ""
    inside: bool = False  # calls inside of transactions

    @classmethod
    def by(cls, names: Sequence[str]) -> _Export | None:
        plain: dict[str, str] = {}
        for name in names:
            plain.setdefault(plain_name(name), name)
        stated = {
            what: next((plain[spelt] for spelt in spellings if spelt in plain), "")
            for what, spellings in _SHARED.items()
        }
        if not all(stated.values()):
            return None
        contract = plain.get("contractaddress", "")
        if "tokenvalue" in plain and contract:
            return cls(stated | {"amount": plain["tokenvalue"], "token": contract})
        came = [name for spelt, name in plain.items() if spelt.startswith("valuein")]
        went = [name for spelt, name in plain.items() if spelt.startswith("valueout")]
        if len(came) != 1 or len(went) != 1:
            return None
        status, fault = plain.get("status", ""), plain.get("errcode", "")
        stated["amount"] = came[0]
        inside = "txto" in plain
        return cls(stated, came[0], went[0], contract, status, fault, inside)

    @property
    def consumed(self) -> list[str]:
        """Columns that are read here, and not given on."""
        return [name for name in (self.went, self.created, self.status, self.fault) if name]

    def piece(self, piece: Piece) -> Piece:
        """Make one column of amounts, and leave out what failed."""
        columns, name = piece.columns, self.columns["amount"]
        table, amount = columns.table, self._amounts(columns)
        table = table.set_column(table.column_names.index(name), name, amount)
        if self.created:
            to = self.columns["to"]
            made = pc.coalesce(columns.plain(to), columns.plain(self.created))
            table = table.set_column(table.column_names.index(to), to, made)
        rows = np.flatnonzero(~self._failed(columns))
        table = table.take(pa.array(rows))
        return replace(
            piece, columns=CheckedColumns(table, lambda row: columns.where(int(rows[row])))
        )

    def _amounts(self, columns: CheckedColumns) -> pa.Array:
        if not self.came:
            return _without_commas(columns, self.columns["amount"])
        came, went = (_without_commas(columns, name) for name in (self.came, self.went))
        nothing_came, nothing_went = (
            pc.fill_null(pc.match_substring_regex(amount, _ZERO), True) for amount in (came, went)
        )
        both = pc.and_(pc.invert(nothing_came), pc.invert(nothing_went))
        unlike = pc.and_(both, pc.fill_null(pc.not_equal(came, went), False))
        columns.refuse(self.came, unlike, f"and {self.went} both say that something moved", _BOTH)
        return pc.fill_null(pc.if_else(nothing_came, went, came), "0")

    def _failed(self, columns: CheckedColumns) -> np.typing.NDArray[np.bool_]:
        """Tell which rows moved nothing, whatever they say of an amount."""
        failed = np.zeros(len(columns), np.bool_)
        if self.status:
            status = pc.ascii_lower(pc.fill_null(columns.names(self.status, optional=True), ""))
            error = pc.starts_with(status, "error")
            if self.inside:
                error = pc.or_(error, pc.equal(status, "1"))
            fine = pc.is_in(status, value_set=pa.array(["", "0", "ok", "success"]))
            rule = "is none of those that are known: empty or 0 for success, Error(0) for failure"
            columns.refuse(self.status, pc.invert(pc.or_(fine, error)), rule, _PENDING)
            failed |= np.asarray(error)
        if self.fault:
            failed |= np.asarray(columns.names(self.fault, optional=True).is_valid())
        return failed


def _without_commas(columns: CheckedColumns, name: str) -> pa.Array:
    amount = columns.names(name, optional=True)
    parted = pc.match_substring_regex(amount, _THOUSANDS)
    return pc.if_else(parted, pc.replace_substring(amount, ",", ""), amount)


def recognises(head: bytes) -> bool:
    """Tell by its header whether a file is an export of Etherscan."""
    return not head.lstrip().startswith((b"{", b"[")) and _Export.by(names_in(head)) is not None


def _opened(path: Path, choice: ColumnChoice) -> tuple[OpenRows, DescribedColumns]:
    rows = open_rows(path)
    export = _Export.by(rows.names)
    if export is None or choice.decimals is None:
        rows.close()
        if export is None:
            fix = "export it again with its header, or use --columns"
            raise LedgerError(f"{path}:1", "no export of Etherscan", value=rows.names, fix=fix)
        raise LedgerError(
            f"{path}:1",
            "amounts of Etherscan's exports have a point, and nothing says how many decimals",
            value=export.columns["amount"],
            fix="give --decimals: 18 for ether and most tokens, 6 for USDC and USDT; for exact "
            "amounts take ethereum-etl, Dune's amount_raw or a node",
        )
    names = [name for name in rows.names if name not in export.consumed]
    marked, money = f"{choice}; {MARK}", _money(export.came, choice.decimals)
    stated = DescribedColumns(export.columns, (), choice.decimals, marked, money)
    return replace(rows, names=names, pieces=partial(_pieces, rows, export)), stated


def _money(came: str, decimals: int) -> Unit | None:
    """Give the currency that a header names, as in `Value_IN(ETH)`, unless its decimals differ."""
    found = _CURRENCY.fullmatch(came)
    if found is None:
        return None
    known = unit_of_token(found[1])
    if known is not None:
        return known if known.decimals == decimals else None
    return unit_named(f"{found[1].upper()}:{decimals}")


def _pieces(rows: OpenRows, export: _Export, layout: TableLayout) -> Iterator[Piece]:
    needed = (*layout.needed, export.columns["amount"], export.columns["to"], *export.consumed)
    every = TableLayout(layout.name, tuple(dict.fromkeys(needed)), layout.optional)
    first = 0
    for piece in rows.pieces(every):
        kept = export.piece(piece)
        yield replace(kept, first=first)
        first += len(kept.columns)


batches, ledger = readers_of_export(_opened)
