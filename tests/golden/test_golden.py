"""Every command's answer on small ledgers, whole, against the answer that is stored.

After a change of wording, `pytest tests/golden --rewrite-golden=words` stores the new answers and
fails where a number or a field changed too; `--rewrite-golden=all` stores those as well.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coinhaze.cli import COMMANDS
from golden.lines import LINES, MADE
from golden.running import answer

FILES = Path(__file__).with_name("files")
API = {"api_accounts", "api_coins", "api_schema"}


@pytest.mark.parametrize("name", LINES)
def test_answers_are_those_stored(
    name: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    agree: Callable[[str, Any], None],
) -> None:
    lines = LINES[name].strip().splitlines()
    found = {line: answer(line, monkeypatch) for line in lines}
    agree(name, found)


def test_no_command_and_no_file_is_forgotten() -> None:
    lines = [line for block in (MADE, *LINES.values()) for line in block.strip().splitlines()]
    assert {line.split()[0] for line in lines} == {*COMMANDS, "show"} - {"demo", "serve"}
    stored = {path.stem for path in FILES.glob("*.json")}
    assert stored == {*LINES, *API}
    # Small enough to be read in a change; every line of every command comes first.
    assert sum(path.stat().st_size for path in FILES.iterdir()) < 1_250_000
