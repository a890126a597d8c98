"""Long work in threads: shared where it is requested twice, reported while it runs, and cancelled.

An answer is waited for a few seconds; what takes longer goes on as a job, and the caller is
given its id. Asking for the same answer again meets the same job, never a second one.
"""

from __future__ import annotations

import asyncio
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, TypeVar

from coinhaze.errors import CoinhazeError
from coinhaze.explore.cache import Cancelled, telling
from coinhaze.ledger.frozen import release_unused
from coinhaze.web.schema import Job, JobState, Problem, Refused, StillWorking, refusal_of

QUICK_THREADS, LONG_THREADS, EXTRA_THREADS = (
    8,
    2,
    4,
)  # threads; extra ones stand in for those that long answers hold


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
        self._room = QUICK_THREADS

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
            self._room = min(self._room + 1, QUICK_THREADS + EXTRA_THREADS)
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
        if self._threads[long] < (LONG_THREADS if long else self._room) and not self._closed:
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


PATIENCE = 5.0  # seconds an answer is waited for
MAX_QUEUED = 64
LONG = 1.0  # seconds of work, after which what it freed is handed back to the system
REMEMBERED = 100  # jobs that have ended
Result = TypeVar("Result")


@dataclass(eq=False)
class _Work:
    """One piece of work; its future is the result, its job what people see of it."""

    key: Hashable
    ledger: str
    words: str
    page: str
    id: str = field(default_factory=lambda: secrets.token_hex(8))
    share: float | None = None
    began: float | None = None
    ended: float | None = None
    cancelled: bool = False
    shown: bool = False  # among the jobs: it was requested as one, or took long
    future: Future[Any] = field(default_factory=Future)

    def note(self, share: float, /) -> None:
        if self.cancelled:
            raise Cancelled(f"{self.words}: cancelled")
        self.share = min(max(share, 0.0), 1.0)

    @property
    def state(self) -> JobState:
        if self.cancelled:
            return "cancelled"
        if not self.future.done():
            return "queued" if self.began is None else "running"
        return "done" if self.future.exception() is None else "failed"

    def job(self) -> Job:
        state = self.state
        since = 0.0 if self.began is None else (self.ended or time.monotonic()) - self.began
        left = None
        if state == "running" and self.share:
            left = since * (1 - self.share) / self.share
        return Job(
            id=self.id, ledger=self.ledger, words=self.words, state=state,
            share=1.0 if state == "done" else self.share, seconds=since, seconds_left=left,
            result=f"/api/v1/jobs/{self.id}/result" if state == "done" else None,
            page=self.page.replace("{job}", self.id), error=self._problem(state),
        )  # fmt: skip

    def _problem(self, state: JobState) -> Problem | None:
        error = self.future.exception() if state == "failed" else None
        if error is None:
            return None
        if isinstance(error, CoinhazeError):
            return refusal_of(error).problem
        return error.problem if isinstance(error, Refused) else BUG


BUG = Problem(
    code="bug",
    message="something went wrong inside; the terminal where the server runs says what",
    fix="report it with what the terminal shows",
)


class JobQueue:
    """All work under way, and what became of the last of it."""

    def __init__(self, *, patience: float = PATIENCE, queued: int = MAX_QUEUED) -> None:
        self.patience = patience
        self.maximum = queued
        self._pool = Pool()
        self._lock = threading.Lock()
        self._works: dict[str, _Work] = {}
        self._current: dict[Hashable, _Work] = {}

    async def answer(
        self, key: Hashable, work: Callable[[], Result], *, ledger: str, words: str, page: str
    ) -> Result:
        """Do the work and give its result; `StillWorking` when it takes too long."""
        found = self._start(key, work, ledger=ledger, words=words, page=page)
        future = asyncio.wrap_future(found.future)
        try:
            done: Result = await asyncio.wait_for(asyncio.shield(future), self.patience)
        except TimeoutError:
            if future.done():
                raise
            future.add_done_callback(lambda f: f.cancelled() or f.exception())  # nobody waits
            with self._lock:
                if not found.shown:
                    found.shown = True
                    self._pool.grow()
            raise StillWorking(found.job()) from None
        return done

    def start(
        self, key: Hashable, work: Callable[[], object], *, ledger: str, words: str, page: str
    ) -> Job:
        """Begin work that is known to be long."""
        found = self._start(key, work, ledger=ledger, words=words, page=page, long=True)
        return found.job()

    def all(self) -> tuple[Job, ...]:
        """Give the jobs people see, newest first."""
        with self._lock:
            return tuple(w.job() for w in reversed(self._works.values()) if w.shown)

    def find(self, name: str) -> Job:
        """Give a job by its id."""
        return self._find(name).job()

    def current(self, key: Hashable) -> Job | None:
        """Give the job that works on something now, if one does."""
        with self._lock:
            found = self._current.get(key)
        return None if found is None else found.job()

    def result(self, name: str) -> object:
        """Give what a job that is done found; `Refused` if it is not."""
        found = self._find(name)
        if found.state != "done":
            raise Refused("not-done", f"job {name} is {found.state}", fix="wait until it is done")
        return found.future.result()

    def cancel(self, name: str) -> Job:
        """Stop a job; one that has ended stays as it is.

        It ends when it next tells how far it is; until then its thread goes on, unseen.
        """
        found = self._find(name)
        with self._lock:
            if not found.future.done():
                found.cancelled = True
                self._current.pop(found.key, None)
                found.ended = time.monotonic()
        return found.job()

    def close(self) -> None:
        """Cancel everything; threads end by themselves."""
        with self._lock:
            for found in self._works.values():
                found.cancelled = found.cancelled or not found.future.done()
        self._pool.close()

    def _find(self, name: str) -> _Work:
        with self._lock:
            if name in self._works and self._works[name].shown:
                return self._works[name]
        raise Refused("unknown-job", f"no job {name!r}", fix="GET /api/v1/jobs names all")

    def _start(
        self,
        key: Hashable,
        work: Callable[[], object],
        *,
        ledger: str,
        words: str,
        page: str,
        long: bool = False,
    ) -> _Work:
        with self._lock:
            found = self._current.get(key)
            if found is None:
                if len(self._current) >= self.maximum:
                    raise Refused(
                        "too-many", f"{self.maximum} answers are being worked out already",
                        fix="try again in a moment, or cancel a job",
                    )  # fmt: skip
                found = _Work(key, ledger, words, page)
                self._works[found.id] = self._current[key] = found
                self._forget()
                self._pool.do(lambda: self._run(found, work), long=long)
            found.shown = found.shown or long
            return found

    def _run(self, found: _Work, work: Callable[[], object]) -> None:
        found.began = time.monotonic()
        try:
            found.note(0.0)
            found.share = None  # not known until the work tells
            with telling(found.note):
                result = work()
            self._end(found)
            found.future.set_result(result)
        except BaseException as error:
            self._end(found)
            found.future.set_exception(error)

    def _end(self, found: _Work) -> None:
        if found.began is not None and time.monotonic() - found.began > LONG:
            release_unused()
        with self._lock:
            found.ended = found.ended or time.monotonic()
            if self._current.get(found.key) is found:
                del self._current[found.key]
            if not found.shown:
                self._works.pop(found.id, None)

    def _forget(self) -> None:
        ended = [w for w in self._works.values() if w.future.done()]
        for old in ended[: max(len(ended) - REMEMBERED, 0)]:
            del self._works[old.id]
