"""How scores change when an observer learns more, or an analyst makes other choices."""

from coinhaze.robustness.robustness import Robustness, robustness
from coinhaze.robustness.sensitivity import Sensitivity, sensitivity

__all__ = ["Robustness", "Sensitivity", "robustness", "sensitivity"]
