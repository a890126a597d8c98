from __future__ import annotations

import csv
import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import coinhaze
from vectors import load

COLUMNS = [
    "node", "kind", "balance", "bits", "bits_low", "bits_high", "miss", "steps", "sources",
    "top_source",
    "top_probability",
]  # fmt: skip
Run = Callable[..., tuple[int, str, str]]


def test_score_prints_a_summary_and_the_most_and_least_hazy(run: Run, transfers: Path) -> None:
    code, out, err = run("score", transfers)
    assert (code, err) == (0, "")
    assert "Summary" in out
    assert "carol" in out
    assert "0.9544" in out


def test_score_writes_csv_with_its_provenance_beside(run: Run, transfers: Path) -> None:
    code, out, err = run("score", transfers, "-o", "scores.csv")
    assert (code, out) == (0, "")
    assert "wrote scores.csv" in err
    with open("scores.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == COLUMNS
    assert {r["node"]: r["balance"] for r in rows} == {"shop": "2", "carol": "6"}
    about = json.loads(Path("scores.csv.provenance.json").read_text())
    assert about["inputs"][0]["file"] == "transfers.csv"
    assert len(about["inputs"][0]["sha256"]) == 64
    assert about["method"] == "sweep"
    assert about["software"].startswith("coinhaze ")


def test_score_writes_json_and_parquet_with_their_provenance(run: Run, transfers: Path) -> None:
    assert run("score", transfers, "-o", "scores.json")[0] == 0
    document = json.loads(Path("scores.json").read_text())
    assert list(document["scores"][0]) == COLUMNS
    assert document["provenance"]["settings"]["view"] == "account"
    assert document["summary"]["scored"] == 2
    assert run("score", transfers, "-o", "scores.parquet")[0] == 0
    table = pq.read_table("scores.parquet")
    assert table.column_names == COLUMNS
    assert json.loads(table.schema.metadata[b"coinhaze"])["method"] == "sweep"


def test_json_on_stdout_is_json_alone(run: Run, transfers: Path) -> None:
    code, out, _ = run("score", transfers, "--json")
    assert code == 0
    assert json.loads(out)["scores"][1]["node"] == "carol"


def test_the_same_command_writes_the_same_bytes(run: Run, transfers: Path) -> None:
    run("score", transfers, "-o", "scores.json")
    first = Path("scores.json").read_bytes()
    run("score", transfers, "-o", "scores.json")
    assert Path("scores.json").read_bytes() == first


def test_all_scores_every_node(run: Run, transfers: Path) -> None:
    document = json.loads(run("score", transfers, "--all", "--json")[1])
    assert {r["node"] for r in document["scores"]} == {"alice", "bob", "shop", "carol"}


def test_options_reach_the_model(run: Run, tmp_path: Path) -> None:
    vector = load("mint_and_table")
    rows = "\n".join(",".join(t) for t in vector["transfers"])
    Path("t.csv").write_text(f"from,to,amount\n{rows}\n")
    table = "\n".join(f"{k},{v}" for k, v in vector["table"].items())
    Path("opening.csv").write_text(f"account,amount\n{table}\nstranger,7\n")
    code, out, err = run("score", "t.csv", "--mint", "one", "--opening", "opening.csv", "--json")
    assert code == 0
    assert "opening balances: 1 entries name no account of the ledger: stranger" in err
    bits = {r["node"]: r["bits"] for r in json.loads(out)["scores"]}
    assert bits == {k: pytest.approx(v["bits"], abs=1e-12) for k, v in vector["with_table"].items()}


def test_temporal_accounts_go_by_their_name(run: Run) -> None:
    vector = load("account_temporal")
    rows = "\n".join(",".join(t) for t in vector["transfers"])
    Path("t.csv").write_text(f"from,to,amount\n{rows}\n")
    out = run("score", "t.csv", "--time", "temporal", "--json")[1]
    rows_out = json.loads(out)["scores"]
    assert {r["node"] for r in rows_out} == set(vector["answers"])
    whale = next(r for r in rows_out if r["node"] == "whale2")
    assert whale["balance"] == vector["transfers"][-1][2]
    assert whale["top_source"] == "whale:0"


def test_listed_adds_exposure_and_conditional_bits(run: Run, transfers: Path) -> None:
    Path("list.txt").write_text("# mine\nalice\nnobody\n")
    code, out, err = run("score", transfers, "--listed", "list.txt", "--json")
    assert code == 0
    assert "not in the ledger: nobody" in err
    row = json.loads(out)["scores"][1]
    assert row["exposure"] == 0.625
    assert row["conditional_bits"] == 0
    assert row["bits"] == pytest.approx(0.954434002924965)
    poisoned = run("score", transfers, "--listed", "list.txt", "--policy", "poison", "--json")[1]
    assert json.loads(poisoned)["scores"][1]["exposure"] == 1


def test_links_and_clusters_come_from_files(run: Run, transfers: Path) -> None:
    Path("links.csv").write_text("payment,node,probability\n2,alice,1\n")
    out = run("score", transfers, "--links", "links.csv", "--json")[1]
    assert json.loads(out)["scores"][1]["bits"] == 0
    Path("clusters.csv").write_text("address,cluster\nalice,family\nbob,family\n")
    out = run("score", transfers, "--clusters", "clusters.csv", "--json")[1]
    assert json.loads(out)["scores"][1]["top_source"] == "family"


def test_history_adds_a_column_with_the_unmodified_score(run: Run) -> None:
    Path("history.csv").write_text("pool,value\nshielded,1\nshielded,1\n")
    line = {
        "hash": "t", "block_number": 1, "index": 0, "is_coinbase": False,
        "inputs": [{"type": "shielded", "value": 5}],
        "outputs": [{"index": 0, "value": 5, "addresses": ["a"]}],
    }  # fmt: skip
    Path("transactions.json").write_text(json.dumps(line))
    code, out, err = run("score", "transactions.json", "--history", "history.csv", "--json")
    assert code == 0, err
    row = json.loads(out)["scores"][0]
    assert (row["bits"], row["bits_unmodified"]) == (1, 0)


def test_the_paper_preset_uses_the_published_conventions(run: Run, transfers: Path) -> None:
    code, out, _ = run("score", transfers, "--preset", "paper", "--json")
    document = json.loads(out)
    assert code == 0
    assert document["provenance"]["method"] == "series (published)"
    assert document["provenance"]["settings"]["mint"] == "one"
    assert document["provenance"]["settings"]["sinks"] == "paper"


def test_a_preview_says_that_it_estimates(run: Run) -> None:
    Path("t.csv").write_text("from,to,amount\na,y,1\nb,y,1\na,z,2\nb,z,1\n")
    code, out, _ = run("score", "t.csv", "--accuracy", "preview")
    assert code == 0
    words = " ".join(out.split())
    assert "standard error of 0.16 bits" in words
    assert "each misses with probability at most 1e-09" in words
    assert "proven" not in words


def test_command_and_library_draw_the_same_intervals(run: Run) -> None:
    Path("t.csv").write_text("from,to,amount\na,y,1\nb,y,1\na,z,2\nb,z,1\n")
    draws = ("--accuracy", "preview", "--draws", "128", "--miss", "1e-6", "--seed", "5")
    code, out, _ = run("score", "t.csv", *draws, "--simultaneous", "--json")
    assert code == 0
    document = json.loads(out)
    found = coinhaze.score(
        "t.csv", accuracy="preview", draws=128, miss=1e-6, seed=5, simultaneous=True
    )
    assert document["provenance"]["method"] == "sketch (k=128, seed 5)"
    assert document["provenance"]["miss"] == 5e-7
    assert document["provenance"]["joint_miss"] == 1e-6
    summary = found.summary().as_dict()
    for name in ("miss", "joint_miss", "mean_miss", "bits_mean_low", "bits_mean_high"):
        assert document["summary"][name] == summary[name]
    table = found.to_arrow().to_pylist()
    for row, score in zip(document["scores"], table, strict=True):
        assert {k: row[k] for k in ("bits_low", "bits_high", "miss")} == {
            k: score[k] for k in ("bits_low", "bits_high", "miss")
        }


def test_a_plan_tells_what_proving_and_drawing_cost(run: Run) -> None:
    Path("t.csv").write_text("from,to,amount\na,y,1\nb,y,1\na,z,2\nb,z,1\n")
    code, out, _ = run("score", "t.csv", "--accuracy", "0.5", "--miss", "1e-6", "--dry-run")
    assert code == 0
    assert "choice    proven about" in out
    assert "draws)" in out


def test_the_published_rule_says_what_it_lost(run: Run) -> None:
    rows = [f"s{k},hub,{1 + k % 7}" for k in range(400)]
    rows += [f"hub,x{k},3" for k in range(400)] + [f"x{k},hub,3" for k in range(399)]
    Path("t.csv").write_text("from,to,amount\n" + "\n".join(rows) + "\n")
    code, _, err = run("score", "t.csv", "--preset", "paper")
    assert code == 0
    assert "the stopping rule lost up to" in err


def test_coins_with_other_origins_are_not_shown_as_equal(run: Run) -> None:
    Path("t.csv").write_text("from,to,amount\na,b,1\nc,d,1\nc,e,1\n")
    out = run("score", "t.csv")[1]
    assert "+1" in out
    assert "│ b " in out
    assert "│ d " in out


LONG_WORK = 120  # seconds


def _interrupt(code: str, folder: Path) -> str:
    """Run code until it says it works, interrupt it, give what it says on the error stream."""
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "working\n"
        process.send_signal(signal.SIGINT)
        # At once: the work takes longer than that, however busy the machine is.
        _, err = process.communicate(timeout=LONG_WORK / 2)
    assert process.returncode == 130
    return err.strip()


def test_ctrl_c_stops_long_work_at_once(transfers: Path) -> None:
    code = (
        "import ctypes, sys, coinhaze.solve\n"
        "def block(*_, **__):\n"
        "    print('working', flush=True)\n"
        f"    ctypes.CDLL(None).sleep({LONG_WORK})\n"
        "coinhaze.solve.score = block\n"
        f"sys.argv = ['coinhaze', 'score', {str(transfers)!r}, '-o', 'scores.csv']\n"
        "from coinhaze.cli import main\n"
        "main()\n"
    )
    err = _interrupt(code, transfers.parent)
    assert err == "coinhaze: interrupted; nothing was left half-written"
    assert {p.name for p in transfers.parent.iterdir()} == {"transfers.csv"}


def test_ctrl_c_takes_away_a_half_written_ledger(tmp_path: Path) -> None:
    code = (
        "import sys, time, pyarrow.parquet as pq\n"
        "write = pq.write_table\n"
        "def slowly(*given, **named):\n"
        "    write(*given, **named)\n"
        "    print('working', flush=True)\n"
        f"    time.sleep({LONG_WORK})\n"
        "pq.write_table = slowly\n"
        "sys.argv = ['coinhaze', 'simulate', 'dai-week', '--size', '0.001', '-o', 'week']\n"
        "from coinhaze.cli import main\n"
        "main()\n"
    )
    err = _interrupt(code, tmp_path)
    assert err == "coinhaze: interrupted; nothing was left half-written"
    assert list(tmp_path.iterdir()) == []


def test_origins_show_sources_and_ways(run: Run, transfers: Path) -> None:
    code, out, _ = run("origins", transfers, "carol")
    assert code == 0
    assert "alice → shop → carol" in out
    assert "62.50%" in out
    document = json.loads(run("origins", transfers, "carol", "--json", "--top", 1)[1])
    assert document["sources"] == [
        {
            "source": "alice",
            "probability": 0.625,
            "way": ["alice", "shop", "carol"],
            "label": None,
        }
    ]


def test_origins_of_nobody_say_so(run: Run, transfers: Path) -> None:
    code, _, err = run("origins", transfers, "zoe")
    assert code == 3
    assert "no node 'zoe'" in err


def test_info_counts(run: Run, transfers: Path) -> None:
    code, out, _ = run("info", transfers)
    assert code == 0
    assert "transfers        3" in out
    assert json.loads(run("info", transfers, "--json")[1])["total_moved"] == 14


def test_demo_writes_tables_a_figure_and_scores(run: Run) -> None:
    code, out, _ = run("demo", "-o", "here")
    assert code == 0
    for part in ("Summary", "Most haze (5)", "Least haze (5)", "Origins", "likeliest way it came"):
        assert part in out
    assert {p.name for p in Path("here").iterdir()} == {
        "bits.png",
        "scores.csv",
        "scores.csv.provenance.json",
    }
    assert Path("here/bits.png").read_bytes()[:4] == b"\x89PNG"


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["score"], 2, "Missing argument"),
        (["fly"], 2, "No such command"),
        (["score", "transfers.csv", "--view", "coin"], 2, "does not fit this ledger"),
        (["score", "transfers.csv", "--time", "soon"], 2, "Invalid value"),
        (["score", "transfers.csv", "--opening", "observed"], 2, "needs coins"),
        (["score", "transfers.csv", "--accuracy", "fine"], 2, "--accuracy"),
        (["score", "transfers.csv", "--accuracy", "-1"], 2, "accuracy is exact, preview or"),
        (["score", "transfers.csv", "-o", "scores.xlsx"], 2, ".parquet"),
        (["score", "transfers.csv", "--policy", "poison"], 2, "needs a list"),
        (["score", "absent.csv"], 3, "no such file"),
        (["score", "my-server:50002"], 3, "named with its kind, such as electrum+ssl://"),
        (["serve", "transfers.csv", "nosuch.csv"], 3, "nosuch.csv: no such file"),
        (["serve", "transfers.csv", "empty.csv"], 3, "empty.csv: no known format: the file is e"),
        (["score", "https://mempool.space/api"], 3, "such as electrum+ssl://"),
        (["score", "transfers.csv", "--listed", "absent.txt"], 3, "no such file"),
        (["score", "transfers.csv", "-o", "nowhere/scores.csv"], 3, "there is no folder nowhere"),
        (["score", "transfers.csv", "-o", "transfers.csv"], 2, "is one of the inputs"),
        (["score", "."], 3, "is a folder"),
        (["origins", "transfers.csv"], 2, "the node last"),
        (["origins", "transfers.csv", "carl"], 3, "did you mean 'carol'?"),
        (["origins", "transfers.csv", "shop:1"], 3, "snapshots need time=temporal"),
        (["origins", "transfers.csv", "0x" + "0" * 40], 3, "mint=one"),
        (["score", "transfers.csv", "--accuracy", "1e-15", "--strict"], 5, "proven interval"),
    ],
)
def test_errors_are_one_line_with_their_exit_code(
    run: Run, transfers: Path, arguments: list[str], code: int, words: str
) -> None:
    Path("empty.csv").touch()
    got, out, err = run(*arguments)
    assert got == code
    assert out == ""
    assert words in err
    assert "Traceback" not in err


