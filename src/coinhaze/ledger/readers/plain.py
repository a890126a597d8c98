"""Plain columns, of transfers or of the store's own tables, in Parquet, Arrow, CSV or a stream.

Which table a file holds is told by its columns: `from`, `to` and `amount` are transfers; what has
the columns of a table of the store is that table (docs/store.md), ids as they are written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from coinhaze.errors import InputError, LedgerError
from coinhaze.ledger.accounts import AccountLedger
from coinhaze.ledger.batches import FLAG, NUMBER, SCHEMAS, Batch
from coinhaze.ledger.coins import POOLS
from coinhaze.ledger.readers.arrow_columns import Columns
from coinhaze.ledger.readers.arrow_rows import ArrowStream, Opened, open_object
from coinhaze.ledger.readers.coin_rows import HIGHEST, LAST_INDEX, LATEST, MOST, check_ids
from coinhaze.ledger.readers.plain_transfers import NEEDED, Told, account_ledger, transfer_batches
from coinhaze.ledger.readers.table_rows import (
    Layout,
    Piece,
    column_names,
    names_in,
    pieces,
    pieces_of,
)

# The store's tables by the columns each is known by, the most telling first.
LAYOUTS = tuple(
    Layout(name, known, tuple(n for n in SCHEMAS[name].names if n not in known))
    for name, known in {
        "rings": ("height", "txid", "vin", "member_txid", "member_vout"),
        "inputs": ("height", "txid", "vin", "spent_txid", "spent_vout"),
        "outputs": ("height", "txid", "vout", "value"),
        "pool_flows": ("height", "txid", "pool", "into_pool"),
        "transactions": ("height", "txid", "coinbase"),
        "blocks": ("height", "hash", "time"),
    }.items()
)
_LIMITS = {"height": HIGHEST, "time": LATEST}
_IDS = ("txid", "spent_txid", "member_txid", "hash")


def recognises(head: bytes) -> bool:
    """Tell by its first bytes whether a file is Arrow or CSV with plain columns."""
    # JSON of many kinds has these words; none of it is meant.
    return not head.lstrip().startswith((b"{", b"[")) and recognises_columns(names_in(head))


def recognises_columns(names: Sequence[str]) -> bool:
    """Tell by the names of its columns whether a file has the format."""
    return Told.by(names) is not None or any(layout.fits(names) for layout in LAYOUTS)


def says_more(head: bytes) -> bool:
    """Tell whether the header of a CSV file says more than who paid whom how much, and when."""
    told = Told.by(names_in(head))
    return told is not None and bool(told.columns.keys() - {*NEEDED, "time"})


def batches(path: Path) -> Iterator[Batch]:
    """Read one file."""
    from coinhaze.ledger.formats import digest_of

    names = column_names(path)
    told = Told.by(names)
    if told is not None:
        told.check(names, str(path))
        rows = pieces(path, told.layout)
        yield from transfer_batches(rows, told, str(path), lambda: digest_of(path))
        return
    layout = _layout(names, str(path))
    yield from _coin_batches(pieces(path, layout), layout.name)


def is_transfers(path: Path) -> bool:
    """Tell whether a file is one of transfers whose rows are the ledger's order."""
    told = Told.by(column_names(path))
    return told is not None and "position" not in told


def read(paths: Sequence[Path]) -> AccountLedger:
    """Read files of transfers, one after the other as one ledger."""
    return account_ledger(_source(path) for path in paths)


def _source(path: Path) -> tuple[Iterable[Piece], Told, str]:
    names = column_names(path)
    told = Told.by(names)
    if told is None:
        raise InputError(f"{path}: no transfers beside transfers: one ledger is one kind of rows")
    told.check(names, str(path))
    return pieces(path, told.layout), told, str(path)


