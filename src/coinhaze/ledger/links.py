"""Links: payments an observer knows, or believes, to come from somewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from coinhaze.errors import InputError

ROUNDING = 1e-9  # how far written probabilities may be from adding up to 1


@dataclass(frozen=True)
class Link:
    """Where a payment came from: a distribution over nodes, and how sure that is.

    With probability `confidence` the payment came from there; with the rest the observer knows no
    more than the ledger shows.
    """

    origins: Mapping[str, float]
    confidence: float = 1.0

    @classmethod
    def of(cls, payment: str, given: Mapping[str, float] | Link) -> Link:
        """Check what is given for a payment, and make its probabilities add up to 1.

        >>> Link.of("tx:0", {"alice": 0.25, "bob": 0.75}).confidence
        1.0
        """
        link = given if isinstance(given, Link) else cls(given)
        values = link.origins.values()
        total = sum(values)
        if not values or not min(values) >= 0 or not abs(total - 1) <= ROUNDING:
            raise InputError(f"link of payment {payment!r}: probabilities sum to {total}, not 1")
        if not 0 <= link.confidence <= 1:
            raise InputError(
                f"link of payment {payment!r}: confidence {link.confidence} is no probability"
            )
        return cls({name: p / total for name, p in link.origins.items()}, link.confidence)


Links: TypeAlias = Mapping[str, Mapping[str, float] | Link]
