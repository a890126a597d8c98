"""Plain columns: the store's own tables, in Parquet, Arrow, CSV or a stream.

A file that has the columns of a table of the store is that table (docs/store.md), ids as they are
written. Files of transfers, whose columns are plain too, are read by `transfers.files`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from coinhaze.errors import LedgerError
from coinhaze.formats.tabular.coin_rows import HIGHEST, LAST_INDEX, LATEST, MAXIMUM, check_ids
from coinhaze.formats.tabular.column_use import in_small_letters
from coinhaze.formats.tabular.delimited import Piece
from coinhaze.formats.tabular.table_rows import (
    TableLayout,
    column_names,
    names_in,
    pieces,
)
from coinhaze.formats.transfers import files as transfers
from coinhaze.ledger.batches import FLAG, NUMBER, SCHEMAS, Batch, with_columns
from coinhaze.ledger.coins import POOLS
from coinhaze.ledger.columns import CheckedColumns

# The store's tables by the columns each is known by, the most telling first.
LAYOUTS = tuple(
    TableLayout(name, known, tuple(n for n in SCHEMAS[name].names if n not in known))
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
    """Tell by its first bytes whether a file is Arrow or CSV with the columns of a table.

    Transfers are a format of their own; forced to be this one, they are read all the same.
    """
    # JSON of many kinds has these words; none of it is meant.
    if head.lstrip().startswith((b"{", b"[")):
        return False
    return recognises_columns(names_in(head))


def recognises_columns(names: Sequence[str]) -> bool:
    """Tell by the names of its columns whether a file is one of the tables."""
    small = in_small_letters(names)
    return any(layout.fits(small) for layout in LAYOUTS)


def needs(names: Sequence[str]) -> list[tuple[list[str], list[str]]]:
    """Give for each table the columns it needs that are there, and those that are not."""
    small = in_small_letters(names)
    return [layout.present(small) for layout in LAYOUTS]


def batches(path: Path) -> Iterator[Batch]:
    """Read one file; transfers are plain columns too."""
    names = column_names(path, any_case=True)
    if transfers.recognises_columns(names):
        yield from transfers.batches(path)
        return
    layout = table_layout(names, str(path))
    yield from with_columns(
        table_batches(pieces(path, layout, any_case=True), layout.name), layout.use(names)
    )


def table_layout(names: Sequence[str], place: str) -> TableLayout:
    """Tell which table has these columns."""
    for layout in LAYOUTS:
        if layout.fits(names):
            return layout
    known = "; ".join(f"{layout.name}: {', '.join(layout.needed)}" for layout in LAYOUTS)
    fix = f"transfers have from, to, amount; {known}"
    raise LedgerError(place, "no plain columns", value=list(names)[:40], fix=fix)


def table_batches(rows: Iterable[Piece], name: str) -> Iterator[Batch]:
    """Check the rows of a table, and give them for a store."""
    for piece in rows:
        columns = piece.columns
        table = pa.table([_column(columns, field) for field in SCHEMAS[name]], schema=SCHEMAS[name])
        yield Batch({name: table}, lambda _, row, c=columns: c.where(row), piece.read)  # type: ignore[misc]


def _column(columns: CheckedColumns, field: pa.Field) -> pa.Array:
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


def _values(columns: CheckedColumns, name: str) -> pa.Array:
    """Give values of coins, whole satoshi; null where hidden or not given."""
    kind = columns.plain(name).type
    if pa.types.is_floating(kind):
        what = f"{name} is stored as {kind}, which loses digits"
        raise LedgerError(columns.where(0), what, fix="store whole satoshi")
    if pa.types.is_integer(kind):
        return columns.numbers(name, MAXIMUM, optional=True)
    digits = columns.amounts(name, optional=True)
    length, maximum = pc.binary_length(digits), str(MAXIMUM)
    long = pc.and_(pc.equal(length, len(maximum)), pc.greater(digits, maximum))
    columns.refuse(name, pc.or_(pc.greater(length, len(maximum)), long), f"is above {MAXIMUM}")
    return pc.cast(digits, NUMBER)
