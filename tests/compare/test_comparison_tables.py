from __future__ import annotations

import csv
import io
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from coinhaze.compare.page import story
from coinhaze.compare.rows import (
    PUBLISHED,
    UNMODIFIED,
    ComparisonRow,
    comparison_rows,
    row_of,
    rows_table,
)
from coinhaze.compare.tables import comparison_grids, write_tables
from coinhaze.report.grids import Grid, latex_cell
from coinhaze.report.score_files import ScoreFile
from coinhaze.units import NOT_KNOWN

HOSTILE = "50%_of $x & {\\y}|#1~^\n<b>=cmd()"


def made_file(bits: list[float], **other: Any) -> ScoreFile:
    values = np.array(bits, dtype=np.float64)
    given = {
        "name": "made",
        "time": "stationary",
        "view": "account",
        "about": {"method": "sweep", "nodes": 9, "edges": 8, "draw_means": None, "inputs": []},
        "bits": values,
        "bits_low": values,
        "bits_high": values,
        "steps": values + 1,
        "balance": np.ones(len(values)),
        "sources": values + 1,
        "top_probability": np.full(len(values), 0.5),
        "burnt": np.zeros(len(values), dtype=np.bool_),
    }
    return ScoreFile(**given | other)


def test_nulls_and_burns_are_counted_and_left_out() -> None:
    burnt = np.array([False, False, True, False])
    row = row_of(made_file([1.0, math.nan, 100.0, 3.0], burnt=burnt))
    assert (row.sinks, row.nulls, row.burns) == (2, 1, 1)
    assert (row.bits_mean, row.bits_max, row.bits_variance) == (2.0, 3.0, 1.0)
    assert comparison_grids([row], "stationary")[0].notes[-1] == (
        "made: 1 sinks without an answer and 1 burns left out."
    )


def test_an_estimate_of_zero_bits_is_no_certain_origin() -> None:
    high = np.array([0.0, 12.0, 12.0])
    row = row_of(made_file([0.0, 0.0, 2.0], bits_low=np.zeros(3), bits_high=high))
    assert row.one_origin == pytest.approx(1 / 3)
    assert row.known == "0.00 to 8.00"


def test_the_mean_is_exact_proven_or_has_a_standard_error() -> None:
    bits = [1.0, 3.0]
    drawn = {"method": "sketch", "nodes": 1, "edges": 1, "draw_means": [1.9, 2.1, 2.0, 2.0]}
    about = drawn | {"inputs": []}
    assert row_of(made_file(bits)).known == "exact"
    assert row_of(made_file(bits, bits_high=np.array([1.1, 3.1]))).known == "2.00 to 2.10"
    error = np.std([1.9, 2.1, 2.0, 2.0], ddof=1) / 2
    assert row_of(made_file(bits, about=about)).known == f"s.e. {error:.3f}"


def test_a_row_without_history_moves_its_interval_along() -> None:
    file = made_file(
        [3.0, 5.0],
        bits_unmodified=np.array([1.0, 0.0]),
        bits_low=np.array([2.9, 5.0]),
        bits_high=np.array([3.1, 5.0]),
    )
    row = row_of(file, unmodified=True)
    assert (row.bits_mean, row.one_origin) == (0.5, 0.5)
    assert row.bits_low_mean == pytest.approx(0.45)
    assert row.bits_high_mean == pytest.approx(0.55)


def test_published_rows_stand_as_printed_under_ours() -> None:
    bits = np.array([1.0, 2.0])
    files = [
        made_file([1.0, 2.0], name="zcash-week", bits_unmodified=bits),
        made_file([1.0], name="mine"),
    ]
    rows = comparison_rows(files, "stationary", published=True)
    assert [(row.ledger, row.variant) for row in rows] == [
        ("zcash-week", ""),
        ("zcash-week", "paper"),
        ("zcash-week", "no history"),
        ("zcash-week", "no history, paper"),
        ("mine", ""),
    ]
    assert (rows[1].bits_mean, rows[3].bits_mean) == (2.63, 1.40)
    assert math.isnan(rows[3].bits_max)
    assert comparison_rows(files, "temporal", published=True) == []
    # What the paper does not print is not made up: no Ethereum row in its temporal table.
    assert len(PUBLISHED) == 9
    assert len(UNMODIFIED) == 1
    assert len(comparison_grids(rows, "stationary")[1].rows) == 3


def test_tables_are_written_in_every_form_with_names_as_they_are(tmp_path: Path) -> None:
    rows = comparison_rows([made_file([1.0, 2.0], name=HOSTILE)], "stationary")
    written = write_tables(rows, "stationary", tmp_path, {"software": "x"})
    assert [p.name for p in written] == [
        "stationary.csv", "stationary.csv.provenance.json", "stationary.txt", "stationary.md",
        "stationary.tex",
    ]  # fmt: skip
    latex = (tmp_path / "stationary.tex").read_text()
    name = r"50\%\_of \$x \& \{\textbackslash{}y\}\textbar{}\#1"
    name += r"\textasciitilde{}\textasciicircum{} <b>=cmd()"
    assert f"\n{name} & 9 & 8 & 1.50 & 1.50 & 0.25 & 2.00 & 2.50 & 2.50 & 0.25 \\\\\n" in latex
    assert latex.count(r"\toprule") == latex.count(r"\end{tabular}") == 2
    markdown = (tmp_path / "stationary.md").read_text()
    assert "| 50%\\_of $x & {\\\\y}\\|\\#1\\~^ \\<b\\>=cmd() | 9 |" in markdown
    with open(tmp_path / "stationary.csv", newline="") as file:
        (row,) = csv.DictReader(file)
    assert row["ledger"] == HOSTILE
    assert row["exposure_mean"] == ""
    assert "1.50" in (tmp_path / "stationary.txt").read_text()


