"""Names of nodes, and finding nodes by name."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coinhaze.amounts import Bools, Ints
from coinhaze.errors import UnknownName
from coinhaze.graph.order_kernels import group_rows
from coinhaze.graph.party_names import ABSENT, Aliases, PartyNames
from coinhaze.ledger.frozen import narrow

NO_SNAPSHOT = -1
# A mistyped name is compared with at most this many of this many newest names.
LOOKED_AT, COMPARED = 1_000_000, 2_000


@dataclass(frozen=True, eq=False)
class NodeNames:
    """The names of nodes: a party's name, with `:i` for its earlier snapshots."""

    parties: PartyNames
    party: Ints
    snapshot: Ints
    newest: Ints  # the newest node of each party, -1 if it has none
    others: Aliases

    def of(self, nodes: Ints) -> pa.StringArray:
        """Return names of nodes; an account's newest snapshot has the account's own name."""
        numbered = (self.snapshot[nodes] != NO_SNAPSHOT) & (self.newest[self.party[nodes]] != nodes)
        return self._join(nodes, numbered)

    def of_sources(self, nodes: Ints) -> pa.StringArray:
        """Return names of sources; an account with snapshots has its opening as `name:0`."""
        return self._join(nodes, self.snapshot[nodes] != NO_SNAPSHOT)

    def _join(self, nodes: Ints, numbered: Bools) -> pa.StringArray:
        base = self.parties.take(self.party[nodes])
        if not numbered.any():
            return base
        number = pc.cast(pa.array(self.snapshot[nodes]), base.type)
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
        last = np.arange(max(0, len(self.parties) - LOOKED_AT), len(self.parties))
        names = self.parties.take(last)
        if len(names) > COMPARED:
            # Comparing letter by letter is slow: of many names, only those with the same beginning
            # or end.
            third = max(1, len(name) // 3)
            similar = pc.or_(
                pc.starts_with(names, name[:third]), pc.ends_with(names, name[-third:])
            )
            names = names.filter(similar)[:COMPARED]
        near = difflib.get_close_matches(name, names.to_pylist(), 1)
        return f": did you mean {near[0]!r}?" if near else ""

    def nodes(self, name: str) -> Ints:
        """Find all nodes a name stands for: a node, a party's snapshots, an owner's coins."""
        party = self.parties_named(name)
        if len(party) == 0:
            return self._named_nodes(name)
        start, order = self._nodes_of_party
        found = np.concatenate([order[start[p] : start[p + 1]] for p in party])
        return np.sort(found.astype(np.int64))

    def parties_named(self, name: str) -> Ints:
        """Find the parties a name refers to: its own, or those for which it is another name."""
        own = self.parties.find(name)
        return self.others.parties(name) if own == ABSENT else np.array([own])

    @cached_property
    def _nodes_of_party(self) -> tuple[Ints, Ints]:
        start, order = group_rows(self.party, len(self.parties))
        return narrow(start), narrow(order)

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
