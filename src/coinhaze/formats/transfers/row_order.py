"""Rows of one or several files put in the order of the ledger, by whatever orders them.

Rows go by block or time, then by their index in the block, most significant column first. Rows that
share all of that keep the order of their file, turned round where the file runs newest first; files
follow one another by what they cover. Where neither decides, a note counts the rows. Columns that
contradict each other are refused.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from coinhaze.amounts import Ints
from coinhaze.errors import LedgerError
from coinhaze.formats.tabular.column_use import rows_text
from coinhaze.ledger.checks import Place

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Key:
    """A column that orders rows: what the file calls it, and numbers that sort as it does."""

    name: str
    values: Ints


@dataclass(frozen=True, eq=False)
class OrderColumns:
    """What orders the rows of some files, which stand one after the other.

    `when` are blocks and times: all of them rise together through the ledger. `within` are indexes
    that count through a block. `step` counts inside a transaction `group`, and `nonce` the
    transactions of one `sender`; groups and senders are numbered.
    """

    files: Sequence[int]  # rows of each
    when: Sequence[Key] = ()
    within: Sequence[Key] = ()
    step: Key | None = None
    group: Ints | None = None
    nonce: Key | None = None
    sender: Ints | None = None
    unplaced: Bools | None = None  # rows that do not tell when

    def __post_init__(self) -> None:
        assert (self.step is None) == (self.group is None)
        assert (self.nonce is None) == (self.sender is None)

    @property
    def names(self) -> list[str]:
        """The columns by which rows are ordered."""
        keys = (*self.when[:1], *self.within, self.nonce, self.step)
        return list(dict.fromkeys(key.name for key in keys if key is not None))


@dataclass(frozen=True, eq=False)
class Ordered:
    """The rows in order, None if they stand in it already, and what is to be said of it."""

    rows: Ints | None
    notes: tuple[str, ...] = ()


def put_in_order(columns: OrderColumns, place: Place) -> Ordered:
    """Put rows in order; `place` says where a row stands, for errors.

    >>> newest_first = OrderColumns([3], when=[Key("time", np.array([30, 20, 10]))])
    >>> put_in_order(newest_first, str).rows.tolist()
    [2, 1, 0]
    """
    n = sum(columns.files)
    if n < 2 or not columns.names:
        return Ordered(None)
    if columns.unplaced is not None and columns.unplaced.any():
        return _around_the_unplaced(columns, place)
    keys = [*columns.when, *columns.within]
    rank, rises, falls = _ranks(keys, n)
    rises, falls = _with_steps(columns, rises, falls)
    spans = [span for span in _spans(columns.files) if span.stop > span.start]
    directions = [_direction(rises, falls, span) for span in spans]
    directions = _by_nonces(columns, rank, spans, directions)
    rows = _sequence(rank, spans, directions)
    rows = rows[np.argsort(rank[rows], kind="stable")]
    rows = _nonces_in_order(columns, rank, rows, place)
    rows = _steps_in_order(columns, rank, rows)
    _refuse_contradiction(columns.when, rows, place)
    undecided = _undecided(columns, rank, rows, spans, directions)
    return _stated(columns, rows, undecided, directions)


def _spans(files: Sequence[int]) -> list[slice]:
    ends = np.cumsum([0, *files]).tolist()
    return [slice(first, last) for first, last in itertools.pairwise(ends)]


def _ranks(keys: Sequence[Key], n: int) -> tuple[Ints, Bools, Bools]:
    """Number the rows by all keys together; tell where one rises or falls against that before."""
    rises, falls = np.zeros(n - 1, np.bool_), np.zeros(n - 1, np.bool_)
    equal = np.ones(n - 1, np.bool_)
    for key in keys:
        before, after = key.values[:-1], key.values[1:]
        rises |= equal & (after > before)
        falls |= equal & (after < before)
        equal &= after == before
    if not falls.any():
        return np.concatenate(([0], np.cumsum(rises))), rises, falls
    order = np.lexsort([key.values for key in reversed(keys)])
    new = np.zeros(n - 1, np.bool_)
    for key in keys:
        new |= np.diff(key.values[order]) != 0
    rank = np.empty(n, np.int64)
    rank[order] = np.concatenate(([0], np.cumsum(new)))
    return rank, rises, falls


def _with_steps(columns: OrderColumns, rises: Bools, falls: Bools) -> tuple[Bools, Bools]:
    """Let steps inside one transaction tell the direction too."""
    if columns.step is None or columns.group is None:
        return rises, falls
    step, group = columns.step.values, columns.group
    open_ = ~(rises | falls) & (group[1:] == group[:-1])
    return rises | (open_ & (step[1:] > step[:-1])), falls | (open_ & (step[1:] < step[:-1]))


def _direction(rises: Bools, falls: Bools, span: slice) -> int:
    """Tell whether a file runs oldest (1) or newest first (-1); 0: neither, or nothing tells."""
    inside = slice(span.start, span.stop - 1)
    up, down = bool(rises[inside].any()), bool(falls[inside].any())
    return 0 if up == down else 1 if up else -1


def _by_nonces(
    columns: OrderColumns, rank: Ints, spans: Sequence[slice], directions: list[int]
) -> list[int]:
    """Ask the nonces where nothing else tells the direction of a file."""
    if columns.nonce is None or columns.sender is None:
        return directions
    found = list(directions)
    for k, span in enumerate(spans):
        if found[k] or rank[span].min() != rank[span].max():
            continue
        sender, nonce = columns.sender[span], columns.nonce.values[span]
        order = np.argsort(sender, kind="stable")
        change = np.where(np.diff(sender[order]) == 0, np.diff(nonce[order]), 0)
        up, down = bool((change > 0).any()), bool((change < 0).any())
        found[k] = 0 if up == down else 1 if up else -1
    return found


def _sequence(rank: Ints, spans: Sequence[slice], directions: Sequence[int]) -> Ints:
    """Line up files by what they cover, those turned round that run newest first."""
    reach = [(rank[span].min(), rank[span].max()) for span in spans]
    order = sorted(range(len(spans)), key=reach.__getitem__)
    parts = [np.arange(spans[k].start, spans[k].stop)[:: directions[k] or 1] for k in order]
    return np.concatenate([np.zeros(0, np.int64), *parts])


def _nonces_in_order(columns: OrderColumns, rank: Ints, rows: Ints, place: Place) -> Ints:
    """Let the rows of one sender that share their place change places by nonce."""
    if columns.nonce is None or columns.sender is None:
        return rows
    sender, nonce, at = columns.sender[rows], columns.nonce.values[rows], rank[rows]
    slots = np.lexsort((at, sender))
    by_nonce = np.lexsort((nonce, at, sender))
    falls = (np.diff(sender[by_nonce]) == 0) & (np.diff(nonce[by_nonce]) < 0)
    if falls.any():
        k = int(np.argmax(falls))
        first, second = rows[by_nonce[k]], rows[by_nonce[k + 1]]
        fix = "if it is not the nonce of the account that pays, leave the column out"
        raise _contradiction(columns.when[0], columns.nonce, first, second, place, fix)
    moved = rows.copy()
    moved[slots] = rows[by_nonce]
    return moved


def _steps_in_order(columns: OrderColumns, rank: Ints, rows: Ints) -> Ints:
    """Bring rows of one transaction together where it begins, in the order of their steps."""
    if columns.step is None or columns.group is None:
        return rows
    at, group = rank[rows], columns.group[rows]
    by_group = np.lexsort((group, at))
    new = (np.diff(at[by_group], prepend=-1) != 0) | (np.diff(group[by_group], prepend=-1) != 0)
    starts = np.flatnonzero(new)
    first = np.empty(len(rows), np.int64)
    first[by_group] = np.repeat(
        np.minimum.reduceat(by_group, starts), np.diff(starts, append=len(rows))
    )
    return rows[np.lexsort((columns.step.values[rows], first, at))]


def _refuse_contradiction(when: Sequence[Key], rows: Ints, place: Place) -> None:
    for key in when[1:]:
        falls = np.diff(key.values[rows]) < 0
        if falls.any():
            k = int(np.argmax(falls))
            fix = "one of the two columns is wrong: correct it, or leave it out"
            raise _contradiction(when[0], key, rows[k], rows[k + 1], place, fix)


def _contradiction(
    one: Key, other: Key, first: int, second: int, place: Place, fix: str
) -> LedgerError:
    what = (
        f"{one.name} says that this row comes after {place(int(first))}, {other.name} that it "
        "comes before"
    )
    return LedgerError(place(int(second)), what, fix=fix)


def _undecided(
    columns: OrderColumns,
    rank: Ints,
    rows: Ints,
    spans: Sequence[slice],
    directions: Sequence[int],
) -> int:
    """Count the rows whose order nothing decides."""
    at = rank[rows]
    tied = np.diff(at) == 0
    if not tied.any():
        return 0
    of_file = np.repeat(np.arange(len(spans)), [span.stop - span.start for span in spans])[rows]
    direction = np.array(directions)[of_file]
    reach = np.array([(rank[span].min(), rank[span].max()) for span in spans])[of_file]
    same_file = np.diff(of_file) == 0
    # A later file goes on where an earlier one ends, and both do not lie in that one place.
    follows = (reach[:-1, 1] <= reach[1:, 0]) & (reach[:-1, 0] < reach[1:, 1])
    decided = np.where(same_file, direction[1:] != 0, follows)
    if columns.step is not None and columns.group is not None:
        group, step = columns.group[rows], columns.step.values[rows]
        decided |= (np.diff(group) == 0) & (np.diff(step) != 0)
    if columns.nonce is not None and columns.sender is not None:
        sender, nonce = columns.sender[rows], columns.nonce.values[rows]
        decided |= (np.diff(sender) == 0) & (np.diff(nonce) != 0)
    open_ = at[1:][tied & ~decided]
    return int(np.isin(at, open_).sum()) if len(open_) else 0


def _stated(
    columns: OrderColumns, rows: Ints, undecided: int, directions: Sequence[int]
) -> Ordered:
    notes = []
    stand = bool(np.array_equal(rows, np.arange(len(rows))))
    by = ", ".join(columns.names)
    if not stand:
        how = "newest first" if set(directions) == {-1} else "in another order"
        what = "file stood" if len(directions) == 1 else "files stood"
        notes.append(f"{len(rows):,} rows were put in order by {by}: the {what} {how}")
    if undecided:
        notes.append(
            f"{undecided:,} rows share their place in the order ({by}) with others, and neither an "
            "index nor the direction of the file decides: they keep the order of the file"
        )
    return Ordered(None if stand else rows, tuple(notes))


def _around_the_unplaced(columns: OrderColumns, place: Place) -> Ordered:
    """Order files some rows of which do not tell when: only as they stand, or turned round."""
    assert columns.unplaced is not None
    key, placed = columns.when[0], ~columns.unplaced
    parts, directions = [], []
    for span in _spans(columns.files):
        rows = np.arange(span.start, span.stop)
        change = np.diff(key.values[rows[placed[span]]])
        up, down = bool((change > 0).any()), bool((change < 0).any())
        directions.append(0 if up == down else 1 if up else -1)
        parts.append(rows[:: directions[-1] or 1])
    order = np.concatenate(parts)
    known = order[placed[order]]
    if (np.diff(key.values[known]) < 0).any():
        row = int(np.argmin(placed))
        what = f"{key.name} is missing, and the other rows are not in its order: nothing tells "
        raise LedgerError(
            place(row),
            what + "where this one belongs",
            fix=f"give every row its {key.name}, or put the rows in order",
        )
    said = _stated(columns, order, 0, directions)
    count = int(columns.unplaced.sum())
    note = f"{rows_text(count)} without a {key.name}, left between those beside"
    return Ordered(said.rows, (*said.notes, note))
