"""One coin's bits to informed observers, and the sentence that says them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from coinhaze.explore.models import ObservedBits
from coinhaze.measures.by_owner import OwnerOrigins, groupings, observers_sentence, owners_of_row
from coinhaze.observer.chain import SourceNames

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
