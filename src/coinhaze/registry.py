"""A registry: named things of one kind that can be added from outside the package."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib import import_module
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


PLUGINS = "COINHAZE_PLUGINS"  # modules and .py files, with commas between them
_loaded: set[str] = set()


def load_plugins() -> None:
    """Import, once, what COINHAZE_PLUGINS names: there policies and comparators are registered."""
    for name in filter(None, os.environ.get(PLUGINS, "").split(",")):
        if name in _loaded:
            continue
        _loaded.add(name)  # first: it may look entries up while it is imported
        try:
            if name.endswith(".py"):
                from importlib.util import module_from_spec, spec_from_file_location

                spec = spec_from_file_location(os.path.basename(name).removesuffix(".py"), name)
                assert spec is not None
                assert spec.loader is not None
                spec.loader.exec_module(module_from_spec(spec))
            else:
                import_module(name)
        except Exception as error:
            what = f"{type(error).__name__}: {error}"
            raise UsageError(f"{PLUGINS}: {name} cannot be imported: {what}") from error


class Registry(Generic[Entry]):
    """Entries found by name or alias, listed in the order in which they were added, or by name."""

    def __init__(self, kind: str, *, by_name: bool = False) -> None:
        self.kind = kind
        self._by_name = by_name
        self._entries: dict[str, Entry] = {}

    def add(self, entry: Entry) -> Entry:
        """Add an entry; refuse a name or alias that is taken."""
        taken = {name for e in self._entries.values() for name in (e.name, *e.aliases)}
        for name in (entry.name, *entry.aliases):
            if name in taken:
                raise UsageError(f"there is already a {self.kind} called {name!r}: take another")
        self._entries[entry.name] = entry
        return entry

    def remove(self, name: str) -> None:
        """Remove an entry."""
        del self._entries[self[name].name]

    def get(self, name: object) -> Entry | None:
        """Find an entry by its name or an alias; None if there is none."""
        return next((e for e in self if name == e.name or name in e.aliases), None)

    def names(self) -> tuple[str, ...]:
        """List the names."""
        return tuple(entry.name for entry in self)

    def __getitem__(self, name: str) -> Entry:
        found = self.get(name)
        if found is None:
            raise UsageError(f"unknown {self.kind} {name!r}: one of {', '.join(self.names())}")
        return found

    def __iter__(self) -> Iterator[Entry]:
        load_plugins()
        order = sorted(self._entries) if self._by_name else list(self._entries)
        return iter([self._entries[name] for name in order])

    def __contains__(self, name: object) -> bool:
        return self.get(name) is not None

    def __len__(self) -> int:
        return len(self.names())
