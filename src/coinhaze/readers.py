"""Files -> ledgers. The format is found by content, or forced by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from coinhaze.errors import LedgerError, UsageError, first_few
from coinhaze.formats.money import unit_of
from coinhaze.formats.registry import (
    FOLDER,
    format_named,
    head_of,
    is_store,
    looks_stored,
    not_for,
    recognise,
)
from coinhaze.formats.tabular.column_use import Use, column_notes, joined_use
from coinhaze.formats.tabular.table_rows import ArrowStream, open_object
from coinhaze.formats.transfers.columns import AS_NAMED, ColumnChoice
from coinhaze.ledger import Ledger
from coinhaze.ledger.parquet import is_folder, read_folder
from coinhaze.ledger.window import LedgerWindow, nothing_in, refuse_cut, refuse_unmoving
from coinhaze.options import Unknown
from coinhaze.units import unit_named

TRANSFERS = "transfers"


def read(
    sources: str | Path | ArrowStream | Sequence[str | Path | ArrowStream],
    *,
    format: str | None = None,
    complete: bool = False,
    first: str | int | None = None,
    last: str | int | None = None,
    token: str | None = None,
    columns: str | None = None,
    decimals: int | None = None,
    unit: str | None = None,
    unknown: Unknown = "error",
) -> Ledger:
    """Read one ledger from a store, a ledger folder, or files of one format.

    Rows are put in order by whatever orders them: block, time, index. Tables of Arrow, Polars,
    DuckDB or pandas with plain columns are read as files of them are.

    `columns` says which columns of a table of transfers tell what, where their names do not, such
    as "from=sender,to=receiver,amount=value"; `decimals` how many places its amounts have after
    the point.

    `unit` is what amounts are shown in: a known one such as "BTC" or "DAI", "GEM:18" for a currency
    called GEM with 18 decimals, or "smallest"; without it, what the source, the token or the
    addresses tell.

    `complete` says that the ledger begins with its chain, so that an unknown coin is an error.
    `first` and `last` cut a window, by height or time, and `token` chooses one of several; both
    are for stores and the files that can be ingested into one. So is `unknown`: coins spent whose
    value no source gives are an error, or what depends on them is left out, which the ledger's
    notes count. A ledger in which nothing moves is an error.

    >>> import pyarrow as pa
    >>> table = pa.table({"from": ["a", "b"], "to": ["c", "c"], "amount": [1, 3]})
    >>> len(read(table))
    2
    """
    if unit is not None:
        unit_named(unit)  # refused before anything is read
    things: list[Any] = [sources] if _is_one(sources) else list(sources)  # type: ignore[arg-type]
    cut: dict[str, Any] = {
        "window": LedgerWindow.of(first, last),
        "token": token,
        "unknown": unknown,
    }
    ledger = _read(things, format, complete, ColumnChoice.of(columns, decimals), cut)
    refuse_unmoving(ledger, things, cut["window"])
    return ledger if unit is None else replace(ledger, unit=unit_of(ledger, unit=unit))


def _is_one(sources: object) -> bool:
    return isinstance(sources, str | Path) or is_stream(sources)


def _read(
    things: list[Any], format: str | None, complete: bool, choice: ColumnChoice, cut: dict[str, Any]
) -> Ledger:
    if not things:
        raise UsageError("no file given: name at least one")
    if any(is_stream(thing) for thing in things):
        return _read_streams(things, format, complete, choice, **cut)
    paths = [Path(thing) for thing in things]
    heads = {path: head_of(path) for path in paths if format is None and path.is_file()}
    if any(is_store(path) for path in paths if path not in heads or looks_stored(heads[path])):
        _refuse_choice(choice, "a store")
        return _read_store(paths, format, complete=complete, **cut)
    if format == FOLDER or (format is None and any(is_folder(path) for path in paths)):
        if len(paths) > 1:
            raise UsageError("a ledger folder is a whole ledger: name it alone")
        refuse_cut(**cut)
        _refuse_choice(choice, "a ledger folder")
        return read_folder(paths[0], complete=complete)
    names = {format or TRANSFERS} if choice.columns else _names(paths, format, heads)
    if choice:
        if not all(format_named(name).takes_choice for name in names):
            raise not_for(choice, first_few(sorted(names)), paths, forced=format is not None)
        cut = cut | {"choice": choice}
    if len(names) == 1:
        straight = format_named(*names).ledger
        ledger = None if straight is None else straight(paths, complete=complete, **cut)
        if ledger is not None:
            return ledger
    return _read_ingested(paths, format, complete=complete, **cut)


def _refuse_choice(choice: ColumnChoice, what: str) -> None:
    if choice:
        given = choice.given
        raise UsageError(
            f"{given} cannot be used with {what}, whose columns are known: leave out {given}"
        )


def _names(paths: Sequence[Path], format: str | None, heads: Mapping[Path, bytes]) -> set[str]:
    """Name the formats of files; columns that are plain may be those of transfers."""
    if format is not None and format != "plain":
        return {format}
    from coinhaze.formats.tabular.table_rows import column_names
    from coinhaze.formats.transfers.files import recognises_columns

    if format == "plain":
        return {"transfers" if recognises_columns(column_names(p)) else format for p in paths}
    names = {recognise(p, heads.get(p) or head_of(p)).name for p in paths}
    if names == {"plain"}:
        return _names(paths, "plain", heads)
    if len(names) > 1 and "transfers" in names:
        raise UsageError(f"files of several formats cannot be one ledger: {', '.join(names)}")
    return names


def _read_store(paths: Sequence[Path], format: str | None, **cut: Any) -> Ledger:
    if len(paths) > 1 or format is not None:
        raise UsageError("a store is a whole ledger: name it alone, without a format")
    from coinhaze.store.read import read_store
    from coinhaze.store.store import Store

    with Store(paths[0], read_only=True) as store:
        return read_store(store, **cut)


def _read_ingested(
    paths: Sequence[Path], format: str | None, *, choice: ColumnChoice = AS_NAMED, **cut: Any
) -> Ledger:
    from coinhaze.store.ingest import finder, ingest_described
    from coinhaze.store.read import read_store
    from coinhaze.store.store import Store

    name = first_few([str(path) for path in paths])
    with Store(None, name=name, find=finder(paths, format)) as store:
        done = ingest_described(paths, store, choice, format=format)
        if store.kind is None:
            raise nothing_in(paths)
        ledger = read_store(store, **cut)
    return _with_notes(ledger, done.notes, done.columns)


def _with_notes(ledger: Ledger, notes: Sequence[str], use: Use) -> Ledger:
    return replace(ledger, notes=(*ledger.notes, *notes, *column_notes(use)), columns=use)


def _read_streams(
    streams: Sequence[Any], format: str | None, complete: bool, choice: ColumnChoice, **cut: Any
) -> Ledger:
    from coinhaze.formats.tabular.plain import table_batches, table_layout
    from coinhaze.formats.transfers import files as transfers
    from coinhaze.store.read import read_store, refuse_orphans
    from coinhaze.store.store import Store

    if format not in (None, "plain") or not all(is_stream(stream) for stream in streams):
        raise UsageError("tables have plain columns and stand alone: no files beside, no format")
    places = [f"table {k}" for k in range(len(streams))]
    tables = [open_object(s, place) for s, place in zip(streams, places, strict=True)]
    paid = [table.place for table in tables if transfers.recognises_columns(table.names)]
    if choice.columns or len(paid) == len(tables):
        return transfers.ledger(tables, complete=complete, choice=choice, **cut)
    _refuse_choice(choice, "a table of coins")
    if paid:
        raise LedgerError(paid[0], "transfers beside coins: one ledger is one kind of rows")
    uses = []
    with Store(None) as store:
        for table in tables:
            layout = table_layout(table.names, table.place)
            uses.append(layout.use(table.names))
            for batch in table_batches(table.pieces(layout), layout.name):
                with store.transaction():
                    store.append(batch)
        refuse_orphans(store)
        if store.kind is None:
            raise nothing_in(streams)
        return _with_notes(read_store(store, complete=complete, **cut), (), joined_use(uses))


def is_stream(thing: object) -> bool:
    """Tell whether something gives an Arrow stream."""
    return hasattr(thing, "__arrow_c_stream__")
