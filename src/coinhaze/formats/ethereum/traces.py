"""What moved in a tree of calls: the rules that all traces of Ethereum share.

A call inside a failed one moved nothing, though it may bear no mark of failure itself. Code that is
borrowed (delegatecall, callcode) or may change nothing (staticcall) repeats its caller's value and
moves none. Rewards, genesis and withdrawals make money: they come from the zero address.

The rows of a transaction need not stand together: rows are held until a good many later ones were
seen, then settled a block at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from coinhaze.errors import LedgerError
from coinhaze.formats.tabular.coin_rows import numbered
from coinhaze.ledger.batches import FLAG, NUMBER, TEXT, Batch, table_of
from coinhaze.ledger.columns import CheckedColumns

ZERO_ADDRESS = "0x" + "0" * 40
# Calls are at most 1024 deep (Ethereum yellow paper, section 9), so deeper places are damage.
DEEPEST = 1025
# The position of money that a block moves after its last transaction, such as rewards.
AFTER_ALL = 2**31 - 1
IDLE_CALLS = ("delegatecall", "callcode", "staticcall")
HELD = 1 << 18  # rows, of about 250 bytes; up to twice as many are there at a time
AT_ONCE = 1 << 16  # rows a batch
# `row` counts rows of the file. `place` sorts as the tree is walked. `stated` says that `failed`
# minds failures above already; if not, all rows of a transaction must be there to look them up.
# Position is null where the source does not tell: the order in the file stands for it.
HELD_SCHEMA = pa.schema(
    [
        ("height", NUMBER),
        ("row", NUMBER),
        ("txid", TEXT),
        ("position", NUMBER),
        ("place", pa.binary()),
        ("failed", FLAG),
        ("stated", FLAG),
        ("moves", FLAG),
        ("token", TEXT),
        ("sender", TEXT),
        ("recipient", TEXT),
        ("amount", TEXT),
        ("kind", TEXT),
        ("time", NUMBER),
    ]
)
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


def places(columns: CheckedColumns, name: str, separator: str, deepest: int) -> pa.Array:
    """Give places in a tree, as text such as 0,8,1 or as lists, in bytes that sort as they do.

    Four bytes per step, the highest first; the root has none. Text would put 10 before 2.
    """
    column = columns.plain(name)
    kind = column.type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        steps, lengths = _listed(columns, name, column)
    elif pa.types.is_string(kind):
        steps, lengths = _split(columns, name, column, separator)
    else:
        raise columns.refused_type(name, column, "places in a tree")
    deep = np.flatnonzero(lengths > deepest)
    if len(deep):
        what = f"{name} is deeper than the {deepest} calls that are possible"
        raise LedgerError(columns.where(int(deep[0])), what, value=int(lengths[deep[0]]))
    return _as_binary(steps, lengths)


def _listed(columns: CheckedColumns, name: str, column: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
    steps = column.flatten()
    owners = np.repeat(np.arange(len(column)), lengths)
    if not pa.types.is_integer(steps.type):
        raise columns.refused_type(name, column, "lists of whole numbers")
    right = pc.and_(pc.greater_equal(steps, 0), pc.less(steps, 2**31))
    row = pc.index(pc.fill_null(right, False), False).as_py()
    if row >= 0:
        raise _no_place(columns, name, int(owners[row]))
    return steps.to_numpy(zero_copy_only=False), lengths.astype(np.int64)


def _split(
    columns: CheckedColumns, name: str, column: pa.Array, separator: str
) -> tuple[np.ndarray, np.ndarray]:
    # Most traces stand at few places: look at each once.
    codes = pc.fill_null(column, "").dictionary_encode()
    texts = codes.dictionary.to_pylist()
    code = codes.indices.to_numpy(zero_copy_only=False)
    parted = [text.split(separator) if text else [] for text in texts]
    for number, steps in enumerate(parted):
        if not all(s.isascii() and s.isdigit() and len(s) < 10 for s in steps):
            raise _no_place(columns, name, int(np.flatnonzero(code == number)[0]))
    lengths = np.array([len(steps) for steps in parted], dtype=np.int64)
    flat = np.array([int(s) for steps in parted for s in steps], dtype=np.int64)
    starts = np.cumsum(lengths) - lengths
    taken = lengths[code]
    before = np.cumsum(taken) - taken
    index = np.arange(int(taken.sum())) - np.repeat(before - starts[code], taken)
    return flat[index], taken


def _no_place(columns: CheckedColumns, name: str, row: int) -> LedgerError:
    value = columns.table[name][row].as_py()
    return LedgerError(columns.where(row), f"{name} is no place in a tree of calls", value=value)


def _as_binary(steps: np.ndarray, lengths: np.ndarray) -> pa.Array:
    offsets = np.zeros(len(lengths) + 1, dtype=np.int32)
    np.cumsum(4 * lengths, out=offsets[1:])
    letters = pa.py_buffer(steps.astype(">u4").tobytes())
    return pa.Array.from_buffers(
        pa.binary(), len(lengths), [None, pa.py_buffer(offsets.tobytes()), letters]
    )


def telling(table: pa.Table) -> pa.Table:
    """Leave out rows that say nothing, and what the others say of money that did not move."""
    # Where one row cannot tell, any other may stand above it.
    if pc.all(table["stated"], min_count=0).as_py():
        table = table.filter(pc.or_(table["moves"], table["failed"]))
    for name in ("token", "sender", "recipient", "amount", "kind"):
        column = pc.if_else(table["moves"], table[name], pa.scalar(None, TEXT))
        table = table.set_column(table.column_names.index(name), name, column)
    return table


class BlockBuffer:
    """Rows held until all of their block are there."""

    def __init__(self, path: Path, held: int = HELD) -> None:
        self.path = path
        self.held = held
        self.tables: list[pa.Table] = []
        self.rows = 0
        self.limit = 2 * held
        self.settled = -1  # blocks up to this one have been given

    def add(self, table: pa.Table, read: int = 0) -> Iterator[Batch]:
        """Take rows of `HELD_SCHEMA`; give what can be settled."""
        assert table.schema.equals(HELD_SCHEMA), table.schema
        late = pc.index(pc.less_equal(table["height"], self.settled), True).as_py()
        if late >= 0:
            raise LedgerError(
                f"{self.path}: block {table['height'][late].as_py()}",
                f"comes back long after block {self.settled}",
                value=table["txid"][late].as_py(),
                fix=f"sort the file by block: rows of one block stand within {self.held} rows",
            )
        self.tables.append(table)
        self.rows += len(table)
        if self.rows >= self.limit:
            yield from self._release(read)

    def _release(self, read: int) -> Iterator[Batch]:
        """Settle the lower blocks, so that about `held` rows stay."""
        table = pa.concat_tables(self.tables)
        height = np.asarray(table["height"])
        cut = int(np.partition(height, len(height) - self.held)[len(height) - self.held])
        low = height < cut
        kept = table.filter(pa.array(~low))
        # One block may be larger than what is to be held: then wait for twice as much of it.
        self.tables, self.rows, self.limit = [kept], len(kept), len(kept) + self.held
        if low.any():
            self.settled = int(height[low].max())
            yield from self._settle(table.filter(pa.array(low)), read)

    def rest(self, read: int = 0) -> Iterator[Batch]:
        """Settle what is left at the end of the file."""
        if self.rows:
            yield from self._settle(pa.concat_tables(self.tables), read)
        self.tables, self.rows = [], 0

    def _settle(self, table: pa.Table, read: int) -> Iterator[Batch]:
        transfers = settle(table, self.path)
        for first in range(0, len(transfers), AT_ONCE):
            some = transfers.slice(first, AT_ONCE)

            def where(_: str, row: int, some: pa.Table = some) -> str:
                return _name(self.path, some["height"][row], some["txid"][row])

            yield Batch({"transfers": some}, where, read)


def _name(path: Path, height: pa.Scalar, txid: pa.Scalar) -> str:
    return f"{path}: block {height.as_py()}, transaction {txid.as_py()}"


@dataclass(frozen=True, eq=False)
class _Order:
    """Rows sorted by block, transaction and place, with what tells these apart as numbers."""

    table: pa.Table
    group: Ints  # of rows of one transaction
    place: Ints  # number of the place in the sorted list of all
    above: Ints  # number of the place above each place, -1 for the root
    depth: Ints  # of each place

    @property
    def code(self) -> Ints:
        return self.group * len(self.above) + self.place

    def flag(self, name: str) -> Bools:
        flags: Bools = self.table[name].combine_chunks().to_numpy(zero_copy_only=False)
        return flags

    def where(self, row: int, path: Path) -> str:
        return _name(path, self.table["height"][row], self.table["txid"][row])


def settle(table: pa.Table, path: Path) -> pa.Table:
    """Give the transfers of whole blocks, steps counted in the order of their places."""
    order = _without_repeats(_sorted(table.combine_chunks()), path)
    kept = order.flag("moves") & ~failures(order, path)
    table = order.table.set_column(
        order.table.column_names.index("position"), "position", pa.array(_positions(order))
    ).filter(pa.array(kept))
    columns = {name: table[name] for name in table.column_names}
    return table_of("transfers", columns | {"step": pa.array(numbered(order.group[kept]))})


def _sorted(table: pa.Table) -> _Order:
    places = table["place"].combine_chunks().dictionary_encode()
    known = set(places.dictionary.to_pylist())
    everywhere = set(known)
    for place in known:
        while place and (place := place[:-4]) not in everywhere:
            everywhere.add(place)
    names = sorted(everywhere)
    number = {name: k for k, name in enumerate(names)}
    above = np.array([number[n[:-4]] if n else -1 for n in names], dtype=np.int64)
    depth = np.array([len(n) // 4 for n in names], dtype=np.int64)
    of_code = np.array([number[n] for n in places.dictionary.to_pylist()], dtype=np.int64)
    place = of_code[places.indices.to_numpy(zero_copy_only=False)]
    txid = table["txid"].combine_chunks().dictionary_encode().indices
    txid = txid.to_numpy(zero_copy_only=False).astype(np.int64)
    height = np.asarray(table["height"])
    order = np.lexsort((np.asarray(table["row"]), place, txid, height))
    height, txid = height[order], txid[order]
    new = (np.diff(height, prepend=-1) != 0) | (np.diff(txid, prepend=-1) != 0)
    group = np.cumsum(new, dtype=np.int64) - 1
    return _Order(table.take(pa.array(order)), group, place[order], above, depth)


def _without_repeats(order: _Order, path: Path) -> _Order:
    """Drop rows that came twice; two calls at one place of a tree are refused."""
    code = order.code
    again = np.flatnonzero(code[1:] == code[:-1]) + 1
    if len(again) == 0:
        return order
    plain = order.table.drop_columns(["row"])
    these, those = plain.take(pa.array(again)), plain.take(pa.array(again - 1))
    for name in plain.column_names:
        gone = pc.xor(pc.is_null(these[name]), pc.is_null(those[name]))
        other = pc.fill_null(pc.not_equal(these[name], those[name]), False)
        row = pc.index(pc.or_(gone, other), True).as_py()
        if row >= 0:
            raise LedgerError(
                order.where(int(again[row]), path),
                f"two calls at one place that differ in their {name}",
                value=these[name][row].as_py(),
                fix="a place in the tree of calls belongs to one call",
            )
    kept = np.ones(len(code), dtype=np.bool_)
    kept[again] = False
    table = order.table.filter(pa.array(kept))
    return _Order(table, order.group[kept], order.place[kept], order.above, order.depth)


def failures(order: _Order, path: Path) -> Bools:
    """Tell which rows failed, or stand below one that did."""
    failed = order.flag("failed").copy()
    code = order.code
    base = order.group * len(order.above)
    nearest = np.arange(len(code))
    rows = nearest.copy()
    above = order.above[order.place]
    orphans = ~order.flag("stated") & (order.depth[order.place] > 0)
    first_look = True
    while len(rows := rows[above >= 0]):
        above = above[above >= 0]
        wanted = base[rows] + above
        at = np.minimum(np.searchsorted(code, wanted), len(code) - 1)
        found = code[at] == wanted
        nearest[rows[found]] = at[found]
        if first_look:
            orphans[rows[found]] = False
            _refuse_orphan(order, orphans, path)
            first_look = False
        rows, above = rows[~found], order.above[above[~found]]
    while True:  # twice as far up each time
        further = nearest[nearest]
        failed |= failed[nearest]
        if np.array_equal(further, nearest):
            return failed
        nearest = further


def _refuse_orphan(order: _Order, orphans: Bools, path: Path) -> None:
    if orphans.any():
        raise LedgerError(
            order.where(int(np.flatnonzero(orphans)[0]), path),
            "a call whose caller is not in the file, so that nothing tells whether it failed",
            fix="keep all rows of a transaction, those without value too",
        )


def _positions(order: _Order) -> Ints:
    """Number the transactions of a block in the order of the file, where it does not tell."""
    position = order.table["position"].combine_chunks()
    unknown = pc.is_null(position).to_numpy(zero_copy_only=False)
    given: Ints = pc.fill_null(position, 0).to_numpy(zero_copy_only=False).copy()
    if not unknown.any():
        return given
    rows = np.flatnonzero(unknown)
    starts = np.flatnonzero(np.diff(order.group[rows], prepend=-1))
    first = np.minimum.reduceat(np.asarray(order.table["row"])[rows], starts)
    height = np.asarray(order.table["height"])[rows[starts]]
    by_row = np.lexsort((first, height))
    of_group = np.empty(len(by_row), dtype=np.int64)
    of_group[by_row] = numbered(height[by_row])
    given[rows] = np.repeat(of_group, np.diff(starts, append=len(rows)))
    return given
