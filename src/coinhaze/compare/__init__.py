"""The paper's evaluation on any ledgers: score files, tables, figures and a page.

>>> import coinhaze
>>> [ledger.name for ledger in coinhaze.compare.compared_of(["mine=week:zcash"])]
['mine']
"""

from coinhaze.compare.ledgers import ComparedLedger, ScoringSettings, compared_of
from coinhaze.compare.report import write_report
from coinhaze.compare.rows import ComparisonRow, comparison_rows
from coinhaze.compare.run import score_ledgers

__all__ = [
    "ComparedLedger",
    "ComparisonRow",
    "ScoringSettings",
    "compared_of",
    "comparison_rows",
    "score_ledgers",
    "write_report",
]
