"""Tables, figures and result files."""

from coinhaze.report.files import scores_json, write_scores
from coinhaze.report.provenance import provenance

__all__ = ["provenance", "scores_json", "write_scores"]
