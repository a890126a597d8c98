"""Whether another machine gives the same bits: small works of each engine, and what they give here.

Sums have a fixed order, so that bits depend neither on the kind of CPU nor on how compilers use
it; other versions of libraries may still round otherwise. A probe is sent along with a work and
compared by every process that opens it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from coinhaze.solve.pool.packed import bits_digest


@dataclass(frozen=True, eq=False)
class Probe:
    """Small works with a piece of each, and the digest of the parts."""

    pieces: tuple[tuple[Any, Any], ...]
    expected: str = ""

    def found(self) -> str:
        """Solve the pieces here; give the digest of the parts."""
        return bits_digest([work.solve(piece, work.room()) for work, piece in self.pieces])

    def agrees(self) -> bool:
        """Tell whether this process gives what was expected."""
        return self.found() == self.expected


def make_probe() -> Probe:
    """Make a probe of what this process gives.

    >>> make_probe().agrees()
    True
    """
    # Engines know of pools, which are below them.
    from coinhaze.graph import transaction_graph
    from coinhaze.ledger import AccountLedger
    from coinhaze.observer import absorbing_chain
    from coinhaze.solve.exact.stream import Tiles, blocks_of
    from coinhaze.solve.sketch.sketch import Draws
    from coinhaze.solve.structure.structure import Structure
    from coinhaze.solve.truncated.lists import ListWork, births_of

    random = np.random.default_rng(1)
    ends = random.integers(0, 40, (400, 2)).tolist()
    amounts = random.integers(1, 1_000_000, 400).tolist()
    paid = [(f"a{a}", f"a{b}", v) for (a, b), v in zip(ends, amounts, strict=True) if a != b]
    graph = transaction_graph(AccountLedger.from_transfers(paid), time="temporal")
    none = np.zeros(0)
    lumped = Structure(absorbing_chain(graph)).lump(np.flatnonzero(graph.sinks), none)
    query, columns = lumped.query, lumped.columns
    tiles, _ = Tiles.of(query, columns, none)
    minimum = np.full(len(query.moves), 1e-4)
    births = births_of(columns)
    lists = ListWork.of(query, columns, births=births, minimum=minimum, draws=16, seed=1)
    pieces = (
        (tiles, blocks_of(len(columns))[0]),
        (lists, 0),
        (Draws.of(query, columns, seed=1), 0),
    )
    made = Probe(pieces)
    return Probe(pieces, made.found())
