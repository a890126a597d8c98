"""coinhaze history: index, score, show and table on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from coinhaze.history import History
from coinhaze.simulate.history import FIRST_TIME

from .conftest import Run


def transactions(blocks: int) -> str:
    """Make a chain as bitcoin-etl writes it: a coinbase a block, and a payment of two coins."""
    lines = []
    for h in range(blocks):
        block = {
            "block_number": h + 1,  # the coin of block 0 can never be spent
            "block_timestamp": FIRST_TIME + 600 * h,
            "block_hash": f"{h:064x}",
        }
        made = [{"index": 0, "value": 50, "type": "pubkeyhash", "addresses": ["m"]}]
        lines.append(
            block
            | {"hash": f"{2 * h + 2:064x}", "is_coinbase": True, "inputs": [], "outputs": made}
        )
        if h % 2:
            spent = [
                {"index": k, "spent_transaction_hash": f"{2 * (h - k) + 2:064x}",
                 "spent_output_index": 0, "value": 50, "type": "pubkeyhash", "addresses": ["m"]}
                for k in range(2)
            ]  # fmt: skip
            paid = [
                {"index": k, "value": v, "type": "pubkeyhash", "addresses": ["s"]}
                for k, v in enumerate((90, 10))
            ]
            lines.append(
                block | {"hash": f"{2 * h + 3:064x}", "is_coinbase": False, "inputs": spent,
                         "outputs": paid}
            )  # fmt: skip
    return "\n".join(json.dumps(line) for line in lines) + "\n"


@pytest.fixture
def chain(tmp_path: Path) -> Path:
    path = tmp_path / "transactions.json"
    path.write_text(transactions(6))
    return path


def test_from_files_to_scores_table_figure_and_origins(run: Run, chain: Path) -> None:
    code, out, err = run("history", "index", "x.history", chain, "--complete")
    said = [line for line in err.splitlines() if not line.startswith("note: compiling")]
    assert (code, said) == (0, [])
    assert "9 transactions, 9 rows, 6 terms, 6 sources, 6 unspent coins; blocks 1 to 6" in out
    assert "from the first block" in out
    code, out, err = run("history", "score", "x.history", "--accuracy", "exact", "-o", "s.parquet")
    assert (code, out) == (0, "")
    assert "wrote s.parquet" in err
    assert "6 unspent coins worth 300: 1.000 bits on average, 1.000 by value; exact" in err
    table = pq.read_table("s.parquet")
    assert table.column_names == [
        "node", "bits", "bits_low", "bits_high", "miss", "steps", "balance", "height",
    ]  # fmt: skip
    assert table["bits"].to_pylist() == pytest.approx([1.0] * 6)
    assert table["steps"].to_pylist() == pytest.approx([4.0] * 6)
    assert table["height"].to_pylist() == [2, 2, 4, 4, 6, 6]
    assert table["node"][0].as_py() == f"{5:064x}:0"
    about = json.loads(table.schema.metadata[b"coinhaze"])
    assert about["blocks"] == [1, 6]
    assert about["scored"]["method"] == "exact"
    for group in ("year", "height", "value", "age", "script-type"):
        code, out, _ = run("history", "table", "x.history", "--group-by", group, "--json")
        assert code == 0
        rows = json.loads(out)["table"]
        assert sum(row["coins"] for row in rows) == 6
        assert sum(row["value"] for row in rows) == 300
        assert all(row["bits_mean"] == pytest.approx(1.0) for row in rows)
    code, out, _ = run("history", "table", "x.history", "--group-by", "script-type")
    assert "unspent coins by script type" in out
    assert " script type " in out
    code, out, err = run(
        "history", "table", "x.history", "--group-by", "script-type", "--figure", "t.svg"
    )
    assert code == 0
    assert "script type" in Path("t.svg").read_text()
    code, out, err = run("history", "table", "x.history", "--figure", "t.png", "-o", "t.csv")
    assert code == 0
    assert Path("t.png").read_bytes()[:4] == b"\x89PNG"
    assert Path("t.csv").read_text().startswith('"group","coins","value"')
    code, out, _ = run("history", "table", "x.history")
    assert "2009" in out
    assert "one origin" in out
    code, out, _ = run("history", "show", "x.history", f"{5:064x}:0", "--json")
    shown = json.loads(out)
    assert code == 0
    assert (shown["bits"], shown["rank"], shown["unspent_coins"]) == (1.0, 1, 6)
    assert (shown["balance"], shown["height"], shown["sources"]) == (90, 2, 2)
    assert shown["origins"] == [
        {"source": f"tx:{2:064x}", "probability": 0.5},
        {"source": f"tx:{4:064x}", "probability": 0.5},
    ]
    code, out, _ = run("history", "show", "x.history", f"{5:064x}:0")
    assert "place 1 of 6 unspent coins" in out
    assert "worth 90; made in block 2" in out


def test_lists_of_sources_prove_what_draws_leave_to_chance(run: Run, chain: Path) -> None:
    run("history", "index", "x.history", chain, "--complete")
    code, out, _ = run(
        "history", "score", "x.history", "--seed", "1", "--top-sources", "2", "--json"
    )
    assert code == 0
    shown = json.loads(out)
    assert shown["provenance"]["scored"]["top_sources"] == 2
    assert [score["miss"] for score in shown["scores"]] == [0.0] * 6
    assert [score["bits"] for score in shown["scores"]] == pytest.approx([1.0] * 6)
    code, _, err = run("history", "score", "x.history", "--accuracy", "exact", "--top-sources", "2")
    assert code == 2
    assert "exact bits need no lists of sources" in err


def test_months_are_shown_written_and_drawn(run: Run, chain: Path) -> None:
    run("history", "index", "x.history", chain, "--complete")
    run("history", "score", "x.history", "--accuracy", "exact")
    code, _, err = run("history", "table", "x.history", "--over-time")
    assert code != 0
    assert "find it first: coinhaze history score x.history --over-time" in err
    code, _, err = run("simulate", "bitcoin-history", "--blocks", "40", "-o", "made.history")
    assert code == 0, err
    code, _, err = run("history", "score", "made.history", "--over-time", "--accuracy", "exact")
    assert code == 0, err
    code, out, err = run("history", "table", "made.history", "--over-time")
    assert (code, err) == (0, "")
    assert "unspent coins at the end of each month" in out
    code, document, _ = run("history", "table", "made.history", "--over-time", "--json")
    rows = json.loads(document)["table"]
    assert len(rows) > 20
    for row in (rows[0], rows[len(rows) // 2], rows[-1]):
        line = next(line for line in out.splitlines() if line.strip().startswith(row["month"]))
        assert f"{row['coins']:,}" in line
        assert f"{row['bits_mean']:.3f} (" in line
        assert f"{row['bits_by_value']:.3f} (" in line
    assert rows == History.open(Path("made.history")).over_time().to_pylist()
    code, _, err = run(
        "history", "table", "made.history", "--over-time", "--figure", "m.svg", "-o", "m.csv"
    )
    assert code == 0, err
    assert "wrote m.svg" in err
    drawn = Path("m.svg").read_text()
    for words in ("end of month", "mean of coins", "mean by value", "bits"):
        assert words in drawn, words
    lines = Path("m.csv").read_text().splitlines()
    assert len(lines) == len(rows) + 1
    assert lines[1].startswith(f'"{rows[0]["month"]}",{rows[0]["coins"]},')


def test_blocks_that_follow_are_appended(run: Run, chain: Path) -> None:
    run("history", "index", "x.history", chain, "--complete")
    later = transactions(8)
    chain.write_text(later)
    code, out, _ = run("history", "index", "x.history", chain, "--complete")
    assert code == 0
    assert "12 transactions" in out
    code, _, err = run("history", "table", "x.history")
    assert code == 3
    assert "score it first: coinhaze history score x.history" in err
    lines = [line for line in transactions(12).splitlines() if json.loads(line)["block_number"] > 9]
    chain.write_text("\n".join(lines) + "\n")
    code, _, err = run("history", "index", "x.history", chain)
    assert code == 3
    assert "block 9 is missing" in err


def test_errors_are_one_line_with_their_code(run: Run, chain: Path, transfers: Path) -> None:
    run("history", "index", "x.history", chain, "--complete")
    cases = {
        ("history", "score", "none.history"): (3, "is no history: make one with"),
        ("history", "score", "x.history", "--draws", "100"): (2, "a multiple of 64"),
        ("history", "score", "x.history", "--accuracy", "word"): (2, "--accuracy is"),
        ("history", "score", "x.history", "--accuracy", "1e-7"): (5, "ask for exact"),
        ("history", "score", "x.history", "--memory", "1KB"): (6, "above the 1 kB allowed"),
        ("history", "score", "x.history", "-o", "x.txt"): (2, "write to a file ending in"),
        ("history", "show", "x.history", "nobody:0"): (3, "no coin 'nobody:0'"),
        ("history", "show", "x.history", f"{5:064x}"): (3, "name it txid:vout"),
        ("history", "index", "x.history", transfers): (3, "the history is of coins"),
        ("history", "index", "x.history", "x.history"): (3, "is the history itself"),
        ("history", "index", "x.history"): (2, "Missing argument"),
        ("history", "table", "x.history", "--group-by", "colour"): (2, "colour"),
        ("simulate", "bitcoin-history", "-o", "y", "--blocks", "0"): (2, "blocks"),
        ("simulate", "bitcoin-week", "-o", "x.history"): (2, "is no ledger folder"),
    }
    for line, (code, words) in cases.items():
        found, out, err = run(*line)
        assert (found, out) == (code, ""), line
        assert words in err, line
        assert "Traceback" not in err


def test_a_simulated_history_is_a_history(run: Run) -> None:
    code, out, err = run("simulate", "bitcoin-history", "--blocks", "6", "-o", "x.history")
    assert (code, out) == (0, "")
    assert "wrote x.history" in err
    code, out, _ = run("history", "score", "x.history", "--seed", "1", "--draws", "64")
    assert code == 0
    assert "sketch (k=64)" in out


@pytest.mark.parametrize("name", ["index", "score", "show", "table"])
def test_every_command_of_the_group_has_help_with_an_example(run: Run, name: str) -> None:
    code, out, _ = run("history", name, "--help")
    assert code == 0
    assert f"coinhaze history {name}" in out.split("Example:")[1]