TWO = '{{"hash":"{}","block_number":{},"index":0,"is_coinbase":{},"inputs":{},"outputs":{}}}\n'
OUT = '[{"index":0,"value":5,"addresses":["a"]}]'
MORE = '[{"index":0,"value":9,"addresses":["a"]}]'
SPEND = '[{"spent_transaction_hash":"c","spent_output_index":0}]'
COINBASE = TWO.format("c", 1, "true", "[]", OUT)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("negative.csv", "from,to,amount\na,b,-5\n", ["negative.csv:2", "-5", "negative"]),
        ("fraction.csv", "from,to,amount\na,b,1.5\n", ["fraction.csv:2", "1.5", "whole"]),
        ("nan.csv", "from,to,amount\na,b,NaN\n", ["nan.csv:2", "NaN", "not a number"]),
        ("missing.csv", "from,to,amount\na,b,\n", ["missing.csv:2", "missing"]),
        ("negative.json", COINBASE.replace(":5", ":-5"), ["negative.json:1", "-5"]),
        ("fraction.json", COINBASE.replace(":5", ":5.5"), ["fraction.json:1", "int"]),
        ("nan.json", COINBASE.replace(":5", ":NaN"), ["nan.json:1"]),
        ("missing.json", COINBASE.replace('"value":5,', ""), ["missing.json:1", "value"]),
        (
            "twice.json",
            COINBASE
            + TWO.format("x", 2, "false", SPEND, OUT)
            + TWO.format("y", 3, "false", SPEND, OUT),
            ["twice.json:3", "spent twice", "c:0"],
        ),
        (
            "before.json",
            TWO.format("x", 1, "false", SPEND, OUT) + TWO.format("c", 2, "true", "[]", OUT),
            ["before.json:1", "before it is made", "c:0"],
        ),
        (
            "above.json",
            COINBASE + TWO.format("x", 2, "false", SPEND, MORE),
            ["above.json:2", "outputs above inputs", "9 out, 5 in"],
        ),
        (
            "two.json",
            COINBASE + TWO.format("c", 1, "true", "[]", MORE),
            ["two.json:2", "two rows of one key differ", "value 5 and 9"],
        ),
    ],
)
def test_each_malformed_ledger_gives_its_error_exit_3_and_no_output(
    run: Run, name: str, text: str, words: list[str]
) -> None:
    Path(name).write_text(text)
    before = Path("scores.csv")
    before.write_text("as it was")
    code, out, err = run("score", name, "-o", "scores.csv")
    assert (code, out) == (3, "")
    for word in words:
        assert word in err
    assert before.read_text() == "as it was"
    assert run("score", name, "-o", "new.json")[0] == 3
    assert not Path("new.json").exists()
    assert {p.name for p in Path().iterdir()} == {name, "scores.csv"}


