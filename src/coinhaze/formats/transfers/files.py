"""Files and tables of transfers: `from`, `to` and `amount`, under the names that exports use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from coinhaze.errors import InputError, UsageError
from coinhaze.formats.tabular.arrow_rows import OpenedTable
from coinhaze.formats.tabular.delimited import read_text
from coinhaze.formats.tabular.table_rows import (
    column_names,
    names_in,
    open_rows,
    pieces,
    pieces_of,
)
from coinhaze.formats.transfers.batches import transfer_batches
from coinhaze.formats.transfers.columns import NEEDED, DescribedColumns
from coinhaze.formats.transfers.transfers import TransferTable, account_ledger
from coinhaze.ledger.accounts import AccountLedger
from coinhaze.ledger.batches import Batch, with_columns
from coinhaze.ledger.completeness import OF_ACCOUNTS, nothing_checkable
from coinhaze.ledger.window import ALL, LedgerWindow


def recognises(head: bytes) -> bool:
    """Tell by its first bytes whether a file is one of transfers."""
    # JSON of many kinds has these words; none of it is meant.
    return not head.lstrip().startswith((b"{", b"[")) and recognises_columns(names_in(head))


def recognises_columns(names: Sequence[str]) -> bool:
    """Tell by the names of its columns whether a file is one of transfers."""
    return DescribedColumns.by(names) is not None


def batches(path: Path) -> Iterator[Batch]:
    """Read one file for a store."""
    from coinhaze.formats.registry import digest_of

    names = column_names(path)
    told = _described(names, path)
    rows = transfer_batches(lambda layout: pieces(path, layout), told, lambda: digest_of(path))
    yield from with_columns(rows, told.use(names))


def ledger(
    paths: Sequence[Path],
    *,
    complete: bool = False,
    token: str | None = None,
    window: LedgerWindow = ALL,
    unknown: str = "error",
) -> AccountLedger:
    """Read files as one ledger, fees too, which a store does not keep."""
    return _ledger((_source(path) for path in paths), complete, token, window, unknown)


def ledger_of_tables(
    tables: Sequence[tuple[OpenedTable, str]],
    *,
    complete: bool = False,
    token: str | None = None,
    window: LedgerWindow = ALL,
    unknown: str = "error",
) -> AccountLedger:
    """Read tables that are open, each with the name that errors call it by, as one ledger."""
    return _ledger((_table(*table) for table in tables), complete, token, window, unknown)


def _ledger(
    sources: Iterator[TransferTable],
    complete: bool,
    token: str | None,
    window: LedgerWindow,
    unknown: str,
) -> AccountLedger:
    if complete:
        raise UsageError("`complete` is for coins: transfers carry no list of known coins")
    if unknown != "error":
        raise UsageError("`unknown` is for stores and raw blocks: here every coin has its value")
    found = account_ledger(sources, token=token, window=window)
    why = "the source lists transfers, not blocks"
    return replace(found, completeness=nothing_checkable(OF_ACCOUNTS, why))


def _described(names: Sequence[str], path: Path) -> DescribedColumns:
    told = DescribedColumns.by(names)
    if told is None:
        read_text(path, NEEDED)  # says what is wrong with most
        raise InputError(f"{path}: no transfers beside transfers: one ledger is one kind of rows")
    told.check(names, str(path))
    return told


def _source(path: Path) -> TransferTable:
    rows = open_rows(path)
    try:
        told = _described(rows.names, path)
    except BaseException:
        rows.close()
        raise
    return TransferTable(rows.pieces(told.layout), told, told.use(rows.names))


def _table(opened: OpenedTable, place: str) -> TransferTable:
    told = DescribedColumns.by(opened.names)
    assert told is not None
    told.check(opened.names, place)
    return TransferTable(pieces_of(opened, told.layout, place), told, told.use(opened.names))
