"""Files and tables of transfers: `from`, `to` and `amount`, under the names that exports use.

A file becomes a ledger, or batches for a store, which orders them by block, position and step. In a
store a transfer is known by transaction and step. They are `txid` and `log_index`, or both in an
`id` such as `txid:3`; else the row in the ledger's order is the step, and a file without ids stands
for the transaction. The position in the block is given, or the log index stands for it, or the row.
A file without heights is one block of its own, named by the file's digest, so that a store refuses
a second one: nobody could tell which of them came first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coinhaze.amounts import Ints
from coinhaze.errors import InputError, LedgerError, UsageError, first_few
from coinhaze.formats.lists.labels import normal_addresses
from coinhaze.formats.tabular.delimited import Piece, read_text
from coinhaze.formats.tabular.table_rows import (
    OpenRows,
    TableLayout,
    column_names,
    names_in,
    open_rows,
    pieces,
)
from coinhaze.formats.transfers.columns import (
    AS_NAMED,
    NEEDED,
    ColumnChoice,
    DescribedColumns,
    spelt,
)
from coinhaze.formats.transfers.order import LAST, Gathering, instants
from coinhaze.formats.transfers.row_order import put_in_order
from coinhaze.formats.transfers.transfers import (
    Places,
    Transfers,
    account_ledger,
    amounts,
    check_decimals,
    choice_notes,
    words,
)
from coinhaze.ledger.accounts import AccountLedger
from coinhaze.ledger.batches import NUMBER, TEXT, Batch, table_of, with_columns
from coinhaze.ledger.columns import HIGHEST_BLOCK
from coinhaze.ledger.completeness import OF_ACCOUNTS, nothing_checkable
from coinhaze.ledger.window import ALL, LedgerWindow
from coinhaze.units import unit_of_token

_ORDERING = ("height", "time", "position", "log", "step", "nonce")


@dataclass(frozen=True, eq=False)
class _Order:
    """Where the rows of a file stand in the ledger's order; None: as in the file."""

    row: Ints | None = None
    position: Ints | None = None  # in the block, where it is neither given nor an index
    by_index: bool = False  # the index counts through the block
    notes: tuple[str, ...] = ()


def recognises(head: bytes) -> bool:
    """Tell by its first bytes whether a file is one of transfers."""
    # JSON of many kinds has these words; none of it is meant.
    return not head.lstrip().startswith((b"{", b"[")) and recognises_columns(names_in(head))


def recognises_columns(names: Sequence[str]) -> bool:
    """Tell by the names of its columns whether a file is one of transfers."""
    return DescribedColumns.by(names) is not None


def needs(names: Sequence[str]) -> list[tuple[list[str], list[str]]]:
    """Give what of from, to and amount the columns tell, and what not."""
    has = [what for what in NEEDED if spelt(what, names)]
    return [(has, [what for what in NEEDED if what not in has])]


def batches(path: Path, *, choice: ColumnChoice = AS_NAMED) -> Iterator[Batch]:
    """Read one file for a store."""
    from coinhaze.formats.registry import digest_of

    names = column_names(path)
    stated = _described(names, str(path), choice)
    rows = transfer_batches(lambda layout: pieces(path, layout), stated, lambda: digest_of(path))
    yield from with_columns(rows, stated.use(names))


Opened = tuple[OpenRows, DescribedColumns]


def readers_of_export(
    open_export: Callable[[Path, ColumnChoice], Opened],
) -> tuple[Callable[..., Iterator[Batch]], Callable[..., AccountLedger]]:
    """Return what reads a format's exports: for a store, and as one ledger.

    `open_export` opens a file's rows, and says what they are.
    """

    def batches(path: Path, *, choice: ColumnChoice = AS_NAMED) -> Iterator[Batch]:
        from coinhaze.formats.registry import digest_of

        rows, stated = open_export(path, choice)
        rows.close()

        def read(layout: TableLayout) -> Iterator[Piece]:
            return open_export(path, choice)[0].pieces(layout)

        found = transfer_batches(read, stated, lambda: digest_of(path))
        yield from with_columns(found, stated.use(rows.names))

    def ledger(
        sources: Sequence[Path],
        *,
        complete: bool = False,
        token: str | None = None,
        window: LedgerWindow = ALL,
        unknown: str = "error",
        choice: ColumnChoice = AS_NAMED,
    ) -> AccountLedger:
        opened = (open_export(path, choice) for path in sources)
        return described_ledger(
            opened, complete=complete, token=token, window=window, unknown=unknown
        )

    return batches, ledger