def test_every_command_has_help_with_an_example(run: Run) -> None:
    from coinhaze.cli import COMMANDS

    assert "score" in run("--help")[1]
    for command in COMMANDS:
        code, out, _ = run(command, "--help")
        assert code == 0
        assert f"coinhaze {command}" in out.split("Example:")[1]


def test_a_closed_pipe_and_a_plain_run_end_quietly(transfers: Path) -> None:
    command = f"'{sys.executable}' -m coinhaze score '{transfers}' --json | head -c 1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert done.stdout == "{"
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("list.csv", "address,name\nalice,Alice\n"),
        ("list.json", '["alice"]'),
        ("list.yaml", "label: Alice\ntags:\n  - address: alice\n"),
        ("list.txt", "# known\nalice\n"),
    ],
)
def test_lists_come_in_many_forms(run: Run, transfers: Path, name: str, text: str) -> None:
    Path(name).write_text(text)
    code, out, err = run("score", transfers, "--listed", name, "--json")
    assert code == 0, err
    exposures = {row["node"]: row["exposure"] for row in json.loads(out)["scores"]}
    assert exposures["carol"] == pytest.approx(0.625)


def test_the_labels_of_a_tagpack_are_clusters(run: Run, transfers: Path) -> None:
    Path("tags.yaml").write_text(
        "tags:\n  - {address: alice, label: home}\n  - {address: bob, label: home}\n"
    )
    code, out, err = run("score", transfers, "--clusters", "tags.yaml", "--all", "--json")
    assert code == 0, err
    assert "home" in {row["node"] for row in json.loads(out)["scores"]}


