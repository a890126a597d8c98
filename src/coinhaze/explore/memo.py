"""Things made when first asked for, and kept while there is room: once each, whoever asks."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

Value = TypeVar("Value")


class Memo(Generic[Value]):
    """The last `most` things by key; two threads that ask for one thing wait for one making of it.

    >>> memo = Memo(most=1)
    >>> memo.get("a", lambda: 1), memo.get("a", lambda: 2), memo.get("b", lambda: 3), len(memo)
    (1, 1, 3, 1)
    """

    def __init__(self, *, most: int) -> None:
        self.most = most
        self._found: OrderedDict[Hashable, Value] = OrderedDict()
        self._making: dict[Hashable, Lock] = {}
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._found)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._found

    def get(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """Give what was made for a key, or make it; what raises is not kept."""
        with self._lock:
            if key in self._found:
                self._found.move_to_end(key)
                return self._found[key]
            making = self._making.setdefault(key, Lock())
        with making:
            with self._lock:
                if key in self._found:
                    return self._found[key]
            try:
                value = make()
            finally:
                with self._lock:
                    self._making.pop(key, None)
            with self._lock:
                self._found[key] = value
                while len(self._found) > self.most:
                    self._found.popitem(last=False)
            return value
