"""Origins: where one coin's money came from, and which way."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from coinhaze.amounts import Floats, Ints
from coinhaze.formats.money import unit_of
from coinhaze.graph.opening import assumed_in_balances
from coinhaze.ledger.frames import ArrowTable, shown
from coinhaze.observer.chain import Belief, reading_of


@dataclass(frozen=True, eq=False)
class Origins(ArrowTable):
    """The distribution over sources of one node, largest first, and the flow along the way.

    >>> import coinhaze
    >>> ledger = coinhaze.AccountLedger.from_transfers([("a", "c", 1), ("b", "c", 3)])
    >>> origins = coinhaze.origins(ledger, "c")
    >>> origins.sources().to_pylist()
    [{'source': 'b', 'probability': 0.75}, {'source': 'a', 'probability': 0.25}]
    >>> origins.way(0)
    ['b', 'c']
    """

    chain: Belief
    node: int
    bits: float
    bits_low: float
    bits_high: float
    steps: float
    outcomes: Ints
    probability: Floats
    flow_from: Ints  # predecessor ...
    flow_to: Ints  # ... and node of each move that carried some of the money
    flow_share: Floats  # expected number of times a walk back makes that move
    past: Ints  # the nodes money came through, in order of number
    way_next: Ints  # from each of them, the next one on its likeliest way here
    way_end: Ints  # for each outcome, the node where its likeliest way begins, -1 if unknown
    missing: float = 0.0  # how much was not followed: shares above are that much too low at most
    shortfall: str | None = None  # the interval is wider than requested: by how much

    @property
    def name(self) -> str:
        """The node's name."""
        return self._names(np.array([self.node]))[0]

    def __len__(self) -> int:
        return len(self.outcomes)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of these origins should know."""
        return self.chain.notes + (() if self.shortfall is None else (self.shortfall,))

    @property
    def lower_bound(self) -> bool:
        """Whether the bits are a lower bound, as `unknown="leave-out"` makes them."""
        bounds = self.chain.lower_bounds
        return bounds is not None and bool(bounds[self.node])

    @property
    def balance(self) -> int | None:
        """What the node holds at the end, in the smallest unit; None where amounts are hidden."""
        closing = self.chain.graph.closing
        return None if closing is None else closing.take(np.array([self.node])).ints()[0]

    def sources(self) -> pa.Table:
        """Give sources and probabilities, largest first."""
        return pa.table(
            {
                "source": self.chain.outcomes.take(pa.array(self.outcomes)),
                "probability": self.probability,
            }
        )

    @property
    def assumed(self) -> int | None:
        """What of the balance no payment shows: an opening balance that is assumed."""
        found = assumed_in_balances(self.chain.graph, np.array([self.node]))
        return None if found is None else found[0]

    def flow(self) -> pa.Table:
        """Give the moves of money that led here, largest share first.

        A share is the expected number of times a walk back from the node takes that move; on a
        graph without cycles it is the part of the node's money that came along it.
        """
        return pa.table(
            {
                "from": self._names(self.flow_from),
                "to": self._names(self.flow_to),
                "share": self.flow_share,
            }
        )

    def way(self, rank: int) -> list[str]:
        """Name the likeliest way from the source of that rank (0 is the largest) to the node.

        Empty under ordered policies, which follow lots, not ways.
        """
        if self.way_end[rank] < 0:
            return []
        way = [int(self.way_end[rank])]
        while way[-1] != self.node:
            way.append(int(self.way_next[np.searchsorted(self.past, way[-1])]))
        return self._names(np.array(way))

    def to_arrow(self) -> pa.Table:
        """Give the same as `sources`."""
        return self.sources()

    def as_dict(self, *, limit: int | None = None) -> dict[str, object]:
        """Give everything as plain values, for JSON."""
        names = self.sources().slice(0, limit).to_pylist()
        return {
            "node": self.name,
            **reading_of(self.chain.settings),
            "balance": None if self.balance is None else str(self.balance),
            "assumed": None if self.assumed is None else str(self.assumed),
            "unit": unit_of(self.chain.graph.ledger).spelling,
            "bits": self.bits,
            "bits_low": self.bits_low,
            "bits_high": self.bits_high,
            "lower_bound": self.lower_bound,
            "steps": None if math.isnan(self.steps) else self.steps,
            "missing": self.missing,
            "sources": [row | {"way": self.way(k)} for k, row in enumerate(names)],
            "flow": self.flow().slice(0, limit).to_pylist(),
        }

    def __repr__(self) -> str:
        return f"Origins({self.name}: {self.bits:.4f} bits over {len(self.outcomes)} sources)"

    def _repr_html_(self) -> str:
        return shown("origins", self)

    def _names(self, nodes: Ints) -> list[str]:
        names: list[str] = self.chain.graph.names.of(nodes.astype(np.int64)).to_pylist()
        return names
