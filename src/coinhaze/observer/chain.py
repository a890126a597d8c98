"""The absorbing chain: what an observer believes about where each node's money was before.

The paper's P = [[Q, R], [0, I]]. Every node goes to at most one absorber, so R is a column number
and a probability for each node. A `Belief` is what results say about what was solved: a chain, or
lots of an ordered policy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse

from coinhaze.amounts import Bools, Floats, Ints
from coinhaze.graph import TransactionGraph
from coinhaze.graph.graph import downstream
from coinhaze.graph.names import NodeNames
from coinhaze.ledger.frames import shown
from coinhaze.ledger.frozen import freeze, narrow

NO_COLUMN = -1
ELSEWHERE = "elsewhere"


class SourceNames:
    """The names of sources; reads like an Arrow column of text."""

    def __init__(self, names: NodeNames, nodes: Ints) -> None:
        self.names = names
        self.nodes = narrow(nodes)

    def __len__(self) -> int:
        return len(self.nodes)

    def __getitem__(self, row: int) -> pa.StringScalar:
        return self.of(np.array([row]))[0]

    def of(self, rows: Ints) -> pa.StringArray:
        """Make the names of some rows."""
        return self.names.of_sources(self.nodes[rows])

    def take(self, rows: pa.Array) -> pa.StringArray:
        """Make some names; null where the row is null."""
        at = np.asarray(rows.drop_null(), dtype=np.int64)
        names = self.of(at)
        if len(at) == len(rows):
            return names
        known = rows.is_valid()
        number = pc.subtract(pc.cumulative_sum(known.cast(pa.int64())), 1)
        return names.take(pc.if_else(known, number, None))

    def to_pylist(self) -> list[str]:
        """Make all names."""
        names: list[str] = self.of(np.arange(len(self))).to_pylist()
        return names

    def cast(self, kind: pa.DataType) -> pa.Array:
        """Make all names as an Arrow column of some kind of text."""
        return self.of(np.arange(len(self))).cast(kind)


class OwnerNames(SourceNames):
    """The names of owners of sources; a source of unknown owner has its own name.

    `nodes` has one source of each owner; `name` is a row of `owners`, or -1.
    """

    def __init__(self, names: NodeNames, nodes: Ints, owners: pa.StringArray, name: Ints) -> None:
        super().__init__(names, nodes)
        self.owners = owners
        self.name = narrow(name)

    def of(self, rows: Ints) -> pa.StringArray:
        """Make the names of some rows."""
        name = self.name[rows].astype(np.int64)
        owner = self.owners.take(pa.array(name, mask=name < 0)).cast(pa.string())
        return pc.if_else(pa.array(name < 0), super().of(rows).cast(pa.string()), owner)


Outcomes: TypeAlias = SourceNames | pa.StringArray


@dataclass(frozen=True, eq=False)
class Walk:
    """Backward walk probabilities: Q from node to predecessor, and to the node's own absorber."""

    q: scipy.sparse.csr_array
    own: Floats


