"""How it is solved: chains and parcels become scores of all coins, or origins of one."""

from coinhaze.solve.choice import Plan
from coinhaze.solve.eliminate import eliminate
from coinhaze.solve.origins import origins
from coinhaze.solve.parcels import Parcels, parcels
from coinhaze.solve.score import plan, score, score_or_reached
from coinhaze.solve.series import series
from coinhaze.solve.sweep import sweep
from coinhaze.solve.taint import taint

__all__ = [
    "Parcels",
    "Plan",
    "eliminate",
    "origins",
    "parcels",
    "plan",
    "score",
    "score_or_reached",
    "series",
    "sweep",
    "taint",
]