@pytest.mark.parametrize("command", ["growth", "robustness", "sensitivity"])
def test_a_figure_that_is_no_picture_or_an_input_is_refused(
    run: Run, transfers: Path, command: str
) -> None:
    code, out, err = run(command, transfers, "--figure", "bits.gif")
    assert (code, out) == (2, "")
    assert "write to a file ending in .png, .svg, .pdf" in err
    Path("ledger.png").write_bytes(transfers.read_bytes())
    code, out, err = run(command, "ledger.png", "--figure", "ledger.png")
    assert (code, out) == (2, "")
    assert "is one of the inputs" in err
    assert Path("ledger.png").read_bytes() == transfers.read_bytes()


@pytest.mark.parametrize(
    ("words", "missing"),
    [
        (("ingest", "transfers.csv"), "--output"),
        (("screen", "transfers.csv"), "--listed"),
        (("simulate", "bitcoin-week"), "--output"),
        (("compare", "transfers.csv"), "--output"),
        (("wallet", "transfers.csv"), "--nodes"),
    ],
)
def test_a_required_option_that_is_missing_is_named(
    run: Run, transfers: Path, words: tuple[str, ...], missing: str
) -> None:
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert "Missing option" in err
    assert missing in err


def test_a_plan_in_json(run: Run, transfers: Path) -> None:
    code, out, _ = run("score", transfers.name, "--dry-run", "--json")
    assert code == 0
    plan = json.loads(out)
    assert (plan["nodes"], plan["method"]) == (4, "sweep")


