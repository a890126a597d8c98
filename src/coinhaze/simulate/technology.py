"""A privacy technology: the ledger it makes of people's intents, who holds what, what it costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, Unpack

import numpy as np

from coinhaze.amounts import Bools, Floats, Ints
from coinhaze.errors import UsageError
from coinhaze.ledger import Ledger
from coinhaze.ledger.frozen import freeze
from coinhaze.options import NamedScoreKeywords
from coinhaze.simulate.intents import Intents
from coinhaze.solve import score_or_reached
from coinhaze.solve.source import chain_of

NOBODY = -1  # owner of what pools hold, and of what coordinators and relayers take


class FinalHolding(NamedTuple):
    """Money a person holds at the end, and its node, which others may share.

    No node: it never moved, so it is in no ledger, and its origin is certain.
    """

    node: str | None
    person: int
    value: int


@dataclass(frozen=True, eq=False)
class Realised:
    """The ledger of one economy under one technology, with facts that are hidden from observers.

    `settings` go to `coinhaze.score`: view, policy, links, everything the observer knows.
    """

    ledger: Ledger
    holdings: tuple[FinalHolding, ...]
    adopters: Bools
    fees: Ints  # what each person paid for moving money, less what others paid the person for it
    transactions: int
    waiting: float  # hours the money of an adopter's payment waited, mean over payments
    settings: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        freeze(self)

    @cached_property
    def watched(self) -> tuple[str, ...]:
        """Return the nodes that hold money of adopters."""
        return self._nodes(adopt=True)

    @cached_property
    def others(self) -> tuple[str, ...]:
        """Return the nodes that hold money of people who do not adopt."""
        return self._nodes(adopt=False)

    def held(self) -> Ints:
        """Return what each person holds in total."""
        total = np.zeros(len(self.adopters), dtype=np.int64)
        for holding in self.holdings:
            total[holding.person] += holding.value
        return total

    def bits(self, **options: Unpack[NamedScoreKeywords]) -> Floats:
        """Score what people hold: the mean over each person's money, by value.

        NaN for a person who holds nothing, or whose money has no answer. `options` are those of
        `coinhaze.score`.

        >>> from coinhaze.simulate.intents import draw_intents
        >>> from coinhaze.simulate.technologies import TECHNOLOGIES
        >>> intents = draw_intents(people=5, payments=10)
        >>> TECHNOLOGIES["plain"].realise(intents, 0.0).bits().shape
        (5,)
        """
        of_node = self._bits_by_node(options)
        total, weight = np.zeros(len(self.adopters)), np.zeros(len(self.adopters))
        for holding in self.holdings:
            total[holding.person] += holding.value * of_node[holding.node]
            weight[holding.person] += holding.value
        bits: Floats = np.full(len(total), np.nan)
        return np.divide(total, weight, out=bits, where=weight > 0)

    def _bits_by_node(self, options: Mapping[str, Any]) -> dict[str | None, float]:
        names = (*self.watched, *self.others)
        found: dict[str | None, float] = {None: 0.0}
        if not names:
            return found
        chain = chain_of(self.ledger, **self.settings)
        # Sinks first, by the column: looking up thousands of nodes by name is slower than scoring.
        scores = score_or_reached(chain, **options)
        found |= zip(
            chain.graph.names.of(scores.nodes).to_pylist(), scores.bits.tolist(), strict=True
        )
        missing = [name for name in dict.fromkeys(names) if name not in found]
        if missing:
            rest = score_or_reached(chain, nodes=missing, **options).bits.tolist()
            found |= zip(missing, rest, strict=True)
        return found

    def _nodes(self, *, adopt: bool) -> tuple[str, ...]:
        mine = (h.node for h in self.holdings if bool(self.adopters[h.person]) is adopt)
        return tuple(dict.fromkeys(node for node in mine if node is not None))


# Realises intents with a value of the parameter, as one of the technology's observers sees it.
Realise = Callable[[Intents, float, str], Realised]


@dataclass(frozen=True)
class Technology:
    """A technology with one parameter, and the observers it is measured against."""

    name: str
    make: Realise
    parameter: str  # what its values mean, in words
    minimum: float
    maximum: float
    values: tuple[float, ...]  # the default values of a parameter scan
    usual: float  # the value that represents it beside other technologies
    says: str  # one line: what people do
    observers: Mapping[str, str]  # name -> what is assumed visible; the first is the default
    without: float = 0.0  # the value at which nobody uses it
    whole: bool = False  # values are whole numbers

    def realise(
        self, intents: Intents, value: float | None = None, *, observer: str | None = None
    ) -> Realised:
        """Make the ledger of these intents; `value` is the usual one unless given."""
        value = self.usual if value is None else value
        if not self.minimum <= value <= self.maximum or (self.whole and value != int(value)):
            kind = "a whole number" if self.whole else "a number"
            raise UsageError(
                f"{self.name}: {self.parameter} is {kind} from {self.minimum:g} to "
                f"{self.maximum:g}, "
                f"not {value!r}"
            )
        observer = next(iter(self.observers)) if observer is None else observer
        if observer not in self.observers:
            raise UsageError(
                f"{self.name}: no observer {observer!r}: one of {', '.join(self.observers)}"
            )
        return self.make(intents, value, observer)
