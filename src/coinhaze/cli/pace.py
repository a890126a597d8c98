"""How fast counted work goes, over the recent past, and how long the rest will take."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

RECENT = 30.0  # seconds
ENOUGH = 3  # things done before a rate is worth telling


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
