"""Made-up economies."""

from coinhaze.simulate.town import simulate_town

__all__ = ["simulate_town"]
