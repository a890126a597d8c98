"""Which method answers a question, and what it will take: known before the solve runs.

Exact scores stream all columns, or sweep lists where those are shorter; a width in bits allows
small probabilities to be dropped; a preview is a sketch. A width that may miss with a stated
probability is drawn where that is less work than to prove it. Estimates come from a part of the
work itself, run and timed: a few tiles of columns, a coarser sweep.
"""

from __future__ import annotations

import json
import math
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from coinhaze.amounts import Ints
from coinhaze.errors import ResourceError, UsageError
from coinhaze.measures import Scores
from coinhaze.measures.confidence import MISS, check_miss
from coinhaze.observer import AbsorbingChain
from coinhaze.options import Accuracy, Method, Over
from coinhaze.solve.certify import plain_orders
from coinhaze.solve.exact.engines import eliminate, exact_method, foreseen, lists_for, width_of
from coinhaze.solve.exact.stream import tile_bytes, time_tiles
from coinhaze.solve.exact.stream_kernels import WIDTH
from coinhaze.solve.planner import thresholds
from coinhaze.solve.pool.limits import Budget, in_words, memory_now, memory_peak, workers_for
from coinhaze.solve.progress import Progress
from coinhaze.solve.series import series
from coinhaze.solve.sketch.foresight import needed_draws, seconds_of_a_draw, widest
from coinhaze.solve.sketch.sketch import DRAWS, precision, sketch
from coinhaze.solve.structure.lump import LumpedChain
from coinhaze.solve.structure.structure import Structure
from coinhaze.solve.truncated.truncate import BLOCKS, Truncation, may_drop, sweep

# All tries of a sweep together cost so many times the last.
TRIES = 1.5


class Estimate(NamedTuple):
    """Seconds a solve will take, bytes its workspaces need, widest interval; NaN if unknown."""

    seconds: float
    memory: float
    method: str | None = None  # where the estimate shows that another one will be taken
    width: float = math.nan  # bound on the widest interval, in bits, where it is known


class Costs(NamedTuple):
    """Seconds of one core that a width takes, proven and drawn: counted, never timed."""

    proven: float
    drawn: float
    draws: int | None  # None where no number of draws is enough

    def line(self) -> str:
        """Say it in one line."""
        drawn = "out of reach"
        if self.draws is not None:
            drawn = f"about {_duration(self.drawn)} ({self.draws:,} draws)"
        return f"proven about {_duration(self.proven)} of one core, drawn {drawn}"


@dataclass(frozen=True, eq=False)
class Choice:
    """A method, ready to run."""

    method: str
    lumped: LumpedChain | None
    run: Callable[[Progress], Scores]
    estimate: Callable[[], Estimate]
    costs: Costs | None = None  # what it was chosen by, where it could have been drawn


