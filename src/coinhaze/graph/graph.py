"""The transaction graph: who paid whom, and with what."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from itertools import islice

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from coinhaze.errors import UnknownName
from coinhaze.ledger import Amounts, Ledger
from coinhaze.ledger.amounts import Bools, Floats, Ints
from coinhaze.ledger.frozen import freeze

NO_SNAPSHOT = -1

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
class Names:
    """How nodes are called: a party's name, with `:i` for its earlier snapshots."""

    parties: pa.StringArray
    party: Ints
    snapshot: Ints
    newest: Ints  # for each party its newest node, -1 if it has none
    others: pa.StringArray  # further names: owners of coins, members of clusters ...
    other_party: Ints  # ... and the party each of them means

    def of(self, nodes: Ints) -> pa.StringArray:
        """Name nodes; an account's newest snapshot goes by the account's own name."""
        numbered = (self.snapshot[nodes] != NO_SNAPSHOT) & (self.newest[self.party[nodes]] != nodes)
        return self._join(nodes, numbered)

    def of_sources(self, nodes: Ints) -> pa.StringArray:
        """Name nodes as sources; an account's opening is always `name:0` where it has snapshots."""
        return self._join(nodes, self.snapshot[nodes] != NO_SNAPSHOT)

    def _join(self, nodes: Ints, numbered: Bools) -> pa.StringArray:
        base = self.parties.take(pa.array(self.party[nodes]))
        number = pc.cast(pa.array(self.snapshot[nodes]), pa.string())
        return pc.if_else(pa.array(numbered), pc.binary_join_element_wise(base, number, ":"), base)

    def node(self, name: str) -> int:
        """Find one node by name."""
        found = self._named_nodes(name)
        if len(found) == 0:
            raise UnknownName(f"no node {name!r} in the graph{self._hint(name)}")
        if len(found) > 1:
            raise UnknownName(
                f"{name!r} names {len(found)} nodes, such as {self.of(found[:3]).to_pylist()}; "
                "name one of them"
            )
        return int(found[0])

    def _hint(self, name: str) -> str:
        base = name.rpartition(":")[0]
        if name.lower().removeprefix("0x").strip("0") == "" and len(name) >= 40:
            return ": each mint is a node of its own, mint:ROW; mint=one makes it an account"
        if len(self.parties_named(f"tx:{name}")):
            return f": the transaction is 'tx:{name}', its coins are '{name}:0', ..."
        if base and len(self.parties_named(base)):
            return f": {base!r} has no such snapshot here; snapshots need time=temporal"
        near = difflib.get_close_matches(name, islice(self._numbers, 100_000), 1)
        return f": did you mean {near[0]!r}?" if near else ""

    def nodes(self, name: str) -> Ints:
        """Find all nodes a name stands for: a node, a party's snapshots, an owner's coins."""
        party = self.parties_named(name)
        if len(party) == 0:
            return self._named_nodes(name)
        start, order = self._nodes_of_party
        return np.sort(np.concatenate([order[start[p] : start[p + 1]] for p in party]))

    def parties_named(self, name: str) -> Ints:
        """Find the parties a name means: one of its own, or those it is another name for."""
        own = self._numbers.get(name)
        if own is not None:
            return np.array([own])
        first, last = np.searchsorted(self._sorted_others[0], [name, name + "\0"])
        return self.other_party[self._sorted_others[1][first:last]]

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: k for k, name in reversed(list(enumerate(self.parties.to_pylist())))}

    @cached_property
    def _sorted_others(self) -> tuple[npt.NDArray[np.object_], Ints]:
        names = np.array(self.others.to_pylist(), dtype=object)
        order = np.argsort(names, kind="stable")
        return names[order], order

    @cached_property
    def _nodes_of_party(self) -> tuple[Ints, Ints]:
        order = np.argsort(self.party, kind="stable")
        return np.searchsorted(self.party[order], np.arange(len(self.parties) + 1)), order

    def _named_nodes(self, name: str) -> Ints:
        party = self.parties_named(name)
        if len(party):
            newest = self.newest[party]
            return newest[newest >= 0]
        base, _, number = name.rpartition(":")
        if not (number.isascii() and number.isdigit()):
            return np.zeros(0, dtype=np.int64)
        nodes = self.nodes(base) if len(self.parties_named(base)) else np.zeros(0, dtype=np.int64)
        found: Ints = nodes[self.snapshot[nodes] == int(number[:18])]
        return found


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
