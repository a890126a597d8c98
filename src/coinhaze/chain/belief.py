"""What results tell of what was solved."""

from __future__ import annotations

from typing import Protocol

from coinhaze.chain.chain import Outcomes
from coinhaze.graph import TransactionGraph
from coinhaze.ledger.amounts import Bools


class Belief(Protocol):
    """What an observer believes: a chain, or parcels of an ordered policy."""

    def __len__(self) -> int: ...

    @property
    def graph(self) -> TransactionGraph:
        """The graph it is about."""

    @property
    def outcomes(self) -> Outcomes:
        """What money can come from."""

    @property
    def settings(self) -> dict[str, object]:
        """The settings that led to it."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know."""

    @property
    def lower_bounds(self) -> Bools | None:
        """Which nodes have bits that are lower bounds; None where none has."""
