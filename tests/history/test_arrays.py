"""Arrays that grow keep what they hold, and so does whatever else refers to them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from coinhaze import ResourceError
from coinhaze.history.arrays import grow, zeros


@pytest.mark.parametrize("used", [False, True])
def test_growing_keeps_what_is_held(used: bool) -> None:
    rows = np.arange(2 * 3000).reshape(-1, 2)
    held: dict[str, Any] = {"rows": zeros((0, 2), np.int64)}
    looked_at = []
    for size in (0, 1, 100, 3000, 100_000, 5_000_000, 13_000_000):
        grow(held, "rows", size)
        assert len(held["rows"]) >= size
        assert held["rows"].ctypes.data % 4096 == 0
        there = min(size, len(rows))
        held["rows"][:there] = rows[:there]
        assert not held["rows"][there : there + 50_000].any()
        if used:  # by a view, or by a view of another kind
            looked_at += [(held["rows"][:there], there), (held["rows"].view(np.uint64), there)]
    np.testing.assert_array_equal(held["rows"][: len(rows)], rows)
    for view, there in looked_at:
        np.testing.assert_array_equal(view[:there], rows[:there])


def test_an_array_that_does_not_fit_is_refused_and_the_old_one_stays() -> None:
    held: dict[str, Any] = {"rows": zeros((3, 2), np.int64)}
    held["rows"][:] = 7
    with pytest.raises(
        ResourceError, match=r"not enough memory: an array of 1,125,899,906,842,624"
    ):
        grow(held, "rows", 1 << 50)
    assert held["rows"].tolist() == [[7, 7]] * 3
    grow(held, "rows", 4)
    assert held["rows"][:4].tolist() == [[7, 7]] * 3 + [[0, 0]]
    with pytest.raises(ResourceError, match=r"not enough memory: an array of 4,611"):
        zeros((1 << 62,), np.uint64)
