"""What is reached is written, and exit code 5 tells that it is not enough; --strict refuses."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import coinhaze
from coinhaze.cache.layers import LedgerCache
from coinhaze.errors import AccuracyError, LedgerError
from coinhaze.ledger.completeness import Check, Completeness
from coinhaze.options import Method
from coinhaze.solve import certify, score_or_reached
from coinhaze.solve.planner import thresholds

from .conftest import Run

TOO_NARROW = "1e-17"  # no float is known as well as that


def test_what_was_reached_is_written_with_a_warning_and_exit_code_5(
    run: Run, transfers: Path, tmp_path: Path
) -> None:
    out = tmp_path / "scores.csv"
    code, _, err = run("score", transfers, "--accuracy", TOO_NARROW, "-o", out)
    assert code == 5
    assert "warning: the proven interval is" in err
    row = pa.csv.read_csv(out).to_pylist()[0]
    truth = -(5 / 8 * np.log2(5 / 8) + 3 / 8 * np.log2(3 / 8))
    assert row["bits_low"] < truth < row["bits_high"] < row["bits_low"] + 1e-12
    made_by = json.loads((tmp_path / "scores.csv.provenance.json").read_text())
    assert any("the proven interval is" in note for note in made_by["notes"])


def test_the_table_and_json_are_printed_too(run: Run, transfers: Path) -> None:
    code, out, err = run("score", transfers, "--accuracy", TOO_NARROW)
    assert (code, "carol" in out, err.count("warning:")) == (5, True, 1)
    code, out, _ = run("score", transfers, "--accuracy", TOO_NARROW, "--json")
    assert code == 5
    assert len(json.loads(out)["scores"]) == 2


def test_strict_writes_nothing(run: Run, transfers: Path, tmp_path: Path) -> None:
    before = {*tmp_path.rglob("*")}
    for more in ((), ("--keep",), ("--json",)):
        code, out, err = run(
            "score", transfers, "--accuracy", TOO_NARROW, "--strict", "-o", "scores.csv", *more
        )
        assert (code, out) == (5, "")
        assert "coinhaze: the proven interval is" in err
        assert not (tmp_path / "scores.csv").exists()
    assert {*tmp_path.glob("*.csv")} <= before


def test_scores_short_of_the_accuracy_are_retained_and_stay_short(
    run: Run, transfers: Path
) -> None:
    for _ in range(2):  # solved, then opened
        code, _, err = run("score", transfers, "--accuracy", TOO_NARROW, "--keep")
        assert (code, err.count("warning:")) == (5, 1)
    kept = LedgerCache(transfers).open()
    assert kept is not None
    assert kept.scores.shortfall in kept.scores.notes
    code, _, _ = run("score", transfers, "--accuracy", TOO_NARROW, "--keep", "--strict")
    assert code == 5


def test_the_error_carries_the_scores() -> None:
    ledger = coinhaze.AccountLedger.from_transfers([("a", "c", 5), ("b", "c", 3)])
    methods: tuple[Method, ...] = ("auto", "series")
    for method in methods:
        with pytest.raises(AccuracyError) as found:
            coinhaze.score(ledger, accuracy=1e-17, method=method)
        scores = found.value.scores
        assert scores is not None
        assert scores.notes[-1] == str(found.value)
        assert scores.bits_low[0] < 0.9544340029249649 < scores.bits_high[0]
        same = score_or_reached(ledger, accuracy=1e-17, method=method)
        assert same.bits.tolist() == scores.bits.tolist()


def test_a_broken_law_leaves_no_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = coinhaze.AccountLedger.from_transfers([("a", "c", 5), ("b", "c", 3)])
    monkeypatch.setattr(certify, "CERTIFICATE", -1.0)
    with pytest.raises(AccuracyError, match="no score is given") as found:
        score_or_reached(ledger)
    assert found.value.scores is None


def test_origins_short_of_the_accuracy_are_reported_and_exit_with_5(
    run: Run, transfers: Path, tmp_path: Path
) -> None:
    code, out, err = run("origins", transfers, "carol", "--accuracy", TOO_NARROW, "--json")
    assert (code, err.count("warning: the proven interval is")) == (5, 1)
    told = json.loads(out)
    assert told["bits_low"] < 0.9544340029249649 < told["bits_high"] < told["bits_low"] + 1e-12
    for form in ("html", "txt"):
        given = ("origins", transfers, "carol", "--accuracy", TOO_NARROW, "-o", f"told.{form}")
        code, out, err = run(*given, "--strict")
        assert (code, out, (tmp_path / f"told.{form}").exists()) == (5, "", False)
        assert "coinhaze: the proven interval is" in err
        assert run(*given)[0] == 5
        assert "carol" in (tmp_path / f"told.{form}").read_text()
    assert "the proven interval is" in (tmp_path / "told.html").read_text()


def test_origins_of_a_large_chain_to_a_width_that_is_not_reached(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [("s", "a", 1), ("t", "b", 2), ("a", "b", 10**9), ("b", "a", 10**9), ("b", "o", 3)]
    path = tmp_path / "ring.csv"
    path.write_text("from,to,amount\n" + "".join(f"{a},{b},{n}\n" for a, b, n in rows))
    monkeypatch.setattr(thresholds, "MAX_SOLVED_NODES", 0)
    monkeypatch.setattr(thresholds, "MAX_LOCAL_MOVES", 1000)
    given = ("origins", path, "o", "--accuracy", "0.05", "--time", "stationary")
    code, out, err = run(*given, "--json")
    assert (code, err.count("warning: after ")) == (5, 1)
    told = json.loads(out)
    truth = math.log2(3) - 2 / 3  # a third from s, two thirds from t
    assert told["bits_low"] <= truth <= told["bits_high"]
    assert told["missing"] > 0
    code, out, err = run(*given, "--strict")
    assert (code, out) == (5, "")
    assert "coinhaze: after " in err


def test_the_error_carries_the_origins() -> None:
    ledger = coinhaze.AccountLedger.from_transfers([("a", "c", 5), ("b", "c", 3)])
    with pytest.raises(AccuracyError) as found:
        coinhaze.origins(ledger, "c", accuracy=1e-17)
    origins = found.value.origins
    assert origins is not None
    assert origins.notes == (str(found.value),)
    assert origins.sources().to_pylist()[0] == {"source": "a", "probability": 0.625}
    assert origins.bits_low < 0.9544340029249649 < origins.bits_high


def test_strict_refuses_a_ledger_with_a_failed_check() -> None:
    ledger = coinhaze.AccountLedger.from_transfers([("a", "c", 5), ("b", "c", 3)])
    failed = Completeness((Check("heights contiguous", "failed", 2, "height 3"),))
    object.__setattr__(ledger, "completeness", failed)
    assert len(coinhaze.score(ledger)) == 1
    for policy in ("proportional", "fifo"):
        with pytest.raises(LedgerError, match="heights contiguous failed 2 times"):
            coinhaze.score(ledger, strict=True, policy=policy)
