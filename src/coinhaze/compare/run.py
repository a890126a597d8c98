"""The paper's evaluation on any ledgers: score files first, then all else from them alone.

A row is one reading of one ledger: its graph and chain, its scores, its files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, Protocol, TypeVar

import numpy as np

from coinhaze.amounts import Ints
from coinhaze.compare.ledgers import (
    ComparedLedger,
    Reading,
    ScoringSettings,
    Week,
    check_names,
    command_of,
    problems_of,
    readings_of,
)
from coinhaze.errors import CoinhazeError, InputError, UsageError
from coinhaze.formats.lists.knowledge import read_listed
from coinhaze.graph import TransactionGraph, transaction_graph
from coinhaze.growth.growth import growth
from coinhaze.ledger import Ledger
from coinhaze.ledger.frozen import release_unused
from coinhaze.measures import Scores
from coinhaze.measures.scores import reached
from coinhaze.observer import AbsorbingChain, absorbing_chain
from coinhaze.observer.knowledge import source_set
from coinhaze.observer.policies import is_ordered, needs_list
from coinhaze.report.files import provenance, write_table
from coinhaze.report.score_files import read_about, write_score_file
from coinhaze.solve.exact.engines import EXACT_WIDTH, score_exactly
from coinhaze.solve.lots.lots import lots
from coinhaze.solve.lots.payments import check_order
from coinhaze.solve.lots.scores import score_in_order
from coinhaze.solve.planner import thresholds
from coinhaze.solve.planner.mean import score_for_mean
from coinhaze.solve.pool.limits import THREADS
from coinhaze.solve.progress import Progress, silent
from coinhaze.solve.score import refuse_incomplete
from coinhaze.solve.source import GRAPH_SETTINGS, only
from coinhaze.threads import at_most

SCORES, GROWTH = "scores", "growth"


@dataclass(frozen=True, eq=False)
class ComparedRow:
    """One reading of one ledger, to be scored; `settings` are those of its graph and chain."""

    one: ComparedLedger
    reading: Reading
    ledger: Ledger
    settings: Mapping[str, Any]
    history: Mapping[str, Sequence[int]] | None
    listed: Sequence[str] | None
    asking: ScoringSettings

    @property
    def policy(self) -> str | None:
        """The policy by which money is split; None for the ledger's default."""
        return self.settings.get("policy")

    def graph(self) -> TransactionGraph:
        """Build the graph."""
        settings = only(dict(self.settings), GRAPH_SETTINGS)
        return transaction_graph(self.ledger, **settings | dict(self.reading.settings))

    def chain(self, graph: TransactionGraph) -> AbsorbingChain | None:
        """Build the chain; None under an ordered policy, which has none."""
        if is_ordered(self.policy):
            check_order(graph)
            return None
        return absorbing_chain(
            graph,
            policy=self.policy,
            links=self.settings.get("links"),
            history=self.history,
            # Poison is undefined without a list; otherwise exposure is added to the bits over all
            # sources.
            listed=self.listed if needs_list(self.policy) else None,
        )

    def write(
        self, path: Path, beside: Path, about: dict[str, Any], progress: Progress = silent
    ) -> str:
        """Score it, write its score and growth files, and return a line that describes them."""
        wall, cpu = perf_counter(), process_time()
        with at_most(self.asking.budget.threads):
            graph = self.graph()
            chain = self.chain(graph)
        self._write_growth(chain, beside, about)
        rows = np.flatnonzero(graph.sinks)
        scores = self._score(graph, chain, rows, progress)
        exposed, more = self._exposure(graph, rows)
        notes = [*scores.notes, *(note for note in more if note not in scores.notes)]
        shortfall = scores.shortfall
        if exposed is not None:
            shortfall = shortfall or exposed.shortfall
            scores = replace(scores, exposure=exposed.exposure)
        elif self.listed is not None and scores.exposure is None:
            scores = replace(scores, exposure=np.zeros(len(rows)))
        made = provenance(scores, command=command_of(self.one, self.asking))
        made |= about["key"]["made_of"] | {
            "nodes": len(graph),
            "edges": len(graph.tail),
            "mean_interval": _mean_interval(scores),
            "draw_means": None if scores.draw_means is None else scores.draw_means.tolist(),
            "notes": notes,
            "shortfall": shortfall,
        }
        # The score file comes last: its presence shows that everything else is there.
        write_score_file(
            scores, path, name=self.one.name, time=self.reading.time, about=made | about
        )
        wall, cpu = perf_counter() - wall, process_time() - cpu
        return (
            f"{self.one.name}, {self.reading.time}: {len(scores):,} sinks, {scores.method}, "
            f"{wall:.1f} s, {cpu:.1f} s of CPU time"
        )

    def _write_growth(
        self, chain: AbsorbingChain | None, path: Path, about: dict[str, Any]
    ) -> None:
        path.unlink(missing_ok=True)
        if chain is None or chain.listed or self.asking.walks == 0:
            return
        if not np.any(chain.walk.own > 0):
            return
        grown = growth(
            chain,
            walks=self.asking.walks,
            seed=self.asking.seed,
            accuracy="exact" if len(chain) <= thresholds.MAX_EXACT_NODES else "preview",
            # Walks are followed here; workers are as many as there are elsewhere.
            threads=self.asking.budget.threads if self.asking.budget.backend == THREADS else None,
            memory=self.asking.budget.memory,
        )
        names = {"name": self.one.name, "time": self.reading.time}
        write_table(grown.to_arrow(), path, names | grown.about() | about)

    def _score(
        self,
        graph: TransactionGraph,
        chain: AbsorbingChain | None,
        rows: Ints,
        progress: Progress,
    ) -> Scores:
        asking = self.asking
        if chain is None:
            return score_in_order(lots(graph, order=self.policy), rows)  # type: ignore[arg-type]

        def solve() -> Scores:
            return score_for_mean(
                chain,
                rows,
                mean_error=asking.mean_error,
                seconds=asking.seconds,
                seed=asking.seed,
                budget=asking.budget,
                progress=progress,
            )

        return solve() if asking.strict else reached(solve)

    def _exposure(
        self, graph: TransactionGraph, rows: Ints
    ) -> tuple[Scores | None, tuple[str, ...]]:
        """Score the rows against the list, None if none of it is there; also return its notes."""
        if self.listed is None or needs_list(self.policy):
            return None, ()
        if not source_set(graph, self.listed).labels:
            return None, (f"list: none of its {len(self.listed):,} names is in the ledger",)
        if is_ordered(self.policy):
            held = lots(graph, order=self.policy, listed=self.listed)  # type: ignore[arg-type]
            found = score_in_order(held, rows)
            return found, found.notes
        chain = absorbing_chain(
            graph, policy=self.policy, links=self.settings.get("links"), listed=self.listed
        )
        budget = self.asking.budget
        found = reached(lambda: score_exactly(chain, rows, width=EXACT_WIDTH, budget=budget))
        notes = [note for note in found.notes if note != found.shortfall]
        if found.shortfall is not None:
            notes.append(f"exposure: {found.shortfall}")
        return found, tuple(notes)


