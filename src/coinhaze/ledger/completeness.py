"""What a ledger shows about itself: whether anything is missing, check by check.

Whatever was read, the blocks of a ledger of coins come down to a few numbers for each height; the
checks of blocks are made on these.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from coinhaze.amounts import Ints
from coinhaze.errors import LedgerError, first_few

Status = Literal["passed", "failed", "not checkable"]

HEIGHTS = "heights contiguous"
LINKS = "blocks linked by previous hash"
COINBASES = "one coinbase in every block"
INDEXES = "transaction indexes contiguous"
TRANSACTIONS = "as many transactions as the block says"
COUNTS = "as many inputs and outputs as the transaction says"
TOTALS = "inputs and outputs worth what the transaction says"
MERKLE = "Merkle root of the transactions"
LOGS = "log indexes in order"
OF_COINS = (HEIGHTS, LINKS, COINBASES, INDEXES, TRANSACTIONS, COUNTS, TOTALS, MERKLE)
OF_ACCOUNTS = (HEIGHTS, LINKS, LOGS)

# Why a check cannot be made.
SELECTION = "the source lists transactions, not whole blocks"
NO_INDEX = "the source gives no index in the block"
NO_PREVIOUS = "the source gives no hash of the block before"
NO_ROOT = "the source gives no Merkle root"
NO_STATEMENT = "the source does not say what a transaction should have"
NO_COUNT = "the source does not say how many transactions a block has"


@dataclass(frozen=True)
class Check:
    """One property that a whole ledger has, and whether this one has it."""

    name: str
    status: Status
    failures: int = 0
    first: str = ""  # where the first failure is
    detail: str = ""  # what was compared, or why it could not be

    def words(self) -> str:
        """Say in one line what came of it.

        >>> Check("heights contiguous", "failed", 2, "height 7", "heights 7-8 are missing").words()
        'heights contiguous: failed 2 times, first at height 7: heights 7-8 are missing'
        """
        outcome = f"failed {_times(self)}" if self.status == "failed" else self.status
        return f"{self.name}: {outcome}" + (f": {self.detail}" if self.detail else "")


@dataclass(frozen=True)
class Completeness:
    """The checks made while a ledger was read, and the heights missing from it.

    >>> record = Completeness((Check("heights contiguous", "failed", 1, "height 3"),), ((3, 3),), 3)
    >>> record.line()
    'incomplete: heights contiguous failed 1 time, first at height 3'
    """

    checks: tuple[Check, ...] = ()
    holes: tuple[tuple[int, int], ...] = ()  # first and last height of each
    missing_from: int | None = None  # the lowest height at which transactions are missing

    @property
    def failed(self) -> tuple[Check, ...]:
        """The checks that failed."""
        return tuple(check for check in self.checks if check.status == "failed")

    def line(self) -> str:
        """Say in one line what was shown and what was not."""
        if self.failed:
            return "incomplete: " + "; ".join(f"{c.name} failed {_times(c)}" for c in self.failed)
        passed = sum(check.status == "passed" for check in self.checks)
        if not passed:
            return "completeness: not checkable in this format"
        if passed == len(self.checks):
            return f"completeness: all {passed} checks passed"
        return f"completeness: {passed} of {len(self.checks)} checks passed, the rest not checkable"

    def record(self) -> dict[str, object]:
        """Give all of it for provenance."""
        return {
            "checks": [
                {
                    "name": check.name,
                    "status": check.status,
                    "failures": check.failures,
                    "first": check.first,
                    "detail": check.detail,
                }
                for check in self.checks
            ],
            "missing_heights": [list(hole) for hole in self.holes],
            "missing_from": self.missing_from,
        }

    @classmethod
    def of_record(cls, record: Mapping[str, Any], where: str) -> Completeness:
        """Read what `record` gave; `where` is for errors."""
        try:
            checks = tuple(
                Check(str(c["name"]), c["status"], int(c["failures"]), c["first"], c["detail"])
                for c in record["checks"]
            )
            holes = tuple((int(low), int(high)) for low, high in record["missing_heights"])
            since = record["missing_from"]
            known = all(c.status in ("passed", "failed", "not checkable") for c in checks)
        except (KeyError, TypeError, ValueError):
            known = False
        if not known or not (since is None or isinstance(since, int)):
            raise LedgerError(where, "not a completeness record", value=record)
        return cls(checks, holes, since)


def outcome(name: str, failures: int, first: object, detail: str = "", *, compared: str) -> Check:
    """Say that a check failed so often, or passed; `compared` says what was looked at."""
    if failures:
        return Check(name, "failed", failures, str(first), detail)
    return Check(name, "passed", detail=compared)


def not_checkable(name: str, why: str) -> Check:
    """Say that a check cannot be made, and why."""
    return Check(name, "not checkable", detail=why)


def nothing_checkable(names: tuple[str, ...], why: str) -> Completeness:
    """Say that a format allows none of the checks."""
    return Completeness(tuple(not_checkable(name, why) for name in names))


def heights_in_words(holes: tuple[tuple[int, int], ...]) -> str:
    """List missing heights.

    >>> heights_in_words(((3, 3), (7, 9)))
    '3, 7-9'
    """
    return first_few([f"{low}" if low == high else f"{low}-{high}" for low, high in holes])


def _times(check: Check) -> str:
    times = "1 time" if check.failures == 1 else f"{check.failures:,} times"
    return f"{times}, first at {check.first}"


@dataclass(frozen=True, eq=False)
class BlockCounts:
    """For each height with transactions, rising: how many, how many coinbases, which indexes."""

    height: Ints
    transactions: Ints
    coinbases: Ints
    indexed: Ints  # transactions whose index is given ...
    indexes: Ints  # ... how many different ones ...
    highest: Ints  # ... and the highest, counted from 0

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
    indexed = counts.indexed == counts.transactions
    # A coinbase is the first of its block: known so, it says nothing about an index in the source.
    if not np.any(indexed & (counts.transactions > 1)) and not indexed.all():
        return not_checkable(INDEXES, NO_INDEX), []
    wrong = indexed & (counts.indexes != counts.highest + 1)
    wrong |= indexed & (counts.indexes != counts.transactions)
    rows = np.flatnonzero(wrong)
    first = int(rows[0]) if len(rows) else 0
    check = outcome(
        INDEXES,
        len(rows),
        f"height {counts.height[first]}",
        f"{counts.indexes[first]} indexes up to {counts.highest[first]} for "
        f"{counts.transactions[first]} transactions there",
        compared=_of(int(indexed.sum()), len(indexed)),
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


def stated_number(value: int | float | str | None) -> int | None:
    """Take a count or total that is a whole number; another is of no use to compare with.

    A number below 0 is stated, and differs from whatever is there.

    >>> stated_number("5"), stated_number(5), stated_number(5.0), stated_number(-1)
    (5, 5, None, -1)
    """
    if isinstance(value, str) and re.fullmatch("-?[0-9]{1,18}", value, re.ASCII):
        return int(value)
    whole = isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63
    return int(value) if whole else None  # type: ignore[arg-type]


def _of(compared: int, all_: int) -> str:
    return f"{compared:,} blocks" if compared == all_ else f"{compared:,} of {all_:,} blocks"
