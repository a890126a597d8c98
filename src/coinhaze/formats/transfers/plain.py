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
from coinhaze.formats.tabular.arrow_columns import Columns
from coinhaze.formats.tabular.arrow_rows import ArrowStream, Opened, open_object
from coinhaze.formats.tabular.coin_rows import HIGHEST, LAST_INDEX, LATEST, MOST, check_ids
from coinhaze.formats.tabular.column_use import Use, joined_use
from coinhaze.formats.tabular.csv_table import line_of, read_columns
from coinhaze.formats.tabular.table_rows import (
    Layout,
    Piece,
    column_names,
    is_text,
    names_in,
    pieces,
    pieces_of,
)
from coinhaze.formats.transfers.batches import transfer_batches
from coinhaze.formats.transfers.columns import NEEDED, Told
from coinhaze.formats.transfers.transfers import Source, account_ledger
from coinhaze.ledger.accounts import AccountLedger
from coinhaze.ledger.batches import FLAG, NUMBER, SCHEMAS, Batch
from coinhaze.ledger.coins import POOLS
from coinhaze.ledger.window import ALL, Window

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
    return recognises_columns(_names_in(head))


def is_transfers_head(head: bytes) -> bool:
    """Tell by its first bytes whether a file is one of transfers."""
    return Told.by(_names_in(head)) is not None


def _names_in(head: bytes) -> list[str]:
    # JSON of many kinds has these words; none of it is meant.
    return [] if head.lstrip().startswith((b"{", b"[")) else names_in(head)


def recognises_columns(names: Sequence[str]) -> bool:
    """Tell by the names of its columns whether a file has the format."""
    return Told.by(names) is not None or any(layout.fits(names) for layout in LAYOUTS)


def batches(path: Path) -> Iterator[Batch]:
    """Read one file."""
    from coinhaze.formats.registry import digest_of

    names = column_names(path)
    told = Told.by(names)
    if told is not None:
        told.check(names, str(path))
        yield from transfer_batches(
            lambda layout: pieces(path, layout), told, lambda: digest_of(path)
        )
        return
    layout = _layout(names, str(path))
    yield from _coin_batches(pieces(path, layout), layout.name)


def columns(path: Path) -> Use:
    """Say what becomes of the columns of a file."""
    names = column_names(path)
    told = Told.by(names)
    return _layout(names, str(path)).use(names) if told is None else told.use(names)


def is_transfers(path: Path) -> bool:
    """Tell whether a file is one of transfers."""
    return Told.by(column_names(path)) is not None


def read(paths: Sequence[Path], *, token: str | None = None, window: Window = ALL) -> AccountLedger:
    """Read files of transfers as one ledger."""
    return account_ledger((_source(path) for path in paths), token=token, window=window)


def _source(path: Path) -> Source:
    names = column_names(path)
    told = Told.by(names)
    if told is None:
        read_columns(path, NEEDED)  # says what is wrong with most
        raise InputError(f"{path}: no transfers beside transfers: one ledger is one kind of rows")
    told.check(names, str(path))
    layout = told.layout
    if not is_text(path):
        return Source(pieces(path, layout), told, told.use(names))
    table = read_columns(path, layout.needed, optional=layout.optional)
    columns = Columns(table, lambda row: f"{path}:{line_of(path, row)}")
    return Source([Piece(columns, 0, 0)], told, told.use(names))


class Given:
    """Arrow streams given by the caller, each a table: transfers, or of coins."""

    def __init__(self, streams: Sequence[ArrowStream]) -> None:
        places = [f"table {k}" for k in range(len(streams))]
        self.opened: list[tuple[Opened, str]] = [
            (open_object(s, place), place) for s, place in zip(streams, places, strict=True)
        ]

    def is_transfers(self) -> bool:
        """Tell whether all are transfers."""
        return all(Told.by(opened.names) is not None for opened, _ in self.opened)

    def read(self, *, token: str | None = None, window: Window = ALL) -> AccountLedger:
        """Read transfers as one ledger."""
        return account_ledger(self._sources(), token=token, window=window)

    def _sources(self) -> Iterator[Source]:
        for opened, place in self.opened:
            told = Told.by(opened.names)
            assert told is not None
            told.check(opened.names, place)
            yield Source(pieces_of(opened, told.layout, place), told, told.use(opened.names))

    def batches(self) -> Iterator[Batch]:
        """Give batches of coins for a store."""
        for opened, place in self.opened:
            if Told.by(opened.names) is not None:
                what = "transfers beside coins: one ledger is one kind of rows"
                raise LedgerError(place, what)
            layout = _layout(opened.names, place)
            yield from _coin_batches(pieces_of(opened, layout, place), layout.name)

    def columns(self) -> Use:
        """Say what becomes of the columns of tables of coins."""
        return joined_use(_layout(o.names, place).use(o.names) for o, place in self.opened)


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
