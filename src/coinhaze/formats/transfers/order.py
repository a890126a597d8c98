"""What orders the transfers of files: blocks, times, indexes, nonces, gathered by piece.

Times are seconds since 1970 (or thousandths), ISO 8601 or timestamps, to the nanosecond.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coinhaze.amounts import Bools, Ints
from coinhaze.errors import LedgerError
from coinhaze.formats.transfers.columns import DescribedColumns
from coinhaze.formats.transfers.row_order import Key, OrderColumns
from coinhaze.ledger.batches import NUMBER
from coinhaze.ledger.checks import Place
from coinhaze.ledger.columns import HIGHEST_BLOCK, YEAR_10000, CheckedColumns

_SECONDS, _MILLISECONDS = "^[0-9]{1,11}$", "^[0-9]{13}$"
_ZONE = r"(?: ?UTC|[zZ]|[+-][0-9]{2}(?::?[0-9]{2})?)$"
_FIX = "the same in all rows: seconds since 1970, or ISO 8601"
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}

LAST = 2**31 - 1
_LIMITS = {"height": HIGHEST_BLOCK, "position": LAST, "log": 2**63 - 1, "step": 2**63 - 1}
_NUMBERS = (*_LIMITS, "nonce")


@dataclass(frozen=True, eq=False)
class Instants:
    """Moments by row: whole seconds since 1970, null where not given, and nanoseconds beyond."""

    seconds: pa.Array
    nanos: Ints

    def key(self) -> Ints:
        """Give numbers that sort as the moments do; what is not given is 0."""
        seconds = np.asarray(pc.fill_null(self.seconds, 0), dtype=np.int64)
        if not self.nanos.any():
            return seconds
        if np.abs(seconds).max(initial=0) < 9 * 10**9:
            return seconds * 10**9 + self.nanos
        # Beyond the year 2255 nanoseconds do not fit: their ranks do.
        by_time = np.lexsort((self.nanos, seconds))
        rises = (np.diff(seconds[by_time]) != 0) | (np.diff(self.nanos[by_time]) != 0)
        rank = np.empty(len(seconds), dtype=np.int64)
        rank[by_time] = np.concatenate(([0], np.cumsum(rises)))
        return rank

    def take(self, rows: Ints) -> Instants:
        """Choose some rows."""
        return Instants(self.seconds.take(pa.array(rows)), self.nanos[rows])

    @classmethod
    def joined(cls, parts: list[Instants]) -> Instants:
        """Put the moments of several pieces one after the other."""
        seconds = pa.concat_arrays([pa.array([], NUMBER), *(p.seconds for p in parts)])
        return cls(seconds, np.concatenate([np.zeros(0, np.int64), *(p.nanos for p in parts)]))


def instants(columns: CheckedColumns, name: str | None) -> Instants:
    """Read the times in a column; null where there are none."""
    n = len(columns)
    if name is None:
        return Instants(pa.nulls(n, NUMBER), np.zeros(n, np.int64))
    column = columns.plain(name)
    if pa.types.is_date(column.type):
        column = pc.cast(column, pa.timestamp("s"))
    if pa.types.is_string(column.type):
        return _of_text(columns, name, column)
    if pa.types.is_timestamp(column.type):
        per = _PER_SECOND[column.type.unit]
        ticks = pc.cast(column, NUMBER)
        wrong = pc.or_(pc.less(ticks, 0), pc.greater_equal(pc.divide(ticks, per), YEAR_10000))
        columns.refuse(name, wrong, "is not a time from 1970 to 9999")
        return _split(ticks, per)
    if pa.types.is_integer(column.type):
        low, high = pc.min_max(column).as_py().values()
        if low is not None and low >= 10**12 and high < 10**13:
            return _split(pc.cast(column, NUMBER), 1000)
    return Instants(columns.unix_seconds(name), np.zeros(n, np.int64))


def _split(ticks: pa.Array, per: int) -> Instants:
    """Part ticks into seconds, rounded down, and nanoseconds."""
    if per == 1:
        return Instants(ticks, np.zeros(len(ticks), np.int64))
    known = np.asarray(pc.fill_null(ticks, 0), dtype=np.int64)
    seconds, rest = np.divmod(known, per)
    unknown = None if not ticks.null_count else np.asarray(ticks.is_null())
    return Instants(pa.array(seconds, NUMBER, mask=unknown), rest * (10**9 // per))


def _of_text(columns: CheckedColumns, name: str, text: pa.Array) -> Instants:
    in_seconds = pc.match_substring_regex(text, _SECONDS)
    if pc.all(in_seconds).as_py() is not False:
        return Instants(columns.unix_seconds(name), np.zeros(len(text), np.int64))
    if pc.all(pc.match_substring_regex(text, _MILLISECONDS)).as_py():
        return _split(pc.cast(text, NUMBER), 1000)
    iso = _iso(text)
    # Arrow rounds nothing: more digits than its unit has are an error.
    for unit in ("us", "ns"):
        try:
            return _split(
                pc.cast(pc.cast(iso, pa.timestamp(unit, "UTC")), NUMBER), _PER_SECOND[unit]
            )
        except pa.ArrowInvalid:
            continue
    raise _fault(columns, name, text)


def _iso(text: pa.Array) -> pa.Array:
    """Write ISO 8601 as Arrow reads it; what names no zone is UTC, a date alone its beginning."""
    dates = pc.match_substring_regex(text, "^[0-9]{4}-[0-9]{2}-[0-9]{2}$")
    zoned = pc.and_not(pc.match_substring_regex(text, _ZONE), dates)
    text = pc.if_else(dates, pc.binary_join_element_wise(text, "T00:00:00Z", ""), text)
    local = pc.and_not(pc.invert(zoned), dates)
    text = pc.if_else(local, pc.binary_join_element_wise(text, "Z", ""), text)
    text = pc.replace_substring_regex(text, " ?UTC$", "Z")
    text = pc.replace_substring_regex(text, "([0-9]) ?([+-][0-9]{2})$", r"\1\2:00")
    return pc.replace_substring_regex(text, "([0-9]) ([+-][0-9]{2}:?[0-9]{2})$", r"\1\2")


def _fault(columns: CheckedColumns, name: str, text: pa.Array) -> LedgerError:
    """Find the first row that is no time, or is written in another way than the first."""
    values = text.to_pylist()
    first = next(v for v in values if v is not None)
    for length, rule in ((range(1, 12), "seconds"), ((13,), "thousandths of seconds")):
        if first.isascii() and first.isdigit() and len(first) in length:
            for row, value in enumerate(values):
                if value is not None and not (value.isdigit() and len(value) in length):
                    what = f"{name} is not {rule} since 1970"
                    return LedgerError(columns.where(row), what, value=value, fix=_FIX)
    for row, value in enumerate(values):
        if value is not None and not _is_iso(value):
            what = f"{name} is not like 2021-02-01T12:00:00Z"
            return LedgerError(columns.where(row), what, value=value, fix=_FIX)
    what = f"{name}: nanoseconds beside years that they cannot count"
    return LedgerError(columns.where(0), what, value=first, fix=_FIX)


def _is_iso(value: str) -> bool:
    for unit in ("us", "ns"):
        try:
            pc.cast(_iso(pa.array([value])), pa.timestamp(unit, "UTC"))
        except pa.ArrowInvalid:
            continue
        return True
    return False


@dataclass(eq=False)
class Gathering:
    """Columns that order rows, on their way in."""

    stated: list[DescribedColumns] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)  # rows of each file
    numbers: dict[str, list[pa.Array]] = field(default_factory=lambda: {n: [] for n in _NUMBERS})
    times: list[Instants] = field(default_factory=list)
    further: list[dict[str, Instants]] = field(default_factory=list)
    unreadable: set[str] = field(default_factory=set)  # columns of times that are not used

    def begin(self, stated: DescribedColumns) -> None:
        """Go on with another file."""
        self.stated.append(stated)
        self.lengths.append(0)

    def add(self, columns: CheckedColumns) -> None:
        """Read what orders the rows of a piece of the file last begun."""
        stated, n = self.stated[-1].columns, len(columns)
        self.lengths[-1] += n
        for what, parts in self.numbers.items():
            if what in stated:
                maximum = _LIMITS.get(what, 2**63 - 1)
                parts.append(columns.numbers(stated[what], maximum, optional=what == "nonce"))
            else:
                parts.append(pa.nulls(n, NUMBER))
        self.times.append(instants(columns, stated.get("time")))
        self.further.append(self._further(columns))

    def _further(self, columns: CheckedColumns) -> dict[str, Instants]:
        """Read further columns of times; what cannot be read says nothing beside what can."""
        found = {}
        for name in self.stated[-1].times:
            try:
                found[name] = instants(columns, name)
            except LedgerError:
                self.unreadable.add(name)
        return found

    def all(self) -> OrderOfTransfers:
        """Give them whole."""
        names = [set(piece) for piece in self.further]
        both = sorted(set.intersection(*names)) if names else []
        return OrderOfTransfers(
            self.stated,
            np.repeat(np.arange(len(self.lengths)), self.lengths),
            {what: _joined(parts) for what, parts in self.numbers.items()},
            Instants.joined(self.times),
            {name: Instants.joined([piece[name] for piece in self.further]) for name in both},
        )


@dataclass(frozen=True, eq=False)
class OrderOfTransfers:
    """Columns that order the rows of files, null where a file does not tell."""

    stated: Sequence[DescribedColumns]
    file: Ints  # of each row
    numbers: dict[str, pa.Array]
    time: Instants
    further: dict[str, Instants]  # other columns of times, by name

    def only(self, rows: Ints) -> OrderOfTransfers:
        """Choose some rows."""
        at = pa.array(rows)
        return OrderOfTransfers(
            self.stated,
            self.file[rows],
            {what: column.take(at) for what, column in self.numbers.items()},
            self.time.take(rows),
            {name: moments.take(rows) for name, moments in self.further.items()},
        )

    def columns(self, texts: Callable[[str], pa.Array], place: Place) -> OrderColumns:
        """Say what orders the rows; `texts` gives the columns txid, sender and payer."""
        when, unplaced = self._when(place)
        within = [self._key("position")] if self._all("position") else []
        step, group = None, None
        if self._all("log") or self._all("step"):
            index = self._key("log" if self._all("log") else "step")
            txid = texts("txid") if self._all("txid") else None
            if self._counts_in_block(index, when, within, txid, unplaced):
                within.append(index)
            elif txid is not None:
                step, group = index, _codes(txid)
            else:
                _refuse_index_alone(index, when, place)
                within.append(index)
        nonce, sender = None, None
        if not within and unplaced is None and self._all("nonce"):
            numbers = self.numbers["nonce"]
            if not numbers.null_count:
                nonce = Key(self._name("nonce"), np.asarray(numbers))
                sender = _codes(texts("payer" if self._all("payer") else "sender"))
        lengths = np.bincount(self.file, minlength=len(self.stated)).tolist()
        return OrderColumns(lengths, when, within, step, group, nonce, sender, unplaced)

    def _here(self) -> list[DescribedColumns]:
        """Give what the files that have rows tell."""
        return [self.stated[k] for k in np.unique(self.file)]

    def _all(self, what: str) -> bool:
        here = self._here()
        return bool(here) and all(what in stated for stated in here)

    def _name(self, what: str) -> str:
        return next(stated.columns[what] for stated in self._here() if what in stated)

    def _key(self, what: str) -> Key:
        return Key(self._name(what), np.asarray(self.numbers[what]))

    def _when(self, place: Place) -> tuple[list[Key], Bools | None]:
        """Give the columns of blocks and times; and which rows tell neither, if any."""
        heights, seconds = self.numbers["height"], self.time.seconds
        timed, raised = (np.asarray(column.is_valid()) for column in (seconds, heights))
        times = [Key(self._name("time"), self.time.key())] if timed.any() else []
        if not seconds.null_count:
            times += [
                Key(name, moments.key())
                for name, moments in self.further.items()
                if not moments.seconds.null_count
            ]
        if raised.all():
            key = [self._key("height")] if len(raised) else []
            return key + ([] if seconds.null_count else times), None
        if timed.any() and raised.any() and (raised & ~timed).any():
            row, other = int(np.argmax(raised & ~timed)), int(np.argmax(timed & ~raised))
            what = f"this row tells its block alone, and {place(other)} does not"
            fix = "give every row its block, or every row its time"
            raise LedgerError(place(row), what, fix=fix)
        if timed.any():
            return times, None if timed.all() else ~timed
        if raised.any():
            known = np.asarray(heights.fill_null(0))
            return [Key(self._name("height"), known)], ~raised
        return [], None

    def _counts_in_block(
        self,
        index: Key,
        when: Sequence[Key],
        within: Sequence[Key],
        txid: pa.Array | None,
        unplaced: Bools | None,
    ) -> bool:
        """Tell whether an index counts inside what stands above it, be it block or position."""
        if within:
            return True
        if not when or unplaced is not None or not self._all("log"):
            return False
        if txid is None:
            return True
        # It counts in transactions if two of them in one block have the same.
        order = np.lexsort((index.values, *(key.values for key in reversed(when))))
        same = np.diff(index.values[order]) == 0
        for key in when:
            same &= np.diff(key.values[order]) == 0
        at = np.flatnonzero(same)
        first, second = (txid.take(pa.array(order[at + k])) for k in (0, 1))
        return bool(pc.all(pc.equal(first, second), min_count=0).as_py())


def _refuse_index_alone(index: Key, when: Sequence[Key], place: Place) -> None:
    """Refuse an index that comes back where neither block nor transaction is given."""
    values = index.values
    change = np.diff(values)
    if when or not (change < 0).any() or not (change > 0).any():
        return
    order = np.argsort(values, kind="stable")
    again = np.flatnonzero(np.diff(values[order]) == 0)
    if len(again):
        first, second = (int(order[again[0] + k]) for k in (0, 1))
        what = f"{index.name} is that of {place(first)} too, and nothing tells their blocks"
        fix = "add the height or the time of the block"
        raise LedgerError(place(second), what, value=int(values[second]), fix=fix)


def _joined(parts: Sequence[pa.Array]) -> pa.Array:
    return pa.concat_arrays([pa.array([], NUMBER), *parts])


def _codes(texts: pa.Array) -> Ints:
    codes: Ints = texts.dictionary_encode().indices.to_numpy(zero_copy_only=False)
    return codes.astype(np.int64)
