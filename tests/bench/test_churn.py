from __future__ import annotations

import pytest
from benchmarks.churn import churn_table, size_table


def test_both_tables_are_made() -> None:
    rows = churn_table(blocks=500, ring=4, seeds=2)
    assert [row[0] for row in rows] == list(range(9))
    assert list(rows[0][1:]) == pytest.approx([2.0, 2.0, 0.0], abs=1e-9)
    assert rows[-1][2] > 2.0
    sizes = size_table(blocks=60, ring=4)
    assert [name for name, *_ in sizes] == ["as the wallet assumes", "a day", "an hour"]
    assert sizes[0][1] > sizes[-1][1]
