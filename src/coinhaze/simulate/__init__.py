"""Synthetic economies."""

from coinhaze.simulate.town import simulate_hubs, simulate_town
from coinhaze.simulate.weeks import simulate_week

__all__ = ["simulate_hubs", "simulate_town", "simulate_week"]
