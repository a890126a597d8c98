"""How it is solved: chains and lots become scores of all coins, or origins of one."""

from coinhaze.solve.exact.engines import eliminate
from coinhaze.solve.informed import informed
from coinhaze.solve.local.destinations import destinations
from coinhaze.solve.local.origins import origins
from coinhaze.solve.lots.lots import Lots, lots
from coinhaze.solve.lots.taint import taint
from coinhaze.solve.planner.plan import Plan
from coinhaze.solve.score import plan, score, score_or_reached
from coinhaze.solve.series import series
from coinhaze.solve.shared import shared
from coinhaze.solve.since import since
from coinhaze.solve.truncated.truncate import sweep

__all__ = [
    "Lots",
    "Plan",
    "destinations",
    "eliminate",
    "informed",
    "lots",
    "origins",
    "plan",
    "score",
    "score_or_reached",
    "series",
    "shared",
    "since",
    "sweep",
    "taint",
]
