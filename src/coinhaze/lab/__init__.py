"""What privacy technologies gain, and what they cost, in one economy with and without them.

>>> import coinhaze
>>> scan = coinhaze.lab.lab("wasabi", values=[0.5], seeds=2, people=12, payments=20)
>>> len(scan.points)
1
"""

from coinhaze.lab.lab import ParameterScan, Trials, churn, churn_apart, lab, lab_all

__all__ = ["ParameterScan", "Trials", "churn", "churn_apart", "lab", "lab_all"]
