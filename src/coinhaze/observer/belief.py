"""What results tell of what was solved."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from coinhaze.amounts import Bools
from coinhaze.graph import TransactionGraph
from coinhaze.observer.chain import Outcomes


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


def reading_of(settings: Mapping[str, object]) -> dict[str, str | None]:
    """Give what a figure must not stand without: view, time and policy, as the options call them.

    The coin view has no time to choose: it has its own.
    """
    return {
        name: None if settings.get(name) is None else str(settings[name])
        for name in ("view", "time", "policy")
    }


def reading_words(settings: Mapping[str, object]) -> str:
    """Say view, time and policy in short.

    >>> reading_words({"view": "account", "time": "temporal", "policy": "proportional"})
    'account view, time temporal, policy proportional'
    """
    found = reading_of(settings)
    parts = [f"{found['view']} view"] if found["view"] else []
    return ", ".join(parts + [f"{k} {found[k]}" for k in ("time", "policy") if found[k]])
