"""What privacy technologies gain, and what they cost, in one economy with and without them."""

from coinhaze.lab.churn import churn, churn_apart
from coinhaze.lab.lab import ParameterScan, Trials, lab, lab_all

__all__ = ["ParameterScan", "Trials", "churn", "churn_apart", "lab", "lab_all"]
