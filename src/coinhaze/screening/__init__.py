"""Screening: how much of the balance of nodes came from a list, under every policy.

>>> import coinhaze
>>> ledger = coinhaze.AccountLedger.from_transfers([("a", "c", 1), ("b", "c", 3)])
>>> coinhaze.screening.screen(ledger, listed=["a"]).taint.to_arrow()["exposure"].to_pylist()
[0.25]
"""

from coinhaze.screening.report import screening_sections
from coinhaze.screening.screen import Screening, screen
from coinhaze.screening.statement import ListFile, Statement, screening_json

__all__ = [
    "ListFile",
    "Screening",
    "Statement",
    "screen",
    "screening_json",
    "screening_sections",
]
