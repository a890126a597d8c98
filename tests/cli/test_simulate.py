from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

Run = Callable[..., tuple[int, str, str]]


def test_simulate_writes_a_folder_that_other_commands_read(run: Run) -> None:
    code, out, err = run("simulate", "dai-week", "--size", 0.01, "--seed", 3, "-o", "dai")
    assert (code, out) == (0, "")
    assert err.startswith("wrote dai: 1,")
    code, out, err = run("info", "dai")
    assert (code, err) == (0, "")
    assert "transfers" in out
    code, out, _ = run("score", "dai", "--mint", "one")
    assert code == 0
    assert "Summary" in out


def test_simulate_replaces_an_earlier_ledger_with_the_same_bytes(run: Run) -> None:
    for _ in range(2):
        assert run("simulate", "usdc-week", "--size", 0.001, "-o", "usdc")[0] == 0
    first = {p.name: p.read_bytes() for p in Path("usdc").iterdir()}
    assert run("simulate", "usdc-week", "--size", 0.001, "-o", "again")[0] == 0
    assert first == {p.name: p.read_bytes() for p in Path("again").iterdir()}


def test_simulate_refuses_what_it_cannot_make_or_write(run: Run) -> None:
    Path("full").mkdir()
    Path("full/letter.txt").write_text("dear reader")
    for arguments, said in (
        (("gold-week", "-o", "x"), "one of bitcoin-week, dai-week"),
        (("dai-week", "--size", 0, "-o", "x"), "size is a fraction"),
        (("dai-week", "-o", "full"), "no ledger folder"),
    ):
        code, _, err = run("simulate", *arguments)
        assert code == 2
        assert said in err
        assert err.count("\n") == 1
    assert not Path("x").exists()
    assert Path("full/letter.txt").read_text() == "dear reader"


def test_a_week_with_pools_comes_with_their_history(run: Run) -> None:
    code, _, err = run("simulate", "zcash-week", "--size", 0.005, "-o", "zec")
    assert code == 0
    assert "wrote zec.history.csv: what entered its pools before" in err
    plain, known = (
        run("score", "zec", *extra, "--json")[1] for extra in ((), ("--history", "zec.history.csv"))
    )
    mean = [json.loads(text)["summary"]["bits_mean"] for text in (plain, known)]
    assert mean[1] > mean[0]
