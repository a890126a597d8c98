"""Scores: bits with their interval, steps and all else, one row a node."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from coinhaze.amounts import Bools, Floats, Ints
from coinhaze.errors import AccuracyError, UnknownName
from coinhaze.formats.money import unit_of, with_amount_texts
from coinhaze.graph.graph import Kind, kind_names
from coinhaze.graph.holes import incomplete_notes
from coinhaze.ledger.completeness import Completeness
from coinhaze.ledger.frames import ArrowTable, called, shown
from coinhaze.measures import entropy
from coinhaze.measures.elementary import log2
from coinhaze.measures.summary import Summary, summarise
from coinhaze.observer.chain import Belief, reading_of
from coinhaze.observer.owners import Observer, bits_column

ZERO = 1e-9  # bits below which a coin has one origin, but for roundings


def rising(bits: Floats) -> Floats:
    """Give bits in order, 0 where there is one origin but for roundings.

    >>> rising(np.array([2.0, 1e-12, 1.0])).tolist()
    [0.0, 1.0, 2.0]
    """
    return np.sort(np.where(bits <= ZERO, 0.0, bits))


@dataclass(frozen=True)
class NodeScore:
    """The score of one node; not a number where there is no answer.

    >>> import coinhaze
    >>> ledger = coinhaze.AccountLedger.from_transfers([("a", "c", 1), ("b", "c", 3)])
    >>> carol = coinhaze.score(ledger)["c"]
    >>> round(carol.bits, 4), carol.top_source, carol.top_probability
    (0.8113, 'b', 0.75)
    """

    node: str
    bits: float
    bits_low: float
    bits_high: float
    steps: float
    sources: float
    top_source: str | None
    top_probability: float
    exposure: float | None = None
    miss: float = 0.0  # the probability that the interval misses; 0 if it is proven


@dataclass(frozen=True, eq=False)
class InformedBits:
    """The bits of the same rows for an observer who takes more origins for one person's.

    >>> import coinhaze
    >>> ledger = coinhaze.CoinLedger.from_transactions([{"txid": "t", "inputs": [
    ...     {"txid": "x", "vout": 0, "value": 1, "address": "a"},
    ...     {"txid": "y", "vout": 0, "value": 1, "address": "b"}], "outputs": [{"value": 2}]}])
    >>> ladder = coinhaze.informed(coinhaze.score(ledger)).informed
    >>> ladder["common-input-no-coinjoins"].bits
    array([0.])
    """

    bits: Floats
    bits_low: Floats
    bits_high: Floats
    miss: Floats
    observer: Observer | None = None  # None is the naive one

    @classmethod
    def naive(cls, scores: Scores) -> InformedBits:
        """Take the bits of scores."""
        return cls(scores.bits, scores.bits_low, scores.bits_high, scores.miss)

    def below(self, before: InformedBits) -> InformedBits:
        """Narrow proven intervals by the law that merging origins never raises bits."""
        proven = (self.miss == 0) & (before.miss == 0)
        high = np.where(proven, np.minimum(self.bits_high, before.bits_high), self.bits_high)
        low = np.minimum(self.bits_low, high)
        return replace(self, bits=np.clip(self.bits, low, high), bits_low=low, bits_high=high)

    def take(self, rows: Ints | Bools) -> InformedBits:
        """Give some of the rows."""
        some = {n: getattr(self, n)[rows] for n in ("bits", "bits_low", "bits_high", "miss")}
        return replace(self, **some)


@dataclass(frozen=True, eq=False)
class Scores(ArrowTable):
    """How uncertain the origin of each node's money is: a table, a row a node.

    `scores["carol"]` is the score of one node, and iterating gives one after the other.

    >>> import coinhaze
    >>> ledger = coinhaze.AccountLedger.from_transfers([("a", "carol", 1), ("b", "carol", 1)])
    >>> scores = coinhaze.score(ledger)
    >>> scores["carol"].bits, [score.node for score in scores]
    (1.0, ['carol'])

    Not a number (null in tables) where there is no answer: absorption is not certain, or poison
    never arrived. Ordered policies make no steps. `miss` is the probability that a row's interval
    misses the true bits: 0 where it is proven, above that where bits were drawn.
    """

    chain: Belief
    nodes: Ints
    bits: Floats
    bits_low: Floats
    bits_high: Floats
    steps: Floats
    mass: Floats  # what each row of B sums to; 1 for a proven answer
    sources: Floats  # how many sources are possible, counted on the graph
    top: Ints  # the likeliest outcome's number
    top_probability: Floats
    method: str
    exposure: Floats | None = None
    exposure_low: Floats | None = None  # proven bounds, of exact solves
    exposure_high: Floats | None = None
    conditional_bits: Floats | None = None
    bits_unmodified: Floats | None = None
    bits_error: Floats | None = None  # standard error, where bits are estimates
    mean_error: float | None = None  # standard error of their mean over rows ...
    draw_means: Floats | None = None  # ... from that mean by each independent tile of draws
    renyi: Mapping[float, Floats] = field(default_factory=dict)
    comparators: Mapping[str, Floats] = field(default_factory=dict)  # other measures, by name
    informed: Mapping[str, InformedBits] = field(default_factory=dict)  # by observer's name
    # The probability that each interval misses: 0, which is the default, for proven ones. That all
    # rows together miss; and the intervals of means, where they are not those of the rows.
    miss: Floats = field(default_factory=lambda: np.zeros(0))
    joint_miss: float | None = None
    bits_mean_low: float | None = None
    bits_mean_high: float | None = None
    bits_weighted_mean_low: float | None = None  # of the mean by value
    bits_weighted_mean_high: float | None = None
    mean_miss: float | None = None
    conservation: float | None = None  # largest relative error of x^T B = b, where it applies
    shortfall: str | None = None  # why intervals are wider than requested, where they are

    def __post_init__(self) -> None:
        if len(self.miss) != len(self.nodes):
            proven = np.where(np.isnan(self.bits_low), np.nan, 0.0)
            object.__setattr__(self, "miss", proven)

    def __len__(self) -> int:
        return len(self.nodes)

    def __repr__(self) -> str:
        return f"Scores({self.summary().line()})"

    def __getitem__(self, node: str) -> NodeScore:
        number = self.chain.graph.names.node(node)
        rows = np.flatnonzero(self.nodes == number)
        if not len(rows):
            raise UnknownName(f"{node} was not scored: ask for it with nodes=[{node!r}]")
        return next(iter(self.take(rows[:1])))

    def __iter__(self) -> Iterator[NodeScore]:
        names = self.chain.graph.names.of(self.nodes).to_pylist()
        top = self.chain.outcomes.take(pa.array(self.top, mask=self.top < 0)).to_pylist()
        for row, name in enumerate(names):
            yield NodeScore(
                node=name,
                bits=float(self.bits[row]),
                bits_low=float(self.bits_low[row]),
                bits_high=float(self.bits_high[row]),
                steps=float(self.steps[row]),
                sources=float(self.sources[row]),
                top_source=top[row],
                top_probability=float(self.top_probability[row]),
                exposure=None if self.exposure is None else float(self.exposure[row]),
                miss=float(self.miss[row]),
            )

    @property
    def min_entropy(self) -> Floats:
        """Bits of the likeliest source alone."""
        return 0.0 - log2(self.top_probability)

    @property
    def hartley(self) -> Floats:
        """Bits if all possible sources were equally likely."""
        return log2(self.sources)

    @property
    def effective_sources(self) -> Floats:
        """The number of equally likely sources that would be as uncertain."""
        return entropy.effective_number(self.bits)

    @property
    def degree(self) -> Floats:
        """Bits as a share of `hartley`; NaN where one source is possible."""
        return entropy.degree_of_anonymity(self.bits, self.sources)

    @property
    def lower_bound(self) -> Bools | None:
        """Which rows have bits that are lower bounds, as `unknown="leave-out"` makes them.

        None where no row has; the interval is then that of the bound, not of the bits.
        """
        bounds = self.chain.lower_bounds
        return None if bounds is None else bounds[self.nodes]

    @property
    def width(self) -> float:
        """The widest interval."""
        return float(self.widths.max(initial=0.0))

    @property
    def widths(self) -> Floats:
        """How wide the intervals are, of rows that have an answer."""
        found: Floats = (self.bits_high - self.bits_low)[~np.isnan(self.bits_low)]
        return found

    def take(self, rows: Ints | Bools) -> Scores:
        """Give some of the rows, by number or where true, without what holds for all."""
        some: dict[str, Any] = {
            name: values[rows] for name in _COLUMNS if (values := getattr(self, name)) is not None
        }
        for name in ("renyi", "comparators"):
            some[name] = {key: values[rows] for key, values in getattr(self, name).items()}
        some["informed"] = {name: bits.take(rows) for name, bits in self.informed.items()}
        some |= dict.fromkeys(("mean_error", "draw_means", "mean_miss", *_MEAN_ENDS))
        return replace(self, **some)

    def to_arrow(self) -> pa.Table:
        """Give a table, a row a node; the balance in digits of the smallest unit.

        Where the ledger's money is known, `balance_shown` says it as people write it.
        """
        graph = self.chain.graph
        closing = graph.closing
        balance = pa.nulls(len(self), pa.string()) if closing is None else None
        columns: dict[str, pa.Array] = {
            "node": graph.names.of(self.nodes),
            "kind": kind_names(graph.kinds[self.nodes]),
            "balance": balance if closing is None else closing.take(self.nodes).text(),
            "bits": _nullable(self.bits),
            "bits_low": _nullable(self.bits_low),
            "bits_high": _nullable(self.bits_high),
            "miss": _nullable(self.miss),
            "steps": _nullable(self.steps),
            "sources": pa.array(self.sources, mask=np.isnan(self.sources)).cast(pa.int64()),
            "top_source": self.chain.outcomes.take(pa.array(self.top, mask=self.top < 0)),
            "top_probability": _nullable(self.top_probability),
        }
        for name in ("exposure", "conditional_bits", "bits_unmodified", "bits_error"):
            values = getattr(self, name)
            if values is not None:
                columns[name] = _nullable(values)
        if self.lower_bound is not None:
            columns["lower_bound"] = pa.array(self.lower_bound)
        for order, values in self.renyi.items():
            columns[f"renyi_{order:g}"] = _nullable(values)
        for name, values in self.comparators.items():
            columns[name.replace("-", "_")] = _nullable(values)
        for name, found in self.informed.items():
            column = bits_column(name)
            columns[column] = _nullable(found.bits)
            columns[f"{column}_low"] = _nullable(found.bits_low)
            columns[f"{column}_high"] = _nullable(found.bits_high)
        return with_amount_texts(pa.table(columns), unit_of(graph.ledger), ["balance"])

    def to_latex(self, *, label: str = "tab:scores") -> str:
        """Give a LaTeX table for the booktabs package, a row a node, most bits first."""
        text: str = called("coinhaze.report.tables", "scores_latex", self, label)
        return text

    def plot(self, *, ax: Any = None) -> Any:
        """Draw what share of nodes has at most so many bits; needs matplotlib. Gives the axes."""
        return called("coinhaze.report.plots", "plot_scores", self, ax)

    def summary(self) -> Summary:
        """Give the row the paper's tables have: sizes, bits, steps."""
        return self._summary

    @cached_property
    def _summary(self) -> Summary:
        graph = self.chain.graph
        weights = None if graph.closing is None else graph.closing.take(self.nodes).floats()
        summary = summarise(
            self.bits,
            self.steps,
            weights,
            nodes=len(graph),
            edges=len(graph.tail),
            burnt=self.burnt,
            widths=self.widths,
            standard_error=(
                None if self.bits_error is None else float(np.nanmax(self.bits_error, initial=0.0))
            ),
            mean_error=self.mean_error,
            lower_bound=self.lower_bound,
            method=self.method,
        )
        summary = replace(summary, **self._certainty(weights))
        read = reading_of(self.chain.settings)
        return replace(summary, view=read["view"], time=read["time"], policy=read["policy"])

    def _certainty(self, weights: Floats | None) -> dict[str, Any]:
        """Give the intervals of means, and how often they and those of rows miss."""
        found = {name: getattr(self, name) for name in (*_MEAN_ENDS, "mean_miss")}
        held = ~np.isnan(self.bits_low) & ~self.burnt
        proven = not np.any(self.miss[held] > 0) and np.any(held)
        if found["mean_miss"] is None and proven:
            low, high = self.bits_low[held], self.bits_high[held]
            found |= {"bits_mean_low": float(low.mean()), "bits_mean_high": float(high.mean())}
            found["mean_miss"] = 0.0
            if weights is not None and weights[held].any():
                by_value = [float(np.average(ends, weights=weights[held])) for ends in (low, high)]
                found["bits_weighted_mean_low"], found["bits_weighted_mean_high"] = by_value
        return {
            "miss": float(np.nanmax(self.miss, initial=0.0)),
            "joint_miss": self.joint_miss,
            **{name: np.nan if value is None else value for name, value in found.items()},
        }

    @property
    def burnt(self) -> Bools:
        """Which rows are burns: money that nobody holds."""
        found: Bools = self.chain.graph.kinds[self.nodes] == Kind.burn
        return found

    @cached_property
    def rising(self) -> Floats:
        """The bits of all rows with an answer but burns, in order; 0 where there is one origin."""
        return rising(self.bits[~np.isnan(self.bits) & ~self.burnt])

    @property
    def completeness(self) -> Completeness:
        """What the ledger showed about itself: whether anything is missing."""
        return self.chain.graph.ledger.completeness

    @cached_property
    def _incomplete(self) -> tuple[str, ...]:
        # Poison walks only from tainted nodes: what it calls clean may be tainted by what is not
        # there. Lots have no walk.
        walk = getattr(self.chain, "walk", None)
        clean = getattr(self.chain, "clean", None)
        moves = None if walk is None or clean is not None else walk.q
        return incomplete_notes(self.chain.graph, self.nodes, moves)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of these scores should know."""
        notes = [*self.chain.notes, *self._incomplete]
        lost = float(np.nanmax(1 - self.mass, initial=0.0))
        if self.method.startswith("series") and lost >= 1e-6:
            notes.append(
                f"the stopping rule lost up to {lost:.1%} of a row's probability: the true value "
                "lies between bits_low and bits_high, and bits as published may not"
            )
        if not self.method.startswith("sketch") and np.any(
            np.isnan(self.sources) & ~np.isnan(self.bits)
        ):
            notes.append(
                "possible sources are not counted where that takes long; --count-sources "
                "(count_sources=True) counts them"
            )
        if self.shortfall is not None:
            notes.append(self.shortfall)
        return tuple(notes)

    def order(self) -> Ints:
        """Give row numbers from most to least bits, nulls left out."""
        rows = np.flatnonzero(~np.isnan(self.bits))
        bits = np.round(-self.bits[rows], 9)
        return rows[np.lexsort((self.top[rows], np.round(self.steps[rows], 9), bits))]

    def _repr_html_(self) -> str:
        return shown("scores", self)


def not_reached(scores: Scores, why: str) -> AccuracyError:
    """Make the error that carries scores whose intervals are wider than requested."""
    return AccuracyError(why, scores=replace(scores, shortfall=why))


def reached(solve: Callable[[], Scores]) -> Scores:
    """Solve; where the accuracy is not reached, give what was: its notes say so."""
    try:
        return solve()
    except AccuracyError as error:
        if error.scores is None:
            raise
        return error.scores


# What has a value for every row.
_MEAN_ENDS = (
    "bits_mean_low", "bits_mean_high", "bits_weighted_mean_low", "bits_weighted_mean_high",
)  # fmt: skip
_COLUMNS = (
    "nodes", "bits", "bits_low", "bits_high", "steps", "mass", "sources", "top", "top_probability",
    "exposure", "exposure_low", "exposure_high", "conditional_bits", "bits_unmodified",
    "bits_error", "miss",
)  # fmt: skip


def _nullable(values: Floats) -> pa.Array:
    return pa.array(values, mask=np.isnan(values))