def test_cells_of_latex_never_end_a_line_or_open_a_group() -> None:
    for code in range(1, 256):
        cell = latex_cell(f"a{chr(code)}b")
        plain = cell.replace(r"\textbackslash{}", "").replace(r"\textasciitilde{}", "")
        plain = plain.replace(r"\textasciicircum{}", "").replace(r"$\pm$", "")
        plain = plain.replace(r"\textbar{}", "")
        for special in "&%$#_{}":
            plain = plain.replace("\\" + special, "")
        assert not set(plain) & set("&%$#_{}\\~^\n\r"), code


def test_a_name_that_looks_like_markup_is_shown_as_it_is() -> None:
    grid = Grid("[bold]t[/]", ["ledger", "n"], [["[red]x[/red]", "1"]], ["[i]n[/i]"])
    text = io.StringIO()
    Console(width=60, file=text).print(grid.rich())
    for shown in ("[bold]t[/]", "[red]x[/red]", "[i]n[/i]"):
        assert shown in text.getvalue()


def test_rows_become_a_table_with_nulls_where_nobody_knows() -> None:
    row = row_of(made_file([]))
    table = rows_table([row]).to_pylist()[0]
    assert table["bits_mean"] is None
    assert (table["sinks"], table["mean_known"]) == (0, "no sinks")
    assert list(table)[: len(ComparisonRow.__dataclass_fields__)] == list(
        ComparisonRow.__dataclass_fields__
    )


def bounded(bits: list[float], bound: list[bool], **other: Any) -> ScoreFile:
    return made_file(bits, lower_bound=np.array(bound), **other)


def test_one_bound_makes_mean_quantiles_and_maximum_bounds() -> None:
    row = row_of(bounded([0.0, 0.0, 2.0], [True, False, False]))
    assert (row.lower_bounds, row.mark, row.known) == (1, "≥", "lower bound")
    # The first has at least 0 bits: only the second is proven to have one origin.
    assert row.one_origin == pytest.approx(1 / 3)
    paper, more = comparison_grids([row], "stationary")
    assert paper.rows[0][3:] == ("≥0.67", "≥0.00", "0.89", "≥2.00", "1.67", "1.00", "0.89")
    assert more.rows[0][2:9] == [
        "≥0.00",
        "≥0.00",
        "≥1.00",
        "≥1.80",
        "≥0.67",
        "33.3 %",
        "lower bound",
    ]
    for grid in (paper, more):
        assert grid.notes[-1].startswith("≥: a lower bound. Bits of 1 of 3 sinks of made are")
    assert "$\\ge$0.67" in paper.latex("x")


def test_a_burnt_bound_marks_nothing() -> None:
    burnt = np.array([True, False])
    row = row_of(bounded([1.0, 2.0], [True, False], burnt=burnt))
    assert (row.lower_bounds, row.known) == (0, "exact")
    assert comparison_grids([row], "stationary")[0].rows[0][3] == "2.00"


def test_intervals_and_draws_of_bounds_are_bounds_too() -> None:
    file = bounded([1.0, 3.0], [True, True], bits_high=np.array([1.1, 3.1]))
    assert row_of(file).known == "≥2.00"
    drawn = {"method": "sketch", "nodes": 1, "edges": 1, "draw_means": [1.9, 2.1], "inputs": []}
    assert row_of(bounded([1.0, 3.0], [True, True], about=drawn)).known == "s.e. 0.100, lower bound"


def test_bounds_are_distinguished_and_never_ranked() -> None:
    files = [
        bounded([9.0, 9.0], [True, True], name="raw"),
        made_file([1.0], name="low"),
        made_file([2.0], name="high"),
    ]
    lines = story(files)
    assert lines[0].startswith("With time left out, the median coin has most bits on high, 2.00")
    assert "fewest on low" in lines[0]
    assert lines[1].startswith("With time left out, the median coin of raw has at least 9.00 bits")
    assert not any("raw" in line for line in lines[2:] if "proven" not in line)


def test_many_long_notes_stand_below_a_table_and_not_in_its_caption() -> None:
    notes = [f"note {k}: " + "a long remark & more, " * 20 for k in range(12)]
    about = {"method": "sweep", "nodes": 9, "edges": 8, "draw_means": None, "inputs": []}
    row = row_of(made_file([1.0], about=about | {"notes": notes}))
    (paper, _) = comparison_grids([row], "stationary")
    assert len(paper.remarks) == 12
    latex = paper.latex("x").splitlines()
    (caption,) = [line for line in latex if line.startswith("\\caption")]
    assert "remark" not in caption
    assert sum(line.startswith("\\par") and "\\& more" in line for line in latex) == 12
    text = io.StringIO()
    Console(width=110, file=text).print(paper.rich())
    assert all(f"note {k}: a long remark" in text.getvalue() for k in range(12))
    assert max(map(len, text.getvalue().splitlines())) <= 110


@pytest.mark.parametrize(
    ("unit", "words"),
    [("BTC:8", "4.00008 BTC"), ("ETH:18", "0.000000000400008 ETH"), (None, "400,008,000")],
)
def test_what_sinks_hold_is_shown_in_its_unit(unit: str | None, words: str) -> None:
    file = bounded([0.0, 1.0, 2.0], [False, False, False])
    held = replace(
        file,
        balance=np.array([1e8 + 8_030, 1e8, 2e8]),
        about=dict(file.about) | ({} if unit is None else {"unit": unit}),
    )
    row = row_of(held)
    assert row.held == words
    _, more = comparison_grids([row], "stationary")
    assert f"Held by these sinks: {row.ledger}: {words} in all." in more.notes
    assert (NOT_KNOWN in more.notes) == (unit is None)
