"""The transaction graph: who paid whom, and with what."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from coinhaze.graph.names import NO_SNAPSHOT as NO_SNAPSHOT
from coinhaze.graph.names import Names as Names
from coinhaze.ledger import Amounts, Ledger
from coinhaze.ledger.amounts import Bools, Floats, Ints
from coinhaze.ledger.frozen import freeze
from coinhaze.ledger.shown import shown

Kinds = npt.NDArray[np.int8]


class Kind(IntEnum):
    """What a node stands for."""

    coin = 0
    transaction = 1
    address = 2
    account = 3
    pool = 4
    ring = 5
    mint = 6
    burn = 7


@dataclass(frozen=True, eq=False)
class TransactionGraph:
    """Nodes, weighted edges, opening and closing balances; valid once built.

    Edge k moves `amounts[k]` from node `tail[k]` to node `head[k]`; parallel transfers are
    merged. In a ledger that hides amounts, `amounts`, `opening` and `closing` are None.
    """

    names: Names
    kinds: Kinds
    tail: Ints
    head: Ints
    amounts: Amounts | None
    weights: Floats | None
    opening: Amounts | None
    sources: Bools
    closing: Amounts | None
    sinks: Bools
    born: Ints | None  # the step at which each node came to be; None where time does not count
    payment_edge: Ints
    payment_amount: Amounts | None
    ledger: Ledger
    settings: dict[str, object] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        freeze(self)
        freeze(self.names)

    def __len__(self) -> int:
        return len(self.kinds)

    def __repr__(self) -> str:
        return (
            f"TransactionGraph({len(self)} nodes, {len(self.tail)} edges, "
            f"{int(self.sources.sum())} sources, {int(self.sinks.sum())} sinks)"
        )

    def _repr_html_(self) -> str:
        return shown("graph", self)

    def to_arrow(self) -> dict[str, pa.Table]:
        """Give nodes and edges as Arrow tables."""
        every = np.arange(len(self))
        names = self.names.of(every)
        hidden = pa.nulls(len(self), pa.string())
        return {
            "nodes": pa.table(
                {
                    "node": names,
                    "kind": kind_names(self.kinds),
                    "opening": hidden if self.opening is None else self.opening.text(),
                    "balance": hidden if self.closing is None else self.closing.text(),
                    "source": self.sources,
                    "sink": self.sinks,
                }
            ),
            "edges": pa.table(
                {
                    "from": names.take(pa.array(self.tail)),
                    "to": names.take(pa.array(self.head)),
                    "amount": pa.nulls(len(self.tail), pa.string())
                    if self.amounts is None
                    else self.amounts.text(),
                }
            ),
        }


def kind_names(kinds: Kinds) -> pa.StringArray:
    """Spell kinds out."""
    return pa.array([k.name for k in Kind]).take(pa.array(kinds))
