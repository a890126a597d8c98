"""Growth: how bits rise as money is paid on and on, the experiment of the paper's appendix.

From every source money walks forward along payments, the next one chosen in proportion to its
amount. Reported for each length are the bits of the nodes reached: an observer's doubt about money
that was paid on that many times.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple, Unpack

import numpy as np
import pyarrow as pa

from coinhaze.amounts import Bools, Floats, Ints
from coinhaze.errors import InputError, UsageError
from coinhaze.graph import TransactionGraph
from coinhaze.graph.graph import Kind
from coinhaze.graph.order_kernels import group_rows
from coinhaze.growth import kernels as kernels
from coinhaze.measures import Scores
from coinhaze.measures.scores import reached
from coinhaze.observer import AbsorbingChain
from coinhaze.options import Accuracy, GrowthOptions, ModelKeywords
from coinhaze.solve.planner.mean import score_for_mean
from coinhaze.solve.planner.plan import choose
from coinhaze.solve.pool.limits import Budget, bytes_of
from coinhaze.solve.progress import Progress, silent
from coinhaze.solve.source import Source, chain_of

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


class Level(NamedTuple):
    """Where walks of a given number of payments are, and where those that ended earlier stopped."""

    nodes: Ints
    mass: Floats  # the share of all walks at each node
    end_nodes: Ints
    end_mass: Floats


@dataclass(frozen=True, eq=False)
class Forward:
    """Edges sorted by tail: where a walk may go next, how likely, and whether that is a payment.

    A payment counts once: money that enters a transaction or a ring has not arrived yet, and money
    that waits while its holder is paid by others (from one snapshot to the next) was not paid.
    """

    start: Ints
    tail: Ints
    head: Ints
    weight: Floats
    pays: Bools

    @classmethod
    def of(cls, graph: TransactionGraph) -> Forward:
        """Reverse a graph; where amounts are hidden all edges of a node are equally likely."""
        start, order = group_rows(graph.tail, len(graph))
        tail, head = graph.tail[order], graph.head[order]
        weight = np.ones(len(order)) if graph.amounts is None else graph.amounts.floats()[order]
        enters = (graph.kinds[head] == Kind.transaction) | (graph.kinds[head] == Kind.ring)
        waits = graph.names.party[tail] == graph.names.party[head]
        return cls(start, tail, head, weight, ~(enters | waits))

    def walks(self, first: Ints, *, length: int, seed: int) -> tuple[Ints, Ints]:
        """Walk once from each of `first`; return nodes by number of payments, and the ends."""
        reach = kernels.running_shares(self.start, self.weight)
        visited, ends = kernels.walk_forward(
            self.start, self.head, reach, self.pays, first, length, seed
        )
        return visited, ends

    def levels(self, first: Ints, *, length: int) -> Iterator[Level]:
        """Weigh all walks at once, starting at each of `first` with equal probability."""
        mass = np.bincount(first, minlength=len(self.start) - 1) / len(first)
        rest = np.zeros(len(mass))
        for made in range(length + 1):
            yield Level(*_present(mass), *_present(rest))
            if made < length:
                # Edges that are not payments lead to higher numbers in temporal graphs and do not
                # occur in stationary ones, so one pass in order of tails moves everything.
                kernels.move_on(*self._moves, mass)
                rest += np.where(self._final, mass, 0.0)
                mass = kernels.pay_on(*self._payments, mass)

    @cached_property
    def _share(self) -> Floats:
        total = np.bincount(self.tail, weights=self.weight, minlength=len(self.start) - 1)
        return self.weight / total[self.tail]

    @cached_property
    def _moves(self) -> tuple[Ints, Ints, Floats]:
        return self.tail[~self.pays], self.head[~self.pays], self._share[~self.pays]

    @cached_property
    def _payments(self) -> tuple[Ints, Ints, Floats]:
        return self.tail[self.pays], self.head[self.pays], self._share[self.pays]

    @cached_property
    def _final(self) -> Bools:
        """Return the nodes that no edge leaves."""
        final: Bools = np.diff(self.start) == 0
        return final


def levels_of(visited: Ints, ends: Ints) -> Iterator[Level]:
    """Yield the levels of drawn walks, each walk with the same mass."""
    walks = len(visited)
    for nodes in visited.T:
        gone = ends[nodes < 0]
        yield Level(*_counted(nodes[nodes >= 0], walks), *_counted(gone, walks))


def _present(mass: Floats) -> tuple[Ints, Floats]:
    nodes = np.flatnonzero(mass)
    return nodes, mass[nodes]


def _counted(nodes: Ints, walks: int) -> tuple[Ints, Floats]:
    found, count = np.unique(nodes, return_counts=True)
    return found, count / walks


@dataclass(frozen=True, eq=False)
class Growth:
    """Bits by number of payments, from 0 on; NaN where no walk got that far.

    `walks` is None where all walks were weighed: then no figure has a sampling error.
    """

    share: Floats  # the share of walks that made this many payments
    answered: Floats  # the share of walks whose node also has an answer
    bits_mean: Floats
    quantiles: Floats  # one row for each of QUANTILES
    bits_held: Floats  # mean over all walks; those that ended count where they stopped
    drawn_error: Floats  # standard error of the mean from sampling walks
    sources: int
    walks: int | None
    seed: int | None
    method: str
    width: float  # mean width of the intervals of bits over the nodes reached
    standard_error: float | None  # of the bits of one node, where they are estimates
    settings: dict[str, object] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    lower_bounds: int = 0  # how many of the nodes reached have bits that are lower bounds

    def __len__(self) -> int:
        return len(self.share)

    def __repr__(self) -> str:
        return f"Growth({len(self) - 1} payments, {self.how})"

    @property
    def how(self) -> str:
        """Describe which walks these are."""
        if self.walks is None:
            return f"all walks from {self.sources:,} sources, weighed"
        return f"{self.walks:,} walks from {self.sources:,} sources, seed {self.seed}"

    @property
    def peak(self) -> int:
        """The number of payments after which mean bits are highest."""
        return int(np.nanargmax(self.bits_mean))

    def to_arrow(self) -> pa.Table:
        """Return one row per number of payments; the schema's metadata describe the walks."""
        columns = {
            "payments": pa.array(np.arange(len(self))),
            "share": pa.array(self.share),
            "answered": pa.array(self.answered),
            "bits_mean": _nullable(self.bits_mean),
            "bits_error": _nullable(self.drawn_error),
        }
        for q, values in zip(QUANTILES, self.quantiles, strict=True):
            columns[f"bits_{round(100 * q):02d}"] = _nullable(values)
        columns["bits_held"] = _nullable(self.bits_held)
        about = json.dumps(self.about(), allow_nan=False)
        return pa.table(columns).replace_schema_metadata({"coinhaze": about})

    @property
    def certainty(self) -> str:
        """Describe how accurate the bits of a node are, apart from the sampling of walks."""
        bounds = f", but for those of {self.lower_bounds:,} nodes, which are lower bounds"
        return self._accuracy + (bounds if self.lower_bounds else "")

    @property
    def _accuracy(self) -> str:
        if self.standard_error is not None:
            return f"bits are estimates with a standard error of {self.standard_error:.2f} at most"
        if self.width < 1e-6:
            return "bits are exact"
        return f"bits are proven to {self.width:.2g} on average"

    @property
    def caption(self) -> str:
        """Describe what the figures are."""
        return (
            f"{self.how}; {self.certainty} ({self.method}). Means and quantiles are over walks "
            "still going; held: over all walks, those that ended where they stand."
        )

    def about(self) -> dict[str, object]:
        """Return the provenance: walks, seed, method, settings."""
        return {
            "told": f"{self.how}; {self.certainty} ({self.method})",
            "walks": self.walks,
            "seed": self.seed,
            "sources": self.sources,
            "method": self.method,
            "mean_interval_bits": self.width,
            "standard_error_bits": self.standard_error,
            "lower_bounds": self.lower_bounds,
            "settings": self.settings,
        }


