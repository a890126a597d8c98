"""One coin's origins by owner, and what informed observers lack: from a row that is there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from coinhaze.amounts import Floats, Ints
from coinhaze.measures.intervals import ROUNDING, from_missing_mass, surprise
from coinhaze.measures.origins import Origins
from coinhaze.measures.pairs import sums_by
from coinhaze.observer.chain import Belief
from coinhaze.observer.owners import Observer, owner_groups


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


def origins_by_owner(origins: Origins, observers: Iterable[Observer]) -> tuple[OwnerOrigins, ...]:
    """Group one coin's origins as each observer does.

    Where some of the money was not followed, it may belong to anybody: the interval says so.
    """
    slack = origins.bits_high - origins.bits_low if origins.missing == 0 else 0.0
    return owners_of_row(
        origins.chain,
        origins.outcomes,
        origins.probability,
        observers,
        missing=origins.missing,
        slack=slack,
        most=origins.bits_high,
    )


def owners_of_row(
    belief: Belief,
    outcomes: Ints,
    probability: Floats,
    observers: Iterable[Observer],
    *,
    missing: float,
    slack: float,
    most: float,
) -> tuple[OwnerOrigins, ...]:
    """Group a row of B, of which `missing` was not followed, as each observer does.

    `slack` bounds what rounding changes, `most` the bits of the naive observer.
    """
    found = []
    for observer in observers:
        groups = owner_groups(belief, observer.persons)
        used, number = np.unique(groups.of_outcome[outcomes], return_inverse=True)
        share = sums_by(number, probability, len(used))
        order = np.argsort(-share, kind="stable")
        certain = len(used) == 1 and missing == 0
        entropy = 0.0 if certain else float(surprise(share).sum())
        ends = from_missing_mass(
            np.array([entropy]),
            np.array([missing]),
            share.max(initial=0.0, keepdims=True),
            np.array([float(len(groups.names))]),
        )
        room = 0.0 if certain else slack + 8 * ROUNDING * (len(share) + 64) * (entropy + 2)
        most = 0.0 if certain else min(most, float(ends[1][0]) + room)
        low = min(max(float(ends[0][0]) - room, 0.0), most)
        found.append(
            OwnerOrigins(
                observer=observer,
                bits=min(max(entropy, low), most),
                bits_low=low,
                bits_high=most,
                owners=groups.names.of(used[order]),
                probability=share[order],
            )
        )
    return tuple(found)


def observers_sentence(bits: float, observed: Iterable[tuple[str, float]]) -> str:
    """Say what the naive observer lacks, and what informed ones do, by their names.

    >>> observers_sentence(7.644, [("common-input-no-coinjoins", 0.0), ("change", 0.0)])
    '7.64 bits; 0 if its inputs had one owner, which most observers assume.'
    >>> observers_sentence(2.0, [("common-input-no-coinjoins", 2.0), ("change", 1.5)])
    '2.00 bits, whoever owned inputs spent together; 1.50 if change is told as well.'
    """
    words = f"{_bits(bits)} bits"
    last = _bits(bits)
    for name, found in observed:
        now = _bits(found)
        if now == last and name == "common-input-no-coinjoins" and now != "0":
            words += ", whoever owned inputs spent together"
        elif now != last:
            words += f"; {now} {_IF[name]}"
        last = now
    return f"{words}."


_IF = {
    "common-input-no-coinjoins": "if its inputs had one owner, which most observers assume",
    "change": "if change is told as well",
    "given": "with the owners that were given",
}


def _bits(value: float) -> str:
    return "0" if value < 0.005 else f"{value:.2f}"
