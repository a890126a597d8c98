"""Made-up economies."""

from coinhaze.simulate.hubs import simulate_hubs
from coinhaze.simulate.town import simulate_town

__all__ = ["simulate_hubs", "simulate_town"]
