"""How bits rise as money is paid on and on: the experiment of the paper's appendix.

>>> import coinhaze
>>> ledger = coinhaze.AccountLedger.from_transfers([("a", "c", 1), ("b", "c", 3), ("c", "d", 2)])
>>> coinhaze.growth.growth(ledger, time="temporal", length=2)
Growth(2 payments, all walks from 2 sources, weighed)
"""

from coinhaze.growth.growth import Growth, growth

__all__ = ["Growth", "growth"]
