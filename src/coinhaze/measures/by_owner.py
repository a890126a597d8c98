"""One coin's origins by owner, and what informed observers lack: from a row that is there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from coinhaze.amounts import Floats, Ints
from coinhaze.measures.intervals import ROUNDING, from_missing_mass, surprise
from coinhaze.measures.origins import Origins
from coinhaze.measures.pairs import sums_by
from coinhaze.observer import AbsorbingChain
from coinhaze.observer.chain import Belief
from coinhaze.observer.owners import Observer, OwnerGroups, owner_groups

Groupings = Sequence[tuple[Observer, OwnerGroups]]


@dataclass(frozen=True, eq=False)
class OwnerOrigins:
    """The owners that one coin's money came from, as an informed observer sees them."""

    observer: Observer
    bits: float
    bits_low: float
    bits_high: float
    owners: pa.StringArray  # largest first
    probability: Floats

    def as_dict(self, *, limit: int | None = None) -> dict[str, object]:
        """Give everything as plain values, for JSON."""
        shown = zip(self.owners.to_pylist()[:limit], self.probability.tolist(), strict=False)
        return {
            "observer": self.observer.name,
            "assumes": self.observer.assumes,
            "confidence": self.observer.confidence,
            "confidence_origin": self.observer.origin,
            "bits": self.bits,
            "bits_low": self.bits_low,
            "bits_high": self.bits_high,
            "owners": len(self.owners),
            "largest": [{"owner": name, "probability": share} for name, share in shown],
        }


def groupings(belief: Belief, observers: Iterable[Observer]) -> Groupings:
    """Group the sources of a belief as each observer does, for any number of rows."""
    return [(each, owner_groups(belief, each.persons)) for each in observers]


def origins_by_owner(origins: Origins, observers: Iterable[Observer]) -> tuple[OwnerOrigins, ...]:
    """Group one coin's origins as each observer does.

    Where some of the money was not followed, it may belong to anybody: the interval says so.
    """
    slack = origins.bits_high - origins.bits_low if origins.missing == 0 else 0.0
    return owners_of_row(
        origins.chain,
        origins.outcomes,
        origins.probability,
        groupings(origins.chain, observers),
        missing=origins.missing,
        slack=slack,
        maximum=origins.bits_high,
    )


def owners_of_row(
    belief: Belief,
    outcomes: Ints,
    probability: Floats,
    grouped: Groupings,
    *,
    missing: float,
    slack: float,
    maximum: float,
) -> tuple[OwnerOrigins, ...]:
    """Group a row of B, of which `missing` was not followed, as each observer does.

    `slack` bounds what rounding changes, `maximum` the bits of the naive observer.
    """
    found = []
    for observer, groups in grouped:
        used, number = np.unique(groups.of_outcome[outcomes], return_inverse=True)
        share = sums_by(number, probability, len(used))
        order = np.argsort(-share, kind="stable")
        history = _history_bits(belief, outcomes, probability)
        certain = len(used) == 1 and missing == 0 and history == 0
        entropy = 0.0 if certain else float(surprise(share).sum()) + history
        ends = from_missing_mass(
            np.array([entropy]),
            np.array([missing]),
            share.max(initial=0.0, keepdims=True),
            np.array([float(len(groups.names))]),
        )
        room = 0.0 if certain else slack + 8 * ROUNDING * (len(share) + 64) * (entropy + 2)
        maximum = 0.0 if certain else min(maximum, float(ends[1][0]) + room)
        low = min(max(float(ends[0][0]) - room, 0.0), maximum)
        found.append(
            OwnerOrigins(
                observer=observer,
                bits=min(max(entropy, low), maximum),
                bits_low=low,
                bits_high=maximum,
                owners=groups.names.of(used[order]),
                probability=share[order],
            )
        )
    return tuple(found)


def _history_bits(belief: Belief, outcomes: Ints, probability: Floats) -> float:
    """Give the bits inside outcomes that stand for several origins: a pool's, from outside."""
    history = belief.history if isinstance(belief, AbsorbingChain) else {}
    inside = ((probability[outcomes == k], surprise(inner)) for k, inner in history.items())
    return float(sum(share.sum() * bits.sum() for share, bits in inside))


def observers_sentence(bits: float, observed: Iterable[tuple[str, float]]) -> str:
    """Say what the naive observer lacks, and what informed ones do, by their names.

    >>> observers_sentence(7.644, [("common-input-no-coinjoins", 0.0), ("change", 0.0)])
    '7.64 bits; 0 if its inputs had one owner, which most observers assume.'
    >>> observers_sentence(2.0, [("common-input-no-coinjoins", 2.0), ("change", 1.5)])
    '2.00 bits, also if inputs spent together had one owner; 1.50 if change is recognised as well.'
    >>> observers_sentence(0.0, [("common-input-no-coinjoins", 0.0), ("change", 0.0)])
    '0 bits to every observer.'
    """
    if _bits(bits) == "0":  # nobody lacks more than the naive observer
        return "0 bits to every observer."
    words = f"{_bits(bits)} bits"
    last = _bits(bits)
    for name, found in observed:
        now = _bits(found)
        if now == last and name == "common-input-no-coinjoins":
            words += ", also if inputs spent together had one owner"
        elif now != last:
            words += f"; {now} {_IF[name]}"
        last = now
    return f"{words}."


_IF = {
    "common-input-no-coinjoins": "if its inputs had one owner, which most observers assume",
    "change": "if change is recognised as well",
    "given": "with the owners that were given",
}


def _bits(value: float) -> str:
    return "0" if value < 0.005 else f"{value:.2f}"
