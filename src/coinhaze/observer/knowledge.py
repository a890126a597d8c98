"""What an observer knows beyond the ledger: source sets, a pool's history."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import scipy.sparse

from coinhaze.amounts import Bools, Ints
from coinhaze.errors import InputError, UnknownName, UsageError
from coinhaze.graph import TransactionGraph
from coinhaze.ledger.checks import exact_amount
from coinhaze.observer.chain import ELSEWHERE, NO_COLUMN, Walk


@dataclass(frozen=True, eq=False)
class SourceSet:
    """Listed nodes and the entry each is reported under."""

    nodes: Bools
    entry: Ints
    labels: list[str]
    unknown: list[str]


def source_set(graph: TransactionGraph, listed: Iterable[str]) -> SourceSet:
    """Resolve names to nodes: an address or account stands for all its coins and snapshots."""
    if isinstance(listed, str):
        raise UsageError(f"listed is a list of names, not one: [{listed!r}]")
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


def pool_history(
    graph: TransactionGraph, column: Ints, history: Mapping[str, Sequence[int]]
) -> tuple[dict[int, npt.NDArray[np.float64]], tuple[str, ...]]:
    """Find the sources that stand for many origins, and the distribution of those."""
    found: dict[int, npt.NDArray[np.float64]] = {}
    notes = []
    for source, given in history.items():
        values = [exact_amount(v, f"history of {source}", field="value") for v in given]
        total = sum(values)
        if total == 0:
            raise InputError(f"history of {source}: values must add up to more than 0")
        nodes = graph.names.nodes(source)
        if len(nodes) == 0:
            nodes = graph.names.nodes(f"pool:{source}")
        if len(nodes) == 0:
            raise UnknownName(f"history names {source!r}, which is not in the ledger")
        columns = column[nodes][column[nodes] != NO_COLUMN]
        if len(columns) == 0:
            notes.append(f"history of {source} has no effect: it opened with nothing")
        elif len(columns) > 1:
            raise InputError(f"history of {source}: that names {len(columns)} sources; name one")
        elif int(columns[0]) in found:
            raise InputError(f"history of {source}: that source has a history already")
        else:
            found[int(columns[0])] = np.array([v / total for v in values if v > 0])
    return found, tuple(notes)
