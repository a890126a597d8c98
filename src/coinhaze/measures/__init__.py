"""How uncertain: the entropy family, proven intervals, scores and summaries."""

from coinhaze.measures.origins import Origins
from coinhaze.measures.scores import Scores
from coinhaze.measures.summary import Summary
from coinhaze.measures.taint import Taint

__all__ = ["Origins", "Scores", "Summary", "Taint"]
