"""One command line, run in this process."""

from __future__ import annotations

import csv
import io
import json
import shlex
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import Any

import pytest

from coinhaze.cli import main


def answer(line: str, patch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Run a command line in this process; give its exit code and what it shows."""
    command, *arguments = shlex.split(line)
    if command == "show":
        return {"shown": _read(Path(arguments[0]).read_text(encoding="utf-8"), arguments[0])}
    patch.setattr("sys.argv", ["coinhaze", command, *arguments])
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as stop:
        main()
    told: dict[str, Any] = {"exit": stop.value.code, "shown": _read(out.getvalue())}
    return told | ({"refusal": err.getvalue().splitlines()} if stop.value.code else {})


def _read(text: str, name: str = "") -> Any:
    """Read an answer as JSON where it is that, else as lines; of a table each cell."""
    if name.endswith(".csv"):
        return [[_cell(cell) for cell in row] for row in csv.reader(text.splitlines())]
    return json.loads(text) if text.startswith(("{", "[")) else text.splitlines()


def _cell(text: str) -> Any:
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return text
