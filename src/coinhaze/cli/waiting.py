"""Long work: interruptible at any time, with progress on a terminal after two seconds."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from coinhaze.solve.progress import Progress

PATIENCE = 2.0
Result = TypeVar("Result")


def wait_for(what: str, work: Callable[[Progress], Result]) -> Result:
    """Do the work in a thread of its own and give its result.

    Compiled loops do not look at signals; the main thread does, so that Ctrl-C always works. On
    a terminal a bar appears after two seconds: how much is done, and the time left once known.
    """
    share: list[float | None] = [None]
    outcome: dict[str, Any] = {}

    def note(done: float, /) -> None:
        share[0] = done

    def run() -> None:
        try:
            outcome["result"] = work(note)
        except BaseException as error:
            outcome["error"] = error

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    if sys.stderr.isatty():
        _show(what, thread, share)
    while thread.is_alive():
        thread.join(0.2)
    if "error" in outcome:
        raise outcome["error"]
    result: Result = outcome["result"]
    return result


def _show(what: str, thread: threading.Thread, share: list[float | None]) -> None:
    thread.join(PATIENCE)
    if not thread.is_alive():
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    with Bar(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    ) as bar:
        task = bar.add_task(what, total=None)
        counting = False
        while thread.is_alive():
            thread.join(0.2)
            if share[0] is not None:
                if not counting:
                    # Time left is reckoned from when the work that can be counted began.
                    bar.reset(task, total=1.0)
                    counting = True
                bar.update(task, completed=share[0])
