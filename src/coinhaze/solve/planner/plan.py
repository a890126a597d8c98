"""Which method answers a question, and what it will take: known before the solve runs.

Exact scores stream all columns, or sweep lists where those are shorter; a width in bits allows
small probabilities to be dropped; a preview is a sketch. Estimates come from a part of the work
itself, run and timed: a few tiles of columns, a coarser sweep.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from coinhaze.amounts import Ints
from coinhaze.errors import ResourceError, UsageError
from coinhaze.measures import Scores
from coinhaze.observer import AbsorbingChain
from coinhaze.options import Accuracy, Method, Over
from coinhaze.solve.certify import plain_orders
from coinhaze.solve.exact.engines import eliminate, exact_method, foreseen, lists_for, width_of
from coinhaze.solve.exact.stream import time_tiles
from coinhaze.solve.exact.stream_kernels import WIDTH
from coinhaze.solve.planner import thresholds
from coinhaze.solve.pool.limits import Budget, in_words, memory_now, memory_peak, workers_for
from coinhaze.solve.progress import Progress
from coinhaze.solve.series import series
from coinhaze.solve.sketch.sketch import DRAWS, sketch
from coinhaze.solve.structure.lump import LumpedChain
from coinhaze.solve.structure.structure import Structure
from coinhaze.solve.truncated.truncate import AT_ONCE, Truncation, may_drop, sweep

# All tries of a sweep together cost so many times the last.
TRIES = 1.5


class Estimate(NamedTuple):
    """Seconds a solve will take, bytes its workspaces need, widest interval; NaN if unknown."""

    seconds: float
    memory: float
    method: str | None = None  # where the estimate shows that another one will be taken
    width: float = math.nan  # bound on the widest interval, in bits, where it is known


@dataclass(frozen=True, eq=False)
class Choice:
    """A method, ready to run."""

    method: str
    lumped: LumpedChain | None
    run: Callable[[Progress], Scores]
    estimate: Callable[[], Estimate]


@dataclass(frozen=True)
class Plan:
    """What a question takes: how much there is to do, by which method, how long, how much memory.

    `seconds` is for the solve alone, ledger and graph being there; `memory` is the peak of the
    whole process.
    """

    nodes: int
    edges: int
    rows: int
    states: int
    columns: int
    method: str
    seconds: float
    memory: float
    width: float  # no interval will be wider, in bits; NaN if unknown

    def lines(self) -> list[str]:
        """Say it in a few lines."""
        known = not math.isnan(self.seconds)
        return [
            f"graph     {self.nodes:,} nodes, {self.edges:,} edges",
            f"to solve  {self.rows:,} rows, from {self.states:,} states and "
            f"{self.columns:,} columns",
            f"method    {self.method}",
            f"time      about {_duration(self.seconds)}" if known else "time      unknown",
            f"memory    about {in_words(self.memory)} at its peak"
            if known
            else "memory    unknown",
            *([] if math.isnan(self.width) else [f"width     at most {self.width:.1e} bits"]),
        ]


def plan_of(chain: AbsorbingChain, rows: Ints, choice: Choice) -> Plan:
    """Estimate what a choice takes; this runs a part of it."""
    estimate = choice.estimate()
    lumped = choice.lumped
    return Plan(
        nodes=len(chain),
        edges=chain.walk.q.nnz,
        rows=len(rows),
        states=len(chain) if lumped is None else len(lumped.query.reduced),
        columns=len(chain.outcomes) if lumped is None else len(lumped.columns),
        method=estimate.method or choice.method,
        seconds=estimate.seconds,
        memory=max(memory_peak(), memory_now() + estimate.memory),
        width=estimate.width,
    )


def refuse_longer(plan: Plan, budget: Budget) -> None:
    """Refuse a solve that will not end in time."""
    preview = plan.method.startswith("sketch")
    if budget.seconds is not None and plan.seconds > budget.seconds:
        raise ResourceError(
            f"{plan.method} would take about {_duration(plan.seconds)}, above the "
            f"{_duration(budget.seconds)} allowed: "
            + ("ask for fewer draws" if preview else "ask for a wider interval, or a preview")
        )


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.2g} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def choose(
    chain: AbsorbingChain | Structure,
    rows: Ints,
    *,
    accuracy: Accuracy = "exact",
    over: Over = "worst",
    method: Method = "auto",
    renyi: Sequence[float] = (),
    draws: int = DRAWS,
    budget: Budget,
) -> Choice:
    """Choose how to score rows of a chain."""
    structure = Structure.of(chain)
    chain = structure.chain
    if over not in ("worst", "mean"):
        raise UsageError(f"over is worst or mean, not {over!r}")
    if over == "mean" and isinstance(accuracy, str):
        raise UsageError(f"over goes with an accuracy in bits, such as 0.1, not with {accuracy!r}")
    if accuracy == "preview":
        if method != "auto" or renyi:
            raise UsageError(
                "a preview is a sketch of bits: it takes no renyi, no method, and no preset that "
                "names one"
            )
        return _sketch(structure, rows, draws, budget)
    if draws != DRAWS:
        raise UsageError('draws are those of a preview: ask for accuracy="preview"')
    width = width_of(accuracy)
    if method in ("published", "series"):
        if budget.memory is not None or budget.seconds is not None:
            raise UsageError("the series cannot tell what it takes: leave memory and seconds out")
        return _series(chain, rows, method, width, renyi)
    if method not in ("auto", "sweep", "eliminate"):
        raise UsageError(f"unknown method {method!r}: auto, sweep, eliminate, series, published")
    lumped = structure.lump(rows, plain_orders(renyi))
    acyclic = lumped.query.reduced.acyclic
    if method == "sweep" and not acyclic:
        raise UsageError("this chain has cycles: use eliminate, or leave the method open")
    settings: dict[str, Any] = {"width": width, "renyi": renyi, "budget": budget, "lumped": lumped}
    if method != "eliminate" and may_drop(lumped.query, width, renyi):
        return Choice(
            "sweep, dropping what is small",
            lumped,
            lambda progress: sweep(chain, rows, over=over, progress=progress, **settings),
            lambda: _dropping(lumped, width, over, budget),
        )
    solve = sweep if acyclic and method != "eliminate" else eliminate
    return Choice(
        solve.__name__,
        lumped,
        lambda progress: solve(chain, rows, progress=progress, **settings),
        lambda: _exact(lumped, renyi, budget),
    )


def _sketch(structure: Structure, rows: Ints, draws: int, budget: Budget) -> Choice:
    chain = structure.chain
    lumped = structure.lump(rows, np.zeros(0), missing=thresholds.PREVIEW_MISSING)

    def estimate() -> Estimate:
        begin = time.perf_counter()
        sketch(chain, rows, draws=WIDTH, budget=budget, lumped=lumped)
        tiles = draws // WIDTH
        workers = workers_for(tiles, budget.threads)
        memory = 4 * WIDTH * lumped.query.factor.inner * workers
        return Estimate((time.perf_counter() - begin) * math.ceil(tiles / workers), memory)

    return Choice(
        f"sketch of {draws} draws",
        lumped,
        lambda progress: sketch(
            chain, rows, draws=draws, budget=budget, progress=progress, lumped=lumped
        ),
        estimate,
    )


def _series(
    chain: AbsorbingChain, rows: Ints, method: str, width: float, renyi: Sequence[float]
) -> Choice:
    if renyi:
        raise UsageError("the series gives Shannon entropy only: leave renyi out")
    rule: Literal["published", "mass"] = "published" if method == "published" else "mass"
    return Choice(
        f"series ({rule})",
        None,
        lambda progress: series(chain, rows, rule=rule, width=width, progress=progress),
        lambda: Estimate(math.nan, math.nan),
    )


def _exact(lumped: LumpedChain, renyi: Sequence[float], budget: Budget) -> Estimate:
    """Count the entries of lists by a sample, or time a few tiles."""
    orders = plain_orders(renyi)
    query, columns = lumped.query, lumped.columns
    cost = lists_for(lumped, budget)
    if cost is not None:
        workers = workers_for(2, budget.threads)
        memory = min(cost.alive * thresholds.LIST_ENTRY_BYTES, budget.room(thresholds.LIST_MEMORY))
        return Estimate(cost.seconds / workers, memory, width=foreseen(lumped, budget))
    seconds = time_tiles(query, columns, orders, budget=budget)
    workers = workers_for(-(-len(columns) // WIDTH), budget.threads)
    # A tile of every inner state, and the sums of a few tiles that wait to be added up.
    each = 8.0 * WIDTH * query.factor.inner + 2 * 96 * len(query.scored)
    return Estimate(seconds, workers * each, width=foreseen(lumped, budget))


def _dropping(lumped: LumpedChain, width: float, over: Over, budget: Budget) -> Estimate:
    """Foresee what dropping takes; or take exact scores, if cheaper."""
    query = lumped.query
    most = lumped.cost.seconds / (thresholds.DROP_NS * 1e-9)
    coarse = Truncation.of(lumped, over=over).foresee(width, over=over, most=most, budget=budget)
    if coarse is None:
        return _exact(lumped, (), budget)._replace(method=exact_method(query))
    workers = workers_for(AT_ONCE, budget.threads)
    seconds = TRIES * coarse.entries * thresholds.DROP_NS * 1e-9 / workers
    return Estimate(seconds, AT_ONCE * coarse.memory, width=width if over == "worst" else math.nan)
