"""What an observer believes: a graph becomes an absorbing Markov chain."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from coinhaze.observer.build import absorbing_chain
    from coinhaze.observer.chain import AbsorbingChain
    from coinhaze.observer.round_trips import crossings_of, find_round_trips, round_trip_links

__all__ = [
    "AbsorbingChain",
    "absorbing_chain",
    "crossings_of",
    "find_round_trips",
    "round_trip_links",
]

_HOME = {
    "AbsorbingChain": "chain",
    "absorbing_chain": "build",
    "crossings_of": "round_trips",
    "find_round_trips": "round_trips",
    "round_trip_links": "round_trips",
}


def __getattr__(name: str) -> object:
    # Imported when first used: the registry of policies beside them is light.
    if name not in _HOME:
        raise AttributeError(f"module 'coinhaze.observer' has no attribute {name!r}")
    return getattr(import_module(f"coinhaze.observer.{_HOME[name]}"), name)
