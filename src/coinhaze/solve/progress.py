"""Progress of long solves, for display."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Called with the share of work done so far, from 0 to 1."""

    def __call__(self, share: float, /) -> None:
        """Take note of the share done."""


def silent(share: float, /) -> None:
    """Show nothing."""