def growth(
    source: Source,
    *,
    length: int = GrowthOptions.length,
    walks: int | None = None,
    seed: int = 1,
    accuracy: Accuracy | Literal["auto"] = "auto",
    threads: int | None = None,
    memory: int | str | None = None,
    progress: Progress = silent,
    **settings: Unpack[ModelKeywords],
) -> Growth:
    """Compute the bits of money after 0, 1, ... `length` payments, starting from every source.

    `source` and settings are those of `score`. Without `walks` all walks are weighed at once, with
    equal weight for every source. With `walks` that many are drawn from `seed`: the same number
    from each source or, where there are more sources, one from each of that many of them; only
    nodes visited are scored. The accuracy is that of the means of a comparison unless `accuracy`
    says otherwise: see `score_for_mean`. Each further payment costs one pass over all edges, which
    is little in comparison.

    >>> import coinhaze
    >>> rows = [("a", "m", 1), ("b", "m", 1), ("m", "c", 2)]
    >>> growth(coinhaze.AccountLedger.from_transfers(rows), length=2).bits_mean
    array([0., 1., 1.])
    """
    if length < 1 or (walks is not None and walks < 1) or not 0 <= seed < 2**63:
        raise UsageError("length and walks are 1 or more, a seed 0 or more")
    chain = chain_of(source, **settings)
    if chain.listed:
        raise UsageError("growth is about bits over all sources: leave the list out")
    sources = np.flatnonzero(chain.walk.own > 0)
    if len(sources) == 0:
        raise InputError("the ledger has no source to walk from: no money moves in it")
    forward = Forward.of(chain.graph)
    budget = Budget(threads, None if memory is None else bytes_of(memory), None)

    def bits_of(rows: Ints) -> Scores:
        if accuracy == "auto":
            return score_for_mean(chain, rows, budget=budget, progress=progress)
        drawn_by = 0 if accuracy == "preview" else None
        chosen = choose(chain, rows, accuracy=accuracy, seed=drawn_by, budget=budget)
        return reached(lambda: chosen.run(progress))

    if walks is None:
        scores = bits_of(_reached(forward.levels(sources, length=length), len(chain)))
        levels: Iterable[Level] = forward.levels(sources, length=length)
    else:
        first = _beginnings(sources, walks, seed)
        visited, ends = forward.walks(first, length=length, seed=seed)
        levels = list(levels_of(visited, ends))
        scores = bits_of(_reached(levels, len(chain)))
        walks = len(first)
    return _summed(chain, scores, levels, len(sources), walks, seed)


