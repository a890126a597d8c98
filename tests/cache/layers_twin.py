"""What must be equal of a value that was kept: everything it is made of, found without recipes."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pyarrow as pa
import scipy.sparse


def differences(a: Any, b: Any, where: str = "") -> list[str]:
    """Say where two values differ in type, layout or bits; walks all they hold, both at once."""
    return list(_differences(a, b, where, set()))


def _differences(a: Any, b: Any, where: str, seen: set[tuple[int, int]]) -> list[str]:
    if (id(a), id(b)) in seen:
        return []
    seen.add((id(a), id(b)))
    if type(a) is not type(b):
        return [f"{where}: {type(a).__name__}, {type(b).__name__}"]
    if isinstance(a, np.ndarray):
        same = (a.dtype, a.shape, a.flags.writeable, a.flags.f_contiguous) == (
            b.dtype, b.shape, b.flags.writeable, b.flags.f_contiguous,
        )  # fmt: skip
        return [] if same and a.tobytes() == b.tobytes() else [where]
    if isinstance(a, pa.Array):
        return [] if a.type == b.type and a.to_pylist() == b.to_pylist() else [where]
    if isinstance(a, scipy.sparse.csr_array):
        return [
            found
            for part in ("shape", "data", "indices", "indptr", "has_sorted_indices")
            for found in _differences(
                getattr(a, part), getattr(b, part), f"{where}.{part}", seen
            )
        ]  # fmt: skip
    if isinstance(a, dict):
        if list(a) != list(b):
            return [where]
        return [d for k in a for d in _differences(a[k], b[k], f"{where}[{k!r}]", seen)]
    if isinstance(a, list | tuple):
        if len(a) != len(b):
            return [where]
        return [
            d
            for k, (x, y) in enumerate(zip(a, b, strict=True))
            for d in _differences(x, y, f"{where}[{k}]", seen)
        ]
    if dataclasses.is_dataclass(a) or hasattr(a, "__dict__"):
        return [
            d
            for n in _parts(a)
            for d in _differences(getattr(a, n), getattr(b, n), f"{where}.{n}", seen)
        ]
    return [] if a == b else [f"{where}: {a!r}, {b!r}"]


def _parts(value: Any) -> list[str]:
    """Name what a value was made with: its fields, or its attributes that are no cached answers."""
    if dataclasses.is_dataclass(value):
        return [field.name for field in dataclasses.fields(value)]
    return [name for name in vars(value) if not name.startswith("_")]
