"""What a ledger shows about itself: whether anything is missing, check by check."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Status = Literal["passed", "failed", "not checkable"]


@dataclass(frozen=True)
class Check:
    """One property that a whole ledger has, and whether this one has it."""

    name: str
    status: Status
    failures: int = 0
    first: str = ""  # where the first failure is
    detail: str = ""  # what was compared, or why it could not be


@dataclass(frozen=True)
class Completeness:
    """The checks made while a ledger was read, and the heights missing from it.

    >>> record = Completeness((Check("heights contiguous", "failed", 1, "height 3"),), ((3, 3),))
    >>> record.line()
    'incomplete: heights contiguous failed 1 time, first at height 3'
    """

    checks: tuple[Check, ...] = ()
    holes: tuple[tuple[int, int], ...] = ()  # first and last height of each

    @property
    def failed(self) -> tuple[Check, ...]:
        """The checks that failed."""
        return tuple(check for check in self.checks if check.status == "failed")

    def line(self) -> str:
        """Say in one line what was shown and what was not."""
        if self.failed:
            return "incomplete: " + "; ".join(_failure(check) for check in self.failed)
        passed = sum(check.status == "passed" for check in self.checks)
        if not passed:
            return "completeness: not checkable in this format"
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
        }


def _failure(check: Check) -> str:
    times = "1 time" if check.failures == 1 else f"{check.failures:,} times"
    return f"{check.name} failed {times}, first at {check.first}"
