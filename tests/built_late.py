"""Things for parametrised tests that are built when the first test wants them, not on import."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

T = TypeVar("T")


class BuiltLate(Mapping[str, T]):
    """What each name stands for, built once; the names are known without building anything.

    >>> squares = BuiltLate({"three": lambda: 3**2, "none": lambda: 1 // 0})
    >>> list(squares), squares["three"]
    (['three', 'none'], 9)
    """

    def __init__(self, builders: Mapping[str, Callable[[], T]]) -> None:
        self._builders = builders
        self._built: dict[str, T] = {}

    def __getitem__(self, name: str) -> T:
        if name not in self._built:
            self._built[name] = self._builders[name]()
        return self._built[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._builders)

    def __len__(self) -> int:
        return len(self._builders)
