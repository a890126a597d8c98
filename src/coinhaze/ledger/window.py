"""Windows: which stretch of a store is meant."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime

from coinhaze.errors import UsageError


@dataclass(frozen=True)
class LedgerWindow:
    """A stretch of a chain, from one moment to another, both included: heights, or seconds."""

    by: str = "height"
    first: int | None = None
    last: int | None = None

    @classmethod
    def of(cls, first: str | int | None, last: str | int | None) -> LedgerWindow:
        """Read `--from` and `--to`: heights, or dates and times such as 2021-04-01.

        >>> LedgerWindow.of("2021-04-01", None).first
        1617235200
        """
        ends = [None if end is None else _moment(str(end)) for end in (first, last)]
        kinds = {end[0] for end in ends if end is not None}
        if len(kinds) > 1:
            raise UsageError("from and to are both heights or both times")
        low, high = (None if end is None else end[1] for end in ends)
        if low is not None and high is not None and low > high:
            raise UsageError(f"the window ends before it begins: {first} to {last}")
        return cls(kinds.pop() if kinds else "height", low, high)

    def inside(self, table: str = "") -> str:
        """Give the SQL condition for rows of the window."""
        column = f"{table}.{self.by}" if table else self.by
        parts = [] if self.first is None else [f"{column} >= {self.first}"]
        parts += [] if self.last is None else [f"{column} <= {self.last}"]
        return " AND ".join(parts) or "true"

    def before(self) -> str:
        """Give the SQL condition for rows that lie before the window."""
        return "false" if self.first is None else f"{self.by} < {self.first}"


ALL = LedgerWindow()


def _moment(text: str) -> tuple[str, int]:
    if re.fullmatch("[0-9]{1,10}", text):
        return "height", int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(
            f"{text!r} is no height and no time: give a block's height, or a time such as "
            "2021-04-01 or 2021-04-01T12:00:00"
        ) from None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return "time", int(moment.timestamp())
