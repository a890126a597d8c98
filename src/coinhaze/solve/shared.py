"""Origins that coins have in common: rows of B, solved once, seen by every observer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Literal, Unpack

import numpy as np

from coinhaze.amounts import Floats
from coinhaze.errors import UsageError
from coinhaze.graph.find import find_node
from coinhaze.graph.holes import incomplete_notes
from coinhaze.measures.pairs import Seen, SharedOrigins, SourceRow, sums_by
from coinhaze.observer.chain import Belief, SourceNames
from coinhaze.observer.owners import Observer, ladder, owner_groups
from coinhaze.options import ModelKeywords
from coinhaze.solve.local.origins import origins_or_reached
from coinhaze.solve.source import Source, structure_of


def shared(
    source: Source,
    nodes: Sequence[str],
    *,
    accuracy: Literal["exact"] | float = "exact",
    owners: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    **settings: Unpack[ModelKeywords],
) -> SharedOrigins:
    """Compare where coins came from, two by two: what they share, for every observer.

    `source` and settings are those of `origins`; `owners` and `labels` (address -> name) are what
    the last informed observer knows. `accuracy` is the widest interval of each coin's bits.

    >>> import coinhaze
    >>> ledger = coinhaze.AccountLedger.from_transfers(
    ...     [("a", "x", 1), ("b", "x", 1), ("b", "y", 1)])
    >>> coinhaze.shared(ledger, ["x", "y"]).pair("x", "y").collision.value
    0.5
    """
    structure = structure_of(source, **settings)
    chain = structure.chain
    if len(nodes) < 2:
        raise UsageError(f"name at least two coins to compare, not {len(nodes)}")
    rows, names = [], []
    compared = list(dict.fromkeys(find_node(chain.graph, name) for name in nodes))
    for node in compared:
        found = origins_or_reached(structure, node, accuracy=accuracy)
        order = np.argsort(found.outcomes)
        rows.append(SourceRow(found.outcomes[order], found.probability[order], found.missing))
        names.append(found.name)
    if len(rows) < 2:
        raise UsageError(f"{names[0]} is named twice: name another coin to compare it with")
    pairs = seen_by(chain, names, rows, ladder(chain.graph.ledger, owners=owners, labels=labels))
    holes = incomplete_notes(chain.graph, np.array(compared))
    return replace(pairs, notes=pairs.notes + holes)


def seen_by(
    belief: Belief,
    names: Sequence[str],
    rows: Sequence[SourceRow],
    observers: Iterable[Observer],
) -> SharedOrigins:
    """Show rows to the naive observer and to informed ones."""
    if type(belief.outcomes) is not SourceNames:
        raise UsageError("coins are compared over all their sources: leave lists out")
    prior = _opening_shares(belief)
    seen = [Seen(None, belief.outcomes, prior, tuple(rows))]
    for observer in observers:
        groups = owner_groups(belief, observer.persons)
        merged = None
        if prior is not None:
            merged = sums_by(groups.of_outcome, prior, len(groups.names))
        seen.append(
            Seen(
                observer,
                groups.names,
                merged,
                tuple(row.grouped(groups.of_outcome) for row in rows),
            )
        )
    return SharedOrigins(
        names=tuple(names),
        seen=tuple(seen),
        graph=belief.graph,
        settings=belief.settings,
        notes=belief.notes,
    )


def _opening_shares(belief: Belief) -> Floats | None:
    """Give each source's share of all openings; None where amounts are hidden."""
    opening = belief.graph.opening
    if opening is None or belief.graph.amounts is None:
        return None
    assert isinstance(belief.outcomes, SourceNames)
    worth = opening.take(belief.outcomes.nodes.astype(np.int64)).floats()
    total = opening.floats().sum()
    shares: Floats = worth / total
    return shares
