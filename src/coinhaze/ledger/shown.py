"""How values show themselves in a notebook: each asks the drawing room, which lies far above it."""

from __future__ import annotations

from importlib import import_module


def shown(kind: str, value: object) -> str:
    """Give a value as HTML. Drawing is loaded when something is shown, by name: values of lower
    layers do not depend on it."""
    html: str = getattr(import_module("coinhaze.report.notebook"), kind)(value)
    return html
