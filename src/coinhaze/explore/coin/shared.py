"""Two coins: what their origins have in common, to every observer."""

from __future__ import annotations

import numpy as np

from coinhaze.errors import UsageError
from coinhaze.explore.coin.answer import Question
from coinhaze.explore.models import BoundedFigure, CommonOrigin, SharedAnswer, SharedFigures
from coinhaze.explore.query import Settings
from coinhaze.explore.views import Views
from coinhaze.measures.pairs import FIGURES, SourceRow
from coinhaze.report.shared import sentence
from coinhaze.solve.shared import seen_by


def compare_two(
    views: Views, pair: tuple[Question, Question], settings: Settings, *, limit: int
) -> SharedAnswer:
    """Compare two coins under one look."""
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
