"""The ledgers, lists and labels being served.

A ledger that is missing, locked, damaged or not scored never raises here: its card says what is
wrong and what to do. `prepare` is for long work: it builds and scores in a process of its own
(see scoring.py), calls `progress` five times a second, and when that raises ends the process at
once; nothing half-written is left, and no thread goes on.
"""

from __future__ import annotations

import contextlib
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from coinhaze.cache.layers import CachedLedger
from coinhaze.cache.place import digest_of_sources
from coinhaze.errors import CoinhazeError, UnknownName, UsageError
from coinhaze.explore.explorer import Explorer
from coinhaze.explore.history import HistoryExplorer
from coinhaze.explore.models import (
    LedgerCard,
    ListCard,
    WalkAnswer,
)
from coinhaze.explore.query import CoinQuery, Settings
from coinhaze.formats.lists.coins import ListedCoin
from coinhaze.formats.lists.knowledge import read_listed
from coinhaze.formats.lists.labels import read_labels
from coinhaze.history.files import is_history
from coinhaze.nodes.http import shown_url
from coinhaze.screening.statement import ListFile
from coinhaze.solve.progress import Progress
from coinhaze.store.sync import is_node
from coinhaze.web.history_state import HistoryEntry, OpenHistory
from coinhaze.web.ledger_state import Entry
from coinhaze.web.walked_state import WalkedEntry

MAX_OPEN = 4
LARGE = 1_000_000  # nodes, from which on finding things the first time takes seconds
TRIED = 12  # coins looked at beforehand
_ID = 64  # letters of an id


@dataclass(frozen=True)
class Listing:
    """A list that was loaded: its names, and the digest of its file."""

    id: str
    names: tuple[str, ...]
    digest: str
    file: ListFile  # what a statement says of it

    @classmethod
    def read(cls, name: str, path: str | Path) -> Listing:
        """Read a list; `name` becomes its id."""
        file = ListFile.read(Path(path))
        return cls(id_of(name), tuple(read_listed(path)), file.sha256, file)

    def card(self) -> ListCard:
        """Give what people see of it."""
        return ListCard(
            id=f"{self.id}@{self.digest[:12]}", name=self.id, entries=len(self.names),
            digest=self.digest,
        )  # fmt: skip


class LedgerRegistry:
    """All that is served. Ledgers open on the first request, and the least used are closed."""

    def __init__(
        self,
        ledgers: Iterable[str | Path | Sequence[str | Path]],
        *,
        make_explorer: Callable[[LedgerRegistry, str, CachedLedger], Explorer] | None = None,
        lists: Mapping[str, str | Path] | None = None,
        labels: Iterable[str | Path] = (),
        units: Mapping[str, str] | None = None,
        max_open: int = MAX_OPEN,
        settings: Mapping[str, Any] | None = None,
        reach: Mapping[str, Any] | None = None,
    ) -> None:
        """Take ledgers, and sources to walk coins back from; `reach` says how to reach those."""
        self._entries: dict[str, Entry] = {}
        self._sources: dict[str, WalkedEntry] = {}
        for given in ledgers:
            if isinstance(given, str) and is_node(given):
                key = _unused(id_of(shown_url(given)), self._sources)
                self._sources[key] = WalkedEntry(key, given, **(reach or {}))
                continue
            paths = [Path(given)] if isinstance(given, str | Path) else [*map(Path, given)]
            key = _unused(id_of(paths[0].stem), self._entries)
            kind = HistoryEntry if is_history(paths[0]) else Entry
            self._entries[key] = kind(key, paths, settings or {}, unit=(units or {}).get(key))
        for key in (units or {}).keys() - self._entries.keys():
            raise UsageError(f"--unit {key}=: no ledger {key!r}: one of {', '.join(self._entries)}")
        self._lists = [Listing.read(name, path) for name, path in (lists or {}).items()]
        self._labels: dict[str, str] = {}
        for path in labels:
            self._labels = read_labels(path).names | self._labels
        self._make_explorer = make_explorer or explorer_of
        self._max_open = max_open
        self._lock = threading.Lock()
        self._explorers: OrderedDict[str, tuple[CachedLedger, Explorer]] = OrderedDict()

    def cards(self) -> list[LedgerCard]:
        """Give all ledgers, in the order they were given; quick, opens nothing."""
        return [self.card(ledger) for ledger in (*self._entries, *self._sources)]

    def card(self, ledger: str) -> LedgerCard:
        """Give one ledger; `UnknownName` where it is not served."""
        source = self._sources.get(ledger)
        return self._entry(ledger).card() if source is None else source.card()

    def privacy_notes(self) -> list[str]:
        """Say what servers learn when coins are walked back."""
        return [note for source in self._sources.values() for note in source.notes]

    def walk(
        self, ledger: str, listed: Sequence[ListedCoin], *, accuracy: float, unspent: bool
    ) -> WalkAnswer:
        """Walk coins back, as far as an interval needs; keys and addresses for their coins."""
        source = self._sources.get(ledger)
        if source is None:
            self._entry(ledger)
            raise UsageError(f"{ledger} is read from files: nothing of it is walked back")
        names, notes = source.walk(listed, accuracy=accuracy, unspent=unspent)
        explorer = source.explorer(self.names_of, self._labels)
        assert explorer is not None  # something was walked back
        return WalkAnswer(
            ledger=ledger, coins=explorer.followed(names), notes=notes,
            transactions=len(explorer.part.known),
        )  # fmt: skip

    def files(self, ledger: str) -> Sequence[Path]:
        """Give the files of a ledger."""
        return self._entry(ledger).paths

    def unit(self, ledger: str) -> str | None:
        """Give the unit that was named for a ledger, if one was."""
        return None if ledger in self._sources else self._entry(ledger).unit

    def lists(self) -> list[ListCard]:
        """Give the loaded lists."""
        return [listing.card() for listing in self._lists]

    def names_of(self, listed: str) -> tuple[str, ...]:
        """Give the names of a list, by `name` or `name@digest`; `UnknownName` if there is none."""
        return self._listing(listed).names

    def list_file(self, listed: str) -> ListFile:
        """Give what a statement says of a list, by `name` or `name@digest`."""
        return self._listing(listed).file

    def _listing(self, listed: str) -> Listing:
        name, _, digest = listed.partition("@")
        for listing in self._lists:
            if listing.id == name and listing.digest.startswith(digest):
                return listing
        known = ", ".join(card.id for card in self.lists()) or "none was loaded"
        raise UnknownName(f"no list {listed!r}: {known}; load one with --listed NAME=FILE")

    def labels(self) -> Mapping[str, str]:
        """Give the loaded labels, by address."""
        return self._labels

    def explorer(self, ledger: str) -> Explorer | None:
        """Give a ledger that is ready; None where it is not: then its card says why."""
        if ledger in self._sources:
            return self._sources[ledger].explorer(self.names_of, self._labels)
        entry = self._entry(ledger)
        cached = entry.open()
        if cached is None:
            return None
        with self._lock:
            found = self._explorers.get(ledger)
            if found is None or found[0] is not cached:
                self._explorers[ledger] = found = (
                    cached,
                    self._make_explorer(self, ledger, cached),
                )
            self._explorers.move_to_end(ledger)
            surplus = len(self._explorers) - self._max_open
            closed = [self._explorers.popitem(last=False)[0] for _ in range(surplus)]
        for other in closed:  # not under the lock: one of them may be opening again
            self._entries[other].close()
        return found[1]

    def prepare(self, ledger: str, settings: Settings, progress: Progress) -> None:
        """Open, build and score a ledger and cache that; long. Stops where `progress` raises.

        Settings other than the ledger's own are scored too, in this process, and not cached.
        """
        if ledger in self._sources:
            raise UsageError("a chain that is walked back is not scored: look at one coin")
        self._entry(ledger).prepare(progress)
        explorer = self.explorer(ledger)
        if explorer is not None and settings != Settings():
            explorer.ledger(settings)

    def warm(self) -> None:
        """Open what is ready, one ledger after the other: their cards then tell all."""
        for entry in self._entries.values():
            if entry.card().state == "ready":
                entry.open()

    def _entry(self, ledger: str) -> Entry:
        if ledger not in self._entries:
            known = ", ".join((*self._entries, *self._sources)) or "none is served"
            raise UnknownName(f"no ledger {ledger[:64]!r}: {known}")
        return self._entries[ledger]