class Given:
    """Arrow streams given by the caller, each a table: transfers, or of coins."""

    def __init__(self, streams: Sequence[ArrowStream]) -> None:
        places = [f"table {k}" for k in range(len(streams))]
        self.opened: list[tuple[Opened, str]] = [
            (open_object(s, place), place) for s, place in zip(streams, places, strict=True)
        ]

    def is_transfers(self) -> bool:
        """Tell whether all are transfers whose rows are the ledger's order."""
        told = [Told.by(opened.names) for opened, _ in self.opened]
        return all(t is not None and "position" not in t for t in told)

    def read(self) -> AccountLedger:
        """Read transfers, one table after the other as one ledger."""
        return account_ledger(self._sources())

    def _sources(self) -> Iterator[tuple[Iterable[Piece], Told, str]]:
        for opened, place in self.opened:
            told = Told.by(opened.names)
            assert told is not None
            told.check(opened.names, place)
            yield pieces_of(opened, told.layout, place), told, place

    def batches(self) -> Iterator[Batch]:
        """Give batches for a store."""
        for opened, place in self.opened:
            told = Told.by(opened.names)
            if told is not None:
                told.check(opened.names, place)
                rows = pieces_of(opened, told.layout, place)
                yield from transfer_batches(rows, told, place, lambda place=place: place)  # type: ignore[misc]
            else:
                layout = _layout(opened.names, place)
                yield from _coin_batches(pieces_of(opened, layout, place), layout.name)


def _layout(names: Sequence[str], place: str) -> Layout:
    for layout in LAYOUTS:
        if layout.fits(names):
            return layout
    known = "; ".join(f"{layout.name}: {', '.join(layout.needed)}" for layout in LAYOUTS)
    fix = f"transfers have from, to, amount; {known}"
    raise LedgerError(place, "no plain columns", value=list(names)[:40], fix=fix)


def _coin_batches(rows: Iterable[Piece], name: str) -> Iterator[Batch]:
    for piece in rows:
        columns = piece.columns
        table = pa.table([_column(columns, field) for field in SCHEMAS[name]], schema=SCHEMAS[name])
        yield Batch({name: table}, lambda _, row, c=columns: c.where(row), piece.read)  # type: ignore[misc]


def _column(columns: Columns, field: pa.Field) -> pa.Array:
    """Check a column by the rule of its name in the store."""
    name, optional = field.name, field.nullable
    if name == "spendable" and not columns.has(name):
        return pa.repeat(pa.scalar(True), len(columns))
    if field.type == FLAG:
        return columns.flags(name)
    if name == "into_pool":
        return columns.signed(name)
    if name == "value":
        return _values(columns, name)
    if name == "time":
        times = columns.moments(name)
        columns.refuse(name, pc.greater(times, LATEST), f"is above {LATEST}")
        return times
    if field.type == NUMBER:
        return columns.numbers(name, _LIMITS.get(name, LAST_INDEX), optional=optional)
    texts = columns.names(name, optional=optional)
    if name == "pool":
        unknown = pc.invert(pc.is_in(texts, value_set=pa.array(POOLS)))
        columns.refuse(name, unknown, f"is none of {', '.join(POOLS)}")
    if name == "previous":
        return pc.ascii_lower(texts)
    return check_ids(texts, columns.where, field=name, digits=None) if name in _IDS else texts


def _values(columns: Columns, name: str) -> pa.Array:
    """Give values of coins, whole satoshi; null where hidden or not told."""
    kind = columns.plain(name).type
    if pa.types.is_floating(kind):
        what = f"{name} is stored as {kind}, which loses digits"
        raise LedgerError(columns.where(0), what, fix="store whole satoshi")
    if pa.types.is_integer(kind):
        return columns.numbers(name, MOST, optional=True)
    digits = columns.amounts(name, optional=True)
    length, most = pc.binary_length(digits), str(MOST)
    long = pc.and_(pc.equal(length, len(most)), pc.greater(digits, most))
    columns.refuse(name, pc.or_(pc.greater(length, len(most)), long), f"is above {MOST}")
    return pc.cast(digits, NUMBER)
