"""The tape of a history, mapped into memory piece by piece."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from coinhaze.amounts import Floats, Ints
from coinhaze.history import files
from coinhaze.history.files import Manifest, PieceFiles
from coinhaze.history.index.row_kernels import NO_ROW
from coinhaze.history.names import octets_of_id, transaction_name

Numbers = npt.NDArray[np.uint32]


@dataclass(frozen=True, eq=False)
class TapePiece:
    """A stretch of the tape: rows with their slots, and the terms they are mixed from."""

    first_row: int
    first_source: int
    row_slot: Numbers
    row_terms: Numbers
    slot: Numbers
    weight: Floats
    hashes: npt.NDArray[np.uint64]  # of the names of its sources

    def __len__(self) -> int:
        return len(self.row_slot)


@dataclass(frozen=True, eq=False)
class Tape:
    """All pieces of a history's tape."""

    path: Path
    manifest: Manifest

    def __reduce__(self) -> tuple[type[Tape], tuple[Path, Manifest]]:
        """Send other processes the path: they map the files themselves."""
        return Tape, (self.path.absolute(), self.manifest)

    @cached_property
    def pieces(self) -> tuple[TapePiece, ...]:
        """The pieces, mapped."""
        made = []
        row = source = 0
        for piece in self.manifest.pieces:
            rows, terms = self.table(piece, "rows"), self.table(piece, "terms")
            made.append(
                TapePiece(
                    first_row=row,
                    first_source=source,
                    row_slot=files.column(rows, "slot"),
                    row_terms=files.column(rows, "terms"),
                    slot=files.column(terms, "slot"),
                    weight=files.column(terms, "weight"),
                    hashes=files.column(self.table(piece, "sources"), "hash"),
                )
            )
            row += piece.rows
            source += piece.sources
        return tuple(made)

    def table(self, piece: PieceFiles, name: str) -> pa.Table:
        """Map a table of a piece."""
        return files.read_table(self.path / piece.file(name))

    @property
    def to_coin(self) -> float:
        """Steps from a coin to its transaction: none where coins are what accounts hold."""
        return 0.0 if self.manifest.accounts else 1.0

    def fact(self, name: str, rows: Ints) -> np.ndarray:
        """Give a fact of rows, which rise."""
        found = []
        for piece, chosen in self._by_piece(rows):
            found.append(files.column(self.table(piece, "facts"), name)[chosen])
        return np.concatenate(found) if found else np.zeros(0)

    def slots_of(self, rows: Ints) -> Numbers:
        """Give the slots that rows, which rise, were written to."""
        found = [
            piece.row_slot[chosen]
            for piece, chosen in zip(self.pieces, self.scored_in(rows), strict=True)
        ]
        return np.concatenate(found) if found else np.zeros(0, np.uint32)

    def makers(self, numbers: Ints) -> tuple[npt.NDArray[np.uint64], Numbers, Floats]:
        """Give the ids of transactions, whose numbers rise, as words, their rows and steps."""
        ids, rows, steps = [np.zeros((0, 4), np.uint64)], [np.zeros(0, np.uint32)], [np.zeros(0)]
        first = 0
        for piece in self.manifest.pieces:
            low, high = np.searchsorted(numbers, [first, first + piece.transactions])
            if high > low:
                table = self.table(piece, "transactions")
                chosen = numbers[low:high] - first
                octets = files.octets_of(table[_HASHES[self.manifest.names]].chunk(0))
                ids.append(octets.view(np.uint64)[chosen])
                rows.append(files.column(table, "row")[chosen])
                steps.append(files.column(table, "steps")[chosen])
            first += piece.transactions
        return np.concatenate(ids), np.concatenate(rows), np.concatenate(steps)

    def _by_piece(self, rows: Ints) -> Iterator[tuple[PieceFiles, Ints]]:
        first = 0
        for piece in self.manifest.pieces:
            low, high = np.searchsorted(rows, [first, first + piece.rows])
            yield piece, rows[low:high] - first
            first += piece.rows

    def scored_in(self, rows: Ints) -> list[Ints]:
        """Give the places of rows, which rise, piece by piece."""
        return [chosen for _, chosen in self._by_piece(rows)]

    def live_table(self, name: str) -> pa.Table:
        """Map a table of what is live."""
        return files.read_table(self.path / self.manifest.live_file(name))

    def transactions(self, numbers: Ints) -> tuple[pa.Array, Ints, Ints]:
        """Give names, heights and times of transactions, whose numbers do not fall."""
        names: list[pa.Array] = []
        heights, times = [], []
        first = 0
        for piece in self.manifest.pieces:
            low, high = np.searchsorted(numbers, [first, first + piece.transactions])
            if high > low:
                chosen = numbers[low:high] - first
                height, time = self._blocks(piece, chosen)
                names.append(self._names(piece, chosen, height))
                heights.append(height)
                times.append(time)
            first += piece.transactions
        if not names:
            none = np.zeros(0, dtype=np.int64)
            return pa.array([], pa.string()), none, none
        return pa.concat_arrays(names), np.concatenate(heights), np.concatenate(times)

    def _blocks(self, piece: PieceFiles, chosen: Ints) -> tuple[Ints, Ints]:
        blocks = self.table(piece, "blocks")
        after = np.cumsum(files.column(blocks, "transactions"))
        block = np.searchsorted(after, chosen, side="right")
        return files.column(blocks, "height")[block], files.column(blocks, "time")[block]

    def _names(self, piece: PieceFiles, chosen: Ints, heights: Ints) -> pa.Array:
        ids = self.table(piece, "transactions")["id"].chunk(0)
        if pa.types.is_large_string(ids.type):
            return ids.take(pa.array(chosen)).cast(pa.string())
        octets = files.octets_of(ids)[chosen]
        text = _HEX[octets[:, ::-1]].view(np.uint8)
        offsets = np.arange(len(octets) + 1, dtype=np.int32) * np.int32(64)
        made = pa.StringArray.from_buffers(
            len(octets), pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(text))
        )
        return _with_lost(made, octets, heights)

    def find(self, txid: str) -> tuple[int, int, float] | None:
        """Find a transaction by its id: its number, its row (-1 if none) and its steps."""
        wanted = octets_of_id(txid)
        first = 0
        for piece in self.manifest.pieces:
            table = self.table(piece, "transactions")
            ids = table["id"].chunk(0)
            if pa.types.is_large_string(ids.type):
                found = np.flatnonzero(pa.compute.equal(ids, txid).to_numpy(zero_copy_only=False))
            elif wanted is None:
                return None
            else:
                octets = files.octets_of(ids)
                mark = np.frombuffer(wanted, np.uint16)[0]
                near = np.flatnonzero(files.column(table, "mark") == mark)
                found = near[(octets[near] == np.frombuffer(wanted, np.uint8)).all(axis=1)]
                found = self._of_height(piece, found, txid)
            if len(found):
                t = int(found[-1])
                row = int(files.column(table, "row")[t])
                return (
                    first + t,
                    -1 if row == NO_ROW else row,
                    float(files.column(table, "steps")[t]),
                )
            first += piece.transactions
        return None

    def beginning(self, text: str, maximum: int) -> list[str]:
        """Name the first transactions whose ids begin so; all ids are looked through."""
        names: list[str] = []
        hashes = self.manifest.names == "hash"
        if hashes and (len(text) > 64 or not set(text) <= set("0123456789abcdef")):
            return []
        first = 0
        for piece in self.manifest.pieces:
            ids = self.table(piece, "transactions")["id"].chunk(0)
            if hashes:
                octets = files.octets_of(ids)
                found = np.arange(len(octets))
                for k in range(0, len(text) - 1, 2):
                    found = found[octets[found, -1 - k // 2] == int(text[k : k + 2], 16)]
                if len(text) % 2:
                    half = octets[found, -1 - len(text) // 2] >> 4
                    found = found[half == int(text[-1], 16)]
            else:
                starts = pa.compute.starts_with(ids, text).to_numpy(zero_copy_only=False)
                found = np.flatnonzero(starts)
            if len(found):
                names += self.transactions(first + found[: maximum - len(names)])[0].to_pylist()
            if len(names) >= maximum:
                break
            first += piece.transactions
        return names

    def block(self, height: int) -> tuple[int, int] | None:
        """Find a block: its first transaction, and one past its last."""
        first = 0
        for piece in self.manifest.pieces:
            if piece.first_height <= height <= piece.last_height:
                blocks = self.table(piece, "blocks")
                at = np.flatnonzero(files.column(blocks, "height") == height)
                if len(at):
                    after = first + np.cumsum(files.column(blocks, "transactions"))
                    begin = first if at[0] == 0 else int(after[at[0] - 1])
                    return begin, int(after[at[-1]])
            first += piece.transactions
        return None

    def _of_height(self, piece: PieceFiles, found: Ints, txid: str) -> Ints:
        """Tell two transactions with one id apart by the name requested."""
        if not len(found):
            return found
        heights, _ = self._blocks(piece, found)
        names = self._names(piece, found, heights).to_pylist()
        return found[[name == txid for name in names]]

    def source_names(self, rows: Ints) -> list[str]:
        """Name sources by their rows, which rise."""
        names: list[str] = []
        first = 0
        for piece in self.manifest.pieces:
            low, high = np.searchsorted(rows, [first, first + piece.rows])
            first += piece.rows
            if high > low:
                table = self.table(piece, "sources")
                at = np.searchsorted(files.column(table, "row"), rows[low:high].astype(np.uint32))
                names += table["name"].take(pa.array(at)).to_pylist()
        return names


_HASHES = {"hash": "id", "text": "hash"}  # the column of hashes
_HEX = np.frombuffer(b"".join(b"%02x" % i for i in range(256)), dtype=np.uint16)


def _with_lost(names: pa.Array, octets: np.ndarray, heights: Ints) -> pa.Array:
    """Mark the lost ones of duplicate ids by their height."""
    from coinhaze.ledger.coins import DUPLICATE_COINBASES

    lost = [height for height, _ in DUPLICATE_COINBASES.values()]
    rows = np.flatnonzero(np.isin(heights, lost))
    marked = {
        int(r): name
        for r in rows
        if "@" in (name := transaction_name(octets[r].tobytes(), int(heights[r])))
    }
    if not marked:
        return names
    texts = names.to_pylist()
    for row, name in marked.items():
        texts[row] = name
    return pa.array(texts, pa.string())
