"""What is expensive to build, cached on disk: ledger, graph, chain and scores, layer by layer.

Each layer is named by what it rests on and its own settings: another policy of the same view finds
ledger and graph there already. See files.py for how a layer lies on disk.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Unpack

import pyarrow as pa
import pyarrow.compute as pc

from coinhaze.cache.files import (
    Layer,
    Outdated,
    Unusable,
    check_layer,
    read_about,
    read_layer,
    write_layer,
)
from coinhaze.cache.place import (
    clear_out,
    digest_of_sources,
    home_to_write,
    homes_of,
    key_of,
    keys_in,
    touch,
)
from coinhaze.errors import AccuracyError, CoinhazeError, InputError, UsageError
from coinhaze.formats.bitcoin_raw.networks import network_of_owners
from coinhaze.formats.money import unit_of
from coinhaze.graph import TransactionGraph, transaction_graph
from coinhaze.ledger import CoinLedger, Ledger
from coinhaze.measures import Scores
from coinhaze.observer import AbsorbingChain, absorbing_chain
from coinhaze.observer.policies import is_ordered
from coinhaze.options import LIMITS, ModelKeywords, ScoringKeywords
from coinhaze.readers import read
from coinhaze.solve.local.row import BoundedChain
from coinhaze.solve.pool.limits import in_words
from coinhaze.solve.progress import Progress, silent
from coinhaze.solve.score import refuse_incomplete, score, score_or_reached
from coinhaze.solve.source import (
    CHAIN_SETTINGS,
    GRAPH_SETTINGS,
    READ_SETTINGS,
    in_time,
    only,
    opening_before,
)
from coinhaze.solve.structure.structure import Structure
from coinhaze.threads import at_most


def facts_of(scores: Scores) -> dict[str, Any]:
    """Say of scores, and of the ledger they are about, what fits on a card; plain JSON."""
    summary = scores.summary()
    return ledger_facts(scores.chain.graph.ledger) | {
        "scored": summary.scored,
        "bits_median": None if summary.scored == 0 else summary.bits_median,
        "mean_interval": summary.mean_interval,
        "estimate": summary.standard_error is not None,
        "method": summary.method,
    }


def ledger_facts(ledger: Ledger) -> dict[str, Any]:
    """Say what a ledger is and what part of its chain it holds.

    >>> from coinhaze.ledger import AccountLedger
    >>> ledger_facts(AccountLedger.from_transfers([("a", "b", 1)]))["kind"]
    'accounts'
    """
    coins = isinstance(ledger, CoinLedger)
    heights = ledger.block_heights if isinstance(ledger, CoinLedger) else None
    times = None if ledger.times is None else seconds_of(ledger.times)
    owners = ledger.owners if isinstance(ledger, CoinLedger) else ledger.accounts
    return {
        "kind": "coins" if coins else "accounts",
        "hides_amounts": isinstance(ledger, CoinLedger) and ledger.output_value is None,
        "has_unknown": isinstance(ledger, CoinLedger) and ledger.has_unknown,
        "network": network_of_owners(owners),
        "unit": unit_of(ledger).spelling,
        "heights": list(_ends(heights)),
        "times": list(_ends(times)),
    }


def seconds_of(times: pa.Array) -> pa.Array:
    """Return moments as whole seconds since 1970."""
    if not pa.types.is_timestamp(times.type):
        return times
    return times.cast(pa.timestamp("s", times.type.tz), safe=False).cast(pa.int64())


def _ends(column: pa.Array | None) -> tuple[int | None, int | None]:
    if column is None:
        return None, None
    ends = pc.min_max(column)
    return ends["min"].as_py(), ends["max"].as_py()


# Layers from the ledger up, the settings of each, and what part of the time it takes.
LADDER = (
    ("ledger", READ_SETTINGS, 0.2),
    ("graph", GRAPH_SETTINGS, 0.2),
    ("chain", CHAIN_SETTINGS, 0.1),
    ("local", frozenset[str](), 0.1),
)
MODEL_SETTINGS = READ_SETTINGS | GRAPH_SETTINGS | CHAIN_SETTINGS
SCORES, SCORING = "scores", 0.4
SCORE_SETTINGS = frozenset({"nodes", "accuracy", "over", "method", "renyi", "draws", "device"}) | {
    "count_sources",
    "miss",
    "simultaneous",
    "seed",
}


@dataclass(frozen=True, eq=False)
class CachedLedger:
    """A ledger opened from the cache, or built and cached now."""

    ledger: Ledger
    graph: TransactionGraph
    structure: Structure  # the chain, bounded for questions about single nodes
    scores: Scores
    digest: str  # of the files it was made from, as they were
    facts: Mapping[str, Any]  # what is known of it before it is opened
    is_cached: bool  # whether all of it is on disk now
    notes: tuple[str, ...] = ()  # why something was built again, or not cached
    layers: tuple[Layer, ...] = field(default=(), repr=False)

    @property
    def chain(self) -> AbsorbingChain:
        """The chain."""
        return self.structure.chain


class LedgerCache:
    """The cache of one ledger, under one choice of settings.

    Settings are those of `read`, `transaction_graph` and `absorbing_chain`. Looking is cheap; the
    ledger's files are looked at once, when this is made.
    """

    def __init__(
        self, source: str | Path | Sequence[str | Path], **settings: Unpack[ModelKeywords]
    ) -> None:
        self.paths = [Path(source)] if isinstance(source, str | Path) else [*map(Path, source)]
        unknown = settings.keys() - MODEL_SETTINGS
        if unknown:
            raise UsageError(f"unknown setting {sorted(unknown)[0]!r}")
        if is_ordered(settings.get("policy")):
            raise UsageError("ordered policies replay the ledger: there is no chain to keep")
        self.settings = settings
        self.digest = digest_of_sources(self.paths)
        self.keys: list[str] = []
        for what, names, _ in LADDER:
            below = self.keys[-1] if self.keys else self.digest
            ours = only(settings, names)
            if what == "graph" and self._in_time:
                ours |= {"in_time": True}
            self.keys.append(key_of(what, below, ours))

    @property
    def _in_time(self) -> bool:
        """Whether the list needs payments in the order of time, which was not chosen."""
        return self.settings.get("listed") is not None and self.settings.get("time") is None

    def place(self) -> Path | None:
        """Say where the ledger is cached, None if it is not."""
        homes = homes_of(self.paths)
        return next((home for home in homes if os.path.isdir(home / self.keys[0])), None)

    def check(self, **scoring: Unpack[ScoringKeywords]) -> None:
        """Refuse, before any work is done, what cannot be cached or has no place."""
        _check(scoring)
        home_to_write(self.paths)

    def facts(self) -> Mapping[str, Any] | None:
        """Describe the narrowest cached scores as `facts_of` does, None if there are none."""
        found = self._best()
        return None if found is None else found[1]

    def open(self, *, compare: bool = False) -> CachedLedger | None:
        """Open what is cached, the narrowest scores with it; None unless chain and scores are.

        `compare` compares all data with its digests: see `read_layer`.
        """
        best = self._best()
        if best is None:
            return None
        layers: list[Layer] = []
        try:
            for key in self.keys:
                layers.append(self.layer(key, layers, compare=compare))
            layers.append(self.layer(best[0], layers, compare=compare))
        except Unusable:
            return None
        touch(homes_of(self.paths), [layer.key for layer in layers])
        return self._cached(layers, is_cached=True)

    def build(
        self,
        *,
        progress: Progress = silent,
        keep: bool = True,
        strict: bool = False,
        **scoring: Unpack[ScoringKeywords],
    ) -> CachedLedger:
        """Open the layers that are cached, build the rest, and cache that.

        `scoring` are settings of `score`. Raises what reading, building and scoring do; what
        cannot be cached is a note. Scores short of the accuracy are cached with their note, unless
        `strict`, which raises.
        """
        _check(scoring)
        key = key_of(SCORES, self.keys[-1], only(scoring, SCORE_SETTINGS))
        work = _Work(self, progress, keep)
        work.notes += self._outdated()
        layers: list[Layer] = []
        makers: list[Callable[[], Any]] = [
            lambda: self._ledger(strict=strict),
            lambda: self._graph(layers[0].value),
            lambda: absorbing_chain(layers[1].value, **only(self.settings, CHAIN_SETTINGS)),
            lambda: BoundedChain.of(layers[2].value),
        ]
        with at_most(scoring.get("threads")):
            for (_, _, share), k, make in zip(LADDER, self.keys, makers, strict=True):
                layers.append(work.layer(k, layers, make, share))
        limits = only(scoring, SCORE_SETTINGS | LIMITS)
        if strict:
            refuse_incomplete(layers[1].value)
        solve = score if strict else score_or_reached
        layers.append(
            work.layer(
                key,
                layers,
                lambda: solve(layers[2].value, progress=work.part(SCORING), **limits),
                SCORING,
                facts_of,
            )
        )
        work.clear_out()
        shortfall = layers[-1].value.shortfall
        if strict and shortfall is not None:
            raise AccuracyError(shortfall, scores=layers[-1].value)
        return self._cached(layers, tuple(work.notes), is_cached=work.home is not None)

    def _ledger(self, *, strict: bool = False) -> Ledger:
        ledger = read(list(self.paths), **only(self.settings, READ_SETTINGS))
        if strict:  # before anything of it is cached
            refuse_incomplete(ledger)
        self._refuse_change()
        return ledger

    def _graph(self, ledger: Ledger) -> TransactionGraph:
        source = self.paths[0] if len(self.paths) == 1 else list(self.paths)
        settings = opening_before(source, self.settings)
        if settings is not self.settings:  # balances came out of the file, which was read again
            self._refuse_change()
        settings = only(settings, GRAPH_SETTINGS)
        return transaction_graph(
            ledger, **(in_time(ledger, settings) if self._in_time else settings)
        )

    def _refuse_change(self) -> None:
        if not self.is_current():
            raise InputError(f"{self.paths[0]}: changed while it was read: try again")

    def is_current(self) -> bool:
        """Tell whether the ledger's files are as they were when this was made."""
        return digest_of_sources(self.paths) == self.digest

    def layer(self, key: str, below: Sequence[Layer], *, compare: bool = False) -> Layer:
        """Open a layer from wherever it lies; `Unusable` if nowhere."""
        homes = homes_of(self.paths)
        why = Unusable(f"{homes[0] / key}: not there")
        for home in homes:
            try:
                return read_layer(home, key, below=below, compare=compare)
            except Unusable as error:
                why = error if os.path.exists(home / key) else why
        raise why

    def _cached(
        self, layers: Sequence[Layer], notes: tuple[str, ...] = (), *, is_cached: bool
    ) -> CachedLedger:
        ledger, graph, chain, local, scores = (layer.value for layer in layers)
        view = self.settings.get("view") or graph.settings["view"]
        if view != graph.settings["view"]:  # the word for another kind of ledger's default
            raise UsageError(f"view {view!r} does not fit this ledger: {graph.settings['view']}")
        facts, structure = layers[-1].facts, Structure(chain, bounded=local)
        every = tuple(layers)
        return CachedLedger(
            ledger, graph, structure, scores, self.digest, facts, is_cached, notes, every
        )

    def _outdated(self) -> list[str]:
        """Say where layers of an earlier version lie; they are built again."""
        found = []
        for home in homes_of(self.paths):
            for key in keys_in(home):
                try:
                    read_about(home, key)
                except Outdated as error:
                    found.append(str(error))
                except Unusable:
                    continue
        return found[:1]

    def _best(self) -> tuple[str, Mapping[str, Any]] | None:
        """Find the scores of the chain that are proven best."""
        found = []
        for home in homes_of(self.paths):
            for key in keys_in(home):
                with suppress(Unusable):
                    about = read_about(home, key)
                    if about["rests_on"] == self.keys and "bits_median" in about["facts"]:
                        found.append((key, about["facts"]))
        if not found:
            return None
        return min(found, key=lambda each: (each[1]["estimate"], each[1]["mean_interval"]))


