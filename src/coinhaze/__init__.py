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
    from coinhaze.coinjoin.link_matrix import link_matrix
    from coinhaze.errors import CoinhazeError
    from coinhaze.graph import TransactionGraph, transaction_graph
    from coinhaze.ledger import AccountLedger, CoinLedger
    from coinhaze.measures import Origins, Scores, Taint
    from coinhaze.measures.comparators.registry import register_comparator
    from coinhaze.measures.comparators.side_by_side import ComparedScores, compare_measures
    from coinhaze.observer import AbsorbingChain, absorbing_chain
    from coinhaze.observer.coinjoin_links import coinjoin_links
    from coinhaze.observer.policies import register_policy
    from coinhaze.readers import read
    from coinhaze.session import Session
    from coinhaze.solve import (
        Parcels,
        Plan,
        eliminate,
        origins,
        parcels,
        plan,
        score,
        series,
        sweep,
        taint,
    )

__version__ = "0.1.0"

__all__ = [
    "AbsorbingChain",
    "AccountLedger",
    "CoinLedger",
    "CoinhazeError",
    "ComparedScores",
    "Origins",
    "Parcels",
    "Plan",
    "Scores",
    "Session",
    "Taint",
    "TransactionGraph",
    "absorbing_chain",
    "coinjoin_links",
    "compare_measures",
    "eliminate",
    "link_matrix",
    "origins",
    "parcels",
    "plan",
    "read",
    "register_comparator",
    "register_policy",
    "score",
    "series",
    "sweep",
    "taint",
    "transaction_graph",
]

# Names are imported when first used, so that light commands start without numpy and numba.
_HOME = {
    "AbsorbingChain": "observer",
    "AccountLedger": "ledger",
    "CoinLedger": "ledger",
    "CoinhazeError": "errors",
    "ComparedScores": "measures.comparators.side_by_side",
    "Origins": "measures",
    "Parcels": "solve",
    "Plan": "solve",
    "Scores": "measures",
    "Session": "session",
    "Taint": "measures",
    "TransactionGraph": "graph",
    "absorbing_chain": "observer",
    "coinjoin_links": "observer.coinjoin_links",
    "compare_measures": "measures.comparators.side_by_side",
    "eliminate": "solve",
    "link_matrix": "coinjoin.link_matrix",
    "origins": "solve",
    "parcels": "solve",
    "plan": "solve",
    "read": "readers",
    "register_comparator": "measures.comparators.registry",
    "register_policy": "observer.policies",
    "score": "solve",
    "series": "solve",
    "sweep": "solve",
    "taint": "solve",
    "transaction_graph": "graph",
}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'coinhaze' has no attribute {name!r}")
    return getattr(import_module(f"coinhaze.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
