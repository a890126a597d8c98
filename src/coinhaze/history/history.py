"""The history of a chain of coins: a folder from which every unspent coin is scored."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import numpy as np
import pyarrow as pa

from coinhaze.amounts import Ints
from coinhaze.errors import InputError, UsageError
from coinhaze.history import files
from coinhaze.history.files import Manifest
from coinhaze.history.index.indexer import AT_ONCE, PIECE_ROWS, Indexer
from coinhaze.history.index.sources import (
    BlockSource,
    following,
    joined,
    ledger_source,
    open_source,
    refuse_same,
)
from coinhaze.history.scores.lists import narrowed
from coinhaze.history.scores.live_coins import LiveCoins
from coinhaze.history.scores.origins import CoinOrigins, coin_origins
from coinhaze.history.scores.over_time import MonthEnd, changed_rows, month_ends, months_table
from coinhaze.history.scores.score import HistoryScores, RowScores, score_rows, stored
from coinhaze.history.scores.table import history_table
from coinhaze.history.scores.transactions import refuse_used, write_transactions
from coinhaze.history.tape import Tape
from coinhaze.ledger import AccountLedger, CoinLedger
from coinhaze.ledger.coin_blocks import CoinBlocks
from coinhaze.ledger.completeness import Completeness
from coinhaze.options import Accuracy, Grouping, HistoryScoreKeywords, ReadKeywords
from coinhaze.solve.pool.limits import THREADS, Budget, bytes_of
from coinhaze.solve.progress import Progress, silent
from coinhaze.solve.sketch.sketch import DRAWS
from coinhaze.units import Unit, unit_named

if TYPE_CHECKING:
    from coinhaze.nodes.best_chain import ChainNode
    from coinhaze.solve.pool import WorkerCluster

Counted = Callable[[int, int], None]
_NOTHING_CHECKED = Completeness()


def _uncounted(done: int, whole: int) -> None:
    """Take no note."""


@dataclass(frozen=True, eq=False)
class History:
    """A history as it was at its last commit.

    >>> import tempfile
    >>> ledger = CoinLedger.from_transactions([
    ...     {"txid": "a", "inputs": [], "outputs": [{"value": 50}]},
    ...     {"txid": "b", "inputs": [], "outputs": [{"value": 50}]},
    ...     {"txid": "c", "inputs": [{"txid": "a", "vout": 0}, {"txid": "b", "vout": 0}],
    ...      "outputs": [{"value": 100}]},
    ... ], complete=True)
    >>> with tempfile.TemporaryDirectory() as home:
    ...     history = History.index(f"{home}/x.history", ledger)
    ...     history.score(accuracy="exact").to_arrow()["bits"].to_pylist()
    [1.0]
    """

    path: Path
    manifest: Manifest

    @classmethod
    def open(cls, path: str | Path) -> History:
        """Open a history, refusing one of another version or with files that are cut short."""
        return cls(Path(path), files.read_manifest(Path(path)))

    @classmethod
    def index(
        cls,
        path: str | Path,
        sources: str | Path | CoinLedger | AccountLedger | Sequence[str | Path],
        *,
        progress: Counted = _uncounted,
        piece_rows: int = PIECE_ROWS,
        **options: Unpack[ReadKeywords],
    ) -> History:
        """Make a history, or append to one what comes after its last block.

        `sources` are files, a store, or a ledger: of coins, or of transfers of one token, whose
        accounts are then scored in the order of time. A run that was cut short goes on after
        its last commit if it is repeated.
        """
        path = Path(path)
        given: list[str | Path] = []
        if isinstance(sources, str | Path):
            given = [sources]
        elif not isinstance(sources, CoinLedger | AccountLedger):
            given = list(sources)
        refuse_same(path, given)

        def open_blocks(manifest: Manifest) -> BlockSource:
            if isinstance(sources, CoinLedger | AccountLedger):
                return ledger_source(sources, manifest)
            return open_source(given, manifest, options)

        return _index(path, open_blocks, progress, piece_rows)

    @classmethod
    def index_blocks(
        cls,
        path: str | Path,
        blocks: Iterable[CoinBlocks],
        *,
        where: str = "blocks",
        complete: bool = True,
        completeness: Completeness = _NOTHING_CHECKED,
        unit: str | None = None,
        progress: Counted = _uncounted,
        piece_rows: int = PIECE_ROWS,
    ) -> History:
        """Make a history of a stream of blocks with heights, or append those after its last.

        `complete` says that it begins with its chain; `where` names it in errors; `unit` is what
        values are counted in, as `read` takes it.
        """

        def open_blocks(manifest: Manifest) -> BlockSource:
            rest = following(blocks, manifest, where)
            money = None if unit is None else unit_named(unit)
            return BlockSource(where, rest, 0, complete, completeness, unit=money)

        return _index(Path(path), open_blocks, progress, piece_rows)

    @classmethod
    def index_node(
        cls, path: str | Path, node: ChainNode, last: int, *, progress: Counted = _uncounted
    ) -> History:
        """Make a history of the blocks of a node up to a height, or append those after its last."""
        from coinhaze.history.node import node_source

        def open_blocks(manifest: Manifest) -> BlockSource:
            return node_source(node, manifest, last)

        return _index(Path(path), open_blocks, progress, PIECE_ROWS)

    @cached_property
    def tape(self) -> Tape:
        """The tape, mapped into memory."""
        return Tape(self.path, self.manifest)

    @cached_property
    def completeness(self) -> Completeness:
        """What the sources showed about themselves when they were read."""
        record = self.manifest.completeness
        where = str(self.path / files.MANIFEST)
        return Completeness.of_record(record, where) if record else Completeness()

    @property
    def unit(self) -> Unit:
        """What values are counted in."""
        return unit_named(self.manifest.unit or "smallest")

    def __len__(self) -> int:
        return self.manifest.transactions

    def __repr__(self) -> str:
        return f"History({len(self):,} transactions, {self.manifest.coins:,} unspent coins)"

    def verify(self) -> None:
        """Compare every file with its digest."""
        files.verify(self.path, self.manifest, scores=True)

    def score(
        self,
        *,
        over_time: bool = False,
        progress: Progress = silent,
        **options: Unpack[HistoryScoreKeywords],
    ) -> HistoryScores:
        """Score every unspent coin, and keep the scores in the history.

        `accuracy` is preview (`draws` draws), a width in bits (as many draws as it needs) or exact.
        The seed is random unless given, and recorded. Scores that the history had are replaced.
        `top_sources` also proves intervals from lists of at most so many sources, and gives what
        both kinds allow: see coinhaze.history.scores.lists. `over_time` also scores what was
        unspent at the end of each month, by draws alone: see `over_time`. `workers` are open
        processes that solve the passes in place of threads: they read the history by its path, and
        its bits are the same.
        """
        with files.only_writer(self.path):
            self._refuse_changed()
            self.verify()
            coins = LiveCoins.of(self.tape)
            live = np.unique(coins.row)
            rows = np.union1d(live, changed_rows(self.tape)) if over_time else live
            found, drawn = self._row_scores(rows, progress, **options)
            months = month_ends(self.tape, drawn) if over_time else ()
            scores = HistoryScores.of(self.tape, coins, found)
            mark = files.write_scores(self.path, stored(scores))
            manifest = replace(
                self.manifest,
                scores=mark,
                scored=dict(scores.about),
                months=tuple(asdict(month) for month in months),
            )
            files.commit(self.path, manifest)
        object.__setattr__(self, "manifest", manifest)
        return scores

    def write_transactions(
        self,
        folder: str | Path,
        *,
        progress: Progress = silent,
        **options: Unpack[HistoryScoreKeywords],
    ) -> list[Path]:
        """Score every transaction, and write a Parquet file for each piece; give the files.

        A row is a transaction: txid, height, bits with their interval, steps to its outputs. Those
        that move no money have no bits.
        """
        folder = Path(folder)
        refuse_used(folder)
        found, _ = self._row_scores(np.arange(self.manifest.rows), progress, **options)
        return write_transactions(self.tape, found, folder)

    def _row_scores(
        self,
        rows: Ints,
        progress: Progress,
        *,
        accuracy: Accuracy = "preview",
        draws: int = DRAWS,
        miss: float | None = None,
        simultaneous: bool = False,
        seed: int | None = None,
        threads: int | None = None,
        memory: int | str | None = None,
        top_sources: int | None = None,
        workers: WorkerCluster | None = None,
    ) -> tuple[RowScores, RowScores]:
        """Score rows of the tape; also give what is known without lists of sources."""
        if top_sources is not None and accuracy == "exact":
            raise UsageError("exact bits need no lists of sources: leave out top_sources")
        backend = THREADS if workers is None else workers.open
        budget = Budget(threads, None if memory is None else bytes_of(memory), None, backend)
        drawn = score_rows(
            self.tape,
            rows,
            accuracy=accuracy,
            draws=draws,
            miss=miss,
            simultaneous=simultaneous,
            seed=secrets.randbits(63) if seed is None else seed,
            budget=budget,
            progress=progress,
        )
        if top_sources is None:
            return drawn, drawn
        return narrowed(self.tape, drawn, top_sources, budget), drawn

    def _refuse_changed(self) -> None:
        """Refuse to go on if another process has appended to the history since it was opened."""
        now = files.read_manifest(self.path)
        if now.transactions != self.manifest.transactions:
            raise InputError(f"{self.path}: has grown since it was opened: open it again")

    def scores(self) -> HistoryScores:
        """Give the scores that the history keeps."""
        if self.manifest.scores is None:
            how = f"score it first: coinhaze history score {self.path}"
            raise InputError(f"{self.path}: is not scored, or has grown since: {how}")
        table = files.read_table(self.path / files.scores_file(self.manifest.scores))
        coins = LiveCoins.of(self.tape)
        columns = {c: files.column(table, c) for c in ("bits", "bits_low", "bits_high", "miss")}
        return HistoryScores(self.tape, coins, **columns, about=self.manifest.scored)

    def origins(self, name: str) -> CoinOrigins:
        """Say where the money of a coin came from, by walking back over the tape."""
        return coin_origins(self, name)

    def over_time(self) -> pa.Table:
        """Give mean bits of what was unspent at the end of each month, over coins and by value.

        They are found by `score(over_time=True)`.
        """
        if not self.manifest.months:
            how = f"find it first: coinhaze history score {self.path} --over-time"
            raise InputError(f"{self.path}: what was unspent each month is not known: {how}")
        return months_table(tuple(MonthEnd(**month) for month in self.manifest.months))

    def table(self, group: Grouping = "year") -> pa.Table:
        """Give bits of the unspent coins by year, script type and so on, as last scored."""
        return history_table(self.scores(), group)


def _index(
    path: Path,
    open_blocks: Callable[[Manifest], BlockSource],
    progress: Counted,
    piece_rows: int,
) -> History:
    files.new_folder(path)
    with files.only_writer(path):
        begun = files.is_history(path)
        manifest = files.read_manifest(path) if begun else Manifest()
        if begun:
            files.verify(path, manifest)
            files.sweep(path, manifest)
        source = open_blocks(manifest)
        if not begun:
            stated = "" if source.unit is None else source.unit.spelling
            manifest = replace(manifest, complete=source.complete, unit=stated)
        indexer = Indexer.open(path, manifest, piece_rows)
        done = 0
        with closing(indexer):
            for blocks in source.blocks:
                for part in blocks.parts(min(AT_ONCE, piece_rows)):
                    indexer.append(part, source.where)
                    done += len(part)
                    progress(done, max(source.transactions, done))
            where = str(path / files.MANIFEST)
            before = dict(manifest.completeness)
            record = joined(before, source.completeness, where, first=not manifest.transactions)
            if done or not begun:
                manifest = indexer.finish(record, source.notes)
        return History(path, manifest)
