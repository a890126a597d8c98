"""Names of nodes, and finding nodes by name.

Names are built on demand: a week of Bitcoin has millions of coins. A graph's parties come in a few
blocks, each named by a rule from the ledger's own columns: owners by their text, coins `txid:vout`,
transactions `tx:txid`. A block returns the names of given rows, and finds a row by its name without
building the other names.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coinhaze.amounts import Bools, Ints
from coinhaze.errors import UnknownName
from coinhaze.graph.order_kernels import group_rows
from coinhaze.ledger import CoinLedger
from coinhaze.ledger.frozen import narrow
from coinhaze.ledger.text import TextIndex, text_buffers
from coinhaze.ledger.text_kernels import number_lengths

NO_SNAPSHOT = -1
# A mistyped name is compared with at most this many of this many newest names.
LOOKED_AT, COMPARED = 1_000_000, 2_000
ABSENT = -1


class NameBlock(Protocol):
    """Names of one kind of party."""

    def __len__(self) -> int: ...

    def take(self, rows: Ints) -> pa.StringArray:
        """Return the names of some rows."""

    def find(self, name: str) -> int:
        """Return the first row of a name, -1 if there is none."""

    def numbered(self, holders: pa.StringArray) -> pa.StringArray:
        """Return names that end in a colon and digits, all that follow `holders` among them."""


class TextBlock:
    """Names stored in a column of their own."""

    def __init__(self, column: pa.StringArray) -> None:
        self.index = TextIndex(column)

    def __len__(self) -> int:
        return len(self.index)

    def take(self, rows: Ints) -> pa.StringArray:
        """Return the names of some rows."""
        return self.index.column.take(pa.array(rows))

    def find(self, name: str) -> int:
        """Return the first row of a name, -1 if there is none."""
        return self.index.row(name)

    def numbered(self, holders: pa.StringArray) -> pa.StringArray:
        """Return names that end in a colon and digits."""
        lengths = number_lengths(*text_buffers(self.index.column))
        return self.take(np.flatnonzero(lengths > 0))


class PrefixBlock:
    """Names `prefix:id` over some rows of a column of ids."""

    def __init__(self, prefix: str, ids: TextIndex, rows: Ints | None = None) -> None:
        self.prefix = prefix
        self.ids = ids
        self.rows = rows

    def __len__(self) -> int:
        return len(self.ids) if self.rows is None else len(self.rows)

    def take(self, rows: Ints) -> pa.StringArray:
        """Return the names of some rows."""
        at = rows if self.rows is None else self.rows[rows]
        ids = self.ids.column.take(pa.array(at))
        return pc.binary_join_element_wise(pa.scalar(self.prefix, ids.type), ids, ":")

    def find(self, name: str) -> int:
        """Return the first row of a name, -1 if there is none."""
        if not name.startswith(f"{self.prefix}:"):
            return ABSENT
        found = self.ids.rows(name[len(self.prefix) + 1 :])
        if self.rows is None:
            return int(found[0]) if len(found) else ABSENT
        at = np.flatnonzero(np.isin(self.rows, found)) if len(found) else found
        return int(at[0]) if len(at) else ABSENT

    def numbered(self, holders: pa.StringArray) -> pa.StringArray:
        """Return names that end in a colon and digits; the colon may be the prefix's own."""
        ends = number_lengths(*text_buffers(self.ids.column)) != 0
        return self.take(np.flatnonzero(ends if self.rows is None else ends[self.rows]))


class CoinBlock:
    """Names `txid:vout` of a ledger's outputs."""

    def __init__(self, ledger: CoinLedger, txids: TextIndex) -> None:
        self.ledger = ledger
        self.txids = txids

    def __len__(self) -> int:
        return len(self.ledger.output_tx)

    def take(self, rows: Ints) -> pa.StringArray:
        """Return the names of some rows."""
        return self.ledger.output_names(rows)

    def find(self, name: str) -> int:
        """Return the first row of a name, -1 if there is none."""
        txid, _, number = name.rpartition(":")
        if not (number.isascii() and number.isdigit()) or number != str(int(number[:18])):
            return ABSENT
        tx = self.txids.row(txid)
        if tx == ABSENT:
            return ABSENT
        start, order = self._by_tx
        rows = order[start[tx] : start[tx + 1]]
        found = rows[self.ledger.output_vout[rows] == int(number)]
        return int(found[0]) if len(found) else ABSENT

    def numbered(self, holders: pa.StringArray) -> pa.StringArray:
        """Return names of coins whose transaction has the name of one of `holders`."""
        like = pc.is_in(self.ledger.txids, value_set=holders.cast(self.ledger.txids.type))
        return self.take(np.flatnonzero(like.to_numpy(zero_copy_only=False)[self.ledger.output_tx]))

    @cached_property
    def _by_tx(self) -> tuple[Ints, Ints]:
        start, order = group_rows(self.ledger.output_tx, len(self.ledger.txids))
        return narrow(start), narrow(order)


