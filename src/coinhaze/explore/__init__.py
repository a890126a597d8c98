"""One ledger explored, coin by coin: for the command, the page and notebooks.

`Explorer(ledger).coin("name")` returns the model that a coin's page shows. Its models need
pydantic, which comes with `coinhaze[page]`.

>>> import coinhaze
>>> ledger = coinhaze.AccountLedger.from_transfers([("a", "c", 1), ("b", "c", 1)])
>>> round(coinhaze.explore.Explorer(ledger).coin("c").bits, 9)
1.0
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from coinhaze.explore.explorer import Explorer

__all__ = ["Explorer"]


def __getattr__(name: str) -> Any:
    # Imported when first used: `explain` needs none of its models.
    if name == "Explorer":
        from coinhaze.explore.explorer import Explorer

        return Explorer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
