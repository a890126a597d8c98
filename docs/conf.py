"""Sphinx settings."""

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
