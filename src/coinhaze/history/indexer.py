"""Blocks become a tape: rows and slots numbered once, piece by piece.

All outputs of a transaction share one distribution over sources, its row. A transaction whose
inputs hang on one row has that row; another gets a new one, mixed from the rows behind its inputs.
A row is needed until the last coin on it is spent, and its slot is then used again. The tape is the
list of rows: the slot of each, and the slots and weights it is mixed from. A pass over it needs no
names and no counts.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from coinhaze.errors import LedgerError, ResourceError
from coinhaze.history import files
from coinhaze.history.files import Manifest, PieceFiles
from coinhaze.history.index_kernels import (
    ALL_ROWS,
    ALL_SOURCES,
    COLUMNS,
    EMPTY,
    FAULTS,
    FREE,
    LIVE,
    NO_ROW,
    ROWS,
    SLOTS,
    TERMS,
    TRANSACTIONS,
    TWICE,
    UNKNOWN,
    VALUE,
    VALUES,
    WHERE,
    advance,
    enter,
)
from coinhaze.ledger.coin_blocks import HASH, CoinBlocks
from coinhaze.ledger.coins import DUPLICATE_COINBASES
from coinhaze.ledger.completeness import Completeness
from coinhaze.ledger.text import text_hashes

PIECE_ROWS = 1 << 20
AT_ONCE = 1 << 16  # transactions that are indexed at a time
# All live coins are written down at a commit: there is one once a quarter as many were made anew.
LIVE_SHARE = 4
_FULL = 0.7

Words = npt.NDArray[np.uint64]


def id_of(octets: bytes) -> str:
    """Write an id as people do: backwards, in hex."""
    return octets[::-1].hex()


def transaction_name(octets: bytes, height: int) -> str:
    """Name a transaction by its hash; the lost one of a duplicate id also by its height."""
    txid = id_of(octets)
    lost = DUPLICATE_COINBASES.get(txid, (None, None))[0]
    return f"{txid}@{height}" if lost == height else txid


@dataclass
class _Live:
    """What is live: unspent coins by name, rows by slot, and slots that are free."""

    table: Words
    slots: npt.NDArray[np.uint32]
    rounded: npt.NDArray[np.float64]
    place: npt.NDArray[np.int32]
    free: npt.NDArray[np.uint32]
    counts: npt.NDArray[np.int64]
    salt: np.uint64 = field(default_factory=lambda: np.uint64(secrets.randbits(63)))

    @classmethod
    def none(cls) -> _Live:
        counts = np.zeros(8, dtype=np.int64)
        return cls(
            table=_empty(1 << 12),
            slots=np.zeros((0, 4), dtype=np.uint32),
            rounded=np.zeros(0),
            place=np.zeros(0, dtype=np.int32),
            free=np.zeros(0, dtype=np.uint32),
            counts=counts,
        )

    @classmethod
    def read(cls, path: Path, manifest: Manifest) -> _Live:
        """Read what was live at the last commit."""
        live = cls.none()
        if not manifest.live:
            return live
        tables = {t: files.read_table(path / manifest.live_file(t)) for t in files.LIVE}
        entries = np.stack([files.column(tables["coins"], c) for c in COIN_COLUMNS], axis=1)
        entries[:, VALUE] += np.uint64(1)
        slots = tables["slots"]
        free = files.column(tables["free"], "slot")
        live.counts[[SLOTS, FREE, LIVE]] = manifest.slots, len(free), len(entries)
        live.counts[[ALL_ROWS, ALL_SOURCES]] = manifest.rows, manifest.sources
        live.counts[TRANSACTIONS] = manifest.transactions
        live.make_room(manifest.slots, len(entries))
        columns = ("coins", "row", "sources", "depth")
        for k, name in enumerate(columns):
            live.slots[: manifest.slots, k] = files.column(slots, name)
        live.rounded[: manifest.slots] = files.column(slots, "rounded")
        live.free[: len(free)] = free
        enter(np.ascontiguousarray(entries), live.table, live.salt)
        return live

    def make_room(self, slots: int, coins: int) -> None:
        """Make room for so many slots and coins."""
        have = len(self.rounded)
        if have < slots:
            more = max(slots, have + have // 2, 1 << 12) - have
            self.slots = np.concatenate([self.slots, np.zeros((more, 4), dtype=np.uint32)])
            self.rounded = np.concatenate([self.rounded, np.zeros(more)])
            self.place = np.concatenate([self.place, np.full(more, -1, dtype=np.int32)])
            self.free = np.concatenate([self.free, np.zeros(more, dtype=np.uint32)])
        size = len(self.table)
        while coins > _FULL * size:
            size *= 2
        if size > len(self.table):
            table = _empty(size)
            enter(self.entries(), table, self.salt)
            self.table = table

    def entries(self) -> Words:
        """Give all live coins, in no order."""
        found: Words = self.table[self.table[:, VALUE] != EMPTY]
        return found

    def tables(self) -> dict[str, pa.Table]:
        """Give all of it as tables, coins in the order they were made."""
        entries = self.entries()
        entries = entries[np.argsort(entries[:, WHERE])]
        entries[:, VALUE] -= np.uint64(1)
        n, free = int(self.counts[SLOTS]), int(self.counts[FREE])
        slots = {c: self.slots[:n, k] for k, c in enumerate(("coins", "row", "sources", "depth"))}
        return {
            "coins": pa.table({c: entries[:, k] for k, c in enumerate(COIN_COLUMNS)}),
            "slots": pa.table(slots | {"rounded": self.rounded[:n]}),
            "free": pa.table({"slot": self.free[:free]}),
        }


COIN_COLUMNS = ("key", "key2", "value", "where", "slot", "steps")


def _empty(size: int) -> Words:
    try:
        return np.zeros((size, COLUMNS), dtype=np.uint64)
    except MemoryError:
        words = f"{size * COLUMNS * 8:,} bytes for the names of live coins"
        raise ResourceError(f"not enough memory: {words}") from None


@dataclass
class Indexer:
    """Appends blocks to a history and commits them, piece by piece."""

    path: Path
    manifest: Manifest
    live: _Live
    pending: dict[str, list[Any]] = field(default_factory=lambda: {t: [] for t in files.TABLES})
    uncommitted: list[PieceFiles] = field(default_factory=list)
    rows: int = 0  # pending
    terms: int = 0
    transactions: int = 0
    made: int = 0  # coins, since the last commit
    piece_rows: int = PIECE_ROWS

    @classmethod
    def open(cls, path: Path, manifest: Manifest, piece_rows: int = PIECE_ROWS) -> Indexer:
        """Go on from the last commit."""
        return cls(path, manifest, _Live.read(path, manifest), piece_rows=piece_rows)

    def append(self, blocks: CoinBlocks, where: str) -> None:
        """Index whole blocks, not too many of them; `where` is for errors."""
        self._append(blocks, where)
        if self.rows >= self.piece_rows:
            self._end_piece()

    def _append(self, blocks: CoinBlocks, where: str) -> None:
        n, m, out = len(blocks), len(blocks.spent_vouts), len(blocks.made_vouts)
        if int(self.live.counts[TRANSACTIONS]) + n >= NO_ROW:
            raise ResourceError("a history has 2^32 - 2 transactions at most")
        names = "hash" if blocks.names is None else "text"
        if self.manifest.transactions + self.transactions == 0:
            self.manifest = replace(self.manifest, names=names)
        elif names == "text" and self.manifest.names == "hash":
            raise LedgerError(where, "ids that are no hashes, in a history whose ids are hashes")
        live = self.live
        live.make_room(int(live.counts[SLOTS]) + n + m, int(live.counts[LIVE]) + out)
        row_slot, row_terms = np.empty(n + m, np.uint32), np.empty(n + m, np.uint32)
        row_steps, row_rounded = np.empty(n + m), np.empty(n + m)
        facts, earlier = np.empty((n + m, 3), np.uint32), np.full(n + m, -1, np.int64)
        term_slot, term_weight = np.empty(m, np.uint32), np.empty(m)
        tx_row, tx_steps = np.empty(n, np.uint32), np.empty(n)
        first_row = int(live.counts[ALL_ROWS])
        live.counts[[ROWS, TERMS]] = 0
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
            not self.manifest.complete,
            live.table,
            live.table.view(np.float64),
            live.salt,
            live.slots,
            live.rounded,
            live.place,
            live.free,
            live.counts,
            row_slot,
            row_terms,
            row_steps,
            row_rounded,
            facts,
            earlier,
            term_slot,
            term_weight,
            tx_row,
            tx_steps,
        )
        if fault:
            raise _fault(blocks, where, fault, t, at)
        rows, terms = int(live.counts[ROWS]), int(live.counts[TERMS])
        self._keep("rows", slot=row_slot[:rows], terms=row_terms[:rows])
        self._keep("terms", slot=term_slot[:terms], weight=term_weight[:terms])
        self._keep(
            "facts",
            steps=row_steps[:rows],
            rounded=row_rounded[:rows],
            sources=facts[:rows, 0],
            depth=facts[:rows, 1],
            transaction=facts[:rows, 2],
        )
        self._keep_sources(blocks, row_terms[:rows], earlier, facts, first_row)
        self._keep("transactions", id=_ids(blocks, self.manifest.names), row=tx_row, steps=tx_steps)
        self._keep("blocks", height=blocks.heights, time=blocks.times, transactions=blocks.sizes)
        self.rows += rows
        self.terms += terms
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
            tip=id_of(blocks.ids[-1].tobytes()),
        )

    def _keep(self, table: str, **columns: Any) -> None:
        self.pending[table].append(pa.table(columns))

    def _keep_sources(
        self,
        blocks: CoinBlocks,
        terms: npt.NDArray[np.uint32],
        earlier: npt.NDArray[np.int64],
        facts: npt.NDArray[np.uint32],
        first_row: int,
    ) -> None:
        """Name the sources among new rows: coinbases, and coins made before the history."""
        heights = np.repeat(blocks.heights, blocks.sizes)
        before = int(self.live.counts[TRANSACTIONS]) - len(blocks)
        rows = np.flatnonzero(terms == 0)
        names = []
        for row in rows.tolist():
            e, t = int(earlier[row]), int(facts[row, 2]) - before
            if e >= 0:
                maker = (
                    id_of(blocks.spent_ids[e].tobytes())
                    if blocks.spent_names is None
                    else blocks.spent_names[e].as_py()
                )
                names.append(f"{maker}:{blocks.spent_vouts[e]}")
            elif blocks.names is None:
                names.append(f"tx:{transaction_name(blocks.ids[t].tobytes(), int(heights[t]))}")
            else:
                names.append(f"tx:{blocks.names[t].as_py()}")
        texts = pa.array(names, pa.string())
        hashes = text_hashes(texts) if names else np.zeros(0, np.uint64)
        numbers = (first_row + rows).astype(np.uint32)
        self._keep("sources", row=numbers, hash=hashes, name=texts)

    def _end_piece(self) -> None:
        """Write what is pending as a piece; commit where that is worth its cost."""
        number = len(self.manifest.pieces) + len(self.uncommitted)
        tables = {t: pa.concat_tables(parts) for t, parts in self.pending.items()}
        heights = tables["blocks"]["height"]
        piece = PieceFiles(
            number=number,
            transactions=self.transactions,
            rows=self.rows,
            terms=self.terms,
            sources=len(tables["sources"]),
            first_height=heights[0].as_py(),
            last_height=heights[-1].as_py(),
            files={},
        )
        marks = {t: files.write_table(self.path / piece.file(t), tables[t]) for t in tables}
        self.uncommitted.append(replace(piece, files=marks))
        self.pending = {t: [] for t in files.TABLES}
        self.rows = self.terms = self.transactions = 0
        if self.made * LIVE_SHARE >= int(self.live.counts[LIVE]):
            self._commit()

    def _commit(self) -> None:
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
                table: files.write_table(self.path / manifest.live_file(table), content)
                for table, content in self.live.tables().items()
            }
            manifest = replace(manifest, live=marks)
        self.manifest = manifest
        files.commit(self.path, self.manifest)
        self.uncommitted = []
        self.made = 0

    def finish(self, completeness: Completeness, notes: tuple[str, ...]) -> Manifest:
        """Commit all that was appended, with what is known about it."""
        if self.transactions:
            self._end_piece()
        record = completeness.record()
        self.manifest = replace(self.manifest, completeness=record, notes=notes)
        self._commit()
        return self.manifest


def _words(ids: npt.NDArray[np.uint8]) -> Words:
    return np.ascontiguousarray(ids).view(np.uint64).reshape(-1, HASH // 8)


def _ids(blocks: CoinBlocks, names: str) -> pa.Array:
    """Give the column of ids: 32 bytes each, or text."""
    if names == "hash":
        octets = np.ascontiguousarray(blocks.ids)
        return pa.Array.from_buffers(pa.binary(HASH), len(blocks), [None, pa.py_buffer(octets)])
    if blocks.names is not None:
        return blocks.names.cast(pa.large_string())
    heights = np.repeat(blocks.heights, blocks.sizes).tolist()
    pairs = zip(blocks.ids, heights, strict=True)
    return pa.array([transaction_name(i.tobytes(), h) for i, h in pairs], pa.large_string())


def _fault(blocks: CoinBlocks, where: str, fault: int, t: int, at: int) -> LedgerError:
    """Say which transaction breaks a rule, and at what height."""
    height = int(np.repeat(blocks.heights, blocks.sizes)[t])
    place = f"{where}: block {height}" if height >= 0 else where
    name = id_of(blocks.ids[t].tobytes()) if blocks.names is None else blocks.names[t].as_py()
    value: object = name
    if fault in (UNKNOWN, VALUES):
        maker = (
            id_of(blocks.spent_ids[at].tobytes())
            if blocks.spent_names is None
            else blocks.spent_names[at].as_py()
        )
        value = f"{maker}:{blocks.spent_vouts[at]}"
    if fault == TWICE:
        value = f"{name}:{blocks.made_vouts[at]}"
    what = f"transaction {name}: {FAULTS[fault]}"
    return LedgerError(place, what, value=value, fix="the history is as it was at its last commit")
