"""Flows drawn as SVG: layout, shapes and words."""