class _Work:
    """Building layers: how far it is, what is cached, and what could not be."""

    def __init__(self, cache: LedgerCache, progress: Progress, keep: bool) -> None:
        self.cache = cache
        self.notes: list[str] = []
        self._progress = progress
        self._done = 0.0
        self.home: Path | None = None
        if keep:
            try:
                self.home = home_to_write(cache.paths)
            except CoinhazeError as error:
                self.notes.append(str(error))

    def layer(
        self,
        key: str,
        below: Sequence[Layer],
        make: Callable[[], Any],
        share: float,
        facts: Callable[[Any], Mapping[str, Any]] = lambda value: {},
    ) -> Layer:
        """Open a layer, or build and cache it."""
        self._progress(self._done)
        layer = self._found(key, below)
        if layer is None:
            value = make()
            layer = self._put(key, value, below, facts(value))
        self._done += share
        return layer

    def part(self, share: float) -> Progress:
        """Give what a part of the work reports its own progress to."""
        before = self._done

        def note(done: float, /) -> None:
            self._progress(before + share * done)

        return note

    def clear_out(self) -> None:
        """Remove what is no longer of use."""
        self._progress(1.0)
        if self.home is not None and self.cache.is_current():
            clear_out(self.home, self.cache.digest)

    def _found(self, key: str, below: Sequence[Layer]) -> Layer | None:
        try:
            return self.cache.layer(key, below)
        except Unusable:
            if any(os.path.exists(home / key) for home in homes_of(self.cache.paths)):
                self.notes.append("part of the cache is damaged: it is built again")
            return None

    def _put(self, key: str, value: Any, below: Sequence[Layer], facts: Mapping[str, Any]) -> Layer:
        cache = self.cache
        if self.home is not None and not cache.is_current():
            self.home = None
            self.notes.append("the ledger has changed since it was read: this is not cached")
        if self.home is not None:
            try:
                return write_layer(
                    self.home, key, value, ledger=cache.digest, below=below, facts=facts
                )
            except CoinhazeError as error:
                with suppress(Unusable):  # another process may have been faster
                    return cache.layer(key, below)
                self.home = None
                self.notes.append(str(error))
        return Layer(key, value, (), facts, tuple(below))


