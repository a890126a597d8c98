"""Values remembered up to a size: the longest unused go first."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

V = TypeVar("V")


class Remembered(Generic[V]):
    """A bounded memory, for several threads.

    >>> some = Remembered[str](room=10)
    >>> some.put("a", "first", 6), some.put("b", "second", 6)
    (None, None)
    >>> some.get("a"), some.get("b")
    (None, 'second')
    """

    def __init__(self, room: int) -> None:
        self._room = room
        self._held = 0
        self._lock = threading.Lock()
        self._values: OrderedDict[Hashable, tuple[V, int]] = OrderedDict()

    def get(self, key: Hashable) -> V | None:
        """Give what is remembered, or None."""
        with self._lock:
            found = self._values.get(key)
            if found is None:
                return None
            self._values.move_to_end(key)
            return found[0]

    def put(self, key: Hashable, value: V, size: int) -> None:
        """Remember a value, and forget others to make room; what is too large is not kept."""
        with self._lock:
            if key in self._values:
                self._held -= self._values.pop(key)[1]
            if size > self._room:
                return
            self._values[key] = (value, size)
            self._held += size
            while self._held > self._room:
                self._held -= self._values.popitem(last=False)[1][1]
