"""`coinhaze score --keep`: what the page opens at once."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from coinhaze.cache.layers import LedgerCache

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_retained_scores_are_those_printed(run: Run, transfers: Path) -> None:
    code, out, err = run("score", transfers, "--keep", "--json")
    assert code == 0
    assert f"cached in {transfers}.kept" in err
    opened = LedgerCache(transfers).open()
    assert opened is not None
    assert [row["bits"] for row in json.loads(out)["scores"]] == opened.scores.bits.tolist()
    assert run("score", transfers, "--keep", "--json")[1] == out  # from the cache
    assert run("score", transfers, "--json")[1].replace(" --json", " --keep --json") == out


def test_settings_go_into_what_is_retained(run: Run, transfers: Path) -> None:
    assert run("score", transfers, "--keep", "--time", "temporal", "--accuracy", "0.1")[0] == 0
    assert LedgerCache(transfers, time="temporal").facts() is not None
    assert LedgerCache(transfers).facts() is None


def test_a_list_keeps_its_own_graph_in_the_order_of_time(run: Run, tmp_path: Path) -> None:
    path, listed = tmp_path / "late.csv", tmp_path / "list.txt"
    path.write_text("from,to,amount\nbob,carol,3\ncarol,shop,2\nthief,carol,4\n")
    listed.write_text("thief\n")
    told = {}
    for more in ((), ("--listed", listed), ("--listed", listed, "--time", "stationary")):
        plain = json.loads(run("score", path, *more, "--json")[1])
        for _ in range(2):  # built, then opened
            kept = json.loads(run("score", path, *more, "--keep", "--json")[1])
            assert kept["scores"] == plain["scores"]
        rows = {row["node"]: row.get("exposure") for row in plain["scores"]}
        told[more] = rows["shop"], plain["summary"]["time"]
    # The shop was paid before the thief paid anybody.
    assert [time for _, time in told.values()] == ["stationary", "temporal", "stationary"]
    shares = [share for share, _ in told.values()]
    assert shares[:2] == [None, 0.0]
    assert shares[2] == pytest.approx(4 / 7)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--policy", "fifo"], "no chain to keep"),
        (["--preset", "paper"], "cannot be cached with 'preset'"),
        (["--all"], "scores of sinks are cached"),
    ],
    ids=["ordered", "preset", "all"],
)
def test_what_cannot_be_retained_is_refused_before_any_work(
    run: Run, transfers: Path, words: list[str], said: str
) -> None:
    code, _, err = run("score", transfers, "--keep", *words)
    assert code == 2
    assert said in err
    assert not Path(f"{transfers}.kept").exists()


def test_a_place_that_cannot_be_written_is_named(run: Run, transfers: Path, tmp_path: Path) -> None:
    Path(f"{transfers}.kept").write_text("in the way")
    (tmp_path / "cache").write_text("in the way")
    code, _, err = run("score", transfers, "--keep")
    assert code == 3
    assert "cannot be written, so nothing is cached" in err


def test_a_disk_that_fills_up_still_shows_the_scores(
    run: Run, transfers: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("coinhaze.ledger.atomic.os.fsync", full)
    code, out, err = run("score", transfers, "--keep")
    assert code == 6
    assert "scored, but not cached" in err
    assert "No space left" in err
    assert "carol" in out


def test_verify_compares_what_is_retained(run: Run, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("height,txid,from,to,amount\n1,x,alice,shop,5\n")
    assert run("ingest", "t.csv", "-o", "t.duckdb")[0] == 0
    assert "kept" not in run("verify", "t.duckdb")[1]
    assert run("score", "t.duckdb", "--keep")[0] == 0
    assert "cache: 5 layers, " in run("verify", "t.duckdb")[1]
    data = next(Path("t.duckdb.kept").glob("*/data"))
    data.write_bytes(data.read_bytes()[:-1] + b"x")
    assert "cache: 1 layers will not be opened, but built again" in run("verify", "t.duckdb")[1]
