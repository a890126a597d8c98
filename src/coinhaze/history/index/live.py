"""What is live while a chain is indexed: unspent coins, and the rows they hang on, by slot."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from coinhaze.amounts import Bools
from coinhaze.errors import ResourceError
from coinhaze.history import files
from coinhaze.history.arrays import grow, zeros
from coinhaze.history.files import Manifest
from coinhaze.history.index.live_kernels import (
    HASH_BITS,
    WORDS,
    enter_all,
    list_coins,
    move_together,
    take_coins,
)
from coinhaze.history.index.pool_kernels import (
    AT_SLOT,
    CHANGED,
    MET,
    POOL_STEPS,
    POOL_WORDS,
    WORTH,
)
from coinhaze.history.index.row_kernels import (
    ALL_ROWS,
    ALL_SOURCES,
    BEFORE,
    COINS,
    COUNTERS,
    DEPTH,
    FREE,
    LIVE,
    MAKERS,
    NO_ROW,
    PLACES,
    ROUNDED,
    ROW,
    SLOT_WORDS,
    SLOTS,
    SOURCES,
    TRANSACTIONS,
)
from coinhaze.ledger.coins import POOLS

COIN_COLUMNS = {
    "transaction": np.uint32,
    "vout": np.uint32,
    "value": np.int64,
    "script": np.uint8,  # its type, by SCRIPT_TYPES
}
_FULL = 0.4  # of the hash table, at most
# What is spent is left out of the youngest coins once they are so many of the others, and of all
# coins once it is so many of the live ones.
_YOUNG, _SPENT, _FEW = 0.25, 0.5, 1 << 16

Words = npt.NDArray[np.uint64]


@dataclass
class Live:
    """What is live: makers of unspent coins, their coins, rows by slot, and slots that are free."""

    words: Words = field(default_factory=lambda: zeros((0, WORDS), np.uint64))
    coins: npt.NDArray[np.int64] = field(default_factory=lambda: zeros((0, 2), np.int64))
    table: npt.NDArray[np.int64] = field(default_factory=lambda: zeros((1 << 12, 1), np.int64))
    slots: npt.NDArray[np.uint32] = field(default_factory=lambda: zeros((0, SLOT_WORDS), np.uint32))
    free: npt.NDArray[np.uint32] = field(default_factory=lambda: zeros((0,), np.uint32))
    counts: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(COUNTERS, np.int64))
    pools: npt.NDArray[np.int64] = field(
        default_factory=lambda: np.zeros((len(POOLS), POOL_WORDS), np.int64)
    )
    old: tuple[int, int] = (0, 0)  # makers and coins when what is live was last moved together
    salt: np.uint64 = field(default_factory=lambda: np.uint64(secrets.randbits(63)))

    @property
    def shift(self) -> int:
        """How far a hash is shifted for its place in the table."""
        return HASH_BITS + 1 - len(self.table).bit_length()

    @property
    def makers(self) -> tuple[Words, npt.NDArray[np.uint32], npt.NDArray[np.float64]]:
        """The makers as words of 8 bytes, of 4 bytes, and as floats."""
        return self.words, self.words.view(np.uint32), self.words.view(np.float64)

    @classmethod
    def read(cls, path: Path, manifest: Manifest) -> Live:
        """Read what was live at the last commit; what the pieces hold is taken from them."""
        from coinhaze.history.tape import Tape

        live = cls()
        if not manifest.live:
            return live
        tape = Tape(path, manifest)
        coins, free, pools = (files.read_table(path / manifest.live_file(t)) for t in files.LIVE)
        transaction, vout, value, script = (files.column(coins, c) for c in COIN_COLUMNS)
        first = np.flatnonzero(np.diff(transaction.astype(np.int64), prepend=-1))
        makers = transaction[first].astype(np.int64)
        ids, row, steps = tape.makers(makers)
        counts = live.counts
        counts[[SLOTS, FREE, LIVE]] = manifest.slots, len(free), len(coins)
        counts[[ALL_ROWS, ALL_SOURCES]] = manifest.rows, manifest.sources
        counts[[TRANSACTIONS, MAKERS, PLACES]] = manifest.transactions, len(makers), len(coins)
        live._size(manifest.slots, len(makers), len(coins))
        live.free[: len(free)] = files.column(free, "slot")
        # Rows that live coins hang on, in the slots they were written to.
        held = row != NO_ROW
        rich = files.column(pools, "value") > 0
        pool_rows = files.column(pools, "row")[rich]
        rows, which = np.unique(np.append(row[held], pool_rows), return_inverse=True)
        slot_of_row = tape.slots_of(rows)
        slot_of_pool = slot_of_row[which[int(held.sum()) :]]
        slot = np.full(len(makers), NO_ROW, np.uint32)
        slot[held] = slot_of_row[which[: int(held.sum())]]
        maker_of = np.cumsum(np.diff(transaction.astype(np.int64), prepend=-1) != 0) - 1
        worth = held[maker_of] & (value > 0)
        live.slots[slot_of_row, ROW] = rows
        holding = np.append(slot[maker_of[worth]], slot_of_pool)
        live.slots[:, COINS] = np.bincount(holding, minlength=len(live.slots))
        live.slots[:, BEFORE] = live.slots[:, COINS]
        live.slots[slot_of_row, SOURCES] = tape.fact("sources", rows)
        live.slots[slot_of_row, DEPTH] = tape.fact("depth", rows)
        live.slots.view(np.float64)[slot_of_row, ROUNDED] = tape.fact("rounded", rows)
        take_coins(
            transaction, vout, value, script, maker_of, ids, slot, steps, *live.makers, live.coins
        )
        live.old = len(makers), len(coins)
        live._fill_table()
        live._take_pools(pools, rich, slot_of_pool)
        return live

    def _take_pools(self, table: pa.Table, rich: Bools, slots: npt.NDArray[np.uint32]) -> None:
        """Take in what pools held, as it was listed; `slots` are those of pools that hold some."""
        number, value, transaction, steps = (
            files.column(table, name) for name in ("pool", "value", "transaction", "steps")
        )
        self.pools[number, WORTH], self.pools[number, CHANGED] = value, transaction
        self.pools[number, MET] = 1
        self.pools.view(np.float64)[number, POOL_STEPS] = steps
        self.pools[number[rich], AT_SLOT] = slots

    def make_room(self, slots: int, makers: int, coins: int, *, move: bool) -> None:
        """Make room for so many more; `move` what is live together where much of it is spent."""
        counts = self.counts
        if move and counts[PLACES] > (1 + _YOUNG) * self.old[1] + _FEW:
            self._move_together(*self.old)
            if counts[PLACES] > (1 + _SPENT) * counts[LIVE] + _FEW:
                self._move_together(0, 0)
            self.old = int(counts[MAKERS]), int(counts[PLACES])
        self._size(
            int(counts[SLOTS]) + slots, int(counts[MAKERS]) + makers, int(counts[PLACES]) + coins
        )
        if self._table_size(int(counts[MAKERS]) + makers) > len(self.table):
            self._fill_table(int(counts[MAKERS]) + makers)

    def _move_together(self, makers: int, coins: int) -> None:
        """Leave out what is spent, but not of the first makers and their coins."""
        counts, (words, halves, _) = self.counts, self.makers
        counts[MAKERS], counts[PLACES] = move_together(
            self.table, self.shift, self.salt, words, halves, self.coins, makers, coins,
            int(counts[MAKERS]),
        )  # fmt: skip

    def _size(self, slots: int, makers: int, coins: int) -> None:
        sizes = {"slots": slots, "free": slots, "words": makers, "coins": coins}
        for name, size in sizes.items():
            grow(vars(self), name, size)

    @staticmethod
    def _table_size(makers: int) -> int:
        return max(1 << 12, 1 << int(makers / _FULL).bit_length())

    def _fill_table(self, expected: int = 0) -> None:
        makers = int(self.counts[MAKERS])
        size = self._table_size(max(expected, makers))
        if size > 1 << HASH_BITS:
            raise ResourceError("a history has 2^30 transactions with unspent coins at most")
        self.table = zeros((size, 1), np.int64)
        enter_all(self.table, self.shift, *self.makers[:2], self.salt, makers)

    def tables(self) -> dict[str, pa.Table]:
        """Give what is not in the pieces as tables, coins in the order they were made."""
        live = int(self.counts[LIVE])
        columns = [np.empty(live, kind) for kind in COIN_COLUMNS.values()]
        words, halves, _ = self.makers
        list_coins(words, halves, self.coins, int(self.counts[MAKERS]), *columns)
        return {
            "coins": pa.table(dict(zip(COIN_COLUMNS, columns, strict=True))),
            "free": pa.table({"slot": self.free[: int(self.counts[FREE])]}),
            "pools": self._pool_table(),
        }

    def _pool_table(self) -> pa.Table:
        """Give the pools that some transaction has met."""
        number = np.flatnonzero(self.pools[:, MET])
        value = self.pools[number, WORTH]
        row = self.slots[self.pools[number, AT_SLOT], ROW] if len(number) else number
        columns = {
            "pool": number.astype(np.uint8),
            "value": value,
            "row": np.where(value > 0, row, NO_ROW).astype(np.uint32),
            "steps": self.pools.view(np.float64)[number, POOL_STEPS],
            "transaction": self.pools[number, CHANGED].astype(np.uint32),
        }
        return pa.table(columns)
