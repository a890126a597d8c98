"""The whole history of a chain of coins, scored from its first block."""

from coinhaze.history.history import History
from coinhaze.history.scores.score import HistoryScores

__all__ = ["History", "HistoryScores"]
