"""How uncertain: the entropy family, proven intervals, scores and summaries."""

from coinhaze.measure.origins import Origins
from coinhaze.measure.scores import Scores
from coinhaze.measure.summary import Summary
from coinhaze.measure.taint import Taint

__all__ = ["Origins", "Scores", "Summary", "Taint"]
