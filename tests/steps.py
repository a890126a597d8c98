"""How much Python does: lines that run, the same number on every machine."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


@contextmanager
def counted_steps() -> Iterator[list[int]]:
    """Count lines that run in the block, each turn of a loop anew; a clock would count the machine.

    >>> with counted_steps() as steps:
    ...     found = [k for k in range(100)]
    >>> steps[0] >= 100
    True
    """
    steps = [0]

    def count(frame: FrameType, event: str, value: Any) -> Any:
        steps[0] += event == "line"
        return count

    before, here = sys.gettrace(), sys._getframe(2)
    traced = here.f_trace
    sys.settrace(count)
    here.f_trace = count
    try:
        yield steps
    finally:
        sys.settrace(before)
        here.f_trace = traced
