"""The picture of engines is made of measured figures, each with the command that prints it."""

from __future__ import annotations

import csv
import importlib.util
import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FIGURES = ROOT / "docs" / "figures"
ROWS = list(csv.DictReader((FIGURES / "engines.csv").read_text().splitlines()))


def test_every_figure_names_a_benchmark_that_exists() -> None:
    for row in ROWS:
        found = re.fullmatch(r"python -m (benchmarks\.\w+)( --size [\d.]+)?", row["command"])
        assert found is not None, row
        assert importlib.util.find_spec(found[1]) is not None
        assert row["basis"] == "wall" or row["basis"].endswith("divided by 2")
    assert len({tuple(row.values())[:4] for row in ROWS}) == len(ROWS)


def test_wall_times_are_those_that_the_performance_page_states() -> None:
    page = (ROOT / "docs" / "performance.md").read_text()
    for row in ROWS:
        if row["basis"] == "wall":
            seconds = f"{float(row['seconds']):,g}".replace(",", " ")
            assert re.search(rf"(?<![\d.]){re.escape(seconds)}(?!\d)(\.0)? ?[s|]", page), row


def test_the_picture_is_drawn_from_them(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    script = runpy.run_path(str(FIGURES / "engines.py"))
    measured = script["points"](FIGURES / "engines.csv")
    assert sum(map(len, measured.values())) == len(ROWS)
    last = measured["laptop", "temporal"][-1]
    assert script["extrapolated"](last, 2 * last.entries).seconds == 2 * last.seconds
    script["main"](tmp_path / "engines.png")
    assert (tmp_path / "engines.png").read_bytes().startswith(b"\x89PNG")
