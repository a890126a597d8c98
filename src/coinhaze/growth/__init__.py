"""How bits rise as money is paid on and on: the experiment of the paper's appendix."""

from coinhaze.growth.growth import Growth, growth

__all__ = ["Growth", "growth"]
