from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.caching import main

from coinhaze.ledger import write_folder
from coinhaze.simulate import simulate_town


def test_the_benchmark_keeps_and_opens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    ledger = simulate_town(transactions=300)
    found = main(write_folder(ledger, tmp_path / "town"))
    assert found.scored > 0
    assert found.look <= found.open
    assert "opened by another process" in capsys.readouterr().out
