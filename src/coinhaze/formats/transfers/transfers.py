"""Transfers in plain columns: who paid whom how much, one a row.

`from`, `to` and `amount` must be there; what else a file may tell, and how it may spell it, is in
`columns.py`. Amounts are whole numbers of the smallest unit: integers, decimals, digits,
or 32 bytes with the highest first; never floating-point numbers, which lose digits.

Rows are put in the order of the ledger by whatever orders them (`row_order.py`). The same event,
known by its transaction and index or by an `id`, counts once.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coinhaze.amounts import Ints
from coinhaze.errors import LedgerError, UsageError, first_few
from coinhaze.formats.lists.labels import normal_addresses
from coinhaze.formats.tabular.column_use import Use, column_notes, joined_use, rows_text, without
from coinhaze.formats.tabular.table_rows import OpenRows
from coinhaze.formats.transfers.columns import DescribedColumns
from coinhaze.formats.transfers.order import Gathering
from coinhaze.formats.transfers.row_order import put_in_order
from coinhaze.ledger.accounts import AccountLedger, spaced_names
from coinhaze.ledger.batches import NUMBER, TEXT
from coinhaze.ledger.checks import Place
from coinhaze.ledger.columns import CheckedColumns
from coinhaze.ledger.text import text_hashes
from coinhaze.ledger.window import ALL, LedgerWindow
from coinhaze.units import Unit, find_token, token_words, unit_of_token

NUMBERED_ID = r"^(?P<txid>.+):(?P<step>0|[1-9][0-9]{0,9})$"
_EXACT = "store integers, decimals, digits as text, or 32 bytes with the highest first"

_CONTENT = ("sender", "recipient", "amount", "txid", "token", "fee", "height", "time")
_WORDS = {"sender": "from", "recipient": "to"}


class Transfers:
    """Reads the pieces of one source, one after the other."""

    def __init__(self, stated: DescribedColumns) -> None:
        self.stated = stated
        self.numbered: bool | None = None  # whether ids are `txid:number`, as the first ones are

    def keys(self, columns: CheckedColumns) -> tuple[pa.Array | None, pa.Array | None]:
        """Give the transaction and the index of rows, as far as they tell."""
        stated = self.stated.columns
        if "id" not in stated:
            index = self.stated.index
            return (
                columns.names(stated["txid"]) if "txid" in stated else None,
                columns.numbers(index, 2**63 - 1) if index is not None else None,
            )
        ids = columns.names(stated["id"])
        parted = pc.extract_regex(ids, NUMBERED_ID)
        fits = pc.is_valid(parted)
        if self.numbered is None and len(ids):
            self.numbered = bool(pc.all(fits).as_py())
        if not self.numbered:
            return ids, pa.repeat(pa.scalar(0, NUMBER), len(ids))
        columns.refuse(stated["id"], pc.invert(fits), "does not end in a number as those before do")
        return pc.struct_field(parted, "txid"), pc.cast(pc.struct_field(parted, "step"), NUMBER)

    def table(self, columns: CheckedColumns) -> pa.Table:
        """Give the columns of a piece; those that are not given are null."""
        stated, nothing = self.stated.columns, pa.nulls(len(columns), TEXT)
        txid, index = self.keys(columns)
        if "id" in stated:
            name = columns.names(stated["id"])
        elif txid is not None and index is not None:
            name = pc.binary_join_element_wise(txid, pc.cast(index, TEXT), ":")
        else:
            name = nothing
        return pa.table(
            {
                "sender": parties(columns, stated["from"]),
                "recipient": parties(columns, stated["to"]),
                "amount": _raw_amounts(columns, self.stated),
                "txid": nothing if txid is None else txid,
                "id": name,
                "token": words(columns, stated.get("token")),
                "fee": amounts(columns, self.stated, "fee") if "fee" in stated else nothing,
                "payer": words(columns, stated.get("payer")),
            }
        )


def account_ledger(
    sources: Iterable[tuple[OpenRows, DescribedColumns]],
    *,
    token: str | None = None,
    window: LedgerWindow = ALL,
) -> AccountLedger:
    """Make a ledger of tables, in whatever order they and their rows come."""
    tables, where, gathering, uses = [], Places(), Gathering(), []
    for opened, described in sources:
        reader = Transfers(described)
        gathering.begin(described)
        uses.append(described.use(opened.names))
        for piece in opened.pieces(described.layout):
            tables.append(reader.table(piece.columns))
            gathering.add(piece.columns)
            where.add(piece.columns.where, len(piece.columns))
    use, stated = without(joined_use(uses), gathering.unreadable), gathering.stated
    if not sum(map(len, tables)):
        return replace(AccountLedger.from_transfers([]), columns=use, notes=column_notes(use))
    order = gathering.all()
    table = pa.concat_tables(tables, promote_options="permissive").combine_chunks()
    table = table.append_column("height", order.numbers["height"])
    table = table.append_column("time", order.time.seconds)
    rows = _of_token(table, token)
    rows, repeats = without_repeats(table, rows, where)
    if len(rows) < len(table):
        order, table = order.only(rows), table.take(pa.array(rows))
    place = _through(rows, where)
    ordered = put_in_order(order.columns(lambda name: table[name].combine_chunks(), place), place)
    if ordered.rows is not None:
        table, rows = table.take(pa.array(ordered.rows)), rows[ordered.rows]
    notes = (*ordered.notes, *repeats, *identical_rows(table), *column_notes(use))
    notes += choice_notes(stated)
    if any("id" in t or "txid" in t for t in stated):
        table = table.set_column(table.column_names.index("id"), "id", _names(table, rows, where))
    inside = _inside(table, window)
    if inside is not None:
        table, rows = table.take(pa.array(inside)), rows[inside]
    return _ledger(table, stated, _through(rows, where), notes, use)


def _ledger(
    table: pa.Table,
    stated: Sequence[DescribedColumns],
    place: Place,
    notes: tuple[str, ...],
    use: Use,
) -> AccountLedger:
    def some(*what: str) -> bool:
        return any(w in t for t in stated for w in what)

    ledger = AccountLedger.from_columns(
        table["sender"],
        table["recipient"],
        table["amount"],
        times=table["time"].combine_chunks().cast(pa.timestamp("s", "UTC"))
        if some("time")
        else None,
        fees=pc.fill_null(table["fee"], "0") if some("fee") else None,
        place=place,
    )
    ids = table["id"].combine_chunks() if some("id", "txid") else None
    tokens = pc.unique(pc.fill_null(table["token"], "")).to_pylist()
    unit = unit_of_token(tokens[0]) if len(tokens) == 1 else None  # it is one, chosen
    if unit is None and len(money := {each.money for each in stated}) == 1:
        unit = money.pop()
    for each in stated:
        check_decimals(each, unit, place, 0)
    notes += spaced_names(ledger.accounts)
    return replace(ledger, ids=ids, notes=notes, columns=use, unit=unit)


def _of_token(table: pa.Table, token: str | None) -> Ints:
    """Give the rows of the token that is meant; of several one must be chosen."""
    named = pc.fill_null(table["token"], "")
    shown = {name.lower(): name or "the chain's own" for name in pc.unique(named).to_pylist()}
    has = first_few([token_words(name) for name in sorted(shown.values())])
    if token is None:
        if len(shown) > 1:
            raise UsageError(
                f"the files hold {len(shown)} tokens ({has}): name one (--token on the command "
                "line)"
            )
        return np.arange(len(table))
    meant = find_token(token, shown)
    if meant is None:
        raise UsageError(f"the files hold no token {token!r}: they have {has}")
    return np.flatnonzero(np.asarray(pc.equal(pc.ascii_lower(named), meant)))


def _inside(table: pa.Table, window: LedgerWindow) -> Ints | None:
    """Give the rows of a window, None if it is all."""
    if window == ALL:
        return None
    column = table[window.by].combine_chunks()
    if column.null_count:
        raise UsageError(
            f"a window of {window.by}s needs the {window.by} of every row, and "
            f"{rows_text(column.null_count)} have none: add the column, or leave out from and to"
        )
    values = np.asarray(column)
    kept = np.ones(len(values), np.bool_)
    if window.first is not None:
        kept &= values >= window.first
    if window.last is not None:
        kept &= values <= window.last
    return np.flatnonzero(kept)


def _names(table: pa.Table, rows: Ints, place: Place) -> pa.Array:
    """Name transfers `txid:index`, or by their row in the ledger where they do not tell."""
    row = pc.cast(pa.array(np.arange(len(table))), TEXT)
    made = pc.binary_join_element_wise(table["txid"], row, ":")
    names = pc.coalesce(table["id"], made, row).combine_chunks()
    if table["id"].null_count and pc.count_distinct(names).as_py() < len(names):
        first: dict[str, int] = {}
        for k, name in enumerate(names.to_pylist()):
            if first.setdefault(name, k) != k:
                other = place(int(rows[first[name]]))
                what = f"without an index this row is called as {other} is"
                raise LedgerError(place(int(rows[k])), what, value=name, fix="give all an index")
    return names


class Places:
    """Says where rows stand, by their number through all pieces."""

    def __init__(self) -> None:
        self.first = [0]
        self.where: list[Place] = []

    def add(self, where: Place, rows: int) -> None:
        """Go on with another piece."""
        self.where.append(where)
        self.first.append(self.first[-1] + rows)

    def __call__(self, row: int) -> str:
        """Say where a row stands."""
        k = bisect_right(self.first, row) - 1
        return self.where[k](row - self.first[k])


def _through(rows: Ints, place: Place) -> Place:
    return lambda row: place(int(rows[row]))


def choice_notes(stated: Iterable[DescribedColumns]) -> tuple[str, ...]:
    """Say which columns, and how many places of amounts, the user gave."""
    return tuple(f"read as given: {choice}" for choice in sorted({t.choice for t in stated} - {""}))


def amounts(columns: CheckedColumns, stated: DescribedColumns, what: str = "amount") -> pa.Array:
    """Give exact amounts, or fees, as digits."""
    name = stated.columns[what]
    kind = columns.plain(name).type
    if pa.types.is_floating(kind):
        fault = f"{name} is stored as {kind}, which loses digits"
        raise LedgerError(columns.where(0), fault, fix=_EXACT)
    return (
        columns.amounts(name) if stated.decimals is None else columns.scaled(name, stated.decimals)
    )


def words(columns: CheckedColumns, name: str | None) -> pa.Array:
    """Give names that may be missing."""
    return pa.nulls(len(columns), TEXT) if name is None else columns.names(name, optional=True)


# Text is checked once, when the ledger is made of it.
def _raw_amounts(columns: CheckedColumns, stated: DescribedColumns) -> pa.Array:
    column = columns.table[stated.columns["amount"]].combine_chunks()
    plain = pa.types.is_string(column.type) and stated.decimals is None
    return column if plain else amounts(columns, stated)


def parties(columns: CheckedColumns, name: str) -> pa.Array:
    """Give who paid, or was paid: an address has one name, in whatever letter case it stands."""
    column = columns.table[name].combine_chunks()
    plain = pa.types.is_string(column.type)
    return normal_addresses(column if plain else columns.names(name))


def check_decimals(stated: DescribedColumns, unit: Unit | None, place: Place, row: int) -> None:
    """Refuse decimals that the user gave and that are not those of a known token."""
    if unit is not None and stated.decimals not in (None, unit.decimals):
        raise LedgerError(
            place(row),
            f"the token is {unit.symbol}, which has {unit.decimals} decimals",
            value=f"--decimals {stated.decimals}",
            fix=f"give --decimals {unit.decimals}; of a file of several tokens, score one with "
            "--token, or ingest a file of each",
        )


def without_repeats(table: pa.Table, rows: Ints, place: Place) -> tuple[Ints, tuple[str, ...]]:
    """Leave out rows of an `id` that came before; refuse one id with two contents.

    `rows` are those of the table that count, and `place` says where one stands.
    """
    ids = table["id"].combine_chunks()
    if ids.null_count == len(ids):
        return rows, ()
    chosen = ids.take(pa.array(rows))
    named = rows[np.asarray(chosen.is_valid())] if chosen.null_count else rows
    chosen = chosen.drop_null()
    if pc.count_distinct(chosen).as_py() == len(chosen):
        return rows, ()
    code = chosen.dictionary_encode().indices.to_numpy(zero_copy_only=False)
    first = np.full(int(code.max()) + 1, len(code))
    np.minimum.at(first, code, np.arange(len(code)))
    again = np.flatnonzero(first[code] < np.arange(len(code)))
    _refuse_unlike(table, named[again], named[first[code[again]]], place)
    note = f"{rows_text(len(again))} came twice, with one id and the same content, and counts once"
    return np.setdiff1d(rows, named[again], assume_unique=True), (note,)


def _refuse_unlike(table: pa.Table, these: Ints, those: Ints, place: Place) -> None:
    ours, earlier = (
        table.select(_CONTENT).take(pa.array(rows)).combine_chunks() for rows in (these, those)
    )
    for name in _CONTENT:
        one, other = ours[name].combine_chunks(), earlier[name].combine_chunks()
        gone = pc.xor(pc.is_null(one), pc.is_null(other))
        unlike = np.asarray(pc.or_(gone, pc.fill_null(pc.not_equal(one, other), False)))
        for k in np.flatnonzero(unlike).tolist():
            values = one[k].as_py(), other[k].as_py()
            if _is_one(name, *map(str, values)):
                continue
            what = f"the same id with another {_WORDS.get(name, name)}"
            other = place(int(those[k]))
            fix = f"see {other}, where it is {values[1]!r}; keep the right one of the two rows"
            raise LedgerError(place(int(these[k])), what, value=values[0], fix=fix)


def _is_one(name: str, value: str, other: str) -> bool:
    """Tell whether two texts say the same: zeros that lead, and the case of addresses, do not."""
    if name == "token":
        return value.lower() == other.lower()
    if name in ("amount", "fee") and value.isdecimal() and other.isdecimal():
        return int(value) == int(other)
    return False


def identical_rows(table: pa.Table) -> tuple[str, ...]:
    """Count the rows that are like another and have no id to tell whether they are the same."""
    if not table["id"].null_count:
        return ()
    key = np.zeros(len(table), np.uint64)
    for name in (n for n in _CONTENT if table[n].null_count < len(table)):
        column = table[name].combine_chunks()
        if pa.types.is_string(column.type):
            part = text_hashes(column.fill_null("") if column.null_count else column)
        else:
            part = np.asarray(column.fill_null(-1)).astype(np.uint64)
        # An odd factor keeps all bits; the high ones are brought down for the next round.
        key = (key ^ part) * np.uint64(0x9E3779B97F4A7C15)
        key ^= key >> np.uint64(29)
    key.sort()
    again = key[1:] == key[:-1]
    count = int(np.sum(np.append(again, False) | np.insert(again, 0, False)))
    if not count:
        return ()
    return (
        f"{count:,} rows are each identical to another, and no index tells whether they are the "
        "same transfer: each counts",
    )
