"""The paper's evaluation on any ledgers: score files first, then all else from them alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np

from coinhaze import __version__
from coinhaze.apps.compared import Compared, Reading, Week, check_names, readings_of
from coinhaze.apps.growth import growth
from coinhaze.chain import AbsorbingChain, absorbing_chain
from coinhaze.chain.knowledge import source_set
from coinhaze.errors import InputError, UsageError
from coinhaze.graph import TransactionGraph, transaction_graph
from coinhaze.ledger import Ledger
from coinhaze.ledger.amounts import Floats, Ints
from coinhaze.ledger.frozen import release_unused
from coinhaze.ledger.readers.knowledge import read_listed
from coinhaze.measure import Scores
from coinhaze.measure.scores import reached
from coinhaze.report.files import write_table
from coinhaze.report.provenance import input_digests, provenance
from coinhaze.report.score_files import read_about, write_score_file
from coinhaze.solve.exact import EXACT_WIDTH, score_exactly
from coinhaze.solve.mean import MEAN_ERROR, SECONDS, score_for_mean
from coinhaze.solve.progress import Progress, silent
from coinhaze.solve.workers import UNLIMITED, Budget

SCORES, GROWTH = "scores", "growth"
WALKS = 10_000
# Graphs of more nodes than this have their walks' bits estimated.
FEW_NODES = 200_000
Result = TypeVar("Result")
Tell = Callable[[str], None]
# The paper's conventions for graphs; how they are solved is another matter.
CONVENTIONS: dict[str, dict[str, Any]] = {
    "ours": {},
    "paper": {"mint": "one", "top_up": True, "sinks": "paper"},
}


@dataclass(frozen=True)
class Asking:
    """How every ledger of a comparison is scored."""

    settings: Mapping[str, Any] = field(default_factory=dict)
    listed: Path | None = None
    mean_error: float = MEAN_ERROR
    seconds: float = SECONDS
    seed: int = 0
    walks: int = WALKS  # forward from sources, for the appendix's experiment; 0 for none
    budget: Budget = UNLIMITED
    command: str = ""

    def key(self, one: Compared) -> dict[str, Any]:
        """Give all that the scores of a ledger depend on."""
        return {
            "software": f"coinhaze {__version__}",
            "made_of": one.made_of(),
            "settings": dict(self.settings),
            "listed": None if self.listed is None else input_digests([self.listed]),
            "mean_error": self.mean_error,
            "seconds": self.seconds,
            "seed": self.seed,
            "walks": self.walks,
        }


class Do(Protocol):
    """How a piece of work is done: at once, or watched by a progress bar."""

    def __call__(self, what: str, work: Callable[[Progress], Result], /) -> Result:
        """Do it, and give what it gives."""


def at_once(what: str, work: Callable[[Progress], Result], /) -> Result:
    """Do the work and tell nobody."""
    return work(silent)


def score_ledgers(
    compared: Sequence[Compared],
    folder: Path,
    asking: Asking | None = None,
    *,
    do: Do = at_once,
    tell: Tell = lambda line: None,
) -> list[Path]:
    """Score every ledger stationary and temporal, a file each, and say which files there are.

    What was scored before from the same inputs with the same settings is not scored again.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     files = score_ledgers([Compared.of("week:dai", size=0.002)], Path(place))
    ...     [file.name for file in files]
    ['dai-week-stationary.parquet', 'dai-week-temporal.parquet']
    """
    asking = asking or Asking()
    check_names(compared)
    inputs = [path for one in compared if not isinstance(one.source, Week) for path in one.source]
    if folder.exists() and any(folder.samefile(path) for path in inputs):
        raise UsageError(f"{folder}: is one of the inputs; write somewhere else")
    make_folder(folder / SCORES)
    make_folder(folder / GROWTH)
    paths = []
    for one in compared:
        key = asking.key(one)
        found = _scored_before(one, folder, key)
        if found:
            tell(f"{one.name}: scored before")
        paths += found or _score_ledger(one, folder, asking, key, do, tell)
        release_unused()
    return paths


def make_folder(path: Path) -> None:
    """Make a folder, and those it lies in."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{path}: cannot be made: {error.strerror}") from None