Result = TypeVar("Result")
Tell = Callable[[str], None]


class Do(Protocol):
    """How a piece of work is run: directly, or with a progress bar."""

    def __call__(self, what: str, work: Callable[[Progress], Result], /) -> Result:
        """Run the work and return its result."""


def at_once(what: str, work: Callable[[Progress], Result], /) -> Result:
    """Run the work without reporting progress."""
    return work(silent)


def score_ledgers(
    compared: Sequence[ComparedLedger],
    folder: Path,
    asking: ScoringSettings | None = None,
    *,
    do: Do = at_once,
    tell: Tell = lambda line: None,
) -> list[Path]:
    """Score every ledger stationary and temporal, one file each, and return the paths.

    What was scored before from the same inputs with the same settings is not scored again. Invalid
    settings raise an error before anything is solved: each ledger is read and its graphs are built
    once for that.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     files = score_ledgers([ComparedLedger.of("week:dai", size=0.002)], Path(place))
    ...     [file.name for file in files]
    ['dai-week-stationary.parquet', 'dai-week-temporal.parquet']
    """
    asking = asking or ScoringSettings()
    check_names(compared)
    inputs = [path for one in compared if not isinstance(one.source, Week) for path in one.source]
    if folder.exists() and any(folder.samefile(path) for path in inputs):
        raise UsageError(f"{folder}: is one of the inputs; write somewhere else")
    _refuse(
        [
            (one, UsageError(why))
            for one in compared
            for why in problems_of(one, listed=asking.listed is not None)
        ]
    )
    keys = {one.name: asking.key(one) for one in compared}
    # A strict run reads every ledger: what was scored before may have been incomplete.
    found = {
        one.name: [] if asking.strict else _scored_before(one, folder, keys[one.name])
        for one in compared
    }
    ready = _checked([one for one in compared if not found[one.name]], asking, do)
    make_folder(folder / SCORES)
    make_folder(folder / GROWTH)
    paths = []
    for one in compared:
        if found[one.name]:
            tell(f"{one.name}: scored before")
        if not found[one.name]:
            rows = ready.pop(one.name, None)
            rows = rows or do(f"reading {one.name}", partial(_rows, one, asking))
            tell(f"{one.name}: {rows[0].ledger.completeness.line()}")
            found[one.name] = _score_rows(rows, folder, keys[one.name], do, tell)
            del rows
        paths += found[one.name]
        release_unused()
    return paths


