"""Long work: interruptible at any time, with progress on a terminal after two seconds."""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from coinhaze.errors import ResourceError

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import ProgressColumn

    from coinhaze.solve.pool import WorkerCluster
    from coinhaze.solve.progress import Progress

PATIENCE = 2.0
BETWEEN_LINES = 30.0  # seconds, where there is no terminal
Result = TypeVar("Result")
RECENT = 30.0  # seconds
ENOUGH = 3  # things done before a rate is worth telling


def wait_for(
    what: str, work: Callable[[Progress], Result], *, by: WorkerCluster | None = None
) -> Result:
    """Do the work in a thread of its own and give its result.

    Compiled loops do not look at signals; the main thread does, so that Ctrl-C always works. On
    a terminal a bar appears after two seconds: how much is done, the time left once known, and by
    how many workers of a cluster.
    """
    share: list[float | None] = [None]

    def note(done: float, /) -> None:
        share[0] = done

    def show(thread: threading.Thread) -> None:
        if sys.stderr.isatty():
            _show_share(lambda: what if by is None else f"{what}, {by.in_words()}", thread, share)

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


def _show_share(
    what: Callable[[], str], thread: threading.Thread, share: list[float | None]
) -> None:
    thread.join(PATIENCE)
    if not thread.is_alive():
        return
    from rich.progress import TextColumn, TimeElapsedColumn, TimeRemainingColumn

    percent = TextColumn("{task.percentage:>3.0f}%")
    with _bar(percent, TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn()) as bar:
        task = bar.add_task(what(), total=None)
        counting = False
        while thread.is_alive():
            thread.join(0.2)
            if share[0] is not None:
                if not counting:
                    # Time left is reckoned from when the work that can be counted began.
                    bar.reset(task, total=1.0)
                    counting = True
                bar.update(task, completed=share[0], description=what())


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


class Pace:
    """Things done so far, of how many, and how fast; notes may come from another thread.

    >>> moments = iter([0.0, 2.0, 4.0, 4.0, 4.0])
    >>> pace = Pace(clock=lambda: next(moments))
    >>> pace.note(10, 100), pace.note(20, 100)
    (None, None)
    >>> pace.rate(), pace.seconds_left()
    (5.0, 16.0)
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._notes: deque[tuple[float, int]] = deque([(clock(), 0)])
        self.done = self.whole = 0

    def note(self, done: int, whole: int) -> None:
        """Take note of how many are done, and how many there are."""
        now = self._clock()
        self._notes.append((now, done))
        # One note from before stays, so that slow work has a rate as well.
        while len(self._notes) > 2 and self._notes[1][0] < now - RECENT:
            self._notes.popleft()
        self.done, self.whole = done, whole

    def rate(self) -> float | None:
        """Give things done a second, over the recent past; None until a few are done."""
        notes = list(self._notes)
        (begun, before), (last, done) = notes[0], notes[-1]
        now = self._clock()
        # Work that has fallen silent is slow, however fast it was.
        end = last if now - last < RECENT else now
        if done - before < ENOUGH or end <= begun:
            return None
        return (done - before) / (end - begun)

    def seconds_left(self) -> float | None:
        """Give how long the rest takes at this rate, where one is known."""
        rate = self.rate()
        return None if rate is None else (self.whole - self.done) / rate

    def words(self, unit: str) -> str:
        """Say how far the work is and how fast it goes."""
        share = f" ({self.done / self.whole:.0%})" if self.whole else ""
        said = [f"{self.done:,} of {self.whole:,} {unit}{share}"]
        rate, left = self.rate(), self.seconds_left()
        if rate is not None and left is not None:
            said += [f"{rate:,.3g} {unit}/s" if rate < 100 else f"{rate:,.0f} {unit}/s"]
            said += [f"{duration(left)} left"]
        return ", ".join(said)


def duration(seconds: float) -> str:
    """Say a time as people do.

    >>> duration(40), duration(560), duration(7500), duration(200_000)
    ('40 s', '9 min', '2 h 5 min', '2 days 7 h')
    """
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = int(seconds // 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min"
    return f"{hours // 24} days {hours % 24} h"