def ledger(
    sources: Sequence[Path | OpenRows],
    *,
    complete: bool = False,
    token: str | None = None,
    window: LedgerWindow = ALL,
    unknown: str = "error",
    choice: ColumnChoice = AS_NAMED,
) -> AccountLedger:
    """Read files, or tables that are open, as one ledger, fees too, which a store does not keep."""
    opened = (open_rows(s) if isinstance(s, Path) else s for s in sources)
    described = (_with_description(rows, choice) for rows in opened)
    return described_ledger(
        described, complete=complete, token=token, window=window, unknown=unknown
    )


def described_ledger(
    described: Iterable[tuple[OpenRows, DescribedColumns]],
    *,
    complete: bool,
    token: str | None,
    window: LedgerWindow,
    unknown: str,
) -> AccountLedger:
    """Make a ledger of tables whose columns are described."""
    if complete:
        raise UsageError("`complete` is for coins: transfers carry no list of known coins")
    if unknown != "error":
        raise UsageError("`unknown` is for stores and raw blocks: here every coin has its value")
    found = account_ledger(described, token=token, window=window)
    why = "the source lists transfers, not blocks"
    return replace(found, completeness=nothing_checkable(OF_ACCOUNTS, why))


def _described(names: Sequence[str], place: str, choice: ColumnChoice) -> DescribedColumns:
    stated = DescribedColumns.by(names, choice, place)
    if stated is None and choice.columns:
        lacks = [what for what in NEEDED if what not in choice.columns and not spelt(what, names)]
        fix = f"name it too: --columns {','.join(f'{what}=...' for what in lacks)}"
        what = f"no column is known to hold {first_few(lacks)}"
        raise LedgerError(place, what, value=list(names)[:20], fix=fix)
    if stated is None:
        read_text(Path(place), NEEDED)  # says what is wrong with most
        raise InputError(f"{place}: no transfers beside transfers: one ledger is one kind of rows")
    stated.check(names, place)
    return stated


def _with_description(rows: OpenRows, choice: ColumnChoice) -> tuple[OpenRows, DescribedColumns]:
    try:
        return rows, _described(rows.names, rows.place, choice)
    except BaseException:
        rows.close()
        raise


def transfer_batches(
    read: Callable[[TableLayout], Iterable[Piece]],
    stated: DescribedColumns,
    digest: Callable[[], str],
) -> Iterator[Batch]:
    """Make batches; `read` gives the rows of the file, `digest` names it."""
    order = _order(read, stated)
    reader = Transfers(stated)
    name = digest() if "height" not in stated or not {"txid", "id"} & stated.columns.keys() else ""
    notes = (*order.notes, *choice_notes([stated]))
    for piece in read(stated.layout):
        columns = piece.columns
        if "fee" in stated:
            paid = pc.not_equal(amounts(columns, stated, "fee"), "0")
            fix = "a store keeps no fees: score the file itself, or leave the column out"
            columns.refuse(stated.columns["fee"], paid, "is not 0", fix)
        tables = {"transfers": _stored(piece, reader, order, name[:16])}
        if "height" not in stated:
            tables["blocks"] = table_of("blocks", {"height": [0], "hash": [name]})
        yield Batch(tables, lambda _, row, c=columns: c.where(row), piece.read, notes)  # type: ignore[misc]
        notes = ()


