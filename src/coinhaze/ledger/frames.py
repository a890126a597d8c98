"""Values given to other libraries, which are optional, and shown in a notebook."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pyarrow as pa

from coinhaze.errors import UsageError


class ArrowTable:
    """A value that is a table: every library that speaks Arrow can take it as it is."""

    def to_arrow(self) -> pa.Table:
        """Give the table."""
        raise NotImplementedError

    def to_polars(self) -> Any:
        """Give a polars DataFrame; needs polars."""
        return optional("polars", "to_polars").from_arrow(self.to_arrow())

    def to_pandas(self) -> Any:
        """Give a pandas DataFrame; needs pandas."""
        optional("pandas", "to_pandas")
        return self.to_arrow().to_pandas()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_arrow().__arrow_c_stream__(requested_schema)


def optional(package: str, function: str) -> Any:
    """Import an optional library, or say how to get it."""
    try:
        return import_module(package)
    except ImportError:
        raise UsageError(f"{function} needs {package}: pip install {package}") from None


def shown(kind: str, value: object) -> str:
    """Give a value as HTML. Drawing is loaded when something is shown, by name: values of lower
    layers do not depend on it."""
    html: str = called("coinhaze.report.notebook", kind, value)
    return html


def called(module: str, function: str, *values: Any) -> Any:
    """Call a function of a higher layer by name, which is imported when it is needed."""
    return getattr(import_module(module), function)(*values)
