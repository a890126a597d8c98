"""Bits for informed observers beside the naive one's: the ladder, with little more work.

An informed observer merges origins, so most columns of B stay as they are. With phi(x) = -x log2 x,
the entropy over merged columns is the one before, less the sum of phi over the columns that changed
and plus that over what they became: only those columns are solved for. A column that stands for
many origins (structure/columns.py) has changed if the origins in it have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from coinhaze.amounts import Bools, Floats, Ints
from coinhaze.errors import UsageError
from coinhaze.graph.order_kernels import merge_pairs
from coinhaze.measures import Scores
from coinhaze.measures.elementary import log2
from coinhaze.measures.scores import InformedBits, reached
from coinhaze.observer import AbsorbingChain
from coinhaze.observer.chain import NO_COLUMN
from coinhaze.observer.owners import Observer, by_owner, ladder
from coinhaze.solve.exact.engines import EXACT_WIDTH, rounding_of
from coinhaze.solve.exact.fine import Fine
from coinhaze.solve.exact.rounding import Rounding, summing, terms_of
from coinhaze.solve.exact.stream import stream_sums
from coinhaze.solve.planner import thresholds
from coinhaze.solve.planner.plan import choose
from coinhaze.solve.pool.limits import Budget
from coinhaze.solve.progress import Progress, silent
from coinhaze.solve.query import Query
from coinhaze.solve.structure.columns import Columns, Dominators, columns_of
from coinhaze.solve.structure.lump import LumpedChain, lump_states
from coinhaze.solve.structure.reduce import reduce_chain
from coinhaze.solve.structure.structure import Structure

NO_ORDERS = np.zeros(0)


def informed(
    scores: Scores,
    *,
    owners: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    observers: Sequence[Observer] | None = None,
    threads: int | None = None,
    progress: Progress = silent,
) -> Scores:
    """Put the bits of informed observers beside those of the naive one.

    Each observer of the ladder knows what the one before knows, and takes more origins for one
    person's: those spent together (CoinJoins excepted), then change, then those that `owners` or
    `labels` (both address -> name) give one name. Bits never rise along it. `observers` are a
    ladder that is there already, in the place of the ledger's own.

    >>> import coinhaze
    >>> ledger = coinhaze.CoinLedger.from_transactions([{"txid": "t", "inputs": [
    ...     {"txid": "x", "vout": 0, "value": 1, "address": "a"},
    ...     {"txid": "y", "vout": 0, "value": 1, "address": "b"}], "outputs": [{"value": 2}]}])
    >>> scores = coinhaze.informed(coinhaze.score(ledger))
    >>> scores.bits, scores.informed["common-input-no-coinjoins"].bits
    (array([1.]), array([0.]))
    """
    chain = scores.chain
    if not isinstance(chain, AbsorbingChain):
        raise UsageError("origins by owner are of walks: leave fifo and lifo out")
    if observers is None:
        observers = ladder(chain.graph.ledger, owners=owners, labels=labels)
    if not observers:
        raise UsageError(
            "nothing is inferred about owners of this ledger, which has no coins of known amounts: "
            "give a table of owners"
        )
    before = InformedBits.naive(scores)
    differences = _Differences.of(scores, Budget(threads)) if _is_exact(scores) else None
    found: dict[str, InformedBits] = {}
    for step, observer in enumerate(observers):
        grouped = by_owner(chain, observer.persons, name=observer.name)
        if differences is None:
            bits = _solved_again(scores, grouped, Budget(threads))
        else:
            bits = differences.step(grouped, before)
        before = replace(bits, observer=observer).below(before)
        found[observer.name] = before
        progress((step + 1) / len(observers))
    return replace(scores, informed=found)


def _is_exact(scores: Scores) -> bool:
    return not np.any(scores.miss > 0) and scores.width <= EXACT_WIDTH


def _solved_again(scores: Scores, chain: AbsorbingChain, budget: Budget) -> InformedBits:
    """Score all rows over other outcomes, as accurately as scores are, or with as many draws."""
    drawn = float(np.nanmax(scores.miss, initial=0.0))
    choice = choose(
        Structure(chain),
        scores.nodes,
        accuracy="preview" if drawn else max(scores.width, EXACT_WIDTH),
        miss=drawn or None,
        budget=budget,
    )
    return InformedBits.naive(reached(lambda: choice.run(silent)))


class _Differences:
    """The columns of the latest step, and how far the sums of a row can be rounded."""

    def __init__(
        self,
        query: Query,
        dominators: Dominators,
        columns: Columns,
        sources: Floats,
        budget: Budget,
    ) -> None:
        self.query = query
        self.dominators = dominators
        self.columns = columns
        self.sources = sources  # of each scored state, or more
        self.budget = budget

    @classmethod
    def of(cls, scores: Scores, budget: Budget) -> _Differences | None:
        """Begin with the naive observer's columns; None where another solver is needed."""
        chain = scores.chain
        assert isinstance(chain, AbsorbingChain)
        reduced = reduce_chain(chain, scores.nodes)
        if not reduced.acyclic or chain.listed:
            return None
        # The law x^T B = b was checked when these scores were made.
        walk = replace(chain, conserves=False)
        query = Query.by(walk, scores.nodes, reduced, missing=thresholds.EXACT_MISSING)
        known = np.where(np.isnan(scores.sources), len(chain.outcomes), scores.sources)
        sources = np.ones(len(query.scored))
        np.maximum.at(sources, query.row_of, known[query.answered])
        dominators = Dominators.of(query)
        columns = columns_of(query, NO_ORDERS, dominators=dominators)
        return cls(query, dominators, columns, sources, budget)

    def step(self, chain: AbsorbingChain, before: InformedBits) -> InformedBits:
        """Go on to coarser outcomes: take away what changed, and add what it became."""
        reduced = self.query.reduced
        ends = reduced.column != NO_COLUMN
        column = reduced.column.copy()
        column[ends] = _renamed(self.query.chain, chain)[reduced.column[ends]]
        chain = replace(chain, conserves=False)
        query = replace(self.query, chain=chain, reduced=replace(reduced, column=column))
        old, new = self.columns, columns_of(query, NO_ORDERS, dominators=self.dominators)
        self.query, self.columns = query, new
        n = max(len(old), len(new))
        pair = merge_pairs(old.of_state[ends], new.of_state[ends], n)
        old_changed, new_changed = _changed(old, new, pair)
        if not np.any(old_changed) and not np.any(new_changed):
            return before
        # States that walk to one column alone, old and new, are one.
        both = np.full(len(ends), NO_COLUMN)
        both[ends] = pair[0]
        lumped, keep = lump_states(query, both, len(pair[1]))
        was, became = _some(old, old_changed, keep), _some(new, new_changed, keep)
        # The same states have changed columns in both, and the coarser ones of more states each:
        # what bounds the roundings of those bounds the roundings of the others.
        sources = _of_lumped(self.query, lumped, self.sources)
        bounds = rounding_of(LumpedChain(lumped, became), sources, by_fours=True)
        less = self._sums(lumped, was, sources, *bounds)
        more = self._sums(lumped, became, sources, *bounds)
        bits = before.bits - less.value + more.value
        slack = less.slack + more.slack
        return InformedBits(
            bits,
            np.maximum(before.bits_low - less.value + more.value - slack, 0.0),
            np.maximum(before.bits_high - less.value + more.value + slack, 0.0),
            before.miss,
        )

    def _sums(
        self,
        query: Query,
        columns: Columns,
        sources: Floats,
        rounding: Rounding,
        scaled: Fine | None,
    ) -> _PartialSums:
        """Add phi up over some columns, for every row."""
        if scaled is not None:
            query = scaled.query
        sums, _ = stream_sums(query, columns, NO_ORDERS, budget=self.budget, progress=silent)
        if scaled is not None:
            scaled.restore(sums, NO_ORDERS)
        value = sums.entropy + sums.prior
        # Both proofs bound the change of every term, so their sum over some of them too.
        maximum = log2(np.maximum(sources, 1.0))
        terms = terms_of(columns, sources, by_fours=True)
        slack = rounding.of_bits(maximum, sources) + summing(terms, maximum)
        return _PartialSums(query.spread(value), query.spread(slack))