def verify_cache(source: str | Path | Sequence[str | Path]) -> list[str]:
    """Compare the cache of a ledger with its digests; describe it in one line, or none."""
    paths = [Path(source)] if isinstance(source, str | Path) else [*map(Path, source)]
    sizes, wrong = [], []
    for home in homes_of(paths):
        for key in keys_in(home):
            try:
                sizes.append(check_layer(home, key))
            except Unusable as error:
                wrong.append(str(error))
    if wrong:
        return [f"cache: {len(wrong)} layers will not be opened, but built again: {wrong[0]}"]
    return [f"cache: {len(sizes)} layers, {in_words(sum(sizes))}, as written"] if sizes else []


def open_cached(
    source: str | Path | Sequence[str | Path],
    *,
    progress: Progress = silent,
    scoring: Mapping[str, Any] | None = None,
    **settings: Unpack[ModelKeywords],
) -> CachedLedger:
    """Open a ledger with its graph, chain and scores, building and caching what is not there.

    Cached scores are taken whatever their accuracy; without any, `scoring` says how to score.

    >>> import tempfile
    >>> from coinhaze import AccountLedger
    >>> from coinhaze.ledger import write_folder
    >>> ledger = AccountLedger.from_transfers([("a", "c", 1), ("b", "c", 1)])
    >>> with tempfile.TemporaryDirectory() as home:
    ...     path = write_folder(ledger, f"{home}/ledger")
    ...     open_cached(path).scores.bits, LedgerCache(path).open().scores.bits
    (array([1.]), array([1.]))
    """
    cache = LedgerCache(source, **settings)
    return cache.open() or cache.build(progress=progress, **(scoring or {}))


def _check(scoring: Mapping[str, Any]) -> None:
    unknown = scoring.keys() - SCORE_SETTINGS - LIMITS
    if unknown:
        raise UsageError(
            f"cannot be cached with {sorted(unknown)[0]!r}: it is no setting of scores"
        )
    nodes = scoring.get("nodes", "sinks")
    if nodes != "sinks":
        raise UsageError("scores of sinks are cached, not of other nodes: leave `nodes` out")
