"""Tables, figures and result files."""

from coinhaze.report.files import provenance, scores_json, write_scores

__all__ = ["provenance", "scores_json", "write_scores"]
