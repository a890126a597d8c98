"""How it is solved: chains become scores of all coins, or origins of one."""

from coinhaze.solve.eliminate import eliminate
from coinhaze.solve.origins import origins
from coinhaze.solve.score import score
from coinhaze.solve.series import series
from coinhaze.solve.sweep import sweep

__all__ = ["eliminate", "origins", "score", "series", "sweep"]
