"""Help that is stored is what commands give, and is shown only where it would be the same."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator

import pytest

from coinhaze.cli import EXIT_CODES, cli, exit_codes
from coinhaze.cli.help_texts import made_helps, stored_help
from coinhaze.cli.screen import ABOVE_LIMIT
from coinhaze.errors import CoinhazeError
from docs.test_docs import ROOT

RENEW = "python -m coinhaze.cli.help_texts > src/coinhaze/cli/help.txt"


def test_stored_helps_are_what_commands_give(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    made = dict(made_helps())
    assert len(made) > 20
    for name, text in made.items():
        assert stored_help([*name.split(), "--help"]) == text, RENEW
        cli.main([*name.split(), "--help"], prog_name="coinhaze", standalone_mode=False)
        assert capsys.readouterr().out == text


def test_other_questions_are_not_answered_from_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert stored_help(["score", "-h"]) is not None
    assert stored_help(["--help"]) is None
    assert stored_help(["score", "x.csv", "--help"]) is None
    monkeypatch.setenv("COLUMNS", "60")
    assert stored_help(["score", "--help"]) is None
    monkeypatch.setenv("COLUMNS", "200")
    assert stored_help(["score", "--help"]) is not None
    monkeypatch.setenv("COINHAZE_PLUGINS", "mine.py")
    assert stored_help(["score", "--help"]) is None


def test_help_of_a_command_loads_no_options() -> None:
    code = (
        "import sys; sys.argv = ['coinhaze', 'score', '--help']\n"
        "from coinhaze.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "assert 'coinhaze.options' not in sys.modules, 'options'\n"
        "assert 'numpy' not in sys.modules, 'numpy'"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "--policy" in done.stdout


def test_every_exit_code_is_documented(capsys: pytest.CaptureFixture[str]) -> None:
    codes = {error.exit_code for error in _every(CoinhazeError)}
    assert codes | {0, ABOVE_LIMIT, 130} == EXIT_CODES.keys()
    cli.main(["--help"], prog_name="coinhaze", standalone_mode=False)
    shown = " ".join(capsys.readouterr().out.split())
    assert exit_codes() in shown
    start = (ROOT / "docs" / "start.md").read_text()
    documented = start[start.index("Exit codes: ") :].partition("Results go to")[0]
    assert [int(code) for code in re.findall(r"(?:: |, )(\d+) ", documented)] == list(EXIT_CODES)


def _every(kind: type[CoinhazeError]) -> Iterator[type[CoinhazeError]]:
    yield kind
    for below in kind.__subclasses__():
        yield from _every(below)
