"""A registry: named things of one kind that can be added from outside the package."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, Protocol, TypeVar

from coinhaze.errors import UsageError


class Named(Protocol):
    """An entry: it has a name, and perhaps further spellings that are understood."""

    @property
    def name(self) -> str:
        """The name it is chosen by."""

    @property
    def aliases(self) -> tuple[str, ...]:
        """Other spellings that are accepted and not shown."""


Entry = TypeVar("Entry", bound=Named)


class Registry(Generic[Entry]):
    """Entries in the order in which they were added, found by name or alias."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._entries: dict[str, Entry] = {}

    def add(self, entry: Entry) -> Entry:
        """Add an entry; refuse a name or alias that is taken."""
        for name in (entry.name, *entry.aliases):
            if self.get(name) is not None:
                raise UsageError(f"there is already a {self.kind} called {name!r}: take another")
        self._entries[entry.name] = entry
        return entry

    def remove(self, name: str) -> None:
        """Remove an entry."""
        del self._entries[self[name].name]

    def get(self, name: object) -> Entry | None:
        """Find an entry by its name or an alias; None if there is none."""
        if not isinstance(name, str):
            return None
        found = self._entries.get(name)
        return found or next((e for e in self if name in e.aliases), None)

    def __getitem__(self, name: str) -> Entry:
        found = self.get(name)
        if found is None:
            raise UsageError(f"unknown {self.kind} {name!r}: one of {', '.join(self._entries)}")
        return found

    def __iter__(self) -> Iterator[Entry]:
        return iter(tuple(self._entries.values()))

    def __len__(self) -> int:
        return len(self._entries)
