"""Nothing that lies beside a ledger is imported or sets anything up."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from coinhaze.web import scoring

# Modules that coinhaze imports, from outside the standard library and from it; each would say so.
SHADOWS = ("numpy", "click", "pyarrow", "duckdb", "numba", "msgspec", "rich", "json", "sqlite3")
SCRIPT = Path(sys.executable).with_name("coinhaze")
RAN = "raise SystemExit('a module of the working folder was imported')\n"


@pytest.fixture
def beside(tmp_path: Path) -> Path:
    """Give a folder with a ledger and, beside it, modules that must not be imported."""
    (tmp_path / "transfers.csv").write_text("from,to,amount\nalice,shop,5\nshop,carol,5\n")
    for name in SHADOWS:
        (tmp_path / f"{name}.py").write_text(RAN)
    return tmp_path


def _environment() -> dict[str, str]:
    return {k: v for k, v in os.environ.items() if k not in ("PYTHONSAFEPATH", "PYTHONPATH")}


@pytest.mark.parametrize(
    "command", [[str(SCRIPT)], [sys.executable, "-m", "coinhaze"]], ids=["script", "module"]
)
def test_modules_beside_a_ledger_are_not_imported(beside: Path, command: list[str]) -> None:
    if not Path(command[0]).exists():
        pytest.skip("the script is not installed beside Python")
    done = subprocess.run(
        [*command, "info", "transfers.csv"],
        cwd=beside, env=_environment(), capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert "accounts" in done.stdout


def test_a_process_of_the_server_imports_nothing_from_its_folder(
    beside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(beside)
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    ledger = beside / "transfers.csv"
    scoring.score_apart([ledger], settings={}, scoring={}, progress=lambda _: None)
    assert (beside / "transfers.csv.kept").is_dir()


def test_children_of_the_process_look_no_more_into_the_folder(
    beside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from coinhaze.working_folder import python_command, python_environment

    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    code = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import numpy'])"
    done = subprocess.run(
        python_command("-c", code), cwd=beside, env=python_environment(), check=False, timeout=600,
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.stderr == ""
    seen = subprocess.run(
        [sys.executable, "-c", "import numpy"], cwd=beside, env=_environment(), check=False,
        capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert "was imported" in seen.stderr  # so the file would be found by a child that looks


def test_settings_of_the_compiler_beside_a_ledger_are_refused(tmp_path: Path) -> None:
    (tmp_path / "transfers.csv").write_text("from,to,amount\nalice,shop,5\n")
    (tmp_path / ".numba_config.yaml").write_text("cache_dir: theirs\n")
    done = subprocess.run(
        [sys.executable, "-m", "coinhaze", "score", "transfers.csv"],
        cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.startswith("coinhaze: .numba_config.yaml in the working folder")
    assert done.stderr.count("\n") == 1
