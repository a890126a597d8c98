"""What the commands say of order, identity and columns."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., tuple[int, str, str]]

SIX = ["thief,ann,10,100", "bob,ann,10,200", "ann,shop,12,300", "shop,cat,7,400"]
SIX += ["cat,dan,7,500", "eve,dan,5,600"]


def export(path: Path, rows: list[str], header: str = "from,to,amount,block_time") -> Path:
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


def test_screen_finds_in_a_file_newest_first_what_it_finds_oldest_first(
    run: Run, tmp_path: Path
) -> None:
    Path("list.txt").write_text("thief\n")
    old, new = export(tmp_path / "old.csv", SIX), export(tmp_path / "new.csv", SIX[::-1])
    found = []
    for path in (old, new):
        code, out, err = run("screen", path, "--listed", "list.txt", "--time", "temporal")
        assert code == 0
        assert ("newest first" in out + err) == (path == new)
        found.append([line for line in out.splitlines() if "dan" in line])
    assert found[0]
    assert found[0] == found[1]


def test_score_notes_that_rows_were_put_in_order(run: Run, tmp_path: Path) -> None:
    new = export(tmp_path / "new.csv", SIX[::-1])
    code, _, err = run("score", new, "--time", "temporal")
    assert code == 0
    assert "6 rows were put in order by block_time: the file stood newest first" in err


def test_info_lists_every_column_and_chooses_a_token(run: Run, tmp_path: Path) -> None:
    rows = [f"{row},{token},1" for row, token in zip(SIX, "xxxyyy", strict=True)]
    path = export(tmp_path / "t.csv", rows, "from,to,amount,block_time,contract_address,Odd one")
    code, _, err = run("info", path)
    assert code == 2
    assert "--token" in err
    code, out, err = run("info", path, "--token", "y", "--to", "1970-01-01T00:08:20", "--json")
    assert code == 0
    facts = json.loads(out)
    assert facts["transfers"] == 2
    used = ["from", "to", "amount", "block_time", "contract_address"]
    assert facts["columns_used"] == used
    assert facts["columns_unused"] == []
    assert facts["columns_unknown"] == ["Odd one"]
    assert "Odd one" in err
    code, out, _ = run("info", path, "--token", "x")
    assert code == 0
    lines = {line.split("  ")[0]: line for line in out.splitlines()}
    assert lines["columns used"].endswith(", ".join(used))
    assert lines["columns unknown"].endswith("Odd one")


@pytest.mark.parametrize("command", ["info", "score"])
@pytest.mark.parametrize(
    ("rows", "says"), [([], "no transfers"), (["a,b,0,1", "b,c,0,2"], "nothing moves")]
)
def test_a_ledger_in_which_nothing_moves_is_exit_3(
    run: Run, tmp_path: Path, command: str, rows: list[str], says: str
) -> None:
    code, out, err = run(command, export(tmp_path / "t.csv", rows))
    assert (code, out) == (3, "")
    assert says in err


def test_ingest_says_that_rows_were_put_in_order(run: Run, tmp_path: Path) -> None:
    new = export(tmp_path / "new.csv", SIX[::-1])
    code, _, err = run("ingest", new, "-o", "ledger.duckdb")
    assert code == 0
    assert "note: new.csv: 6 rows were put in order by block_time" in err
    first, second = (run("score", path, "--time", "temporal")[1] for path in ("ledger.duckdb", new))
    assert first == second
