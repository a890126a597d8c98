"""Long work: interruptible at any time, with progress on a terminal after two seconds."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from coinhaze.cli.pace import Pace
from coinhaze.errors import ResourceError
from coinhaze.solve.progress import Progress

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import ProgressColumn

PATIENCE = 2.0
BETWEEN_LINES = 30.0  # seconds, where there is no terminal
Result = TypeVar("Result")


def wait_for(what: str, work: Callable[[Progress], Result]) -> Result:
    """Do the work in a thread of its own and give its result.

    Compiled loops do not look at signals; the main thread does, so that Ctrl-C always works. On
    a terminal a bar appears after two seconds: how much is done, and the time left once known.
    """
    share: list[float | None] = [None]

    def note(done: float, /) -> None:
        share[0] = done

    def show(thread: threading.Thread) -> None:
        if sys.stderr.isatty():
            _show_share(what, thread, share)

    return _in_a_thread(lambda: work(note), show)


def wait_counting(
    what: str, unit: str, work: Callable[[Callable[[int, int], None]], Result]
) -> Result:
    """Do work that counts what is done of how many; show that, how fast it goes, and what is left.

    Where there is no terminal a line says so now and then.
    """
    pace = Pace()

    def show(thread: threading.Thread) -> None:
        if sys.stderr.isatty():
            _show_pace(what, unit, thread, pace)
        else:
            _tell_pace(what, unit, thread, pace)

    return _in_a_thread(lambda: work(pace.note), show)


def _in_a_thread(work: Callable[[], Result], show: Callable[[threading.Thread], None]) -> Result:
    outcome: dict[str, Any] = {}

    def run() -> None:
        try:
            outcome["result"] = work()
        except BaseException as error:
            outcome["error"] = error

    thread = threading.Thread(target=run, daemon=True)
    try:
        thread.start()
    except RuntimeError as error:
        raise ResourceError(f"{error}: out of memory, or too many processes") from None
    show(thread)
    while thread.is_alive():
        thread.join(0.2)
    if "error" in outcome:
        raise outcome["error"]
    result: Result = outcome["result"]
    return result


def _show_share(what: str, thread: threading.Thread, share: list[float | None]) -> None:
    thread.join(PATIENCE)
    if not thread.is_alive():
        return
    from rich.progress import TextColumn, TimeElapsedColumn, TimeRemainingColumn

    percent = TextColumn("{task.percentage:>3.0f}%")
    with _bar(percent, TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn()) as bar:
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


def _show_pace(what: str, unit: str, thread: threading.Thread, pace: Pace) -> None:
    thread.join(PATIENCE)
    if not thread.is_alive():
        return
    from rich.progress import TextColumn, TimeElapsedColumn

    with _bar(TextColumn("{task.fields[words]}"), TimeElapsedColumn()) as bar:
        task = bar.add_task(what, total=None, words="")
        while thread.is_alive():
            thread.join(0.2)
            if pace.whole:
                bar.update(task, total=pace.whole, completed=pace.done, words=pace.words(unit))


def _tell_pace(what: str, unit: str, thread: threading.Thread, pace: Pace) -> None:
    while thread.is_alive():
        until = time.monotonic() + BETWEEN_LINES
        # Short waits, since a longer one would hold back Ctrl-C.
        while thread.is_alive() and time.monotonic() < until:
            thread.join(0.2)
        if thread.is_alive() and pace.whole:
            click.echo(f"{what}: {pace.words(unit)}", err=True)


def _bar(*columns: ProgressColumn) -> Bar:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        *columns,
        console=Console(stderr=True),
        transient=True,
    )
