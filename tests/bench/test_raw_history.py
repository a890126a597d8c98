"""The benchmark of histories made of raw blocks runs, and what it writes is read as it was made."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks import raw_history

from coinhaze import History
from coinhaze.simulate.history import bitcoin_history


def test_its_files_hold_the_simulated_history(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(raw_history, "FILE", 1 << 19)
    paths = raw_history.write_files(tmp_path, 20)
    assert len(paths) > 2
    read = History.index(tmp_path / "raw", paths)
    made = History.index_blocks(tmp_path / "made", bitcoin_history(20))
    # One block more comes first, with a coin that nobody can spend.
    assert read.manifest.transactions == made.manifest.transactions + 1
    assert read.manifest.coins == made.manifest.coins
    assert read.manifest.terms == made.manifest.terms
    ours = read.score(accuracy="exact")
    assert ours.bits == pytest.approx(made.score(accuracy="exact").bits)


def test_it_prints_rates_of_the_same_bytes(capsys: pytest.CaptureFixture[str]) -> None:
    found = raw_history.main(10, repeats=1)
    assert min(found.values()) > 0
    assert "the same bytes: holds" in capsys.readouterr().out
