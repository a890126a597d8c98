"""A ledger's table: any column's order, any range of bits and steps, page by page or all of it."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Iterator
from threading import Lock
from typing import ClassVar, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coinhaze.amounts import Bools, Floats, Ints
from coinhaze.errors import InputError
from coinhaze.explore.coin.origins import OutcomeNames
from coinhaze.explore.models import TablePage, TableRow
from coinhaze.explore.nodes import Nodes
from coinhaze.explore.query import TableQuery
from coinhaze.formats.money import with_amount_texts
from coinhaze.measures import Scores


def cursor_at(place: int, *what: object) -> str:
    """Write a place among rows of something down; however long its name, the cursor is short.

    >>> place_of_cursor(cursor_at(7, "-bits"), "-bits", most=10)
    7
    """
    return base64.urlsafe_b64encode(json.dumps([_mark(what), place]).encode()).decode().rstrip("=")


def place_of_cursor(cursor: str, *what: object, most: int) -> int:
    """Read a place below `most` back; refuse what was written for something else."""
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        found, place = json.loads(base64.urlsafe_b64decode(padded.encode("ascii")))
    except (binascii.Error, ValueError, TypeError, RecursionError):
        raise InputError("after is no cursor of this table: take it from the page before") from None
    if found != _mark(what) or type(place) is not int or not 0 <= place < most:
        raise InputError("after is a cursor of something else: begin at the first page again")
    return place


def _mark(what: tuple[object, ...]) -> str:
    """Give a few digits that tell things apart: a ledger, settings, a name."""
    return hashlib.sha256(repr(what).encode("utf-8", "surrogatepass")).hexdigest()[:16]


AT_ONCE = 10_000  # rows of a batch


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
    """The rows of some scores in orders that are found once each."""

    _ready: ClassVar[WeakKeyDictionary[Scores, dict[str, Ints]]] = WeakKeyDictionary()
    _lock: ClassVar[Lock] = Lock()

    def __init__(
        self,
        scores: Scores,
        nodes: Nodes,
        *,
        exposure: Exposures | None = None,
        bound: tuple[object, ...] = (),
    ) -> None:
        """Take scores; `exposure` has a row for each of theirs, `bound` is what cursors are for."""
        self.scores = scores
        self.nodes = nodes
        self.exposure = exposure
        self.bound = bound

    def page(self, ask: TableQuery) -> TablePage:
        """Give a page; the cursor is its last row's place in the order of all rows."""
        order = self.order(ask.sort)
        retained = self._retained(ask)
        left = order if retained is None else order[retained[order]]
        first = 0
        if ask.after is not None:
            place = place_of_cursor(ask.after, ask.sort, *self.bound, most=len(order))
            first = place + 1 if retained is None else int(np.sum(retained[order[: place + 1]]))
        rows = left[first : first + ask.limit]
        after = None
        if first + len(rows) < len(left) and len(rows):
            at = first + len(rows) - 1
            if retained is not None:
                at = int(np.flatnonzero(retained[order])[at])
            after = cursor_at(at, ask.sort, *self.bound)
        return TablePage(
            ledger=self.nodes.ledger, query=ask, total=len(left), rows=self.rows(rows), after=after
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
        order, retained = self.order(ask.sort), self._retained(ask)
        left = order if retained is None else order[retained[order]]
        for first in range(0, max(len(left), 1), AT_ONCE):
            rows = left[first : first + AT_ONCE]
            if first == 0:
                yield self._batch(rows[:0])
            if len(rows):
                yield self._batch(rows)

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
        with self._lock:
            orders = self._ready.setdefault(self.scores, {})
        found = orders.get(sort)
        if found is None:
            found = orders[sort] = self._sorted(sort)
        return found

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
        if column == "kind":
            return [graph.kinds[scores.nodes].astype(np.int64)]
        if column == "amount":
            if graph.closing is None:
                return [np.zeros(len(scores), dtype=np.int64)]
            digits = graph.closing.take(scores.nodes).digits
            return [digits[:, k] for k in range(digits.shape[1] - 1, -1, -1)]
        names = graph.names.of(scores.nodes.astype(np.int64))
        rank = np.empty(len(scores), dtype=np.int64)
        rank[pc.sort_indices(names).to_numpy()] = np.arange(len(scores))
        return [rank]

    def _retained(self, ask: TableQuery) -> Bools | None:
        """Tell which rows lie in the ranges asked for; None where none is asked for."""
        retained: Bools | None = None
        for name, least, most in (
            ("bits", ask.bits_low, ask.bits_high),
            ("steps", ask.steps_low, ask.steps_high),
        ):
            values = getattr(self.scores, name)
            for bound, inside in ((least, np.greater_equal), (most, np.less_equal)):
                if bound is not None:
                    found = inside(values, bound)
                    retained = found if retained is None else retained & found
        return retained


def _share(value: float) -> float | None:
    return None if np.isnan(value) else min(max(value, 0.0), 1.0)


def _known(values: Floats) -> pa.Array:
    return pa.array(values, pa.float64(), mask=np.isnan(values))
