"""What privacy technologies gain, and what they cost, in one economy with and without them."""

from coinhaze.lab.churn import churn
from coinhaze.lab.lab import ParameterScan, Trials, lab, lab_all

__all__ = ["ParameterScan", "Trials", "churn", "lab", "lab_all"]
