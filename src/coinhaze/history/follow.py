"""A history that follows a node: each block indexed, scored and committed as it comes.

The past of older coins is fixed, so a block changes no score but those of its own transactions.
Rows stay in memory, as a pass over the tape leaves them, and a block is brought through them by the
same loops. It counts once it is in the journal. The last blocks can be taken back by what they
changed, older ones of the journal by starting from the last commit again.
"""

from __future__ import annotations

import secrets
from collections import deque
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from coinhaze.amounts import Floats, Ints
from coinhaze.errors import LedgerError, UsageError
from coinhaze.history import files
from coinhaze.history.arrays import zeros
from coinhaze.history.index.indexer import Indexer, Taken
from coinhaze.history.index.live_kernels import SLOT, STEPS, VALUE, find_coin
from coinhaze.history.index.row_kernels import (
    ALL_SOURCES,
    DEPTH,
    LIVE,
    NO_ROW,
    ROUNDED,
    SLOTS,
    SOURCES,
    TERMS,
)
from coinhaze.history.index.sources import joined, raw_checks
from coinhaze.history.journal import Journal, NamedBlock
from coinhaze.history.names import id_of, octets_of_id
from coinhaze.history.scores.live_coins import LiveCoins
from coinhaze.history.scores.over_time import month_end
from coinhaze.history.scores.pass_kernels import pass_draws
from coinhaze.history.scores.score import (
    HistoryScores,
    RowScores,
    TapeDraws,
    precision_of,
    row_scores,
    stored,
    stored_error,
)
from coinhaze.history.tape import Tape
from coinhaze.measures.confidence import MISS, check_miss
from coinhaze.solve.exact.stream_kernels import WIDTH
from coinhaze.solve.pool import Budget
from coinhaze.solve.sketch.sketch import DRAWS

RETAINED = 100  # blocks that can be taken back by what they changed
COMMIT_AFTER = 144  # more blocks than these in the journal are committed


class DeepReorganisation(LedgerError):
    """The chain has left blocks that a history has committed."""


@dataclass(frozen=True)
class CoinFigures:
    """What a history says of one unspent coin."""

    node: str
    bits: float
    bits_low: float
    bits_high: float
    miss: float
    steps: float
    balance: int


@dataclass(frozen=True)
class BlockFigures:
    """What a block brought: the coins it left unspent, and their bits on average."""

    height: int
    hash: str
    transactions: int
    coins: int  # unspent, in the whole history
    rows: int
    bits: float | None  # of the rows it made, on average


@dataclass
class _Done:
    """A block that can be taken back: what it changed, and the rows that its rows replaced."""

    block: NamedBlock
    taken: Taken
    slots: Ints
    rows: list[npt.NDArray[Any]]
    totals: Floats


