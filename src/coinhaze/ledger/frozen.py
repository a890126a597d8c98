"""Values over arrays that nobody can change once they are built."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np


def freeze(value: Any) -> None:
    """Make every numpy array among a dataclass's fields read-only."""
    for field in fields(value):
        array = getattr(value, field.name)
        if isinstance(array, np.ndarray):
            array.setflags(write=False)
