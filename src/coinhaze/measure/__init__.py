"""How uncertain: the entropy family, proven intervals, scores and summaries."""

from coinhaze.measure.origins import Origins
from coinhaze.measure.scores import Scores
from coinhaze.measure.summary import Summary

__all__ = ["Origins", "Scores", "Summary"]