@dataclass(frozen=True)
class Plan:
    """What a question takes: how much there is to do, by which method, how long, how much memory.

    `seconds` is for the solve alone, ledger and graph being there; `memory` is the peak of the
    whole process.

    >>> import coinhaze
    >>> ledger = coinhaze.AccountLedger.from_transfers([("a", "c", 1), ("b", "c", 3)])
    >>> plan = coinhaze.plan(ledger)
    >>> plan.rows, plan.lines()[0]
    (1, 'graph     3 nodes, 2 edges')
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
    costs: Costs | None = None  # of proving and of drawing, where either would do

    def to_json(self) -> str:
        """Give all figures as JSON, null where one is not known."""
        figures = {
            name: None if isinstance(value, float) and math.isnan(value) else value
            for name, value in asdict(self).items()
        }
        return json.dumps(figures, indent=1, allow_nan=False)

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
            *([] if self.costs is None else [f"choice    {self.costs.line()}"]),
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
        costs=choice.costs,
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
    count_sources: bool = False,
    draws: int = DRAWS,
    miss: float | None = None,
    simultaneous: bool = False,
    seed: int | None = None,
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
        if method != "auto" or renyi or count_sources:
            raise UsageError(
                "a preview is a sketch of bits: it takes no renyi, no count of sources, no method, "
                "and no preset that names one"
            )
        drawing = _drawing(miss, simultaneous=simultaneous, seed=seed)
        return _sketch(structure, rows, draws, drawing, budget)
    if draws != DRAWS:
        raise UsageError('draws are those of a preview: ask for accuracy="preview"')
    if miss is None and (simultaneous or seed is not None):
        raise UsageError("simultaneous and seed are about draws: ask for a preview, or give miss")
    if miss is not None and (isinstance(accuracy, str) or method != "auto" or renyi):
        raise UsageError(
            "miss is about bits that may be drawn: it goes with a preview or with an accuracy in "
            "bits, such as 0.1, and with no renyi, method or preset that names one"
        )
    width = width_of(accuracy)
    if method in ("published", "series"):
        if budget.memory is not None or budget.seconds is not None:
            raise UsageError("the series cannot tell what it takes: leave memory and seconds out")
        return _series(chain, rows, method, width, renyi)
    if method not in ("auto", "sweep", "eliminate"):
        raise UsageError(f"unknown method {method!r}: auto, sweep, eliminate, series, published")
    lumped = structure.lump(rows, plain_orders(renyi), budget=budget)
    acyclic = lumped.query.reduced.acyclic
    if method == "sweep" and not acyclic:
        raise UsageError("this chain has cycles: use eliminate, or leave the method open")
    # The entropy of order 0 is that number.
    count = count_sources or 0 in renyi
    settings: dict[str, Any] = {"width": width, "renyi": renyi, "budget": budget, "lumped": lumped}
    settings["count_sources"] = count
    drops = method != "eliminate" and may_drop(lumped.query, width, renyi)
    if drops:
        proven = Choice(
            "sweep, dropping what is small",
            lumped,
            lambda progress: sweep(chain, rows, over=over, progress=progress, **settings),
            lambda: _dropping(lumped, width, over, budget, count=count),
        )
    else:
        solve = sweep if acyclic and method != "eliminate" else eliminate
        proven = Choice(
            solve.__name__,
            lumped,
            lambda progress: solve(chain, rows, progress=progress, **settings),
            lambda: _exact(lumped, renyi, budget, count=count),
        )
    if miss is None or chain.listed or count:
        return proven
    drawing = _drawing(miss, simultaneous=simultaneous, seed=seed)
    costs = _costs(lumped, width, over, drawing, budget, drops=drops)
    if costs.draws is None or costs.proven <= costs.drawn:
        return replace(proven, costs=costs)
    drawn = _sketch(
        structure, rows, costs.draws, drawing, budget, lumped=lumped, of_mean=over == "mean"
    )
    return replace(drawn, costs=costs)


class _Drawing(NamedTuple):
    """How bits are drawn."""

    miss: float
    simultaneous: bool
    seed: int


def _drawing(miss: float | None, *, simultaneous: bool, seed: int | None) -> _Drawing:
    """Settle how bits are drawn; a seed that nobody gave is random, and nobody knows it yet."""
    seed = secrets.randbits(63) if seed is None else seed
    if not 0 <= seed < 2**63:
        raise UsageError(f"a seed is a whole number from 0 to 2^63 - 1, not {seed}")
    return _Drawing(check_miss(MISS if miss is None else miss), simultaneous, seed)


def _costs(
    lumped: LumpedChain, width: float, over: Over, drawing: _Drawing, budget: Budget, *, drops: bool
) -> Costs:
    """Count what a width takes, proven and drawn."""
    draws = needed_draws(
        lumped,
        width,
        drawing.miss,
        simultaneous=drawing.simultaneous,
        of_mean=over == "mean",
    )
    proven = lumped.cost.seconds
    if drops:
        maximum = proven / (thresholds.DROP_NS * 1e-9)
        question = Truncation.of(lumped, over=over)
        coarse = question.foresee(width, over=over, maximum=maximum, budget=budget)
        if coarse is not None:
            proven = min(proven, TRIES * coarse.entries * thresholds.DROP_NS * 1e-9)
    drawn = math.nan if draws is None else draws * seconds_of_a_draw(lumped)
    return Costs(proven, drawn, draws)


def _sketch(
    structure: Structure,
    rows: Ints,
    draws: int,
    drawing: _Drawing,
    budget: Budget,
    *,
    lumped: LumpedChain | None = None,
    of_mean: bool = False,
) -> Choice:
    chain = structure.chain
    if lumped is None:
        lumped = structure.lump(
            rows, np.zeros(0), missing=thresholds.PREVIEW_MISSING, budget=budget
        )
    question = lumped
    settings: dict[str, Any] = {"budget": budget, "lumped": question, **drawing._asdict()}

    def estimate() -> Estimate:
        begin = time.perf_counter()
        sketch(chain, rows, draws=WIDTH, **settings)
        tiles = draws // WIDTH
        workers = workers_for(tiles, budget.threads)
        memory = workers * tile_bytes(
            question.query.factor.inner, precision(question.query, question.columns)[0]
        )
        seconds = (time.perf_counter() - begin) * math.ceil(tiles / workers)
        width = widest(
            question,
            draws,
            drawing.miss,
            simultaneous=drawing.simultaneous,
            of_mean=of_mean,
        )
        return Estimate(seconds, memory, width=width)

    return Choice(
        f"sketch of {draws} draws",
        question,
        lambda progress: sketch(chain, rows, draws=draws, progress=progress, **settings),
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


def _counting(lumped: LumpedChain, budget: Budget, *, count: bool) -> float:
    """Foresee how long counting possible sources takes, if that was requested."""
    work = lumped.counting
    return work.seconds / workers_for(work.pieces, budget.threads) if count else 0.0


def _exact(lumped: LumpedChain, renyi: Sequence[float], budget: Budget, *, count: bool) -> Estimate:
    """Count the entries of lists by a sample, or time a few tiles."""
    orders = plain_orders(renyi)
    counting = _counting(lumped, budget, count=count)
    query, columns = lumped.query, lumped.columns
    cost = lists_for(lumped, budget)
    if cost is not None:
        workers = workers_for(cost.blocks, budget.threads)
        memory = min(cost.alive * thresholds.LIST_ENTRY_BYTES, budget.room(thresholds.LIST_MEMORY))
        seconds = cost.seconds / workers + counting
        return Estimate(seconds, memory, width=foreseen(lumped, budget))
    seconds = time_tiles(query, columns, orders, budget=budget)
    workers = workers_for(-(-len(columns) // WIDTH), budget.threads)
    # A tile of every inner state, and the sums of a few tiles that wait to be added up.
    each = 8.0 * WIDTH * query.factor.inner + 2 * 96 * len(query.scored)
    return Estimate(seconds + counting, workers * each, width=foreseen(lumped, budget))


def _dropping(
    lumped: LumpedChain, width: float, over: Over, budget: Budget, *, count: bool
) -> Estimate:
    """Foresee what dropping takes; or take exact scores, if cheaper."""
    query = lumped.query
    maximum = lumped.cost.seconds / (thresholds.DROP_NS * 1e-9)
    coarse = Truncation.of(lumped, over=over).foresee(
        width, over=over, maximum=maximum, budget=budget
    )
    if coarse is None:
        return _exact(lumped, (), budget, count=count)._replace(method=exact_method(query))
    workers = workers_for(BLOCKS, budget.threads)
    seconds = TRIES * coarse.entries * thresholds.DROP_NS * 1e-9 / workers
    seconds += _counting(lumped, budget, count=count)
    return Estimate(seconds, workers * coarse.memory, width=width if over == "worst" else math.nan)
