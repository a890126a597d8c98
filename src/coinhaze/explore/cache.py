"""Work in threads: values made once and cached while there is room, and how far work is."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from typing import Generic, TypeVar

from coinhaze.errors import ResourceError
from coinhaze.solve.progress import Progress, silent

Value = TypeVar("Value")


def _one(_: object) -> int:
    return 1


class Cache(Generic[Value]):
    """Values by key up to a total size; the least recently used go first.

    Each value counts as one unless `size` says otherwise. Threads that need the same value wait
    until one of them has made it.

    >>> cache = Cache(room=1)
    >>> cache.make("a", lambda: 1), cache.make("a", lambda: 2), cache.make("b", lambda: 3)
    (1, 1, 3)
    >>> cache.get("a"), cache.get("b")
    (None, 3)
    """

    def __init__(self, room: int, size: Callable[[Value], int] = _one) -> None:
        self._room = room
        self._size = size
        self._held = 0
        self._values: OrderedDict[Hashable, Value] = OrderedDict()
        self._making: dict[Hashable, Lock] = {}
        self._lock = Lock()

    def __contains__(self, key: Hashable) -> bool:
        return key in self._values

    def get(self, key: Hashable) -> Value | None:
        """Return the value of a key, or None."""
        with self._lock:
            if key not in self._values:
                return None
            self._values.move_to_end(key)
            return self._values[key]

    def put(self, key: Hashable, value: Value) -> None:
        """Cache a value, and drop others to make room; one that is too large is not cached."""
        with self._lock:
            if key in self._values:
                self._held -= self._size(self._values.pop(key))
            if self._size(value) > self._room:
                return
            self._values[key] = value
            self._held += self._size(value)
            while self._held > self._room:
                self._held -= self._size(self._values.popitem(last=False)[1])

    def make(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """Return the value of a key, made now if it is not there; what raises is not cached."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
            making = self._making.setdefault(key, Lock())
        with making:
            with self._lock:
                if key in self._values:
                    return self._values[key]
            try:
                value = make()
            finally:
                with self._lock:
                    self._making.pop(key, None)
            self.put(key, value)
            return value


_PROGRESS: ContextVar[Progress] = ContextVar("progress", default=silent)


class Cancelled(ResourceError):
    """Work that nobody wants any more; raised from inside a progress call."""


def progress() -> Progress:
    """Give what to tell of the work this thread does; telling raises `Cancelled` if cancelled.

    >>> progress()(0.5)
    """
    return _PROGRESS.get()


@contextmanager
def telling(note: Progress) -> Iterator[None]:
    """Let `note` hear of the work done inside."""
    token = _PROGRESS.set(note)
    try:
        yield
    finally:
        _PROGRESS.reset(token)
