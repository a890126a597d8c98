"""The one call: a file, ledger, graph or chain goes in, scores come out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np

from coinhaze.chain import AbsorbingChain
from coinhaze.errors import UsageError
from coinhaze.ledger.amounts import Ints
from coinhaze.measure import Scores
from coinhaze.solve.asked import Asked
from coinhaze.solve.eliminate import eliminate
from coinhaze.solve.exact import width_of
from coinhaze.solve.progress import Progress, silent
from coinhaze.solve.series import series
from coinhaze.solve.sketch import sketch
from coinhaze.solve.source import Source, chain_of
from coinhaze.solve.sweep import sweep
from coinhaze.solve.workers import Budget

# The published conventions: the zero address is an account, tables are topped up, fees kept by
# transactions count as unspent, and the series stops at 0.001.
PRESETS: dict[str, dict[str, Any]] = {
    "paper": {"mint": "one", "top_up": True, "sinks": "paper", "method": "published"}
}


def score(
    source: Source,
    *,
    nodes: Literal["sinks", "all"] | Iterable[str] = "sinks",
    accuracy: Literal["exact", "preview"] | float = "exact",
    method: Literal["auto", "sweep", "eliminate", "series", "published"] = "auto",
    preset: Literal["paper"] | None = None,
    renyi: Sequence[float] | float = (),
    threads: int | None = None,
    progress: Progress = silent,
    **settings: Any,
) -> Scores:
    """Score the sinks of a ledger: how many bits an observer lacks to tell where money came from.

    `source` is a path or several, a ledger, a graph or a chain; further settings are those of
    `read`, `transaction_graph` and `absorbing_chain`. `nodes` may be "all" or names. `accuracy`
    is the widest interval allowed, in bits; "exact" is 1e-9. `method` is chosen by the chain's
    shape unless given. `renyi` asks for entropies of further orders.

    >>> import coinhaze
    >>> ledger = coinhaze.AccountLedger.from_transfers([("a", "c", 1), ("b", "c", 1)])
    >>> coinhaze.score(ledger).bits
    array([1.])
    """
    if preset is not None:
        if preset not in PRESETS:
            raise UsageError(f"unknown preset {preset!r}: one of {', '.join(PRESETS)}")
        given = {"method": method} if method != "auto" else {}
        settings = PRESETS[preset] | settings | given
        method = settings.pop("method")
    renyi = (renyi,) if isinstance(renyi, int | float) else tuple(renyi)
    chain = chain_of(source, **settings)
    rows = _rows(chain, nodes)
    if accuracy == "preview":
        if method != "auto" or renyi:
            raise UsageError("a preview is a sketch of bits: it takes no method and no renyi")
        return sketch(chain, rows, budget=Budget(threads=threads), progress=progress)
    width = width_of(accuracy)
    if method in ("published", "series") and renyi:
        raise UsageError("the series gives Shannon entropy only: leave renyi out")
    if method == "published":
        return series(chain, rows, rule="published", progress=progress)
    if method == "series":
        return series(chain, rows, rule="mass", width=width, progress=progress)
    if method not in ("auto", "sweep", "eliminate"):
        raise UsageError(f"unknown method {method!r}: auto, sweep, eliminate, series, published")
    asked = Asked.of(chain, rows)
    acyclic = asked.reduced.acyclic
    solve = sweep if method == "sweep" or (method == "auto" and acyclic) else eliminate
    return solve(
        chain,
        rows,
        width=width,
        renyi=renyi,
        threads=threads,
        progress=progress,
        asked=asked,
    )


def _rows(chain: AbsorbingChain, nodes: str | Iterable[str]) -> Ints:
    if isinstance(nodes, str):
        if nodes == "sinks":
            return np.flatnonzero(chain.graph.sinks)
        if nodes == "all":
            return np.arange(len(chain))
        raise UsageError(f"nodes is sinks, all or a list of names, not {nodes!r}")
    return np.array([chain.graph.names.node(name) for name in nodes], dtype=np.int64)
