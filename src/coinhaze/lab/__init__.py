"""What privacy technologies gain, and what they cost, in one economy with and without them."""

from coinhaze.lab.lab import ParameterScan, Trials, churn, churn_apart, lab, lab_all

__all__ = ["ParameterScan", "Trials", "churn", "churn_apart", "lab", "lab_all"]
