"""How it is solved: chains become scores of all coins, or origins of one."""

from coinhaze.solve.choice import Plan
from coinhaze.solve.eliminate import eliminate
from coinhaze.solve.origins import origins
from coinhaze.solve.score import plan, score
from coinhaze.solve.series import series
from coinhaze.solve.sweep import sweep

__all__ = ["Plan", "eliminate", "origins", "plan", "score", "series", "sweep"]
