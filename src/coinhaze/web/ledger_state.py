"""One ledger being served: how it stands, opened on request, looked at again when it changes."""

from __future__ import annotations

import hashlib
import json
import shlex
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from coinhaze.cache.layers import CachedLedger, LedgerCache
from coinhaze.cache.place import files_of
from coinhaze.errors import CoinhazeError, InputError, UsageError
from coinhaze.explore.models import LedgerCard, State, Window
from coinhaze.explore.views import why_no_snapshots
from coinhaze.formats.money import chosen_unit
from coinhaze.formats.registry import format_of, is_store
from coinhaze.ledger.parquet import folder_files, is_folder
from coinhaze.observer.policies import score_policies
from coinhaze.solve.planner import thresholds
from coinhaze.solve.progress import Progress
from coinhaze.units import unit_named
from coinhaze.web.scoring import score_apart

# A ledger of so few bytes is read and scored in a second or two, on the first request.
LIGHT = 4 << 20
# Seconds for which what was seen of the files stands.
FRESH = 1.0


class Entry:
    """A ledger that is served; safe to ask from several threads, and never raises for its state."""

    def __init__(
        self,
        id: str,
        paths: Sequence[Path],
        settings: Mapping[str, Any],
        *,
        unit: str | None = None,
    ) -> None:
        self.id = id
        self.paths = list(paths)
        self.settings = dict(settings)
        self.unit = unit
        if unit is not None:
            unit_named(unit)  # refused at once, not when a page is requested
        self._lock = threading.RLock()
        self._cached: CachedLedger | None = None
        self._files: object = None  # as they were when the ledger was opened
        self._seen: tuple[float, LedgerCard] | None = None
        self._names: tuple[CachedLedger, str | None] | None = None  # why it has no snapshots
        self._tried = -FRESH  # when it was last tried to open these files
        self._wrong: tuple[object, LedgerCard] | None = None  # what opening these files met

    @property
    def name(self) -> str:
        """What people call it."""
        more = f" and {len(self.paths) - 1} more" if len(self.paths) > 1 else ""
        return self.paths[0].name + more

    def card(self) -> LedgerCard:
        """Say how the ledger stands; looks at its files once a second at most."""
        seen = self._seen
        now = time.monotonic()
        if seen is not None and now - seen[0] < FRESH:
            return seen[1]
        if not self._lock.acquire(blocking=False):  # it is being opened or looked at right now
            return seen[1] if seen is not None else self._card("loading", "being opened")
        try:
            found = self._look()
            self._seen = (time.monotonic(), found)
        finally:
            self._lock.release()
        return found

    def open(self) -> CachedLedger | None:
        """Give the open ledger, None where it cannot be: its card then says why."""
        with self._lock:
            files = self._stat()
            if self._cached is not None and (files == self._files or self._tried_lately()):
                return self._cached
            opened = self._open(files)
            if opened is not None:
                self._cached, self._files = opened, files
            self._seen = None
            return self._cached

    def _tried_lately(self) -> bool:
        """Tell whether what changed was looked at a moment ago: not at every question again."""
        return self._files is not None and time.monotonic() - self._tried < FRESH

    def close(self) -> None:
        """Let the open ledger go."""
        with self._lock:
            self._cached = self._files = self._names = None
            self._seen = None

    def prepare(self, progress: Progress) -> None:
        """Build, score and cache the ledger, unless that is done; then open it."""
        progress(0.0)
        if self._cache().facts() is None and not self._is_light():
            score_apart(
                self.paths, settings=self.settings, scoring=self._scoring(), progress=progress
            )
        with self._lock:
            self._wrong = None
            self._files = None  # what is open may be older than what was made
        if self.open() is None:
            card = self.card()
            raise InputError(f"{card.message} ({card.fix})")
        progress(1.0)

    def _open(self, files: object) -> CachedLedger | None:
        """Open what is cached, or build what is light; if neither, note what is wrong."""
        self._tried = time.monotonic()
        if files is None or (self._wrong is not None and self._wrong[0] == files):
            return None
        try:
            cache = self._cache()
            cached = cache.open()
            if cached is None and self._is_light():
                cached = cache.build(keep=False)
            return cached
        except CoinhazeError as error:
            card = self._refused(error)
            if card.state != "locked":  # a lock ends without a trace on the files
                self._wrong = (files, card)
        except MemoryError:
            fix = "serve it on a machine with more memory, or a shorter window"
            self._wrong = (files, self._card("damaged", f"{self.name}: too little memory", fix))
        return None

    def _look(self) -> LedgerCard:
        files = self._stat()
        if self._cached is not None:
            return self._of_open(files)
        if files is None:
            return self._missing()
        if self._wrong is not None and self._wrong[0] == files:
            return self._wrong[1]
        try:
            cache = self._cache()
            facts = cache.facts()
            if facts is not None:
                return self._card("ready", digest=cache.digest, facts=facts)
            self._probe()
        except CoinhazeError as error:
            return self._refused(error)
        if self._is_light():
            return self._card("ready", digest=cache.digest)
        fix = f"score it now, or run: coinhaze score {self.paths[0].name} --keep"
        return self._card("not scored", f"{self.name} has not been scored yet", fix)

    def _of_open(self, files: object) -> LedgerCard:
        assert self._cached is not None
        digest, facts = self._cached.digest, self._cached.facts
        if files == self._files:
            return self._card("ready", digest=digest, facts=facts)
        if files is None:
            message, fix = "the file is gone", "what is shown was read before; put the file back"
            return self._card("ready", message, fix, changed=True, digest=digest, facts=facts)
        opened = self._open(files)
        if opened is not None:
            self._cached, self._files = opened, files
            return self._card("ready", digest=opened.digest, facts=opened.facts)
        message = f"{self.name} has changed since it was read: figures may differ"
        fix = "score it again to see what it holds now"
        return self._card("ready", message, fix, changed=True, digest=digest, facts=facts)

    def _missing(self) -> LedgerCard:
        lost = next((p for p in self.paths if not p.exists()), self.paths[0])
        fix = "put it back, or serve it from where it is now"
        return self._card("missing", f"{lost.name} is not there, or cannot be seen", fix)

    def _probe(self) -> None:
        """Raise what reading the ledger would meet at once: a lock, damage, nothing in it."""
        path = self.paths[0]
        if is_store(path):
            from coinhaze.store.store import Store

            with Store(path, read_only=True) as store:
                if store.kind is None:
                    raise InputError(f"{path}: holds no transactions: ingest some first")
        elif is_folder(path):
            folder_files(path)
        else:
            for each in self.paths:
                format_of(each)

    def _cache(self) -> LedgerCache:
        return LedgerCache(self.paths, **self.settings)

    def _scoring(self) -> dict[str, Any]:
        return (
            {}
            if self._size() <= thresholds.MAX_EXACT_BYTES
            else {"accuracy": thresholds.PAGE_MEAN_WIDTH, "over": "mean"}
        )

    def _is_light(self) -> bool:
        return self._size() <= LIGHT

    def _size(self) -> int:
        files = self._stat()
        return sum(size for size, _, _ in files) if files else 0

    def _stat(self) -> tuple[tuple[int, int, int], ...] | None:
        """Look at the files without reading them; None if one is not there."""
        try:
            stats = []
            for path in self.paths:
                # Of a folder all files count, whatever a damaged one says that it holds.
                files = sorted(path.iterdir()) if path.is_dir() else files_of(path)
                stats += [file.stat() for file in files if file.is_file() or not path.is_dir()]
        except (OSError, CoinhazeError):
            return None
        return tuple((s.st_size, s.st_mtime_ns, s.st_ino) for s in stats)

    def _refused(self, error: CoinhazeError) -> LedgerCard:
        """Say what an error means to a visitor of the ledger's page."""
        text = str(error)
        if "another process has it open" in text:
            fix = "wait until the other program has ended, or close it"
            message = f"{self.name} is open in another program that writes to it"
            return self._card("locked", message, fix)
        if isinstance(error, UsageError):
            fix = "serve it with other settings"
        elif "no transactions" in text or "is empty" in text:
            fix = "coinhaze ingest puts blocks and transactions into a store"
        elif "Permission denied" in text:
            fix = "give the user who runs coinhaze the right to read it"
        elif "give --decimals" in text:
            names = shlex.join(path.name for path in self.paths)
            store = shlex.quote(f"{self.paths[0].stem}.duckdb")
            fix = f"coinhaze ingest {names} --decimals N -o {store}, then serve {store}"
        elif "no known format" in text:
            fix = "serve a file that coinhaze can read, or make it again as a table: from,to,amount"
        else:
            fix = "take it from a backup, or make it again: coinhaze ingest, coinhaze verify"
        return self._card("damaged", text, fix)

    def _card(
        self,
        state: State,
        message: str | None = None,
        fix: str | None = None,
        *,
        changed: bool = False,
        digest: str | None = None,
        facts: Mapping[str, Any] | None = None,
    ) -> LedgerCard:
        """Describe the ledger in a state: what it is and what it answers, as far as known."""
        facts = facts or {}
        if digest is not None:
            stamp = json.dumps([digest, facts.get("method"), facts.get("mean_interval")])
            digest = hashlib.sha256(stamp.encode()).hexdigest()[:32]
        first, last = facts.get("heights") or (None, None)
        begin, end = facts.get("times") or (None, None)
        unit = chosen_unit(self.unit, unit_named(facts.get("unit", "smallest")))
        policies: tuple[str, ...] = ()
        views: tuple[str, ...] = ()
        times: tuple[str, ...] = ()
        if facts:
            hidden = bool(facts["hides_amounts"])
            # What needs snapshots is left out where the ledger's names leave no room for them.
            why = self._no_snapshots()
            found = score_policies(hides_amounts=hidden)
            policies = tuple(p.column for p in found if why is None or not p.ordered)
            views = ("coin",) if hidden or facts["has_unknown"] else ("coin", "address")
            views = ("account",) if facts["kind"] == "accounts" else views
            times = ("stationary",) if why else ("stationary", "temporal")
            times = () if hidden else times
            message = message or why
        return LedgerCard(
            id=self.id, name=self.name, state=state, message=message, fix=fix, changed=changed,
            digest=digest, kind=facts.get("kind"), hides_amounts=bool(facts.get("hides_amounts")),
            network=facts.get("network"), unit=unit.symbol or None, decimals=unit.decimals,
            window=Window(first_height=first, last_height=last, first_time=begin, last_time=end),
            coins=facts.get("scored"), bits_median=facts.get("bits_median"),
            lower_bounds=bool(facts.get("has_unknown")),
            policies=policies, views=views, times=times,
        )  # fmt: skip

    def _no_snapshots(self) -> str | None:
        """Say why accounts have no snapshots; None where they can have, or it is not open."""
        cached = self._cached
        if cached is None:
            return None
        if self._names is None or self._names[0] is not cached:
            self._names = cached, why_no_snapshots(cached.graph)
        return self._names[1]