@dataclass(frozen=True, eq=False)
class AbsorbingChain:
    """A walk on a graph with the outcomes it can end in; valid once built.

    >>> import coinhaze
    >>> ledger = coinhaze.AccountLedger.from_transfers([("a", "c", 1), ("b", "c", 3)])
    >>> chain = coinhaze.absorbing_chain(coinhaze.transaction_graph(ledger))
    >>> chain
    AbsorbingChain(3 nodes, 2 moves, 2 outcomes)
    >>> chain.Q.toarray()[2].tolist()
    [0.25, 0.75, 0.0]
    """

    graph: TransactionGraph
    walk: Walk
    column: Ints  # for each node the outcome its absorber counts as
    outcomes: Outcomes
    elsewhere: int = NO_COLUMN  # the outcome that lumps all sources not listed
    listed: bool = False
    names_listed: frozenset[str] = frozenset()  # all that were requested, in the ledger or not
    clean: Bools | None = None  # nodes that poison never reached
    history: dict[int, npt.NDArray[np.float64]] = field(default_factory=dict)
    conserves: bool = False  # whether x^T B = b must hold
    settings: dict[str, object] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        freeze(self)

    def __len__(self) -> int:
        return len(self.graph)

    def __repr__(self) -> str:
        return (
            f"AbsorbingChain({len(self)} nodes, {self.walk.q.nnz} moves, "
            f"{len(self.outcomes)} outcomes)"
        )

    def _repr_html_(self) -> str:
        return shown("chain", self)

    @cached_property
    def shares_outcomes(self) -> bool:
        """Whether several nodes have one outcome: a list does this, and origins by owner."""
        return int(np.count_nonzero(self.column != NO_COLUMN)) > len(self.outcomes)

    @cached_property
    def lower_bounds(self) -> Bools | None:
        """Tell which nodes have bits that are lower bounds; None where none has.

        Coins of unknown value that were spent together count as one origin, so the bits of all
        that may come from them can be higher than what is computed, and never lower. Bits over a
        list or over owners are no bounds: who owned those coins is unknown too, and it may be an
        owner that is listed or has other coins.
        """
        unknown = self.graph.unknown_sources
        if self.listed or self.shares_outcomes or len(unknown) == 0:
            return None
        heads = np.repeat(np.arange(len(self)), np.diff(self.walk.q.indptr))
        return downstream(unknown, self.walk.q.indices, heads, len(self))

    def moves_of(self, nodes: Ints) -> tuple[Ints, Ints, Floats]:
        """Give the moves of some nodes: which of them moves, to which predecessor, how likely."""
        q = self.walk.q
        first = q.indptr[nodes].astype(np.int64)
        count = q.indptr[nodes + 1] - first
        at = np.repeat(np.arange(len(nodes)), count)
        place = np.arange(len(at)) - np.repeat(np.cumsum(count) - count, count) + first[at]
        return at, q.indices[place].astype(np.int64), q.data[place]

    @property
    def Q(self) -> scipy.sparse.csr_array:
        """Probabilities from each node to its predecessors."""
        return self.walk.q

    @cached_property
    def R(self) -> scipy.sparse.csr_array:
        """Probabilities from each node to the outcomes."""
        rows = np.flatnonzero(self.column != NO_COLUMN)
        return scipy.sparse.csr_array(
            (self.walk.own[rows], (rows, self.column[rows])),
            shape=(len(self), len(self.outcomes)),
        )

    @cached_property
    def P(self) -> scipy.sparse.csr_array:
        """The transition matrix in normal form, [[Q, R], [0, I]]: nodes, then outcomes."""
        outcomes = len(self.outcomes)
        end = scipy.sparse.eye_array(outcomes, format="csr")
        return scipy.sparse.csr_array(scipy.sparse.block_array([[self.Q, self.R], [None, end]]))


class Belief(Protocol):
    """What an observer believes: a chain, or lots of an ordered policy."""

    def __len__(self) -> int: ...

    @property
    def graph(self) -> TransactionGraph:
        """The graph it is about."""

    @property
    def outcomes(self) -> Outcomes:
        """What money can come from."""

    @property
    def settings(self) -> dict[str, object]:
        """The settings that led to it."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know."""

    @property
    def lower_bounds(self) -> Bools | None:
        """Which nodes have bits that are lower bounds; None where none has."""


def reading_of(settings: Mapping[str, object]) -> dict[str, str | None]:
    """Give what a figure must not stand without: view, time and policy, as the options call them.

    The coin view has no time to choose: it has its own.
    """
    return {
        name: None if settings.get(name) is None else str(settings[name])
        for name in ("view", "time", "policy")
    }


def reading_words(settings: Mapping[str, object]) -> str:
    """Say view, time and policy in short.

    >>> reading_words({"view": "account", "time": "temporal", "policy": "proportional"})
    'account view, time temporal, policy proportional'
    """
    found = reading_of(settings)
    parts = [f"{found['view']} view"] if found["view"] else []
    return ", ".join(parts + [f"{k} {found[k]}" for k in ("time", "policy") if found[k]])
