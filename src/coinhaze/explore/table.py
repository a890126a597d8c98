"""A ledger's table: any column's order, any range of bits and steps, page by page or all of it."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coinhaze.amounts import Bools, Floats, Ints
from coinhaze.errors import InputError
from coinhaze.explore.cache import Cache
from coinhaze.explore.coin.origins import OutcomeNames
from coinhaze.explore.models import TablePage, TableRow
from coinhaze.explore.nodes import Nodes
from coinhaze.explore.query import TableQuery
from coinhaze.formats.money import with_amount_texts
from coinhaze.measures import Scores


def cursor_at(place: int, *what: object) -> str:
    """Write a place among rows of something down; however long its name, the cursor is short.

    >>> place_of_cursor(cursor_at(7, "-bits"), "-bits", maximum=10)
    7
    """
    return base64.urlsafe_b64encode(json.dumps([_mark(what), place]).encode()).decode().rstrip("=")


def place_of_cursor(cursor: str, *what: object, maximum: int) -> int:
    """Read a place below `maximum` back; refuse what was written for something else."""
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        found, place = json.loads(base64.urlsafe_b64decode(padded.encode("ascii")))
    except (binascii.Error, ValueError, TypeError, RecursionError):
        raise InputError("after is no cursor of this table: take it from the page before") from None
    if found != _mark(what) or type(place) is not int or not 0 <= place < maximum:
        raise InputError("after is a cursor of something else: begin at the first page again")
    return place


def _mark(what: tuple[object, ...]) -> str:
    """Give a few digits that tell things apart: a ledger, settings, a name."""
    return hashlib.sha256(repr(what).encode("utf-8", "surrogatepass")).hexdigest()[:16]


AT_ONCE = 10_000  # rows of a batch


def batches_of(rows: int) -> list[tuple[int, int]]:
    """Say where batches of so many rows begin and end.

    >>> batches_of(12_000)
    [(0, 10000), (10000, 12000)]
    """
    return [(first, min(first + AT_ONCE, rows)) for first in range(0, rows, AT_ONCE)]


class BitsAndSteps(Protocol):
    """Bits and steps of all rows of a table."""

    @property
    def bits(self) -> Floats:
        """Their bits."""

    @property
    def steps(self) -> Floats:
        """Their expected steps."""


def _inside(figures: BitsAndSteps, ask: TableQuery) -> Bools | None:
    """Tell which rows lie in the ranges of a query; None where it has none."""
    inside: Bools | None = None
    for values, minimum, maximum in (
        (figures.bits, ask.bits_low, ask.bits_high),
        (figures.steps, ask.steps_low, ask.steps_high),
    ):
        for bound, compare in ((minimum, np.greater_equal), (maximum, np.less_equal)):
            if bound is not None:
                found = compare(values, bound)
                inside = found if inside is None else inside & found
    return inside


def rows_in_ranges(order: Ints, figures: BitsAndSteps, ask: TableQuery) -> Ints:
    """Give the rows in the ranges of a query, in an order of all rows."""
    inside = _inside(figures, ask)
    return order if inside is None else order[inside[order]]


def page_of_rows(
    order: Ints, figures: BitsAndSteps, ask: TableQuery, *bound: object
) -> tuple[Ints, int, str | None]:
    """Give the rows of a page, how many rows there are in all, and the cursor of the next page.

    A cursor is the place of the page's last row in the order of all rows.
    """
    inside = _inside(figures, ask)
    left = np.arange(len(order)) if inside is None else np.flatnonzero(inside[order])
    first = 0
    if ask.after is not None:
        place = place_of_cursor(ask.after, ask.sort, *bound, maximum=len(order))
        first = int(np.searchsorted(left, place, side="right"))
    places = left[first : first + ask.limit]
    more = first + len(places) < len(left) and len(places) > 0
    after = cursor_at(int(places[-1]), ask.sort, *bound) if more else None
    return order[places], len(left), after


def ranks_of_names(names: pa.Array) -> Ints:
    """Give the place of each name among all in the order of the alphabet."""
    ranks = np.empty(len(names), dtype=np.int64)
    ranks[pc.sort_indices(names).to_numpy()] = np.arange(len(names))
    return ranks


class Exposures(NamedTuple):
    """Of each row how much of its money came from a list, and its proven bounds."""

    exposure: Floats
    exposure_low: Floats
    exposure_high: Floats

    @classmethod
    def of(cls, scores: Scores, listed: Scores | None) -> Exposures:
        """Take them from `listed` scores; None where nothing of the list is in the ledger."""
        if listed is None:
            # Nothing is listed, so nothing came from there; what has no answer has none here.
            none = np.where(np.isnan(scores.bits), np.nan, 0.0)
            return cls(none, none, none)
        assert listed.exposure is not None
        theirs, ours = listed.nodes, scores.nodes
        if listed.chain.graph is not scores.chain.graph:  # of another time: by whose node it is
            theirs = listed.chain.graph.names.party[theirs]
            ours = scores.chain.graph.names.party[ours]
        order = np.argsort(theirs, kind="stable")
        at = np.minimum(np.searchsorted(theirs[order], ours), max(len(listed) - 1, 0))
        at = order[at] if len(order) else at
        low = listed.exposure if listed.exposure_low is None else listed.exposure_low
        high = listed.exposure if listed.exposure_high is None else listed.exposure_high
        there = theirs[at] == ours if len(listed) else np.zeros(0, dtype=np.bool_)
        return cls(*(np.where(there, each[at], np.nan) for each in (listed.exposure, low, high)))


class Table:
    """The rows of some scores, in orders."""

    def __init__(
        self,
        scores: Scores,
        nodes: Nodes,
        *,
        exposure: Exposures | None = None,
        bound: tuple[object, ...] = (),
        orders: Cache[Ints] | None = None,
    ) -> None:
        """Take scores; `exposure` has a row for each of theirs, `bound` is what cursors are for.

        `orders` are those that were found before, by what cursors are for and how they sort.
        """
        self.scores = scores
        self.nodes = nodes
        self.exposure = exposure
        self.bound = bound
        self.orders: Cache[Ints] = Cache(1) if orders is None else orders

    def page(self, ask: TableQuery) -> TablePage:
        """Give a page of the rows in the ranges of a query."""
        rows, total, after = page_of_rows(self.order(ask.sort), self.scores, ask, *self.bound)
        return TablePage(
            ledger=self.nodes.ledger, query=ask, total=total, rows=self.rows(rows), after=after
        )

    def rows(self, rows: Ints) -> tuple[TableRow, ...]:
        """Tell some rows of the scores."""
        scores, nodes = self.scores, self.nodes
        at = scores.nodes[rows].astype(np.int64)
        outcome_names = OutcomeNames(nodes, scores.chain, None, None)  # type: ignore[arg-type]
        names, exposure, bounds = nodes.names(at), self._exposure, scores.lower_bound
        found = []
        for name, node, row in zip(names, at.tolist(), rows.tolist(), strict=True):
            sources = float(scores.sources[row])
            href = nodes.href(node)
            found.append(
                TableRow(
                    name=name,
                    kind=nodes.kind(node),
                    amount=nodes.amount(node),
                    bits=float(scores.bits[row]),
                    bits_low=float(scores.bits_low[row]),
                    bits_high=float(scores.bits_high[row]),
                    certified=not scores.miss[row] > 0,
                    miss=float(scores.miss[row]),
                    lower_bound=bounds is not None and bool(bounds[row]),
                    steps=float(scores.steps[row]),
                    sources=None if np.isnan(sources) else int(sources),
                    top=self._top(outcome_names, int(scores.top[row])),
                    top_share=_share(float(scores.top_probability[row])),
                    exposure=None if exposure is None else _share(float(exposure[row])),
                    informed={
                        observer: float(each.bits[row])
                        for observer, each in scores.informed.items()
                    },
                    label=nodes.label(node),
                    href=href or "",
                )
            )
        return tuple(found)

    @property
    def _exposure(self) -> Floats | None:
        return self.scores.exposure if self.exposure is None else self.exposure.exposure

    def _top(self, outcome_names: OutcomeNames, outcome: int) -> str | None:
        if outcome < 0:
            return None
        node = outcome_names.node(outcome)
        if node < 0:
            return str(self.scores.chain.outcomes[outcome].as_py())
        return self.nodes.words(node)

    def batches(self, ask: TableQuery) -> Iterator[pa.RecordBatch]:
        """Give all rows the filter leaves as columns; the first batch is empty and tells names."""
        left = rows_in_ranges(self.order(ask.sort), self.scores, ask)
        for first, last in [(0, 0), *batches_of(len(left))]:
            yield self._batch(left[first:last])

    def _batch(self, rows: Ints) -> pa.RecordBatch:
        scores, graph = self.scores, self.nodes.graph
        nodes = scores.nodes[rows].astype(np.int64)
        closing = graph.closing
        columns = {
            "name": graph.names.of(nodes).cast(pa.string()),
            "kind": pa.array([self.nodes.kind(n) for n in nodes.tolist()], pa.string()),
            "amount": pa.nulls(len(rows), pa.string())
            if closing is None
            else closing.take(nodes).text(),
        }
        for name in ("bits", "bits_low", "bits_high", "miss", "steps"):
            columns[name] = _known(getattr(scores, name)[rows])
        for each in scores.informed.values():
            if each.observer is not None:
                columns[each.observer.column] = _known(each.bits[rows])
        sources = scores.sources[rows]
        columns["sources"] = pa.array(sources, mask=np.isnan(sources)).cast(pa.int64())
        top = scores.top[rows]
        columns["top"] = scores.chain.outcomes.take(pa.array(top, pa.int64(), mask=top < 0)).cast(
            pa.string()
        )
        columns["top_share"] = _known(scores.top_probability[rows])
        if scores.lower_bound is not None:
            columns["lower_bound"] = pa.array(scores.lower_bound[rows])
        if self.exposure is not None:
            for name, values in self.exposure._asdict().items():
                columns[name] = _known(values[rows])
        shown = with_amount_texts(pa.table(columns), self.nodes.index.unit, ["amount"])
        (batch,) = shown.combine_chunks().to_batches() or [
            pa.RecordBatch.from_pylist([], schema=shown.schema)
        ]
        return batch

    def order(self, sort: str) -> Ints:
        """Give all rows in an order; those without an answer come last, ties in ledger order."""
        return self.orders.make((*self.bound, sort), lambda: self._sorted(sort))

    def _sorted(self, sort: str) -> Ints:
        column, falling = sort.removeprefix("-"), sort.startswith("-")
        keys = self._keys(column)
        if falling:
            keys = [-key for key in keys]
        order = np.lexsort(keys[::-1])
        return order.astype(np.int32)

    def _keys(self, column: str) -> list[Floats | Ints]:
        """Give what to sort by, the first counting most; nothing known is last either way."""
        scores, graph = self.scores, self.nodes.graph
        if column in ("bits", "steps", "sources", "top_share"):
            values = scores.top_probability if column == "top_share" else getattr(scores, column)
            # Bits that differ by roundings alone are equal; the ledger's order decides.
            return [np.round(values, 9)]
        if column == "informed":
            # What the most informed observer lacks, then the naive one.
            lacked = [each.bits for each in scores.informed.values()][-1:]
            return [np.round(values, 9) for values in (*lacked, scores.bits)]
        if column == "kind":
            return [graph.kinds[scores.nodes].astype(np.int64)]
        if column == "amount":
            if graph.closing is None:
                return [np.zeros(len(scores), dtype=np.int64)]
            digits = graph.closing.take(scores.nodes).digits
            return [digits[:, k] for k in range(digits.shape[1] - 1, -1, -1)]
        return [ranks_of_names(graph.names.of(scores.nodes.astype(np.int64)))]


def _share(value: float) -> float | None:
    return None if np.isnan(value) else min(max(value, 0.0), 1.0)


def _known(values: Floats) -> pa.Array:
    return pa.array(values, pa.float64(), mask=np.isnan(values))
