"""Rows that come again: one event counts once, and rows that name no event all count."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coinhaze.amounts import Ints
from coinhaze.errors import LedgerError
from coinhaze.formats.tabular.column_use import rows_text
from coinhaze.ledger.checks import Place
from coinhaze.ledger.text import text_hashes

_CONTENT = ("sender", "recipient", "amount", "txid", "token", "fee", "height", "time")


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
            what = f"one id with two contents: another {_WORDS.get(name, name)}"
            fix = f"see {place(int(those[k]))}, where it is {values[1]!r}"
            raise LedgerError(place(int(these[k])), what, value=values[0], fix=fix)


def _is_one(name: str, value: str, other: str) -> bool:
    """Tell whether two texts say the same: zeros that lead, and the case of addresses, do not."""
    if name == "token":
        return value.lower() == other.lower()
    if name in ("amount", "fee") and value.isdecimal() and other.isdecimal():
        return int(value) == int(other)
    return False


_WORDS = {"sender": "from", "recipient": "to"}


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
        f"{count:,} rows are identical to others, and no index tells whether they are the same "
        "transfer: each counts",
    )
