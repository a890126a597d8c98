"""What a ledger shows about itself: whether anything is missing, check by check."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

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
        told = f"failed {_times(self)}" if self.status == "failed" else self.status
        return f"{self.name}: {told}" + (f": {self.detail}" if self.detail else "")


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
