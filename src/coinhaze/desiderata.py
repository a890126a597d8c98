"""Desiderata for a measure of traceability (the paper's section 2), tested on synthetic ledgers.

Approaches to traceability stand behind one interface: the less traceable a coin, the more it gets.
Each desideratum is one experiment, the same for every approach. An approach that fails is shown
with the ledger it fails on; one that passes has been tested, which is no proof (docs/desiderata.md
has the known proofs).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from coinhaze.amounts import Floats
from coinhaze.errors import UsageError
from coinhaze.measures import Scores
from coinhaze.measures.comparators.registry import (
    BOLTZMANN,
    COMPARATORS,
    DEGREE,
    K_ANONYMITY,
    MATCHING,
    SYSTEM_ANONYMITY,
    Comparator,
)
from coinhaze.measures.comparators.side_by_side import compare_measures
from coinhaze.observer.policies import (
    POLICIES,
    PROPORTIONAL,
    Policy,
    ordered_policies,
    taint_policies,
)
from coinhaze.simulate.small_worlds import COIN_WORLDS, RING_WORLDS, World, Worlds
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


ROUNDING = 1e-9
SIZES = (2, 4, 8, 16)
TIMES = (1, 3, 9, 99)

# The claims of the paper's table, in the order of WISHES.
PAPER: Mapping[str, str] = {
    "bits": "++++++",
    K_ANONYMITY.name: "+-++++",
    DEGREE.name: "+++++-",
    SYSTEM_ANONYMITY.name: "+++++-",
    BOLTZMANN.name: "+-+++-",
    MATCHING.name: "+-++++",
}


@dataclass(frozen=True)
class Finding:
    """Whether an approach satisfies one desideratum, and the figures that show it."""

    approach: str
    wish: str
    holds: bool
    shown: str
    claimed: bool | None  # the claim of the paper's table, where it lists the approach


@dataclass(frozen=True)
class _Trial:
    """An approach, the worlds it is tested on, and the number of random ones."""

    approach: Approach
    worlds: Worlds
    seeds: int

    def of(self, world: World) -> Floats:
        return self.approach.measure(world)

    def first(self, world: World) -> float:
        return float(self.of(world)[0])


def _range(trial: _Trial) -> tuple[bool, str]:
    """Test that a certain origin has the lowest value, doubt more, equal origins the highest."""
    certain = trial.first(trial.worlds.certain())
    doubt = trial.first(trial.worlds.doubtful())
    mixes = [trial.first(trial.worlds.mix(k)) for k in SIZES]
    holds = certain < doubt and all(certain < m for m in mixes)
    holds = holds and all(a <= b + ROUNDING for a, b in pairwise(mixes))
    return holds, (
        f"one certain origin {_number(certain)}, two unequal origins {_number(doubt)}, "
        f"{SIZES[0]} to {SIZES[-1]} equal ones {', '.join(map(_number, mixes))}"
    )


def _fine_grained(trial: _Trial) -> tuple[bool, str]:
    """Test that the same two origins, ever less evenly likely, give ever different values."""
    values = [trial.first(trial.worlds.uneven(times)) for times in TIMES]
    steps = np.diff(values)
    holds = bool(np.all(steps < -ROUNDING) or np.all(steps > ROUNDING))
    odds = ", ".join(f"{times}:1" for times in TIMES)
    return holds, f"two origins at odds of {odds}: {', '.join(map(_number, values))}"


def _decay(trial: _Trial) -> tuple[bool, str]:
    """Test that coins spent together yield no coin with less than the lowest of their values."""
    pairs = _pairs(trial.worlds.sent_on, "after a mix", trial.worlds.before_and_after, trial.seeds)
    return _worst(trial, pairs, lambda before, after: float(before.min()) - after, "fell below all")


def _tamper_resistant(trial: _Trial) -> tuple[bool, str]:
    """Test that owners who move a coin without adding other money create no coin with more."""
    pairs = _pairs(trial.worlds.split_alone, "cut by its owner", trial.worlds.tampered, trial.seeds)
    return _worst(trial, pairs, lambda before, after: after - float(before[0]), "rose above what")


_Pairs = list[tuple[str, World, World]]


def _pairs(
    worked: Callable[[], list[tuple[World, World]]],
    name: str,
    drawn: Callable[[int], tuple[World, World]],
    seeds: int,
) -> _Pairs:
    """Return worked cases, then drawn ones, each with a name."""
    return [(name, *pair) for pair in worked()] + [
        (f"seed {seed}", *drawn(seed)) for seed in range(seeds)
    ]


def _worst(
    trial: _Trial, pairs: _Pairs, harm: Callable[[Floats, float], float], verb: str
) -> tuple[bool, str]:
    """Count the coins that are harmed, and describe the one that is harmed most."""
    harmed, tried, worst, example = 0, 0, 0.0, ""
    for name, had, made in pairs:
        before, after = trial.of(had), trial.of(made)
        if np.isnan(before).any():
            continue
        for coin, value in zip(made.scored, after.tolist(), strict=True):
            if np.isnan(value):
                continue
            tried += 1
            loss = harm(before, value)
            if loss <= ROUNDING:
                continue
            harmed += 1
            if loss > worst:
                worst = loss
                figures = ", ".join(map(_number, before))
                example = f"; {name}: from {figures} comes {coin} with {_number(value)}"
    return tried > 0 and harmed == 0, f"{harmed} of {tried} coins {verb} they came from{example}"


def _subjective(trial: _Trial) -> tuple[bool, str]:
    """Test that an observer who learns something about the coin's origin has less doubt."""
    mix, informed = trial.worlds.informed()
    before, after = trial.first(mix), [trial.first(world) for world in informed]
    holds = any(value < before - ROUNDING for value in after)
    return holds, (
        f"a mix of four {_number(before)}; knowing the origin, two of four, odds of 7:1:1:1"
        f"{', the owner' if len(after) > 3 else ''}: {', '.join(map(_number, after))}"
    )


