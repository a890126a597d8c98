"""Links in a walk: a payment's share of its receiver's row goes where it is known to come from."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import scipy.sparse

from coinhaze.errors import InputError, UnknownName
from coinhaze.graph import TransactionGraph
from coinhaze.graph.graph import NO_SNAPSHOT
from coinhaze.ledger.links import Link, Links
from coinhaze.observer.chain import Walk


def with_links(graph: TransactionGraph, walk: Walk, links: Links) -> Walk:
    """Send each linked payment's share where it came from, as far as the link is sure of it."""
    names = list(links)
    payments = graph.ledger.payment_rows(names)
    moved: list[tuple[int, int, float]] = []
    retained: dict[int, Fraction] = {}  # the share of an edge that stays: exactly 0 if all is known
    q = scipy.sparse.csr_array(walk.q, copy=True)
    q.sort_indices()
    before = q.data.copy()
    for name, payment in zip(names, payments.tolist(), strict=True):
        link = Link.of(name, links[name])
        edge = int(graph.payment_edge[payment])
        if edge < 0:
            raise UnknownName(f"payment {name!r} moved nothing, so it cannot be linked")
        receiver, sender = int(graph.head[edge]), int(graph.tail[edge])
        part = _part(graph, edge, payment)
        retained[edge] = retained.get(edge, Fraction(1)) - part * Fraction(link.confidence)
        at = _entry(q, receiver, sender)
        chance = 0.0 if at < 0 else float(before[at])
        if at >= 0:
            q.data[at] = chance * float(retained[edge])
        share = chance * float(part) * link.confidence
        for origin, probability in link.origins.items():
            moved.append((receiver, linked_node(graph, origin, receiver), share * probability))
    rows, nodes, shares = (list(c) for c in zip(*moved, strict=True)) if moved else ([], [], [])
    q = scipy.sparse.csr_array(q + scipy.sparse.csr_array((shares, (rows, nodes)), shape=q.shape))
    q.eliminate_zeros()
    return Walk(q, walk.own)


def _part(graph: TransactionGraph, edge: int, payment: int) -> Fraction:
    """Give a payment's part of the edge that merges it with others."""
    if graph.amounts is None or graph.payment_amount is None:
        return Fraction(1)
    return Fraction(graph.payment_amount[payment], graph.amounts[edge])


def _entry(q: scipy.sparse.csr_array, row: int, column: int) -> int:
    """Find where a matrix with sorted rows keeps an entry, -1 if it is 0."""
    begin, end = int(q.indptr[row]), int(q.indptr[row + 1])
    at = begin + int(np.searchsorted(q.indices[begin:end], column))
    return at if at < end and q.indices[at] == column else -1


def linked_node(graph: TransactionGraph, name: str, receiver: int) -> int:
    """Find the node a link names; an account with snapshots as it was before the payment."""
    node = graph.names.node(name)
    if graph.born is None:
        return node
    is_snapshot = len(graph.names.parties_named(name)) == 0
    if graph.names.snapshot[node] != NO_SNAPSHOT and not is_snapshot:
        same = graph.names.nodes(name)
        earlier = same[graph.born[same] < graph.born[receiver]]
        if len(earlier) == 0:
            raise InputError(f"link to {name!r}: it had no money before that payment")
        return int(earlier[-1])
    if graph.born[node] >= graph.born[receiver]:
        raise InputError(f"link to {name!r}: it came after that payment")
    return node
