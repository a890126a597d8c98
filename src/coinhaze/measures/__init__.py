"""How uncertain: the entropy family, proven intervals, scores and summaries."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from coinhaze.measures.origins import Origins
    from coinhaze.measures.scores import Scores
    from coinhaze.measures.summary import Summary
    from coinhaze.measures.taint import Taint

__all__ = ["Origins", "Scores", "Summary", "Taint"]


def __getattr__(name: str) -> object:
    # Imported when first used: the registry of comparators beside them is light.
    if name not in __all__:
        raise AttributeError(f"module 'coinhaze.measures' has no attribute {name!r}")
    return getattr(import_module(f"coinhaze.measures.{name.lower()}"), name)
