"""Every kernel run as plain Python and compiled; what it gives and writes is compared bit for bit.

    pytest -p both_ways tests/solve

does so with all calls of the tests whose arrays are small.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from coinhaze import kernels

SMALL = 1 << 15
MAXIMUM = 400  # comparisons of one kernel: as plain Python it is slow
seen: dict[str, int] = {}  # how often each kernel was called


def copied(value: Any, known: dict[int, Any]) -> Any:
    """Copy arrays, the same ones to the same copies."""
    if id(value) in known:
        return known[id(value)]
    if isinstance(value, np.ndarray):
        known[id(value)] = value.copy(order="K")
    elif isinstance(value, tuple):
        parts = [copied(part, known) for part in value]
        known[id(value)] = type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    elif isinstance(value, list):
        known[id(value)] = [copied(part, known) for part in value]
    else:
        return value
    return known[id(value)]


def assert_same(plain: Any, compiled: Any, where: str) -> None:
    """Check that two values are the same to the last bit."""
    if isinstance(compiled, np.ndarray):
        assert isinstance(plain, np.ndarray), where
        assert (plain.dtype, plain.shape) == (compiled.dtype, compiled.shape), where
        if plain.tobytes() != compiled.tobytes():
            at = np.flatnonzero(plain.ravel() != compiled.ravel())[:5]
            pytest.fail(f"{where}: {plain.ravel()[at]} plain, {compiled.ravel()[at]} at {at}")
    elif isinstance(compiled, tuple | list):
        assert len(plain) == len(compiled), where
        for k, (one, other) in enumerate(zip(plain, compiled, strict=True)):
            assert_same(one, other, f"{where}[{k}]")
    elif isinstance(compiled, float):
        assert np.float64(plain).tobytes() == np.float64(compiled).tobytes(), (
            f"{where}: {plain!r} plain, {compiled!r} compiled"
        )
    else:
        assert plain == compiled, f"{where}: {plain!r} plain, {compiled!r} compiled"


def run(self: kernels.Kernel, *arguments: Any, **named: Any) -> Any:
    """Run a kernel both ways."""
    name = f"{self.py_func.__module__}.{self.py_func.__name__}"
    seen[name] = seen.get(name, 0) + 1
    size = kernels._entries(arguments) + kernels._entries(named.values())
    if size > SMALL or seen[name] > MAXIMUM:
        return self.compiled(*arguments, **named)
    known: dict[int, Any] = {}
    mine = copied(arguments, known)
    mine_named = {key: copied(value, known) for key, value in named.items()}
    with np.errstate(all="ignore"):
        plain = self.plain(*mine, **mine_named)
    compiled = self.compiled(*arguments, **named)
    assert_same(plain, compiled, f"{name} gives")
    for k, (one, other) in enumerate(zip(mine, arguments, strict=True)):
        assert_same(one, other, f"{name} writes argument {k}")
    return compiled


@contextlib.contextmanager
def compared() -> Iterator[dict[str, int]]:
    """Run every kernel both ways, and give how often each was compared."""
    seen.clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels.Kernel, "__call__", run)
        yield seen


def pytest_configure(config: pytest.Config) -> None:
    """Compare in all tests, where this module is a plugin."""
    kernels.Kernel.__call__ = run  # type: ignore[method-assign]


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say what was compared."""
    for name, count in sorted(seen.items()):
        terminalreporter.write_line(f"{count:8} {name}")
