from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

Run = Callable[..., tuple[int, str, str]]


def test_growth_prints_a_row_for_each_payment(run: Run, transfers: Path) -> None:
    code, out, err = run("growth", transfers, "--length", 3)
    assert (code, err) == (0, "")
    rows = [line.split("│")[1:-1] for line in out.splitlines() if line.startswith("│")]
    figures = [[cell.strip() for cell in row] for row in rows]
    # alice and bob pay the shop, 5 and 3, and the shop pays carol; nothing leads on from her.
    assert [row[:3] for row in figures] == [
        ["0", "100.0%", "0.000"],
        ["1", "100.0%", "0.954"],
        ["2", "100.0%", "0.954"],
        ["3", "0.0%", "-"],
    ]
    assert "all walks from 2 sources, weighed; bits are exact" in " ".join(out.split())
    assert run("growth", transfers, "--length", 30)[1] == out  # rows of no walk are left out


def test_growth_writes_what_it_found_and_what_made_it(run: Run, transfers: Path) -> None:
    code, out, _ = run("growth", transfers, "--walks", 9, "--seed", 4, "--length", 2, "--json")
    assert code == 0
    document = json.loads(out)
    about = document["provenance"]
    assert (about["walks"], about["seed"], about["sources"]) == (8, 4, 2)
    assert about["inputs"][0]["file"] == "transfers.csv"
    assert [row["payments"] for row in document["growth"]] == [0, 1, 2]
    code, out, err = run("growth", transfers, "-o", "growth.csv", "--figure", "growth.png")
    assert (code, out) == (0, "")
    assert "wrote growth.csv" in err
    with open("growth.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert float(rows[1]["bits_mean"]) == document["growth"][1]["bits_mean"]
    assert Path("growth.csv.provenance.json").exists()
    assert Path("growth.png").read_bytes().startswith(b"\x89PNG")


def test_growth_refuses_before_it_works(run: Run, transfers: Path) -> None:
    code, _, err = run("growth", transfers, "--figure", "growth.jpg")
    assert code == 2
    assert ".png, .svg, .pdf" in err
    code, _, err = run("growth", transfers, "--accuracy", "much")
    assert code == 2
    assert "auto, exact, preview" in err
    code, _, err = run("growth", "nowhere.csv")
    assert code == 3
    assert not Path("growth.jpg").exists()
