"""A policy from outside the package: all money of a node comes from its largest input."""

from __future__ import annotations

import numpy as np
import scipy.sparse

import coinhaze


@coinhaze.register_policy(
    "largest",
    label="Largest input",
    words="takes all value to come from the largest input",
    split="all of it from the largest input",
    needs=["amounts"],
)
def largest_input(graph: coinhaze.TransactionGraph) -> scipy.sparse.csr_array:
    assert graph.amounts is not None
    n, amounts = len(graph), graph.amounts.ints()
    rows: list[tuple[int, int]] = []
    for node in range(n):
        edges = np.flatnonzero(graph.head == node).tolist()
        largest = max(edges, key=lambda e: amounts[e], default=None)
        rows.append((node, n if largest is None else int(graph.tail[largest])))
    head, tail = zip(*rows, strict=True)
    return scipy.sparse.csr_array((np.ones(n), (head, tail)), shape=(n, n + 1))