def _beginnings(sources: Ints, walks: int, seed: int) -> Ints:
    """Choose where walks start: at every source equally often, or once at each of a sample."""
    if len(sources) <= walks:
        return np.repeat(sources, walks // len(sources))
    chance = np.random.default_rng(seed)
    return np.sort(chance.choice(sources, walks, replace=False))


def _reached(levels: Iterable[Level], n: int) -> Ints:
    reached: Bools = np.zeros(n, dtype=np.bool_)
    for level in levels:
        reached[level.nodes] = True
        reached[level.end_nodes] = True
    return np.flatnonzero(reached)


def _summed(
    chain: AbsorbingChain,
    scores: Scores,
    levels: Iterable[Level],
    sources: int,
    walks: int | None,
    seed: int,
) -> Growth:
    """Summarise the bits of each level."""
    row = np.full(len(chain), -1)
    row[scores.nodes] = np.arange(len(scores))
    lines = [_line(scores.bits, row, level, walks) for level in levels]
    share, answered, mean, held, error, *quantiles = np.array(lines).T
    return Growth(
        share=share,
        answered=answered,
        bits_mean=mean,
        quantiles=np.array(quantiles),
        bits_held=held,
        drawn_error=error,
        sources=sources,
        walks=walks,
        seed=None if walks is None else seed,
        method=scores.method,
        width=float(scores.widths.mean()) if len(scores.widths) else 0.0,
        standard_error=scores.summary().standard_error,
        settings=dict(chain.settings),
        notes=scores.notes,
        lower_bounds=scores.summary().lower_bounds,
    )


def _line(bits: Floats, row: Ints, level: Level, walks: int | None) -> list[float]:
    """Return share, answered share, mean, held mean, sampling error and quantiles of a level."""
    found, mass = _answered(bits[row[level.nodes]], level.mass)
    ended, end_mass = _answered(bits[row[level.end_nodes]], level.end_mass)
    # Rounding alone could raise a share above one.
    share, answered = min(1.0, level.mass.sum()), min(1.0, mass.sum())
    all_mass = mass.sum() + end_mass.sum()
    held = (found @ mass + ended @ end_mass) / all_mass if all_mass > 0 else np.nan
    if answered <= 0:
        return [share, answered, np.nan, held, np.nan, *(np.nan for _ in QUANTILES)]
    mean = found @ mass / mass.sum()
    error = 0.0
    if walks is not None:
        error = np.sqrt((found - mean) ** 2 @ mass / answered / (walks * answered))
    return [share, answered, mean, held, error, *weighted_quantiles(found, mass, QUANTILES)]


def _answered(bits: Floats, mass: Floats) -> tuple[Floats, Floats]:
    known = ~np.isnan(bits)
    return bits[known], mass[known]


def weighted_quantiles(values: Floats, mass: Floats, shares: Iterable[float]) -> Floats:
    """Return the lowest values at or below which the given shares of the mass lie.

    >>> weighted_quantiles(np.array([3.0, 1.0]), np.array([1.0, 3.0]), [0.5, 0.9])
    array([1., 3.])
    """
    order = np.argsort(values, kind="stable")
    done = np.cumsum(mass[order])
    # A share that is met exactly must not be missed because of rounding.
    wanted = np.array(list(shares)) * done[-1] * (1 - 1e-12)
    found: Floats = values[order][np.searchsorted(done, wanted)]
    return found


def _nullable(values: Floats) -> pa.Array:
    return pa.array(values, mask=np.isnan(values))