class _PartialSums(NamedTuple):
    """A sum over some columns for every row, and how far it may be from the truth."""

    value: Floats
    slack: Floats


def _renamed(old: AbsorbingChain, new: AbsorbingChain) -> Ints:
    """Give the outcome that each outcome of a chain is in a coarser one."""
    has = old.column != NO_COLUMN
    renamed = np.full(len(old.outcomes), NO_COLUMN)
    renamed[old.column[has]] = new.column[has]
    return renamed


def _changed(old: Columns, new: Columns, pairs: tuple[Ints, Ints, Ints]) -> tuple[Bools, Bools]:
    """Tell which columns are not the same in both: the same states, and the same inside.

    `pairs` are the number of each end's pair of columns, and the old and the new one of each pair.
    """
    number, one, other = pairs
    count = np.bincount(number, minlength=len(one))
    same = count == np.bincount(one, weights=count, minlength=len(old))[one]
    same &= count == np.bincount(other, weights=count, minlength=len(new))[other]
    # Merging lowers the number of origins a column stands for.
    same &= old.priors.count[one] == new.priors.count[other]
    was, became = np.ones(len(old), dtype=np.bool_), np.ones(len(new), dtype=np.bool_)
    was[one[same]] = became[other[same]] = False
    return was, became


def _some(columns: Columns, wanted: Bools, keep: Ints) -> Columns:
    """Take some columns, on the states that are kept."""
    number = np.append(np.where(wanted, np.cumsum(wanted) - 1, NO_COLUMN), NO_COLUMN)
    chosen = np.flatnonzero(wanted)
    return replace(
        columns,
        of_state=number[columns.of_state[keep]],
        likeliest=columns.likeliest[chosen],
        priors=columns.priors.take(chosen),
    )


def _of_lumped(query: Query, lumped: Query, values: Floats) -> Floats:
    """Give each scored state of a lumped chain the largest value of the states it is made of."""
    found = np.zeros(len(lumped.scored))
    np.maximum.at(found, lumped.row_of, values[query.row_of])
    return found
