"""Progress with time left, on a terminal, for anything longer than two seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from coinhaze.solve.progress import Progress, silent

PATIENCE = 2.0


@contextmanager
def waiting(what: str) -> Iterator[Progress]:
    """Give a progress function that shows a bar once two seconds have passed."""
    if not sys.stderr.isatty():
        yield silent
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    began = time.monotonic()
    bar = Bar(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    task = bar.add_task(what, total=1.0)
    started = False

    def show(share: float, /) -> None:
        nonlocal started
        if not started and time.monotonic() - began > PATIENCE:
            bar.start()
            started = True
        bar.update(task, completed=share)

    try:
        yield show
    finally:
        if started:
            bar.stop()
