from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from coinhaze import cli

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """Run the command in a folder of its own; give exit code, stdout and stderr."""

    def call(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["coinhaze", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        captured = capsys.readouterr()
        code = stop.value.code
        return (code if isinstance(code, int) else 0), captured.out, captured.err

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    return call


@pytest.fixture
def transfers(tmp_path: Path) -> Path:
    path = tmp_path / "transfers.csv"
    path.write_text("from,to,amount\nalice,shop,5\nbob,shop,3\nshop,carol,6\n")
    return path