def _refuse(wrong: Sequence[tuple[ComparedLedger, CoinhazeError]]) -> None:
    """Raise all problems as one error."""
    if not wrong:
        return
    usage = any(isinstance(error, UsageError) for _, error in wrong)
    if len(wrong) == 1 and not usage:
        raise wrong[0][1]
    raise (UsageError if usage else InputError)(
        "\n".join(f"{one.name}: {error}" for one, error in wrong)
    )


def _checked(
    compared: Sequence[ComparedLedger], asking: ScoringSettings, do: Do
) -> dict[str, list[ComparedRow]]:
    """Read ledgers and build their graphs and chains, and raise all problems found.

    Returns what was read of the first, which is scored next; the others are read again, since all
    of them together may not fit into memory.
    """
    wrong: list[tuple[ComparedLedger, CoinhazeError]] = []
    ready: dict[str, list[ComparedRow]] = {}
    for one in reversed(compared):
        ready = {}
        release_unused()
        # A simulated week without settings has none that could be invalid.
        if isinstance(one.source, Week) and not one.settings:
            continue
        try:
            ready = {one.name: do(f"checking {one.name}", partial(_built, one, asking))}
        except CoinhazeError as error:
            wrong.append((one, error))
    _refuse(wrong[::-1])
    return ready


def _built(one: ComparedLedger, asking: ScoringSettings, progress: Progress) -> list[ComparedRow]:
    rows = _rows(one, asking)
    for row in rows:
        row.chain(row.graph())
    return rows


def _rows(
    one: ComparedLedger, asking: ScoringSettings, progress: Progress = silent
) -> list[ComparedRow]:
    """Read a ledger, and return its readings that are to be scored."""
    ledger, settings = one.ledger(asking.settings)
    if asking.strict:
        refuse_incomplete(ledger)
    listed = settings.pop("listed", None)
    if listed is None and asking.listed is not None:
        listed = read_listed(str(asking.listed))
    choice = {name: settings.pop(name, None) for name in ("view", "time")}
    readings = readings_of(ledger, **choice, policy=settings.get("policy"))
    history = one.pool_history(ledger)
    return [
        ComparedRow(one, reading, ledger, settings, history, listed, asking) for reading in readings
    ]


def make_folder(path: Path) -> None:
    """Create a folder and its parents."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{path}: cannot be made: {error.strerror}") from None


def _score_rows(
    rows: Sequence[ComparedRow], folder: Path, key: dict[str, Any], do: Do, tell: Tell
) -> list[Path]:
    about = {"key": key, "readings": [row.reading.time for row in rows]}
    paths = []
    for row in rows:
        path = _path(folder, row.one, row.reading.time)
        if not _is_of(path, key):
            write = partial(row.write, path, growth_beside(path), about)
            tell(do(f"scoring {row.one.name}, {row.reading.time}", write))
        paths.append(path)
    return paths


def growth_beside(path: Path) -> Path:
    """Return the path of the growth file of a score file."""
    return path.parent.parent / GROWTH / path.name


def _path(folder: Path, one: ComparedLedger, time: str) -> Path:
    return folder / SCORES / f"{one.slug}-{time}.parquet"


def _is_of(path: Path, key: dict[str, Any]) -> bool:
    """Return whether a score file exists and was made with this key."""
    if not path.exists():
        return False
    try:
        return bool(read_about(path).get("key") == key)
    except InputError:
        return False


def _scored_before(one: ComparedLedger, folder: Path, key: dict[str, Any]) -> list[Path]:
    """Return all score files of a ledger, if all exist: each states how many there are."""
    for time in ("temporal", "stationary"):
        path = _path(folder, one, time)
        if _is_of(path, key):
            paths = [_path(folder, one, time) for time in read_about(path)["readings"]]
            return paths if all(_is_of(path, key) for path in paths) else []
    return []


def _mean_interval(scores: Scores) -> dict[str, float] | None:
    """Give the interval of the mean of drawn bits; None where rows have proven ones."""
    if scores.bits_mean_low is None or scores.bits_mean_high is None or scores.mean_miss is None:
        return None
    return {
        "low": scores.bits_mean_low,
        "high": scores.bits_mean_high,
        "miss": scores.mean_miss,
    }
