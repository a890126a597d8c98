"""How many bits an observer of a public ledger lacks to tell where a coin's money came from.

```python
import coinhaze
scores = coinhaze.score("transfers.csv", time="temporal")
print(scores.summary().line())
```
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from coinhaze import compare, explore, growth, lab, robustness, screening, wallet
    from coinhaze.coinjoin.link_matrix import link_matrix
    from coinhaze.errors import (
        AccuracyError,
        CoinhazeError,
        InputError,
        LedgerError,
        NotAnswering,
        OpeningError,
        PolicyError,
        ResourceError,
        SourceUnreachable,
        UnknownName,
        UsageError,
    )
    from coinhaze.graph import TransactionGraph, transaction_graph
    from coinhaze.history import History
    from coinhaze.ledger import AccountLedger, CoinLedger
    from coinhaze.measures import Origins, Scores, Summary, Taint
    from coinhaze.measures.comparators.registry import register_comparator
    from coinhaze.measures.comparators.side_by_side import ComparedScores, compare_measures
    from coinhaze.measures.destinations import Destinations
    from coinhaze.measures.pairs import SharedOrigins
    from coinhaze.measures.scores import InformedBits, NodeScore
    from coinhaze.measures.since import Since
    from coinhaze.observer import AbsorbingChain, absorbing_chain
    from coinhaze.observer.coinjoin_links import coinjoin_links
    from coinhaze.observer.policies import register_policy
    from coinhaze.readers import read
    from coinhaze.session import Session
    from coinhaze.solve import (
        Lots,
        Plan,
        destinations,
        eliminate,
        informed,
        lots,
        origins,
        plan,
        score,
        series,
        shared,
        since,
        sweep,
        taint,
    )

__version__ = "0.1.0"

__all__ = [
    "AbsorbingChain",
    "AccountLedger",
    "AccuracyError",
    "CoinLedger",
    "CoinhazeError",
    "ComparedScores",
    "Destinations",
    "History",
    "InformedBits",
    "InputError",
    "LedgerError",
    "Lots",
    "NodeScore",
    "NotAnswering",
    "OpeningError",
    "Origins",
    "Plan",
    "PolicyError",
    "ResourceError",
    "Scores",
    "Session",
    "SharedOrigins",
    "Since",
    "SourceUnreachable",
    "Summary",
    "Taint",
    "TransactionGraph",
    "UnknownName",
    "UsageError",
    "absorbing_chain",
    "coinjoin_links",
    "compare",
    "compare_measures",
    "destinations",
    "eliminate",
    "explore",
    "growth",
    "informed",
    "lab",
    "link_matrix",
    "lots",
    "origins",
    "plan",
    "read",
    "register_comparator",
    "register_policy",
    "robustness",
    "score",
    "screening",
    "series",
    "shared",
    "since",
    "sweep",
    "taint",
    "transaction_graph",
    "wallet",
]

# Names are imported when first used, so that light commands start without numpy and numba.
_HOME = {
    "AbsorbingChain": "observer",
    "AccountLedger": "ledger",
    "AccuracyError": "errors",
    "CoinLedger": "ledger",
    "CoinhazeError": "errors",
    "ComparedScores": "measures.comparators.side_by_side",
    "Destinations": "measures.destinations",
    "History": "history",
    "InformedBits": "measures.scores",
    "InputError": "errors",
    "LedgerError": "errors",
    "Lots": "solve",
    "NodeScore": "measures.scores",
    "NotAnswering": "errors",
    "OpeningError": "errors",
    "Origins": "measures",
    "Plan": "solve",
    "PolicyError": "errors",
    "ResourceError": "errors",
    "Scores": "measures",
    "Session": "session",
    "SharedOrigins": "measures.pairs",
    "Since": "measures.since",
    "SourceUnreachable": "errors",
    "Summary": "measures",
    "Taint": "measures",
    "TransactionGraph": "graph",
    "UnknownName": "errors",
    "UsageError": "errors",
    "absorbing_chain": "observer",
    "coinjoin_links": "observer.coinjoin_links",
    "compare_measures": "measures.comparators.side_by_side",
    "destinations": "solve",
    "eliminate": "solve",
    "informed": "solve",
    "link_matrix": "coinjoin.link_matrix",
    "lots": "solve",
    "origins": "solve",
    "plan": "solve",
    "read": "readers",
    "register_comparator": "measures.comparators.registry",
    "register_policy": "observer.policies",
    "score": "solve",
    "series": "solve",
    "shared": "solve",
    "since": "solve",
    "sweep": "solve",
    "taint": "solve",
    "transaction_graph": "graph",
}
# The applications: packages with functions and results of their own.
_PACKAGES = ("compare", "explore", "growth", "lab", "robustness", "screening", "wallet")

# Former names, which work until 2.0, and what replaces them.
_FORMER = {"Parcels": "Lots", "parcels": "lots"}


def __getattr__(name: str) -> object:
    if name in _PACKAGES:
        return import_module(f"coinhaze.{name}")
    if name in _FORMER:
        from warnings import warn

        new = _FORMER[name]
        warn(f"coinhaze.{name} is now coinhaze.{new}", DeprecationWarning, stacklevel=2)
        name = new
    if name not in _HOME:
        raise AttributeError(f"module 'coinhaze' has no attribute {name!r}")
    return getattr(import_module(f"coinhaze.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
