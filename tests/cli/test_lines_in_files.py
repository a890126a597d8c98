"""Written files have the line on completeness too, and whoever writes one is told of a hole."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from ledger.etl_chain import five_blocks, name, write_etl

from .conftest import Run

LINE = "incomplete: heights contiguous failed 1 time, first at height 3"
NOTE = f"note: {LINE}; 1 of "


@pytest.fixture
def hole(tmp_path: Path) -> Path:
    (tmp_path / "listed.txt").write_text("4.1.0\n")
    (tmp_path / "coins.txt").write_text(f"{name(4, 1)}:0\n")
    return write_etl(tmp_path / "hole.json", five_blocks(), without=(3,))


def text_of(path: Path) -> str:
    """Read what a file and the one beside it say, in one line."""
    if path.suffix == ".parquet":
        return pq.read_schema(path).metadata[b"coinhaze"].decode()  # type: ignore[no-any-return]
    beside = path.with_name(path.name + ".provenance.json")
    told = path.read_text() + (beside.read_text() if beside.exists() else "")
    return " ".join(told.split())


@pytest.mark.parametrize("suffix", ["html", "csv", "json", "parquet"])
def test_statements_of_a_screening(run: Run, hole: Path, tmp_path: Path, suffix: str) -> None:
    code, out, err = run("screen", hole, "--listed", "listed.txt", "-o", f"s.{suffix}")
    assert (code, out) == (0, "")
    assert NOTE in err
    assert f"\n{LINE}\n" in err
    assert LINE in text_of(tmp_path / f"s.{suffix}")


def test_a_screening_as_json_has_the_hole_on_stderr(run: Run, hole: Path) -> None:
    code, out, err = run("screen", hole, "--listed", "listed.txt", "--json")
    assert (code, json.loads(out)["completeness"]) == (0, LINE)
    assert NOTE in err
    assert run("screen", hole, "--listed", "listed.txt")[2] == ""  # what is shown has it


@pytest.mark.parametrize("suffix", ["html", "json", "txt"])
def test_reports_of_a_wallet(run: Run, hole: Path, tmp_path: Path, suffix: str) -> None:
    code, _, err = run("wallet", hole, "--coins", "coins.txt", "-o", f"w.{suffix}")
    assert (code, NOTE in err) == (0, True)
    assert LINE in text_of(tmp_path / f"w.{suffix}")


def test_every_table_of_a_comparison(run: Run, hole: Path, tmp_path: Path) -> None:
    run("compare", f"x={hole}", "-o", "report", "--no-figures", "--walks", "0")
    tables = sorted((tmp_path / "report" / "tables").glob("*.*"))
    assert {path.suffix for path in tables} >= {".txt", ".csv", ".md", ".tex"}
    for path in tables:
        assert LINE in text_of(path), path.name