def _efficient(trial: _Trial) -> tuple[bool, str]:
    """Test that a large transaction is answered, not refused; `benchmarks.desiderata` times it."""
    values = trial.of(trial.worlds.crowd())
    answered = int(np.sum(~np.isnan(values)))
    return answered == len(values), f"{answered} of {len(values)} coins of a crowd answered"


WISHES: Mapping[str, Callable[[_Trial], tuple[bool, str]]] = {
    "range": _range,
    "fine-grained": _fine_grained,
    "decay": _decay,
    "tamper-resistant": _tamper_resistant,
    "subjective": _subjective,
    "efficient": _efficient,
}


def try_approaches(
    approaches: Sequence[str] = tuple(APPROACHES), *, seeds: int = 30
) -> list[Finding]:
    """Test each approach against each desideratum, on `seeds` random ledgers.

    >>> [f.wish for f in try_approaches(["k-anonymity"], seeds=5) if not f.holds]
    ['range', 'fine-grained', 'decay', 'tamper-resistant', 'subjective']
    """
    unknown = [name for name in approaches if name not in APPROACHES]
    if unknown:
        raise UsageError(f"no approach {unknown[0]!r}: one of {', '.join(APPROACHES)}")
    if seeds < 1:
        raise UsageError(f"seeds is how many random ledgers are tried, 1 or more, not {seeds}")
    found = []
    for name in approaches:
        approach = APPROACHES[name]
        trial = _Trial(approach, RING_WORLDS if approach.of_rings else COIN_WORLDS, seeds)
        for number, (wish, ask) in enumerate(WISHES.items()):
            holds, shown = ask(trial)
            claim = PAPER[name][number] == "+" if name in PAPER else None
            found.append(Finding(name, wish, holds, shown, claim))
    return found


def _number(value: float) -> str:
    return "null" if np.isnan(value) else f"{value:.4g}"


def desiderata_report(findings: Sequence[Finding]) -> Group:
    """Return the table and, for every "no" in it, the case that shows it."""
    table = Table(title="Approaches against wishes", title_justify="left")
    table.add_column("approach")
    for wish in WISHES:
        table.add_column(wish, justify="center")
    names = list(dict.fromkeys(finding.approach for finding in findings))
    for name in names:
        cells = [_cell(finding) for finding in findings if finding.approach == name]
        table.add_row(name, *cells)
    parts: list[RenderableType] = [
        table,
        Text("(+) and (-): the paper's table says otherwise. The case behind each minus:"),
    ]
    for finding in findings:
        if not finding.holds:
            parts.append(Text(f"- {finding.approach}, {finding.wish}: {finding.shown}"))
    return Group(*parts)


def _cell(finding: Finding) -> str:
    mark = "+" if finding.holds else "-"
    return mark if finding.claimed in (None, finding.holds) else f"({mark})"
