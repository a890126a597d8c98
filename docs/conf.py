"""Sphinx settings."""

import runpy
from pathlib import Path

HERE = Path(__file__).parent

project = "coinhaze"
author = "The coinhaze developers"
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = "coinhaze"
# CSV blocks have no highlighter; they are shown plainly.
suppress_warnings = ["misc.highlighting_failure"]


def setup(app):
    """Write the reference pages before Sphinx looks for pages."""
    reference = runpy.run_path(str(HERE / "reference.py"))
    for name in ("api", "cli"):
        text = reference[f"{name}_page"]()
        page = HERE / f"{name}.md"
        if not page.exists() or page.read_text(encoding="utf-8") != text:
            page.write_text(text, encoding="utf-8")