def _stored(piece: Piece, reader: Transfers, order: _Order, name: str) -> pa.Table:
    columns, stated = piece.columns, reader.stated.columns
    n = len(columns)
    rows = np.arange(piece.first, piece.first + n)
    row = pa.array(rows if order.row is None else order.row[rows])
    txid, step = reader.keys(columns)
    if "position" in stated:
        position = columns.numbers(stated["position"], LAST)
    elif order.by_index:
        position = step
    else:
        position = row if order.position is None else pa.array(order.position[rows])
    token = pc.ascii_lower(pc.fill_null(words(columns, stated.get("token")), ""))
    for each in pc.unique(token).to_pylist():
        row_of_each = pc.index(token, each).as_py()
        check_decimals(reader.stated, unit_of_token(each), columns.where, row_of_each)
    usual = pc.if_else(pc.equal(token, ""), "transaction", "token")
    zeros = pa.repeat(pa.scalar(0, NUMBER), n)
    return table_of(
        "transfers",
        {
            "height": columns.numbers(stated["height"], HIGHEST_BLOCK)
            if "height" in stated
            else zeros,
            "position": position,
            "step": row if step is None or txid is None else step,
            "txid": pa.repeat(pa.scalar(name, TEXT), n) if txid is None else txid,
            "token": token,
            "sender": normal_addresses(columns.names(stated["from"])),
            "recipient": normal_addresses(columns.names(stated["to"])),
            "amount": amounts(columns, reader.stated),
            "kind": pc.coalesce(words(columns, stated.get("kind")), usual),
            "time": instants(columns, stated.get("time")).seconds,
        },
    )


def _order(read: Callable[[TableLayout], Iterable[Piece]], stated: DescribedColumns) -> _Order:
    """Look through a file for what orders it, before a row of it is stored."""
    if not any(what in stated for what in _ORDERING):
        return _Order()
    names = [stated.columns[w] for w in (*_ORDERING, "txid", "id", "payer") if w in stated]
    if "nonce" in stated:
        names += [stated.columns[what] for what in NEEDED]
    layout = TableLayout("transfers", tuple(dict.fromkeys(names)), stated.times)
    gathering, places, reader = Gathering(), Places(), Transfers(stated)
    texts: dict[str, list[pa.Array]] = {"txid": [], "sender": [], "payer": [], "id": []}
    gathering.begin(stated)
    for piece in read(layout):
        columns = piece.columns
        gathering.add(columns)
        places.add(columns.where, len(columns))
        txid, index = reader.keys(columns)
        if txid is not None and index is not None:
            texts["id"].append(pc.binary_join_element_wise(txid, pc.cast(index, TEXT), ":"))
            texts["txid"].append(txid)
        if "nonce" in stated:
            texts["sender"].append(columns.names(stated.columns["from"]))
            texts["payer"].append(words(columns, stated.columns.get("payer")))
    if not sum(gathering.lengths):
        return _Order()
    found = gathering.all().columns(lambda name: _joined(texts[name]), places)
    ordered = put_in_order(found, places)
    by_index = stated.index is not None and "txid" in stated and found.step is None
    row = None
    if ordered.rows is not None:
        row = np.empty(len(ordered.rows), np.int64)
        row[ordered.rows] = np.arange(len(ordered.rows))
    position = row
    if stated.identifies and not by_index and "position" not in stated:
        position = _of_first(_joined(texts["id"]), row)
    return _Order(row, position, by_index, ordered.notes)


def _of_first(ids: pa.Array, row: Ints | None) -> Ints | None:
    """Give rows that tell of one event one position, so that a store takes them for one."""
    if pc.count_distinct(ids).as_py() == len(ids):
        return row
    code = ids.dictionary_encode().indices.to_numpy(zero_copy_only=False)
    row = np.arange(len(code)) if row is None else row
    first = np.full(int(code.max()) + 1, len(code))
    np.minimum.at(first, code, row)
    position: Ints = first[code]
    return position


def _joined(parts: list[pa.Array]) -> pa.Array:
    return pa.concat_arrays([pa.array([], TEXT), *parts])
