from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def payments(tmp_path: Path) -> Path:
    path = tmp_path / "payments.csv"
    path.write_text("from,to,amount\nalice,shop,5\nbob,shop,3\nshop,carol,6\n")
    return path


@pytest.mark.parametrize(
    ("policy", "share"),
    [("fifo", {"alice:0": 5, "bob:0": 1}), ("lifo", {"bob:0": 3, "alice:0": 3})],
)
def test_origins_in_order_are_exact_shares(
    run: Run, payments: Path, policy: str, share: dict[str, int]
) -> None:
    code, out, err = run("origins", payments, "carol", "--policy", policy, "--json")
    assert code == 0
    assert "steps are null" in err
    found = json.loads(out)
    assert {s["source"]: s["probability"] for s in found["sources"]} == {
        name: part / 6 for name, part in share.items()
    }
    assert found["steps"] is None
    assert found["sources"][0]["way"] == []


def test_origins_in_order_show_no_ways(run: Run, payments: Path) -> None:
    code, out, _ = run("origins", payments, "carol", "--policy", "fifo")
    assert code == 0
    assert "83.33%" in out
    assert "likeliest way" not in out
    assert "steps" not in out


def test_scores_in_order_have_no_steps(run: Run, payments: Path) -> None:
    code, out, err = run("score", payments, "--policy", "lifo", "--json")
    assert code == 0
    assert err.startswith("note: an ordered policy follows lots")
    document = json.loads(out)
    assert {row["node"]: row["bits"] for row in document["scores"]} == {"shop": 0.0, "carol": 1.0}
    assert [row["steps"] for row in document["scores"]] == [None, None]
    assert document["provenance"]["method"] == "lots, lifo"
    assert document["provenance"]["settings"]["policy"] == "lifo"
    assert document["provenance"]["settings"]["time"] == "temporal"


def test_the_table_of_scores_in_order_groups_what_is_equal(run: Run, tmp_path: Path) -> None:
    rows = "\n".join(f"mint,user{k},1" for k in range(5))
    (tmp_path / "many.csv").write_text(f"from,to,amount\n{rows}\n")
    code, out, _ = run("score", "many.csv", "--policy", "fifo")
    assert code == 0
    assert "+4" in out
    assert "nan" not in out


def test_scores_in_order_against_a_list(run: Run, payments: Path, tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text("bob\n")
    _, out, _ = run("score", payments, "--policy", "fifo", "--listed", "list.txt", "--json")
    rows = {row["node"]: row for row in json.loads(out)["scores"]}
    assert rows["shop"]["exposure"] == 1.0
    assert rows["carol"]["exposure"] == pytest.approx(1 / 6, abs=1e-15)


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(["--time", "stationary"], id="no order"),
        pytest.param(["--accuracy", "preview"], id="preview"),
        pytest.param(["--preset", "paper"], id="preset"),
        pytest.param(["--dry-run"], id="dry run"),
        pytest.param(["--memory", "1GB"], id="memory"),
    ],
)
def test_what_has_no_meaning_in_order_is_a_usage_error(
    run: Run, payments: Path, given: list[str]
) -> None:
    code, out, err = run("score", payments, "--policy", "fifo", *given)
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1
