"""Which nodes a hole in the ledger can affect: those with money whose creation may be missing."""

from __future__ import annotations

import numpy as np
import pyarrow.compute as pc
import scipy.sparse

from coinhaze.amounts import Bools, Ints
from coinhaze.errors import count_words
from coinhaze.graph.graph import Kind, TransactionGraph, downstream
from coinhaze.ledger import CoinLedger

_NEVER = np.iinfo(np.int64).max


def incomplete_notes(
    graph: TransactionGraph, nodes: Ints, moves: scipy.sparse.csr_array | None = None
) -> tuple[str, ...]:
    """Return notes on failed completeness checks, with how many of `nodes` they can affect.

    `moves` are the walk's, from a node to where its money can have been before; without them money
    can have come along every edge.
    """
    record = graph.ledger.completeness
    if not record.failed:
        return ()
    if record.missing_from is None:
        return (record.line(),)
    touched = int(from_holes(graph, moves)[nodes].sum())
    return (
        f"{record.line()}; {touched:,} of {count_words(len(nodes), 'node')} "
        f"{'has' if touched == 1 else 'have'} a share of money that may have been made in what is "
        f"missing: {'its' if touched == 1 else 'their'} figures may be wrong",
    )


def moved_in_holes(graph: TransactionGraph) -> tuple[str, ...]:
    """Return a note on failed completeness checks for one who follows money forward."""
    record = graph.ledger.completeness
    if not record.failed:
        return ()
    return (
        f"{record.line()}; money that was moved in what is missing is shown where it was before",
    )


def from_holes(graph: TransactionGraph, moves: scipy.sparse.csr_array | None = None) -> Bools:
    """Return which nodes have a share of a source whose creation may be in a hole of the ledger.

    >>> import coinhaze
    >>> ledger = coinhaze.AccountLedger.from_transfers([("a", "b", 1)])
    >>> from_holes(coinhaze.transaction_graph(ledger)).tolist()
    [False, False]
    """
    start = np.flatnonzero(suspects(graph))
    tail, head = graph.tail, graph.head
    if moves is not None:
        pairs = moves.tocoo()
        tail, head = pairs.col, pairs.row
    return downstream(start, tail, head, len(graph))


def suspects(graph: TransactionGraph) -> Bools:
    """Return which sources stand for money created outside the ledger, possibly in a hole of it.

    Coinbases and mints are created inside it. A coin spent below the lowest hole was created below
    it.
    """
    since = graph.ledger.completeness.missing_from
    if since is None:
        return np.zeros(len(graph), dtype=np.bool_)
    outside: Bools = graph.sources & ~np.isin(graph.kinds, (Kind.transaction, Kind.mint))
    ledger = graph.ledger
    if isinstance(ledger, CoinLedger) and graph.settings.get("view") == "coin":
        coins = np.flatnonzero(outside & (graph.kinds == Kind.coin))
        outside[coins] = _spent_at(ledger)[graph.names.party[coins]] >= since
    return outside


def _spent_at(ledger: CoinLedger) -> Ints:
    """Return the highest height at which each coin was or may have been spent."""
    heights = np.asarray(pc.fill_null(ledger.heights, _NEVER), dtype=np.int64)
    spent = np.full(len(ledger.output_tx), -1, dtype=np.int64)
    np.maximum.at(spent, ledger.input_output, heights[ledger.input_tx])
    np.maximum.at(spent, ledger.ring_output, heights[ledger.ring_tx])
    return spent