class Follower:
    """A history in memory, open for blocks; the one writer of its folder until it is closed.

    `retained` blocks can be taken back without reading anything; when `commit_after` more are in
    the journal, they become a piece.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        draws: int = DRAWS,
        miss: float | None = None,
        seed: int | None = None,
        memory: int | None = None,
        retained: int = RETAINED,
        commit_after: int = COMMIT_AFTER,
    ) -> None:
        if draws < 1 or draws % WIDTH:
            raise UsageError(f"draws come in tiles: a multiple of {WIDTH}, not {draws}")
        self.path = Path(path)
        self.draws, self.miss = draws, check_miss(MISS if miss is None else miss)
        self.retained, self.commit_after = retained, commit_after
        self._memory = memory
        self._stack = ExitStack()
        try:
            manifest = files.read_manifest(self.path)
            self._stack.enter_context(files.only_writer(self.path))
            manifest = files.read_manifest(self.path)
            files.verify(self.path, manifest)
            files.sweep(self.path, manifest)
            if manifest.names != "hash" or manifest.last_height < 0:
                what = "a history without heights, or of ids that are no hashes: no node has it"
                raise LedgerError(str(self.path), what)
            self.unit = manifest.unit or "smallest"
            self.seed = self._choose_seed(manifest, seed)
            self.journal = Journal(self.path)
            self._load()
        except BaseException:
            self._stack.close()
            raise

    def _choose_seed(self, manifest: files.Manifest, seed: int | None) -> int:
        chosen = manifest.seed if seed is None else seed
        if chosen is None:
            chosen = secrets.randbits(63)
        if chosen != manifest.seed:
            files.commit(self.path, replace(manifest, seed=chosen))
        return chosen

    def _load(self) -> None:
        """Begin with the last commit, and bring the journal's blocks in."""
        manifest = files.read_manifest(self.path)
        tape = Tape(self.path, manifest)
        rows = np.unique(LiveCoins.of(tape).row)
        self.kind, _ = precision_of(tape, rows, self.draws, self.miss)
        work = TapeDraws(tape, tuple(tape.scored_in(rows)), self.seed, self.kind)
        tiles = range(0, self.draws, WIDTH)
        needed = work.room_bytes * len(tiles)
        Budget(memory=self._memory).fits(needed, f"rows of {self.draws} draws")
        self.rooms = [work.room() for _ in tiles]
        self.totals = np.zeros(manifest.slots)
        total = np.zeros(len(rows))
        for first, room in zip(tiles, self.rooms, strict=True):
            total += work.solve(first, room)
        self.totals[tape.slots_of(rows)] = total
        self.indexer = Indexer.open(self.path, manifest)
        self._stack.callback(self.indexer.close)
        self.committed = manifest
        # Blocks after the commit: hash, and where their record begins; the newest can be undone.
        self.hashes: dict[int, str] = {}
        self.places: dict[int, int] = {}
        self.done: deque[_Done] = deque(maxlen=self.retained)
        blocks = self.journal.read()
        follows = [b for b in blocks if b.height > manifest.last_height]
        if not self._links(follows, manifest):
            follows = []
        if len(follows) < len(blocks) or not self.journal.path.exists():
            places = self.journal.replace(follows)
        else:
            places = self.journal.places
        for block, place in zip(follows, places, strict=True):
            self._take_in(block, place)

    @staticmethod
    def _links(blocks: list[NamedBlock], manifest: files.Manifest) -> bool:
        """Tell whether blocks of a journal go on where a commit ends."""
        heights = [b.height for b in blocks]
        expected = list(range(manifest.last_height + 1, manifest.last_height + 1 + len(blocks)))
        return heights == expected and (not blocks or blocks[0].base == manifest.tip)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let others write; what has come counts already."""
        self._stack.close()

    @property
    def height(self) -> int:
        """The height of the last block."""
        return self.indexer.manifest.last_height

    @property
    def hash(self) -> str | None:
        """The hash of the last block; None where it is the commit's, which has none."""
        return self.hashes.get(self.height)

    def add(self, block: NamedBlock) -> BlockFigures:
        """Index, score and commit the next block."""
        if block.height != self.height + 1:
            what = f"does not follow the history: block {self.height + 1} is missing"
            raise LedgerError(f"block {block.height}", what)
        if self.hash is not None and block.previous != self.hash:
            what = f"does not build on block {self.height} of the history, {self.hash}, but on"
            raise LedgerError(f"block {block.height}", what, value=block.previous)
        block = replace(block, base=self.indexer.manifest.tip)
        place = self.journal.size
        figures = self._take_in(block, place)
        self.journal.append(block)
        return figures

    def _take_in(self, block: NamedBlock, place: int) -> BlockFigures:
        indexer = self.indexer
        counts = indexer.live.counts
        first, term = indexer.rows, int(counts[TERMS])
        taken = indexer.append_logged(block.content, str(self.path))
        part = slice(first, indexer.rows)
        columns = indexer.columns.arrays
        slots = columns["rows", "slot"][part].astype(np.int64)
        self._grow(int(counts[SLOTS]))
        before = [room[slots] for room in self.rooms]
        done = _Done(block, taken, slots, before, self.totals[slots])
        tape = (
            columns["rows", "slot"][part],
            columns["rows", "terms"][part],
            columns["terms", "slot"][term : int(counts[TERMS])],
            columns["terms", "weight"][term : int(counts[TERMS])],
            indexer.pending["sources"][-1]["hash"].to_numpy(),
        )
        scored = np.arange(len(slots))
        total, some = np.zeros(len(slots)), np.empty(len(slots))
        for k, room in enumerate(self.rooms):
            pass_draws(*tape, self.seed, WIDTH * k, 0, room, scored, some)
            total += some
        self.totals[slots] = total
        self.done.append(done)
        self.hashes[block.height] = block.hash
        self.places[block.height] = place
        made = self._scores(slots[self._last_of(slots)])
        return BlockFigures(
            height=block.height,
            hash=block.hash,
            transactions=len(block.content),
            coins=int(counts[LIVE]),
            rows=len(slots),
            bits=float(made.bits.mean()) if len(made.bits) else None,
        )

    @staticmethod
    def _last_of(slots: Ints) -> Ints:
        """Give the places of the last of each slot: what is in it now."""
        _, behind = np.unique(slots[::-1], return_index=True)
        found: Ints = np.sort(len(slots) - 1 - behind)
        return found

    def _grow(self, slots: int) -> None:
        if slots <= len(self.totals):
            return
        size = slots + slots // 8
        self.totals = np.concatenate([self.totals, np.zeros(size - len(self.totals))])
        for k, room in enumerate(self.rooms):
            larger = zeros((size, WIDTH), room.dtype)
            larger[: len(room)] = room
            self.rooms[k] = larger

    def _scores(self, slots: Ints) -> RowScores:
        """Score the rows that are in some slots now."""
        live = self.indexer.live
        return row_scores(
            slots,
            self.totals[slots],
            live.slots[slots, SOURCES].astype(np.int64),
            stored_error(
                self.kind, live.slots[slots, DEPTH], live.slots.view(np.float64)[slots, ROUNDED]
            ),
            draws=self.draws,
            miss=self.miss,
            seed=self.seed,
            kind=self.kind,
            all_sources=int(live.counts[ALL_SOURCES]),
        )

    def coin(self, name: str) -> CoinFigures | None:
        """Give the figures of a coin that is unspent and worth something, or None."""
        txid, _, vout = name.rpartition(":")
        octets = octets_of_id(txid)
        if octets is None or not vout.isdecimal():
            return None
        live = self.indexer.live
        words, halves, floats = live.makers
        key = np.frombuffer(octets, np.uint64)
        place = find_coin(
            live.table, live.shift, live.salt, words, halves, live.coins, key[0], key[1], int(vout)
        )
        maker, coin = int(place[0]), int(place[1])
        if coin < 0 or halves[maker, SLOT] == NO_ROW or live.coins[coin, VALUE] == 0:
            return None
        scores = self._scores(np.array([halves[maker, SLOT]], dtype=np.int64))
        return CoinFigures(
            node=name,
            bits=float(scores.bits[0]),
            bits_low=float(scores.bits_low[0]),
            bits_high=float(scores.bits_high[0]),
            miss=float(scores.miss[0]),
            steps=float(floats[maker, STEPS]) + 1.0,
            balance=int(live.coins[coin, VALUE]),
        )

    def back_to(self, height: int) -> int:
        """Take back all blocks above a height; give how many."""
        last = self.height
        if height < self.committed.last_height:
            what = (
                f"the chain has left block {height + 1} and those above it; the history is "
                f"committed up to block {self.committed.last_height}"
            )
            raise DeepReorganisation(str(self.path), what, fix="index the chain again")
        if last - height > len(self.done):
            self.journal.cut(self.places[height + 1])
            self._load()
            return last - height
        while self.height > height:
            self.journal.cut(self.places.pop(self.height))
            self._undo()
        return last - height

    def _undo(self) -> NamedBlock:
        done = self.done.pop()
        for room, rows in zip(self.rooms, done.rows, strict=True):
            room[done.slots] = rows
        self.totals[done.slots] = done.totals
        del self.hashes[done.block.height]
        self.indexer.take_back(done.taken)
        return done.block

    def commit_old(self, *, minimum: int | None = None) -> bool:
        """Make a piece of the blocks that can no longer be taken back, if there are enough."""
        minimum = self.commit_after if minimum is None else minimum
        if len(self.hashes) < self.retained + minimum or not len(self.hashes):
            return False
        retained = [self._undo() for _ in range(min(self.retained, len(self.done)))][::-1]
        before = dict(self.committed.completeness)
        checks = joined(before, raw_checks(len(self.hashes)), str(self.path), first=False)
        if self.indexer.transactions:
            manifest = self.indexer.finish(checks, self.committed.notes)
            manifest = self._commit_scores(manifest)
            self.indexer.manifest = self.committed = manifest
            self.indexer.live.make_room(0, 0, 0, move=True)
        self.hashes, self.places = {}, {}
        self.done.clear()
        places = self.journal.replace(retained)
        for block, place in zip(retained, places, strict=True):
            self._take_in(block, place)
        return True

    def _commit_scores(self, manifest: files.Manifest) -> files.Manifest:
        """Let a commit have the scores of its unspent coins."""
        tape = Tape(self.path, manifest)
        coins = LiveCoins.of(tape)
        rows = np.unique(coins.row)
        found = replace(self._scores(tape.slots_of(rows).astype(np.int64)), rows=rows)
        scores = HistoryScores.of(tape, coins, found)
        mark = files.write_scores(self.path, stored(scores))
        scored = replace(manifest, scores=mark, scored=dict(scores.about))
        if self.committed.months and len(rows):
            # A month that is not over ends for now with this commit.
            at = np.searchsorted(rows, coins.row)
            held, worth = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64)
            np.add.at(held, at, 1)
            np.add.at(worth, at, coins.value)
            now = asdict(month_end(manifest.month, held, worth, found))
            before = [m for m in self.committed.months if m["month"] < now["month"]]
            scored = replace(scored, months=(*before, now))
        files.commit(self.path, scored)
        return scored


def last_id(block: NamedBlock) -> str:
    """Give the id of a block's last transaction, by which a history knows where it ends."""
    return id_of(block.content.ids[-1].tobytes())
