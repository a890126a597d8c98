"""What an observer knows beyond the ledger: source sets, links, a pool's history."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import scipy.sparse

from coinhaze.chain.chain import ELSEWHERE, NO_COLUMN, Walk
from coinhaze.errors import InputError, UnknownName
from coinhaze.graph import TransactionGraph
from coinhaze.graph.graph import NO_SNAPSHOT
from coinhaze.ledger.amounts import Bools, Ints

Links = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, eq=False)
class SourceSet:
    """Listed nodes and the entry each is reported under."""

    nodes: Bools
    entry: Ints
    labels: list[str]
    unknown: list[str]


def source_set(graph: TransactionGraph, listed: Iterable[str]) -> SourceSet:
    """Resolve names to nodes: an address or account stands for all its coins and snapshots."""
    names = list(dict.fromkeys(listed))
    entry = np.full(len(graph), NO_COLUMN)
    labels: list[str] = []
    unknown: list[str] = []
    seen: set[bytes] = set()
    found = [(name, graph.names.nodes(name)) for name in names]
    # Broad entries first, so that a coin listed by itself is reported by itself.
    for name, nodes in sorted(found, key=lambda pair: -len(pair[1])):
        if len(nodes) == 0:
            unknown.append(name)
        elif nodes.tobytes() not in seen:  # two members of one cluster are one entry
            seen.add(nodes.tobytes())
            entry[nodes] = len(labels)
            labels.append(name)
    return SourceSet(entry != NO_COLUMN, entry, labels, sorted(unknown))


def listed_outcomes(
    walk: Walk, sources: SourceSet, *, elsewhere: bool
) -> tuple[Walk, Ints, pa.StringArray]:
    """Make listed nodes absorb on arrival and lump every other source as one outcome."""
    keep = scipy.sparse.dia_array(
        ((~sources.nodes).astype(np.float64)[None, :], [0]), shape=walk.q.shape
    )
    q = scipy.sparse.csr_array(keep @ walk.q)
    q.eliminate_zeros()
    own = np.where(sources.nodes, 1.0, walk.own)
    column = sources.entry.copy()
    if elsewhere:
        column[~sources.nodes & (walk.own > 0)] = len(sources.labels)
    labels = [*sources.labels, *([ELSEWHERE] if elsewhere else [])]
    return Walk(q, own), column, pa.array(labels, pa.string())


def with_links(graph: TransactionGraph, walk: Walk, links: Links) -> Walk:
    """Send each linked payment's share of its receiver's row to where it is known to come from."""
    names = list(links)
    payments = graph.ledger.payment_rows(names)
    moved: list[tuple[int, int, float]] = []
    left = np.ones(len(graph.tail))
    remaining: dict[int, int] = {}
    for name, payment in zip(names, payments.tolist(), strict=True):
        distribution = _distribution(name, links[name])
        edge = int(graph.payment_edge[payment])
        if edge < 0:
            raise UnknownName(f"payment {name!r} moved nothing, so it cannot be linked")
        receiver, sender = int(graph.head[edge]), int(graph.tail[edge])
        chance = walk.q[receiver, sender]
        whole, part = 1, 1
        if graph.amounts is not None and graph.payment_amount is not None:
            whole, part = graph.amounts[edge], graph.payment_amount[payment]
        remaining[edge] = remaining.get(edge, whole) - part
        left[edge] = remaining[edge] / whole
        for origin, probability in distribution.items():
            node = _origin(graph, origin, receiver)
            moved.append((receiver, node, chance * (part / whole) * probability))
    n = len(graph)
    stays = scipy.sparse.csr_array((left, (graph.head, graph.tail)), shape=(n, n))
    rows, nodes, shares = (list(c) for c in zip(*moved, strict=True)) if moved else ([], [], [])
    q = scipy.sparse.csr_array(walk.q * stays)
    q = q + scipy.sparse.csr_array((shares, (rows, nodes)), shape=(n, n))
    q.eliminate_zeros()
    return Walk(scipy.sparse.csr_array(q), walk.own)


def _distribution(payment: str, given: Mapping[str, float]) -> Mapping[str, float]:
    total = sum(given.values())
    if not given or min(given.values()) < 0 or not abs(total - 1) <= 1e-9:
        raise InputError(f"link of payment {payment!r}: probabilities sum to {total}, not 1")
    return given


def _origin(graph: TransactionGraph, name: str, receiver: int) -> int:
    """Find the node a link names; an account with snapshots as it was before the payment."""
    node = graph.names.node(name)
    is_snapshot = len(graph.names.parties_named(name)) == 0
    if graph.names.snapshot[node] == NO_SNAPSHOT or is_snapshot:
        return node
    party = graph.names.party == graph.names.party[node]
    earlier = np.flatnonzero(party[:receiver])
    if len(earlier) == 0:
        raise InputError(f"link to {name!r}: it had no money before that payment")
    return int(earlier[-1])


def pool_history(
    graph: TransactionGraph, outcomes: pa.StringArray, history: Mapping[str, Sequence[int]]
) -> tuple[dict[int, npt.NDArray[np.float64]], tuple[str, ...]]:
    """Find the sources that stand for many origins, and the distribution of those."""
    names = outcomes.to_pylist()
    number = {name: k for k, name in enumerate(names)}
    found: dict[int, npt.NDArray[np.float64]] = {}
    notes = []
    for source, values in history.items():
        total = sum(values)
        if total <= 0 or min(values) < 0:
            raise InputError(f"history of {source}: values must be >= 0 and add up to more than 0")
        aliases = [source, f"{source}:0", f"pool:{source}", f"pool:{source}:0"]
        column = next((number[a] for a in aliases if a in number), None)
        if column is None:
            known = any(len(graph.names.nodes(a)) for a in aliases)
            if not known:
                raise UnknownName(f"history names {source!r}, which is not in the ledger")
            notes.append(f"history of {source} has no effect: it opened with nothing")
            continue
        found[column] = np.array([v / total for v in values if v > 0])
    return found, tuple(notes)
