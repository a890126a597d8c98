"""How values show themselves in a notebook: each asks the drawing room, which lies far above it."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def shown(kind: str, value: object) -> str:
    """Give a value as HTML. Drawing is loaded when something is shown, by name: values of lower
    layers do not depend on it."""
    html: str = called("coinhaze.report.notebook", kind, value)
    return html


def called(module: str, function: str, *values: Any) -> Any:
    """Call a function of a higher layer by name, which is imported when it is needed."""
    return getattr(import_module(module), function)(*values)
