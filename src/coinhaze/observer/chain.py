"""The absorbing chain: what an observer believes about where each node's money was before.

The paper's P = [[Q, R], [0, I]]. Every node goes to at most one absorber, so R is a column number
and a probability for each node.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import scipy.sparse

from coinhaze.amounts import Bools, Floats, Ints
from coinhaze.graph import TransactionGraph
from coinhaze.graph.graph import downstream
from coinhaze.ledger.frames import shown
from coinhaze.ledger.frozen import freeze
from coinhaze.observer.outcomes import SourceNames

NO_COLUMN = -1
ELSEWHERE = "elsewhere"

Outcomes: TypeAlias = SourceNames | pa.StringArray


@dataclass(frozen=True, eq=False)
class Walk:
    """Backward walk probabilities: Q from node to predecessor, and to the node's own absorber."""

    q: scipy.sparse.csr_array
    own: Floats


@dataclass(frozen=True, eq=False)
class AbsorbingChain:
    """A walk on a graph with the outcomes it can end in; valid once built."""

    graph: TransactionGraph
    walk: Walk
    column: Ints  # for each node the outcome its absorber counts as
    outcomes: Outcomes
    elsewhere: int = NO_COLUMN  # the outcome that lumps all sources not listed
    listed: bool = False
    names_listed: frozenset[str] = frozenset()  # all that were asked for, in the ledger or not
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
    def lower_bounds(self) -> Bools | None:
        """Tell which nodes have bits that are lower bounds; None where none has.

        Coins of unknown value that were spent together count as one origin, so the bits of all
        that may come from them can be higher than what is computed, and never lower. Bits over a
        list are no bounds: who owned those coins is unknown too, and it may be a listed owner.
        """
        unknown = self.graph.unknown_sources
        if self.listed or len(unknown) == 0:
            return None
        heads = np.repeat(np.arange(len(self)), np.diff(self.walk.q.indptr))
        return downstream(unknown, self.walk.q.indices, heads, len(self))

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
