"""What informed observers lack to tell one coin's origins, and what two coins have in common."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from coinhaze.errors import UsageError
from coinhaze.explore.models import (
    BoundedFigure,
    CommonOrigin,
    ObservedBits,
    SharedAnswer,
    SharedFigures,
)
from coinhaze.explore.query import Settings
from coinhaze.explore.views import Views
from coinhaze.measures.by_owner import OwnerOrigins, groupings, observers_sentence, owners_of_row
from coinhaze.measures.pairs import FIGURES, SourceRow
from coinhaze.observer.chain import SourceNames
from coinhaze.report.shared import sentence
from coinhaze.solve.shared import seen_by

if TYPE_CHECKING:
    from coinhaze.explore.coin.answer import Question


def observed(question: Question) -> tuple[ObservedBits, ...]:
    """Tell a coin's bits to informed observers; none where origins are no sources, or no answer."""
    row, figures = question.row, question.figures
    if type(row.belief.outcomes) is not SourceNames or math.isnan(figures.bits):
        return ()
    found = owners_of_row(
        row.belief,
        row.outcomes,
        row.shares,
        groupings(row.belief, question.views.observers(question.nodes.labels)),
        missing=row.missing,
        slack=figures.high - figures.low if row.missing == 0 else 0.0,
        maximum=figures.high,
    )
    return tuple(
        observed_bits(each, certified=figures.certified, miss=figures.miss) for each in found
    )


def observed_bits(each: OwnerOrigins, *, certified: bool = True, miss: float = 0.0) -> ObservedBits:
    """Give what one observer lacks as the API does."""
    return ObservedBits(
        bits=each.bits,
        bits_low=each.bits_low,
        bits_high=each.bits_high,
        certified=certified,
        miss=miss,
        observer=each.observer.name,
        assumes=each.observer.assumes,
        confidence=each.observer.confidence,
        confidence_origin=each.observer.origin,
        owners=len(each.owners),
    )


def observed_words(question: Question, observers: Sequence[ObservedBits]) -> str:
    """Say what the naive observer lacks, and what informed ones do; nothing without any."""
    stated = [(each.observer, each.bits) for each in observers if each.bits is not None]
    return observers_sentence(question.figures.bits, stated) if stated else ""


def compare_two(
    views: Views, pair: tuple[Question, Question], settings: Settings, *, limit: int
) -> SharedAnswer:
    """Compare two coins under the same view options."""
    first, second = pair
    if first.node == second.node:
        raise UsageError("both names mean the same coin: name another one to compare it with")
    rows = []
    for question in pair:
        question.refuse_lost()
        order = np.argsort(question.row.outcomes)
        row = question.row
        rows.append(SourceRow(row.outcomes[order], row.shares[order], row.missing))
    one, other = (question.nodes.name(question.node) for question in pair)
    found = seen_by(first.belief, (one, other), rows, views.observers(first.nodes.labels))
    observers = []
    for seen in found.seen:
        figures = found.pair(one, other, seen.name)
        bounded = {name: BoundedFigure(**vars(getattr(figures, name))) for name in FIGURES}
        common = found.common(one, other, seen.name, limit=limit).to_pylist()
        observers.append(
            SharedFigures(
                observer=seen.name,
                assumes="nothing" if seen.observer is None else seen.observer.assumes,
                common=tuple(CommonOrigin(**row) for row in common),
                **bounded,
            )
        )
    return SharedAnswer(
        ledger=first.nodes.ledger,
        first=one,
        second=other,
        settings=settings,
        sentence=sentence(found),
        observers=tuple(observers),
    )
