"""Blocks become a tape: rows and slots numbered once, piece by piece.

All outputs of a transaction share one distribution over sources, its row. A transaction whose
inputs hang on one row has that row; another gets a new one, mixed from the rows behind its inputs.
A row is needed until the last coin on it is spent, and its slot is then used again. The tape is the
list of rows: the slot of each, and the slots and weights it is mixed from. A pass over it needs no
names and no counts.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from coinhaze.errors import LedgerError, ResourceError
from coinhaze.history import files
from coinhaze.history.files import Manifest, PieceFiles
from coinhaze.history.index.columns import PieceColumns, write_transactions
from coinhaze.history.index.index_kernels import (
    advance,
    take_back,
)
from coinhaze.history.index.live import Live, Words
from coinhaze.history.index.pool_kernels import OPENED
from coinhaze.history.index.row_kernels import (
    ALL_ROWS,
    ALL_SOURCES,
    BEFORE,
    CHANGES,
    COINS,
    FREE,
    LIVE,
    LOG_FREE,
    LOG_SLOTS,
    LOG_SPENT,
    LOW,
    MORE_VALUE,
    NO_ROW,
    ROWS,
    SLOT_WORDS,
    SLOTS,
    TERMS,
    TRANSACTIONS,
    write_changes,
)
from coinhaze.history.names import fault_of, id_of, names_of, transaction_name
from coinhaze.ledger.coin_blocks import HASH, NOT_KNOWN, CoinBlocks, PoolFlows, months_of
from coinhaze.ledger.coins import POOLS
from coinhaze.ledger.completeness import Completeness
from coinhaze.ledger.text import text_hashes

PIECE_ROWS = 1 << 20
_NO_SCRIPTS = np.zeros(0, np.uint8)
_NONE = np.zeros(0, np.int64)
_NO_POOLS = PoolFlows(_NONE, _NONE, _NONE, np.zeros(len(POOLS), np.int64))
AT_ONCE = 1 << 16  # transactions that are indexed at a time
# All live coins are written down at a commit: there is one once as many were made anew.
LIVE_SHARE = 1


def refuse_other_kind(manifest: Manifest, blocks: CoinBlocks, where: str) -> None:
    """Refuse transfers between accounts in a history of coins, and coins in one of accounts."""
    if blocks.accounts != manifest.accounts:
        held, given = ("accounts", "coins") if manifest.accounts else ("coins", "accounts")
        what = f"a ledger of {given}: the history is of {held}"
        raise LedgerError(where, what, fix="index it into another folder")


@dataclass
class Taken:
    """What a block changed, so that it can be taken back."""

    counts: npt.NDArray[np.int64]  # before it
    spent: npt.NDArray[np.int64]
    slots: npt.NDArray[np.uint32]
    free: npt.NDArray[np.uint32]
    pools: npt.NDArray[np.int64]  # before it
    manifest: Manifest
    sizes: tuple[int, int]  # of the lists of sources and blocks
    made: int  # coins since the last commit


_LISTS = ("sources", "blocks", "names")


@dataclass
class Indexer:
    """Appends blocks to a history and commits them, piece by piece."""

    path: Path
    manifest: Manifest
    live: Live
    # Of the piece that is being made, and of the one that is being written.
    columns: PieceColumns = field(default_factory=PieceColumns)
    spare: PieceColumns = field(default_factory=PieceColumns)
    writer: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(2))
    writing: tuple[PieceFiles, dict[str, Future[tuple[int, str]]]] | None = None
    # Of the piece that is being made: sources, blocks, and names that are no hashes.
    pending: dict[str, list[pa.Table]] = field(default_factory=lambda: {t: [] for t in _LISTS})
    uncommitted: list[PieceFiles] = field(default_factory=list)
    transactions: int = 0  # pending
    made: int = 0  # coins, since the last commit
    stamp: int = 0  # of the last block that was logged
    piece_rows: int = PIECE_ROWS

    @classmethod
    def open(cls, path: Path, manifest: Manifest, piece_rows: int = PIECE_ROWS) -> Indexer:
        """Go on from the last commit."""
        return cls(path, manifest, Live.read(path, manifest), piece_rows=piece_rows)

    @property
    def rows(self) -> int:
        """How many rows are pending."""
        return int(self.live.counts[ROWS])

    def append(self, blocks: CoinBlocks, where: str) -> None:
        """Index whole blocks, not too many of them; `where` is for errors."""
        if self.rows >= self.piece_rows:
            self.end_piece(last=False)
        self._append(blocks, where, logged=False)

    def append_logged(self, block: CoinBlocks, where: str) -> Taken:
        """Index one block so that it can be taken back; no piece ends with it."""
        return self._append(block, where, logged=True)

    def _append(self, blocks: CoinBlocks, where: str, *, logged: bool) -> Taken:
        n, m, out = len(blocks), len(blocks.spent_vouts), len(blocks.made_vouts)
        live, counts = self.live, self.live.counts
        if int(counts[TRANSACTIONS]) + n >= NO_ROW:
            raise ResourceError("a history has 2^32 - 2 transactions at most")
        names = "hash" if blocks.names is None else "text"
        if self.manifest.transactions + self.transactions == 0:
            self.manifest = replace(self.manifest, names=names, accounts=blocks.accounts)
        else:
            refuse_other_kind(self.manifest, blocks, where)
        if names == "text" and self.manifest.names == "hash":
            raise LedgerError(where, "ids that are no hashes, in a history whose ids are hashes")
        pools = _NO_POOLS if blocks.pools is None else blocks.pools
        flows = len(pools.tx)
        # A flow mixes two rows at most, and may be the first that meets an opening.
        live.make_room(n + m + 2 * flows, n, out, move=not logged)
        # A month that is over does not begin again.
        months = months_of(blocks.times)
        latest = np.maximum.accumulate(np.maximum(months, np.int16(self.manifest.month)))
        months = np.where(months == NOT_KNOWN, months, latest)
        rows, terms, first_source = self.rows, int(counts[TERMS]), int(counts[ALL_SOURCES])
        changes = int(counts[CHANGES]) + 2 * (n + m) + n + 4 * flows
        self.columns.room(
            rows + n + m + 2 * flows, terms + m + 2 * flows, self.transactions + n, changes
        )
        if logged:
            self.stamp += 1
            counts[LOW] = counts[FREE]
            counts[[LOG_SPENT, LOG_SLOTS, LOG_FREE]] = 0
        room = (m, n + 2 * m + 4 * flows, n + m + 2 * flows) if logged else (0, 0, 0)
        log_spent = np.empty((room[0], 2), np.int64)
        log_slots = np.empty((room[1], SLOT_WORDS + 1), np.uint32)
        log_free = np.empty(room[2], np.uint32)
        sizes = len(self.pending["sources"]), len(self.pending["blocks"])
        taken = Taken(
            counts.copy(),
            log_spent,
            log_slots,
            log_free,
            live.pools.copy(),
            self.manifest,
            sizes,
            self.made,
        )
        largest = int(blocks.inputs.max(initial=1)) + len(POOLS)
        source_row, source_input = np.empty((2, n + m + flows), np.int64)
        column = self.columns.arrays
        tx = slice(self.transactions, self.transactions + n)
        fault, t, at = advance(
            _words(blocks.ids),
            blocks.coinbase,
            blocks.inputs,
            blocks.outputs,
            _words(blocks.spent_ids),
            blocks.spent_vouts,
            blocks.spent_values,
            blocks.made_vouts,
            blocks.made_values,
            blocks.made_spendable,
            _NO_SCRIPTS if blocks.made_scripts is None else blocks.made_scripts,
            pools.tx,
            pools.pool,
            pools.into,
            pools.openings,
            not self.manifest.complete,
            blocks.accounts,
            live.table,
            live.shift,
            live.salt,
            *live.makers,
            live.coins,
            live.slots,
            live.slots.view(np.float64),
            live.slots.view(np.int64),
            live.pools,
            live.pools.view(np.float64),
            live.free,
            counts,
            column["rows", "slot"],
            column["rows", "terms"],
            column["facts", "rounded"],
            column["facts", "sources"],
            column["facts", "depth"],
            column["facts", "transaction"],
            source_row,
            source_input,
            column["terms", "slot"],
            column["terms", "weight"],
            column["transactions", "row"][tx],
            column["transactions", "steps"][tx],
            blocks.sizes,
            months,
            *self.columns.changes,
            self.stamp if logged else 0,
            log_spent,
            log_slots,
            log_free,
            *np.empty((2, m), np.int64),
            *np.empty((2, largest), np.int64),
        )
        if fault:
            raise fault_of(blocks, where, fault, t, at)
        if logged:  # a block that can be taken back leaves none behind
            self._write_changes(log_slots[: int(counts[LOG_SLOTS]), SLOT_WORDS])
        taken.spent = log_spent[: int(counts[LOG_SPENT])].copy()
        taken.slots = log_slots[: int(counts[LOG_SLOTS])].copy()
        taken.free = log_free[: int(counts[LOG_FREE])].copy()
        made = int(counts[ALL_SOURCES]) - first_source
        self._append_sources(blocks, source_row[:made], source_input[:made])
        column["transactions", "id"][tx].view(np.uint8).reshape(-1, HASH)[:] = blocks.ids
        if self.manifest.names == "text":
            self.pending["names"].append(pa.table({"id": names_of(blocks)}))
        self.pending["blocks"].append(
            pa.table({"height": blocks.heights, "time": blocks.times, "transactions": blocks.sizes})
        )
        self.transactions += n
        self.made += out
        manifest = self.manifest
        if not manifest.first_id:
            first = id_of(blocks.ids[0].tobytes())
            manifest = replace(manifest, first_height=int(blocks.heights[0]), first_id=first)
        self.manifest = replace(
            manifest,
            last_height=int(blocks.heights[-1]),
            last_time=int(blocks.times[-1]),
            month=max(int(months.max()), manifest.month),
            tip=id_of(blocks.ids[-1].tobytes()),
        )
        return taken

    def take_back(self, taken: Taken) -> None:
        """Take the last block back, by what it changed."""
        live = self.live
        words, halves, _ = live.makers
        self.transactions -= int(live.counts[TRANSACTIONS] - taken.counts[TRANSACTIONS])
        self.made = taken.made
        take_back(
            live.table, live.shift, live.salt, words, halves, live.coins, live.slots, live.free,
            live.counts, taken.counts, taken.spent, taken.slots, taken.free,
        )  # fmt: skip
        live.pools[:] = taken.pools
        self.manifest = taken.manifest
        sources, blocks = taken.sizes
        del self.pending["sources"][sources:], self.pending["blocks"][blocks:]
        del self.pending["names"][blocks:]

    def _append_sources(
        self, blocks: CoinBlocks, rows: npt.NDArray[np.int64], spent: npt.NDArray[np.int64]
    ) -> None:
        """Name new sources, by their rows in the piece: coinbases, and coins made before."""
        counts = self.live.counts
        before = int(counts[TRANSACTIONS]) - len(blocks)
        makers = self.columns.arrays["facts", "transaction"][rows]
        block = np.searchsorted(np.cumsum(blocks.sizes), makers - before, side="right")
        heights = blocks.heights[block].tolist()
        names = []
        for e, t, height in zip(spent.tolist(), makers.tolist(), heights, strict=True):
            t -= before
            if e >= 0:
                maker = (
                    id_of(blocks.spent_ids[e].tobytes())
                    if blocks.spent_names is None
                    else blocks.spent_names[e].as_py()
                )
                names.append(f"{maker}:{blocks.spent_vouts[e]}")
            elif e <= OPENED:
                names.append(f"pool:{POOLS[OPENED - e]}:0")
            elif blocks.names is None:
                names.append(f"tx:{transaction_name(blocks.ids[t].tobytes(), height)}")
            else:
                kind = "" if blocks.accounts else "tx:"  # mints have names of their own
                names.append(f"{kind}{blocks.names[t].as_py()}")
        texts = pa.array(names, pa.string())
        hashes = text_hashes(texts) if names else np.zeros(0, np.uint64)
        numbers = (int(counts[ALL_ROWS]) - self.rows + rows).astype(np.uint32)
        self.pending["sources"].append(pa.table({"row": numbers, "hash": hashes, "name": texts}))

    def _write_changes(self, chosen: npt.NDArray[Any] | None = None) -> None:
        """Write down what rows in some slots have won or lost; in all if none is named.

        What is not in a piece when there is a commit would be lost.
        """
        live, counts = self.live, self.live.counts
        values = live.slots.view(np.int64)
        if chosen is None:
            held = slice(int(counts[SLOTS]))
            moved = live.slots[held, COINS] != live.slots[held, BEFORE]
            chosen = np.flatnonzero(moved | (values[held, MORE_VALUE] != 0)).astype(np.uint32)
        self.columns.room(0, 0, 0, int(counts[CHANGES]) + len(chosen))
        write_changes(live.slots, values, chosen, counts, *self.columns.changes)

    def end_piece(self, *, last: bool) -> None:
        """Write what is pending as a piece; commit if it is the last, or that is worth its cost."""
        commit = self.made * LIVE_SHARE >= int(self.live.counts[LIVE])
        if last or commit:
            self._write_changes()
        self._wait()
        number = len(self.manifest.pieces) + len(self.uncommitted)
        counts = self.live.counts
        rows, terms, n = self.rows, int(counts[TERMS]), self.transactions
        lists = {t: pa.concat_tables(self.pending[t]) for t in ("sources", "blocks")}
        names: pa.Array | None = None
        if self.manifest.names == "text":
            names = pa.concat_tables(self.pending["names"])["id"].combine_chunks()
        column = self.columns.table
        tables = {
            "rows": pa.table(column("rows", rows)),
            "terms": pa.table(column("terms", terms)),
            "facts": pa.table(column("facts", rows)),
            "sources": lists["sources"],
            "blocks": lists["blocks"],
            "changes": pa.table(column("changes", int(counts[CHANGES]))),
        }
        heights = tables["blocks"]["height"]
        piece = PieceFiles(
            number=number,
            transactions=n,
            rows=rows,
            terms=terms,
            sources=len(tables["sources"]),
            first_height=heights[0].as_py(),
            last_height=heights[-1].as_py(),
            files={},
        )
        self.columns, self.spare = self.spare, self.columns
        # Its files are written while the next piece is made, the largest first.
        file = self.path / piece.file("transactions")
        made = column("transactions", n)
        marks = {"transactions": self.writer.submit(write_transactions, file, made, names)}
        for t in sorted(tables, key=lambda t: -tables[t].nbytes):
            file = self.path / piece.file(t)
            marks[t] = self.writer.submit(files.write_table, file, tables[t])
        self.writing = piece, marks
        self.pending = {t: [] for t in _LISTS}
        counts[[ROWS, TERMS, CHANGES]] = 0
        self.transactions = 0
        if commit and not last:
            self._commit()

    def _wait(self) -> None:
        """Wait until the last piece is written."""
        writing, self.writing = self.writing, None
        if writing is not None:
            piece, marks = writing
            wait(marks.values())
            found = {t: marks[t].result() for t in files.TABLES}
            self.uncommitted.append(replace(piece, files=found))

    def close(self) -> None:
        """Let no piece be written any more."""
        self.writer.shutdown(wait=True)

    def _commit(self) -> None:
        self._wait()
        done, counts = self.uncommitted, self.live.counts
        before = self.manifest
        manifest = replace(
            files.without_scores(before),
            transactions=before.transactions + sum(p.transactions for p in done),
            rows=before.rows + sum(p.rows for p in done),
            terms=before.terms + sum(p.terms for p in done),
            sources=before.sources + sum(p.sources for p in done),
            slots=int(counts[SLOTS]),
            coins=int(counts[LIVE]),
            pieces=(*before.pieces, *done),
        )
        if done or not before.live:  # what is live has changed: written to files of its own
            marks = {
                table: self.writer.submit(
                    files.write_table, self.path / manifest.live_file(table), content
                )
                for table, content in self.live.tables().items()
            }
            wait(marks.values())
            manifest = replace(manifest, live={t: mark.result() for t, mark in marks.items()})
        self.manifest = manifest
        files.commit(self.path, self.manifest)
        self.uncommitted = []
        self.made = 0

    def finish(self, completeness: Completeness, notes: tuple[str, ...]) -> Manifest:
        """Commit all that was appended, with what is known about it."""
        if self.transactions:
            self.end_piece(last=True)
        record = completeness.record()
        self.manifest = replace(self.manifest, completeness=record, notes=notes)
        self._commit()
        return self.manifest


def _words(ids: npt.NDArray[np.uint8]) -> Words:
    return np.ascontiguousarray(ids).view(np.uint64).reshape(-1, HASH // 8)
