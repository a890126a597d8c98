"""Threads that do work in the order it comes: quick work never waits behind long work."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

QUICK, LONG, EXTRA = 8, 2, 4  # threads; extra ones stand in for those that long answers hold


class Pool:
    """Two queues, each with threads of its own, made when first needed.

    >>> pool, done = Pool(), threading.Event()
    >>> pool.do(done.set)
    >>> done.wait(5)
    True
    """

    def __init__(self) -> None:
        self._ready = threading.Condition()
        self._quick: deque[Callable[[], None]] = deque()
        self._long: deque[Callable[[], None]] = deque()
        self._closed = False
        self._threads = {False: 0, True: 0}
        self._idle = {False: 0, True: 0}
        self._room = QUICK

    def do(self, work: Callable[[], None], *, long: bool = False) -> None:
        """Have work done; it must not raise."""
        with self._ready:
            (self._long if long else self._quick).append(work)
            if self._idle[long] < len(self._queue(long)):
                self._more(long)
            self._ready.notify_all()

    def grow(self) -> None:
        """Stand in for a thread that turned out to be held for long."""
        with self._ready:
            self._room = min(self._room + 1, QUICK + EXTRA)
            if self._quick:
                self._more(False)

    def close(self) -> None:
        """Let threads end; work that waits is dropped."""
        with self._ready:
            self._closed = True
            self._quick.clear()
            self._long.clear()
            self._ready.notify_all()

    def _queue(self, long: bool) -> deque[Callable[[], None]]:
        return self._long if long else self._quick

    def _more(self, long: bool) -> None:
        if self._threads[long] < (LONG if long else self._room) and not self._closed:
            self._threads[long] += 1
            threading.Thread(target=self._serve, args=(long,), daemon=True).start()

    def _serve(self, long: bool) -> None:
        queue = self._queue(long)
        while True:
            with self._ready:
                self._idle[long] += 1
                while not queue and not self._closed:
                    self._ready.wait()
                self._idle[long] -= 1
                if self._closed:
                    self._threads[long] -= 1
                    return
                work = queue.popleft()
            work()
