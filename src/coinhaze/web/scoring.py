"""A ledger built, scored and kept by a process of its own.

So the server answers while a week is being scored, cancelling is at once, and the memory the work
took is given back. The process reads what to do from its first line of input, tells shares done
and at last `done` or what was wrong, one JSON object a line, and ends when its input does: with
the server, however that ended. Layers are written whole, so a process that is killed leaves
nothing half-written that anybody would open.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import IO, Any

from coinhaze import errors
from coinhaze.errors import CoinhazeError, ResourceError
from coinhaze.memory_limit import is_out_of_memory
from coinhaze.solve.progress import Progress
from coinhaze.working_folder import python_command, python_environment, refuse_settings

_PATIENCE = 0.2  # seconds between looks at whether anybody still wants it
_KINDER = 5  # how much the work stands back behind the server


def score_apart(
    paths: Sequence[Path],
    *,
    settings: Mapping[str, Any],
    scoring: Mapping[str, Any],
    progress: Progress,
) -> None:
    """Build, score and cache a ledger in another process; wait for it.

    `progress` is called several times a second; when it raises, the process is ended at once and
    the exception goes on. Errors are those of reading, building and scoring.
    """
    task = {"paths": [os.path.abspath(p) for p in paths], "settings": dict(settings)}
    text = json.dumps(task | {"scoring": dict(scoring)}) + "\n"
    with subprocess.Popen(
        python_command("-m", "coinhaze.web.scoring"), env=python_environment(),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    ) as process:  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(text)
            process.stdin.flush()
            _follow(process.stdout, progress)
        except BrokenPipeError:
            raise ResourceError("the process that scores ended early: out of memory?") from None
        finally:
            process.kill()
            process.wait()


def _follow(output: IO[str], progress: Progress) -> None:
    """Pass shares on until the work is done; raise what it says was wrong."""
    lines: SimpleQueue[str] = SimpleQueue()

    def listen() -> None:
        for line in output:
            lines.put(line)
        lines.put("")

    threading.Thread(target=listen, daemon=True).start()
    share = 0.0
    while True:
        progress(share)
        with contextlib.suppress(Empty):
            line = lines.get(timeout=_PATIENCE)
            if not line:
                raise ResourceError("the process that scores ended early: out of memory?")
            word = json.loads(line)
            if "done" in word:
                return
            if "error" in word:
                raise _error(word)
            share = float(word["share"])


def _error(word: Mapping[str, str]) -> CoinhazeError:
    kind = getattr(errors, word["error"], CoinhazeError)
    if kind is errors.LedgerError:
        kind = errors.InputError  # its message is made from parts that are one text by now
    error: CoinhazeError = kind(word["message"])
    return error


def main() -> None:
    """Do the work that the first line of input asks for."""
    os.nice(_KINDER)
    task = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_input, daemon=True).start()

    def report(**word: object) -> None:
        print(json.dumps(word), flush=True)

    try:
        refuse_settings()
        from coinhaze.cache.layers import LedgerCache

        cache = LedgerCache(task["paths"], **task["settings"])
        built = cache.build(progress=lambda share: report(share=share), **task["scoring"])
        if not built.is_cached:  # nothing is left of the work but what was kept
            raise ResourceError(f"the scores could not be kept: {built.notes[-1]}")
    except Exception as error:
        if is_out_of_memory(error) and not isinstance(error, ResourceError):
            error = ResourceError("out of memory; nothing was left half-written")
        if not isinstance(error, CoinhazeError):
            raise
        report(error=type(error).__name__, message=str(error))
    else:
        report(done=True)
    sys.stdout.flush()
    os._exit(0)  # threads of compiled loops may still run


def _end_with_input() -> None:
    with contextlib.suppress(OSError, ValueError):
        sys.stdin.read()
    os._exit(1)


if __name__ == "__main__":
    main()
