"""One command line, run in this process."""

from __future__ import annotations

import io
import shlex
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from benchmarks.json_differences import parsed

from coinhaze.cli import main


def answer(line: str, patch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Run a command line in this process; give its exit code and what it shows."""
    command, *arguments = shlex.split(line)
    if command == "show":
        return {"shown": parsed(Path(arguments[0]).read_text(encoding="utf-8"), arguments[0])}
    patch.setattr("sys.argv", ["coinhaze", command, *arguments])
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as stop:
        main()
    told: dict[str, Any] = {"exit": stop.value.code, "shown": parsed(out.getvalue())}
    return told | ({"refusal": err.getvalue().splitlines()} if stop.value.code else {})
