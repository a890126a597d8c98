"""Are the blocks of a ledger of coins all there, each with all its transactions?

Whatever was read, it comes down to a few numbers for each height; the checks are made on these.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from coinhaze.amounts import Bools, Ints
from coinhaze.ledger.completeness import (
    COINBASES,
    HEIGHTS,
    INDEXES,
    TRANSACTIONS,
    Check,
    heights_in_words,
    not_checkable,
    outcome,
)

SELECTION = "the source lists transactions, not whole blocks"
NO_INDEX = "the source gives no index in the block"
NO_PREVIOUS = "the source gives no hash of the block before"
NO_ROOT = "the source gives no Merkle root"
NO_STATEMENT = "the source does not say what a transaction should have"
NO_COUNT = "the source does not say how many transactions a block has"


@dataclass(frozen=True, eq=False)
class BlockCounts:
    """For each height with transactions, rising: how many, how many coinbases, which indexes."""

    height: Ints
    transactions: Ints
    coinbases: Ints
    indexed: Ints  # transactions whose index is given ...
    indexes: Ints  # ... how many different ones ...
    highest: Ints  # ... and the highest, counted from 0

    @classmethod
    def of(cls, height: Ints, index: Ints, coinbase: Bools) -> BlockCounts:
        """Count transactions one row each; an index of -1 is not given.

        >>> counts = BlockCounts.of(np.array([5, 5, 6]), np.array([0, 1, -1]), np.array([1, 0, 1]))
        >>> counts.transactions.tolist(), counts.indexed.tolist()
        ([2, 1], [2, 0])
        """
        heights, block = np.unique(height, return_inverse=True)
        n = len(heights)
        given = index >= 0
        pairs = np.unique(np.stack([block[given], index[given]]), axis=1)
        highest = np.full(n, -1, dtype=np.int64)
        np.maximum.at(highest, block, index)
        return cls(
            height=heights,
            transactions=np.bincount(block, minlength=n),
            coinbases=np.bincount(block[coinbase.astype(np.bool_)], minlength=n),
            indexed=np.bincount(block[given], minlength=n),
            indexes=np.bincount(pairs[0], minlength=n),
            highest=highest,
        )

    @property
    def have_coinbases(self) -> bool:
        """Tell whether every block has its one coinbase, as whole blocks have."""
        return bool(len(self.height)) and bool(np.all(self.coinbases == 1))


@dataclass(frozen=True, eq=False)
class BlockFindings:
    """The checks on blocks, the holes between them, and the lowest height that lacks something."""

    checks: tuple[Check, ...]
    holes: tuple[tuple[int, int], ...]
    missing_from: int | None


def check_blocks(
    counts: BlockCounts,
    *,
    whole: bool,
    ends: tuple[int, int] | None = None,
    stated: tuple[Ints, Ints] | None = None,
) -> BlockFindings:
    """Check that no height is missing and no transaction of a block.

    `whole` says that the format lists whole blocks; one that need not is taken to do so where every
    block has its coinbase. `ends` are the first and last height that should be there, `stated` the
    heights of blocks that say how many transactions they have, and the numbers.
    """
    if not len(counts.height) or not (whole or counts.have_coinbases):
        names = (HEIGHTS, COINBASES, INDEXES, TRANSACTIONS)
        return BlockFindings(tuple(not_checkable(n, SELECTION) for n in names), (), None)
    low, high = ends or (int(counts.height[0]), int(counts.height[-1]))
    holes = gaps(counts.height, low, high)
    partial: list[int] = [low for low, _ in holes]
    checks = [_heights(counts, holes)]
    for check, lacking in (_coinbases(counts), _indexes(counts), _counts(counts, stated)):
        checks.append(check)
        partial += lacking
    return BlockFindings(tuple(checks), holes, min(partial, default=None))


def gaps(heights: Ints, low: int, high: int) -> tuple[tuple[int, int], ...]:
    """List the stretches from `low` to `high` without any of the heights, which rise.

    >>> gaps(np.array([2, 3, 7]), 1, 8)
    ((1, 1), (4, 6), (8, 8))
    """
    around = np.concatenate([[low - 1], heights[(heights >= low) & (heights <= high)], [high + 1]])
    rows = np.flatnonzero(np.diff(around) > 1)
    return tuple((int(around[r]) + 1, int(around[r + 1]) - 1) for r in rows)


def _heights(counts: BlockCounts, holes: tuple[tuple[int, int], ...]) -> Check:
    missing = sum(high - low + 1 for low, high in holes)
    return outcome(
        HEIGHTS,
        missing,
        f"height {holes[0][0]}" if holes else "",
        f"no transactions of {heights_in_words(holes)}",
        compared=f"{len(counts.height):,} heights",
    )


def _coinbases(counts: BlockCounts) -> tuple[Check, list[int]]:
    rows = np.flatnonzero(counts.coinbases != 1)
    first = int(rows[0]) if len(rows) else 0
    check = outcome(
        COINBASES,
        len(rows),
        f"height {counts.height[first]}",
        f"{counts.coinbases[first]} coinbases there",
        compared=f"{len(counts.height):,} blocks",
    )
    return check, [int(h) for h in counts.height[counts.coinbases == 0][:1]]


def _indexes(counts: BlockCounts) -> tuple[Check, list[int]]:
    told = counts.indexed == counts.transactions
    # A coinbase is the first of its block: known so, it says nothing about an index in the source.
    if not np.any(told & (counts.transactions > 1)) and not told.all():
        return not_checkable(INDEXES, NO_INDEX), []
    wrong = told & (counts.indexes != counts.highest + 1)
    wrong |= told & (counts.indexes != counts.transactions)
    rows = np.flatnonzero(wrong)
    first = int(rows[0]) if len(rows) else 0
    check = outcome(
        INDEXES,
        len(rows),
        f"height {counts.height[first]}",
        f"{counts.indexes[first]} indexes up to {counts.highest[first]} for "
        f"{counts.transactions[first]} transactions there",
        compared=_of(int(told.sum()), len(told)),
    )
    return check, [int(h) for h in counts.height[wrong][:1]]


def _counts(counts: BlockCounts, stated: tuple[Ints, Ints] | None) -> tuple[Check, list[int]]:
    if stated is None or not len(stated[0]):
        return not_checkable(TRANSACTIONS, NO_COUNT), []
    heights, numbers = stated
    at = np.minimum(np.searchsorted(counts.height, heights), len(counts.height) - 1)
    there = np.where(counts.height[at] == heights, counts.transactions[at], 0)
    rows = np.flatnonzero(there != numbers)
    first = int(rows[0]) if len(rows) else 0
    check = outcome(
        TRANSACTIONS,
        len(rows),
        f"height {heights[first]}",
        f"{there[first]} of {numbers[first]} transactions there",
        compared=_of(len(heights), len(counts.height)),
    )
    return check, [int(h) for h in heights[rows][:1]]


class Stated(NamedTuple):
    """A number that is there, and what the transaction says it is, if it does."""

    what: str
    there: int
    stated: int | None


def compare_stated(name: str, names: Sequence[str], rows: Sequence[tuple[Stated, Stated]]) -> Check:
    """Compare what transactions have, inputs and outputs, with what they say; `names` place them.

    >>> compare_stated("counts", ["a"], [(Stated("inputs", 1, 2), Stated("outputs", 1, 1))]).first
    'a'
    """
    stated = [(n, s) for n, s in enumerate(rows) if any(x.stated is not None for x in s)]
    if not stated:
        return not_checkable(name, NO_STATEMENT)
    wrong = [(n, s) for n, s in stated if any(_differs(x) for x in s)]
    first, seen = wrong[0] if wrong else (0, rows[0])
    words = [f"{x.there} of {x.stated} {x.what} there" for x in seen if _differs(x)]
    compared = f"{len(stated):,} of {len(rows):,} transactions"
    return outcome(name, len(wrong), names[first], ", ".join(words), compared=compared)


def _differs(number: Stated) -> bool:
    return number.stated is not None and number.stated != number.there


def stated_number(value: int | float | str | None) -> int | None:
    """Take a count or total that is a whole number; another is of no use to compare with.

    >>> stated_number("5"), stated_number(5), stated_number(5.0), stated_number(-1)
    (5, 5, None, None)
    """
    if isinstance(value, str) and re.fullmatch("[0-9]{1,18}", value, re.ASCII):
        return int(value)
    whole = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63
    return int(value) if whole else None  # type: ignore[arg-type]


def _of(compared: int, all_: int) -> str:
    return f"{compared:,} blocks" if compared == all_ else f"{compared:,} of {all_:,} blocks"