def test_rows_of_a_preview_show_their_interval(run: Run, transfers: Path) -> None:
    _, out, _ = run("score", transfers.name, "--accuracy", "preview", "--seed", "1")
    assert "interval" in out
    assert "exact" in out


@pytest.mark.parametrize("accuracy", ["exact", "preview"])
def test_a_ledger_in_which_all_goes_round_is_no_crash(
    run: Run, tmp_path: Path, accuracy: str
) -> None:
    """JSON has no number for the largest of no errors."""
    path = tmp_path / "loop.csv"
    path.write_text("from,to,amount\na,b,10\nb,a,10\n")
    code, out, err = run("score", path, "--nodes", "all", "--accuracy", accuracy, "--json")
    assert (code, err) == (0, "")
    assert [row["bits"] for row in json.loads(out)["scores"]] == [None, None]
    assert "nan" not in run("score", path, "--nodes", "all", "--accuracy", accuracy)[1]


def test_all_names_of_a_file_that_are_not_there_are_said_at_once(
    run: Run, transfers: Path, tmp_path: Path
) -> None:
    names = tmp_path / "names.txt"
    names.write_text("carol\nzoe\nyan\nxia\n")
    code, out, err = run("score", transfers, "--nodes", names)
    assert (code, out) == (3, "")
    assert "no node 'zoe' in the graph" in err
    assert "2 more of the 4 names are not there: yan, xia (take them out of the list)" in err


def test_an_address_of_ethereum_is_a_node_in_any_case(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    address = "0x01E2919679362dFBC9ee1644Ba9C6da6D6245BB1"
    path.write_text(f"from,to,amount\na,{address},5\n")
    code, out, _ = run("score", path, "--nodes", address, "--json")
    assert code == 0
    assert json.loads(out)["scores"][0]["node"] == address.lower()