class PartyNames:
    """The names of all parties, block after block; can be read like an Arrow column of text.

    >>> names = PartyNames([TextBlock(pa.array(["a", "b"])), TextBlock(pa.array(["c"]))])
    >>> names.take(np.array([2, 0])).to_pylist(), names[1].as_py(), names.find("c")
    (['c', 'a'], 'b', 2)
    """

    def __init__(self, blocks: Sequence[NameBlock]) -> None:
        self.blocks = tuple(blocks)
        self.starts = np.cumsum([0, *(len(b) for b in self.blocks)])

    def __len__(self) -> int:
        return int(self.starts[-1])

    def __getitem__(self, row: int) -> pa.StringScalar:
        return self.take(np.array([row]))[0]

    def take(self, rows: Ints | pa.Array) -> pa.StringArray:
        """Return the names of some rows."""
        at = np.asarray(rows, dtype=np.int64)
        block = np.searchsorted(self.starts, at, side="right") - 1
        used = np.unique(block)
        parts = []
        for k in used.tolist():
            parts.append(self.blocks[k].take(at[block == k] - self.starts[k]))
        if len(parts) == 1:
            return parts[0]
        if not parts:
            return pa.array([], pa.string())
        # Names came block by block: the n-th name of block k belongs at the n-th k.
        place = np.empty(len(at), dtype=np.int64)
        place[np.argsort(block, kind="stable")] = np.arange(len(at))
        wide = pa.large_string() if any(p.type == pa.large_string() for p in parts) else pa.string()
        return pa.concat_arrays([p.cast(wide) for p in parts]).take(pa.array(place))

    def to_pylist(self) -> list[str]:
        """Return all names."""
        names: list[str] = self.take(np.arange(len(self))).to_pylist()
        return names

    def find(self, name: str) -> int:
        """Return the first party of a name, -1 if there is none."""
        for block, start in zip(self.blocks, self.starts.tolist(), strict=False):
            row = block.find(name)
            if row != ABSENT:
                return int(start + row)
        return ABSENT

    def numbered(self, holders: pa.StringArray) -> pa.StringArray:
        """Return names that end in a colon and digits: at least those that follow a holder's."""
        found = [block.numbered(holders) for block in self.blocks]
        return pa.concat_arrays([pa.array([], pa.string()), *(f.cast(pa.string()) for f in found)])


class Aliases:
    """Additional names of parties: owners of coins, members of clusters."""

    def __init__(self, names: pa.StringArray, name: Ints, party: Ints | None = None) -> None:
        self.names = TextIndex(names)
        self.name = name  # the row in names of each alias ...
        self.party = party  # ... and its party: the first, the second, ... if not given

    def parties(self, name: str) -> Ints:
        """Find the parties a name refers to, in order."""
        row = self.names.row(name)
        if row == ABSENT:
            return np.zeros(0, dtype=np.int64)
        start, order = self._by_name
        found = order[start[row] : start[row + 1]].astype(np.int64)
        return found if self.party is None else self.party[found]

    @cached_property
    def _by_name(self) -> tuple[Ints, Ints]:
        start, order = group_rows(self.name, len(self.names))
        return narrow(start), narrow(order)


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
        if len(self.parties_named(name)):
            return ": the ledger has it with amounts of 0 or transfers to itself only"
        if base and len(parties := self.parties_named(base)):
            numbers = self.snapshot[np.isin(self.party, parties)]
            numbers = numbers[numbers != NO_SNAPSHOT]
            if not len(numbers):
                return f": {base!r} has no such snapshot here; snapshots need time=temporal"
            last = numbers.max()
            return f": {base!r} has snapshots from {base}:{numbers.min()} to {base}:{last}"
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