def _score_ledger(
    one: Compared, folder: Path, asking: Asking, key: dict[str, Any], do: Do, tell: Tell
) -> list[Path]:
    ledger, settings = do(f"reading {one.name}", lambda _: one.ledger(asking.settings))
    history = one.pool_history(ledger)
    readings = readings_of(ledger)
    paths = []
    for reading in readings:
        path = _path(folder, one, reading.time)
        about = {"key": key, "readings": [r.time for r in readings]}
        if not _is_of(path, key):
            row = _Row(one, reading, ledger, settings, history, asking)
            line = do(f"scoring {one.name}, {reading.time}", partial(row.write, path, about))
            tell(line)
        paths.append(path)
    return paths


@dataclass(frozen=True, eq=False)
class _Row:
    """One reading of one ledger, to be scored."""

    one: Compared
    reading: Reading
    ledger: Ledger
    settings: Mapping[str, Any]
    history: Mapping[str, Sequence[int]] | None
    asking: Asking

    def write(self, path: Path, about: dict[str, Any], progress: Progress = silent) -> str:
        """Score it, write the files, and say in a line what was done."""
        wall, cpu = time.perf_counter(), time.process_time()
        graph = transaction_graph(self.ledger, **{**self.settings, **self.reading.settings})
        chain = absorbing_chain(graph, history=self.history)
        self._write_growth(chain, growth_beside(path), about)
        scores = self._score(chain, progress)
        sizes = {"nodes": len(graph), "edges": len(graph.tail)}
        means = None if scores.draw_means is None else scores.draw_means.tolist()
        made = provenance(scores, command=self.asking.command) | about["key"]["made_of"]
        # The score file comes last: where it is, all else is there.
        write_score_file(
            scores,
            path,
            name=self.one.name,
            time=self.reading.time,
            about=made | sizes | {"draw_means": means} | about,
        )
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        return (
            f"{self.one.name}, {self.reading.time}: {len(scores):,} sinks, {scores.method}, "
            f"{wall:.1f} s, {cpu:.1f} s of CPU time"
        )

    def _write_growth(self, chain: AbsorbingChain, path: Path, about: dict[str, Any]) -> None:
        path.unlink(missing_ok=True)
        if self.asking.walks == 0 or not np.any(chain.walk.own > 0):
            return
        grown = growth(
            chain,
            walks=self.asking.walks,
            seed=self.asking.seed,
            accuracy="exact" if len(chain) <= FEW_NODES else "preview",
            threads=self.asking.budget.threads,
            memory=self.asking.budget.memory,
        )
        names = {"name": self.one.name, "time": self.reading.time}
        write_table(grown.to_arrow(), path, names | grown.about() | about)

    def _score(self, chain: AbsorbingChain, progress: Progress) -> Scores:
        asking = self.asking
        rows = np.flatnonzero(chain.graph.sinks)
        scores = reached(
            lambda: score_for_mean(
                chain,
                rows,
                mean_error=asking.mean_error,
                seconds=asking.seconds,
                seed=asking.seed,
                budget=asking.budget,
                progress=progress,
            )
        )
        if asking.listed is None:
            return scores
        return replace(scores, exposure=_exposure(chain.graph, rows, asking))


def _exposure(graph: TransactionGraph, rows: Ints, asking: Asking) -> Floats:
    """Give the share of each row that came from the list; none of it where none is there."""
    assert asking.listed is not None
    names = read_listed(str(asking.listed))
    if not source_set(graph, names).labels:
        return np.zeros(len(rows))
    chain = absorbing_chain(graph, listed=names)
    exposure = reached(
        lambda: score_exactly(chain, rows, width=EXACT_WIDTH, budget=asking.budget)
    ).exposure
    assert exposure is not None
    return exposure


def growth_beside(path: Path) -> Path:
    """Say where the growth file of a score file lies."""
    return path.parent.parent / GROWTH / path.name


def _path(folder: Path, one: Compared, time: str) -> Path:
    return folder / SCORES / f"{one.slug}-{time}.parquet"


def _is_of(path: Path, key: dict[str, Any]) -> bool:
    """Tell whether a score file is there and was made like this."""
    if not path.exists():
        return False
    try:
        return bool(read_about(path).get("key") == key)
    except InputError:
        return False


def _scored_before(one: Compared, folder: Path, key: dict[str, Any]) -> list[Path]:
    """Give all score files of a ledger, if they are there: coins are read in one way at least."""
    last = _path(folder, one, "temporal")
    if not _is_of(last, key):
        return []
    paths = [_path(folder, one, time) for time in read_about(last)["readings"]]
    return paths if all(_is_of(path, key) for path in paths) else []
