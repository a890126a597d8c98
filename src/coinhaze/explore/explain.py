"""One node explained: its origins, labels, and its money hop by hop."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Unpack

from coinhaze.errors import AccuracyError
from coinhaze.graph.find import find_node
from coinhaze.observer import AbsorbingChain
from coinhaze.observer.chain import Belief
from coinhaze.options import ModelKeywords
from coinhaze.report.labels import Labelled
from coinhaze.report.layers import fold_hops
from coinhaze.report.origins import OriginsReport
from coinhaze.solve import origins
from coinhaze.solve.local.hops import hops_of
from coinhaze.solve.lots.scores import is_ordered, parcels_of
from coinhaze.solve.source import Source, chain_of


def explain(
    source: Source,
    node: str,
    *,
    labels: Mapping[str, str] | None = None,
    hops: int = 6,
    most: int = 10,
    accuracy: Literal["exact"] | float = "exact",
    **settings: Unpack[ModelKeywords],
) -> OriginsReport:
    """Find a node's origins and flow by hop, with what its past is called.

    `source` and settings are those of `origins`; `labels` are names of addresses. Where the
    accuracy is not reached, what was is explained: its `shortfall` says so.

    >>> import coinhaze
    >>> ledger = coinhaze.AccountLedger.from_transfers([("a", "c", 1), ("b", "c", 3)])
    >>> explain(ledger, "c", labels={"b": "the bank"}).by_label()
    [('the bank', 1, 0.75)]
    """
    belief: Belief
    if is_ordered(source, settings):
        belief = parcels_of(source, settings)
    else:
        belief = chain_of(source, **settings)
    start = find_node(belief.graph, node)
    try:
        found = origins(belief, start, accuracy=accuracy)
    except AccuracyError as error:
        if error.origins is None:
            raise
        found = error.origins
    labelled = Labelled(belief.graph, labels or {})
    layers = None
    if isinstance(belief, AbsorbingChain):
        layers = fold_hops(hops_of(belief, start, most=hops), labelled)
    return OriginsReport(found, labelled, layers, most)
