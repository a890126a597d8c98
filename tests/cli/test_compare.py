from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

Run = Callable[..., tuple[int, str, str]]


def test_compare_shows_both_tables_and_says_what_it_did(run: Run, transfers: Path) -> None:
    code, out, err = run("compare", f"mine={transfers}", "-o", "report", "--no-figures")
    assert code == 0
    assert "Stationary graphs" in out
    assert "Temporal graphs: spread and certainty" in out
    assert "mine, stationary: 2 sinks, sweep, " in err
    assert "wrote report/tables/temporal.csv" in err
    assert json.loads(Path("report/comparison.json").read_text())["scores"] == [
        "mine-stationary.parquet",
        "mine-temporal.parquet",
    ]
    assert not Path("report/index.html").exists()


def test_a_second_run_scores_nothing_and_again_needs_no_ledger(run: Run, transfers: Path) -> None:
    first = run("compare", transfers, "-o", "report", "--no-figures")
    second = run("compare", transfers, "-o", "report", "--no-figures")
    assert second[:2] == first[:2]
    assert "transfers: scored before" in second[2]
    transfers.unlink()
    assert run("compare", "--again", "-o", "report", "--no-figures")[:2] == first[:2]


def test_figures_and_a_page_are_made_unless_left_out(run: Run) -> None:
    code, _, err = run("compare", "week:dai", "--size", 0.001, "-o", "r", "--walks", 20)
    assert code == 0
    assert "wrote r/index.html" in err
    assert Path("r/figures/bits.svg").exists()
    assert "<h1" in Path("r/index.html").read_text()


def test_histories_lists_and_conventions_reach_the_scores(run: Run, transfers: Path) -> None:
    Path("listed.txt").write_text("alice\n")
    code, out, _ = run(
        "compare", transfers, "-o", "r", "--no-figures", "--listed", "listed.txt",
        "--conventions", "paper", "--published",
    )  # fmt: skip
    assert code == 0
    assert "exposure" in out
    code, _, err = run("compare", transfers, "-o", "r", "--history", "other=h.csv")
    assert code == 2
    assert "NAME one of transfers" in err


def test_nothing_to_compare_and_nobody_to_tell_apart_are_refused(run: Run, transfers: Path) -> None:
    assert run("compare", "-o", "r")[0] == 2
    assert run("compare", transfers, "--again", "-o", "r")[0] == 2
    code, _, err = run("compare", transfers, transfers, "-o", "r")
    assert (code, "name one of them" in err) == (2, True)
    assert run("compare", "none.csv", "-o", "r")[0] == 3
    assert run("compare", "--again", "-o", "r")[0] == 3
    assert run("compare", "week:dai", "--size", 99, "-o", "r")[0] == 2
