"""Approaches to traceability behind one interface: the less traceable a coin, the more it gets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from coinhaze.amounts import Floats
from coinhaze.errors import UsageError
from coinhaze.measures import Scores
from coinhaze.measures.comparators.registry import COMPARATORS, Comparator
from coinhaze.measures.comparators.side_by_side import compare_measures
from coinhaze.observer.policies import (
    POLICIES,
    PROPORTIONAL,
    Policy,
    ordered_policies,
    taint_policies,
)
from coinhaze.simulate.small_worlds import World
from coinhaze.solve import score_or_reached, taint

Measure = Callable[[World], Floats]


@dataclass(frozen=True)
class Approach:
    """A way to assign a number to the coins of a world; NaN where it has none."""

    name: str
    says: str
    measure: Measure
    of_rings: bool = False  # whether it is about rings, so that its worlds must contain some


def _scores(world: World, **settings: Any) -> Scores:
    ledger = world.ledger()
    policy = POLICIES.get(settings.get("policy")) or PROPORTIONAL
    if world.links and policy.takes_links:
        settings["links"] = world.links
    return score_or_reached(ledger, nodes=world.scored, **settings)


def _bits(**settings: Any) -> Measure:
    return lambda world: _scores(world, **settings).bits


def _untainted(policy: Policy) -> Approach:
    """Return the approach that computes the share of a coin not from the listed owner."""

    def measure(world: World) -> Floats:
        if policy.kind == "trace":
            return _untainted_by_trace(world, policy)
        exposure = _scores(world, policy=policy.name, listed=[world.listed]).exposure
        assert exposure is not None
        return 1.0 - exposure

    says = f"share not from the listed, {policy.split}"
    if not policy.shares:
        says = "1 if no money of the listed ever touched it"
    return Approach(policy.column, says, measure)


def _untainted_by_trace(world: World, policy: Policy) -> Floats:
    try:
        found = taint(world.ledger(), [world.listed], policies=[policy.name], nodes=world.scored)
    except UsageError:
        return np.full(len(world.scored), np.nan)
    return 1.0 - found.amounts(policy.column).floats() / found.balance.floats()


def _compared(comparator: Comparator) -> Measure:
    name = comparator.name

    def measure(world: World) -> Floats:
        owners = world.owners if "owners" in comparator.needs else None
        return compare_measures(_scores(world), [name], owners=owners).comparators[name]

    return measure


APPROACHES: Mapping[str, Approach] = {
    approach.name: approach
    for approach in (
        Approach("bits", "Shannon entropy over sources: this software's score", _bits()),
        Approach("min-entropy", "bits of the likeliest source", lambda w: _scores(w).min_entropy),
        *(
            Approach(
                f"{p.name}-bits",
                f"the same score over lots, {p.split}",
                _bits(policy=p.name),
            )
            for p in ordered_policies()
        ),
        *(
            Approach(c.name, c.words, _compared(c), of_rings="rings" in c.needs)
            for c in COMPARATORS
        ),
        *(_untainted(policy) for policy in taint_policies()),
    )
}
