"""The exact solver for acyclic chains: one sweep from the sources on."""

from __future__ import annotations

from typing import Any

from coinhaze.chain import AbsorbingChain
from coinhaze.errors import UsageError
from coinhaze.ledger.amounts import Ints
from coinhaze.measure import Scores
from coinhaze.solve.reduce import reduce_chain
from coinhaze.solve.stream import score_exactly


def sweep(chain: AbsorbingChain, rows: Ints, **settings: Any) -> Scores:
    """Score rows of a chain without cycles: coin views and temporal graphs."""
    reduced = reduce_chain(chain, rows)
    if not reduced.acyclic:
        raise UsageError("this chain has cycles: use eliminate")
    return score_exactly(chain, rows, method="sweep", reduced=reduced, **settings)