def id_of(name: str) -> str:
    """Make an id that is safe in links out of a file's name.

    >>> id_of("Bitcoin week (2021).v2"), id_of("../../etc")
    ('bitcoin-week-2021-v2', 'etc')
    """
    text = re.sub("[^a-z0-9_]+", "-", name.lower()).strip("-")[:_ID].strip("-")
    return text or "ledger"


def _unused(id: str, used: Mapping[str, object]) -> str:
    if id not in used:
        return id
    return next(
        f"{id[: _ID - 6]}-{k}" for k in range(2, 10**5) if f"{id[: _ID - 6]}-{k}" not in used
    )


def check_named(given: str) -> tuple[str, str]:
    """Take `NAME=FILE` apart.

    >>> check_named("sanctions=list.txt")
    ('sanctions', 'list.txt')
    """
    name, sign, path = given.partition("=")
    if not sign or not name or not path:
        raise UsageError(f"a list is NAME=FILE, not {given!r}")
    return name, path


def explorer_of(
    registry: LedgerRegistry, ledger: str, cached: CachedLedger | OpenHistory
) -> Explorer:
    """Make the explorer of an open ledger, with the registry's lists and labels."""
    if isinstance(cached, OpenHistory):
        explored: Any = HistoryExplorer(
            cached.history,
            id=ledger,
            digest=registry.card(ledger).digest or "",
            card=lambda: registry.card(ledger),
        )
        return cast("Explorer", explored)

    def files() -> Sequence[Path]:
        paths = registry.files(ledger)
        return paths if digest_of_sources(paths) == cached.digest else ()

    explorer = Explorer(
        cached.structure,
        cached.scores,
        id=ledger,
        digest=registry.card(ledger).digest or cached.digest,
        card=lambda: registry.card(ledger),
        names_of=registry.names_of,
        list_file=registry.list_file,
        files=files,
        labels=registry.labels(),
        unit=registry.unit(ledger),
    )
    if len(cached.chain) >= LARGE:
        threading.Thread(target=warm, args=(explorer, cached), daemon=True).start()
    return explorer


def warm(explorer: Explorer, cached: CachedLedger) -> None:
    """Look at a few coins of all sorts, so that indexes are made before somebody waits for them."""
    nodes = cached.scores.nodes
    some = np.linspace(0, len(nodes) - 1, min(TRIED, len(nodes))).astype(np.int64)
    for name in cached.chain.graph.names.of(nodes[some]).to_pylist():
        with contextlib.suppress(CoinhazeError):
            explorer.coin(name, CoinQuery())
