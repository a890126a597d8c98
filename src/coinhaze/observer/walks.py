"""The walks of policies: how an observer splits a node's money over where it came from."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import scipy.sparse

from coinhaze.amounts import Bools, Floats
from coinhaze.errors import PolicyError, UsageError
from coinhaze.graph import TransactionGraph
from coinhaze.graph.graph import downstream
from coinhaze.graph.order_kernels import sparse_rows
from coinhaze.observer.chain import Walk
from coinhaze.observer.policies import UNIFORM
from coinhaze.threads import each


def proportional(graph: TransactionGraph) -> Walk:
    """Go to each predecessor, and to the own opening, by the amount that came from there."""
    if graph.amounts is None or graph.opening is None:
        raise UsageError(f"this ledger hides amounts: use policy={UNIFORM.name}")
    amounts, opening, n = graph.amounts, graph.opening, len(graph)
    received, value = each(n, partial(amounts.total_by, graph.head, n), amounts.floats)
    sigma = (opening + received).floats()

    def own() -> Floats:
        share: Floats = np.divide(opening.floats(), sigma, out=np.zeros(n), where=sigma > 0)
        return share

    return Walk(*each(n, lambda: _by_edge(graph, value / sigma.take(graph.head)), own))


def uniform(graph: TransactionGraph) -> Walk:
    """Go to each predecessor with equal probability, the own opening counting as one.

    Where the ledger gives the chances of ring members, those count instead.
    """
    weight = np.ones(len(graph.tail)) if graph.weights is None else graph.weights
    own = graph.sources.astype(np.float64)
    total = own + np.bincount(graph.head, weights=weight, minlength=len(graph))
    share = np.divide(own, total, out=np.zeros(len(graph)), where=total > 0)
    walk = _by_edge(graph, weight / total[graph.head])
    walk.eliminate_zeros()
    return Walk(walk, share)


def poison(graph: TransactionGraph, listed: Bools) -> tuple[Walk, Bools]:
    """Go to each tainted predecessor with equal probability; also say which nodes are clean."""
    tainted = downstream(np.flatnonzero(listed), graph.tail, graph.head, len(graph))
    counts = (tainted[graph.tail] & tainted[graph.head] & ~listed[graph.head]).astype(np.float64)
    total = np.bincount(graph.head, weights=counts, minlength=len(graph))
    share = np.divide(counts, total[graph.head], out=np.zeros(len(counts)), where=counts > 0)
    walk = _by_edge(graph, share)
    walk.eliminate_zeros()
    return Walk(walk, np.zeros(len(graph))), ~tainted


def custom(graph: TransactionGraph, policy: Any) -> Walk:
    """Take a user's matrix, or what a user's function makes of the graph.

    Row i holds the probabilities to go from node i to each of the n nodes and, last, to its own
    absorber.
    """
    matrix = policy(graph) if callable(policy) else policy
    n = len(graph)
    if not scipy.sparse.issparse(matrix):
        matrix = np.asarray(matrix)
    if matrix.shape != (n, n + 1) or matrix.dtype.kind not in "fiu":
        raise PolicyError(
            f"a policy is a matrix of shape {(n, n + 1)} for this graph: row i holds the chances "
            "to go from node i to each node and, last, to stop at its own opening; not "
            f"{getattr(matrix, 'shape', matrix)}"
        )
    p = scipy.sparse.csr_array(matrix, dtype=np.float64)
    p.sum_duplicates()
    if not np.all(np.isfinite(p.data)) or np.any(p.data < 0):
        raise PolicyError("a policy matrix holds negative or non-finite probabilities")
    total = p.sum(axis=1)
    off = np.abs(total - 1)
    if n and off.max() > 1e-9:
        row = int(off.argmax())
        name = graph.names.of(np.array([row]))[0].as_py()
        raise PolicyError(f"policy row of {name} sums to {total[row]:.12g}: rows must sum to 1")
    p.eliminate_zeros()
    p.data /= np.repeat(total, np.diff(p.indptr))
    return Walk(scipy.sparse.csr_array(p[:, :n]), np.asarray(p[:, [n]].todense()).ravel())


def _by_edge(graph: TransactionGraph, value: Floats) -> scipy.sparse.csr_array:
    """Put a value of each edge in the row of its head; edges are sorted by tail, so columns are."""
    n, m = len(graph), len(value)
    indices, data = np.empty(m, dtype=graph.tail.dtype), np.empty(m)
    start = sparse_rows(graph.head, graph.tail, value, n, indices, data)
    q = scipy.sparse.csr_array((data, indices, start.astype(indices.dtype)), shape=(n, n))
    q.has_sorted_indices = q.has_canonical_format = True
    return q
