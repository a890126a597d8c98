"""Keys of cached layers: made from the options, and those of existing caches mean the same."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from coinhaze.cache.place import _plain, _without_defaults, key_of
from coinhaze.ledger.links import Link
from coinhaze.options import GraphOptions, ObserverOptions, ReadOptions, SolveOptions, options_of

# As keys were made before the options had a module of their own.
BEFORE = {
    "view": ("coin", "account"),
    "opening": ("surplus",),
    "top_up": (False,),
    "mint": ("each",),
    "pools": ("each",),
    "sinks": ("balance",),
    "complete": (False,),
    "unknown": ("error",),
}
VALUES: dict[str, tuple[Any, ...]] = {
    "format": ("transfers",),
    "complete": (False, True),
    "first": (1, "1", "2024-01-31"),
    "last": (2,),
    "token": ("0xab",),
    "columns": ("from=a,to=b", "amount=c"),
    "decimals": (0, 18),
    "unit": ("BTC", "GEM:18"),
    "unknown": ("error", "leave-out"),
    "view": ("coin", "address", "account"),
    "time": ("stationary", "temporal"),
    "opening": ("surplus", "observed", {"surplus": 1}),
    "top_up": (False, True),
    "mint": ("each", "one"),
    "pools": ("each", "merged"),
    "clusters": ("change", {"a": "b"}),
    "sinks": ("balance", "paper"),
    "policy": ("proportional", "uniform"),
    "listed": (["a"], ["b"]),
    "links": ({"tx": {"a": 1.0}}, {"tx": Link({"a": 1.0}, 0.5)}),
    "history": ({"sapling": [1, 2]},),
    "in_time": (True,),
}


def _before(settings: dict[str, Any]) -> dict[str, Any]:
    said = {k: v for k, v in settings.items() if v is not None}
    if said.get("view") in ("address", "account") and said.get("time") == "stationary":
        del said["time"]
    return {
        k: v for k, v in said.items() if not (isinstance(v, str | bool) and v in BEFORE.get(k, ()))
    }


def test_keys_of_ledgers_graphs_and_chains_are_what_they_were() -> None:
    named = {o.name for s in (ReadOptions, GraphOptions, ObserverOptions) for o in options_of(s)}
    assert named == VALUES.keys() - {"in_time"}
    for first, second in itertools.combinations(VALUES, 2):
        for one, other in itertools.product((None, *VALUES[first]), (None, *VALUES[second])):
            settings = {first: one, second: other}
            assert _plain(_without_defaults(settings)) == _plain(_before(settings))


def test_settings_that_mean_another_have_another_key() -> None:
    keys: dict[str, set[str]] = {}
    for first, second in itertools.combinations(VALUES, 2):
        for one, other in itertools.product((None, *VALUES[first]), (None, *VALUES[second])):
            said = repr(_before({first: one, second: other}))
            keys.setdefault(key_of("graph", "below", {first: one, second: other}), set()).add(said)
    assert all(len(said) == 1 for said in keys.values())


@pytest.mark.parametrize("option", options_of(SolveOptions), ids=lambda o: str(o.name))
def test_a_default_of_a_solve_is_the_same_as_nothing(option: Any) -> None:
    plain = key_of("scores", "below", {})
    assert key_of("scores", "below", {option.name: option.default}) == plain
    assert key_of("scores", "below", {option.name: None}) == plain
    assert key_of("scores", "below", {option.name: "other"}) != plain
    assert key_of("graph", "below", {}) != plain
