"""Files -> ledgers, one format a file. The format is found by content, or forced by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

from coinhaze.errors import InputError, UsageError
from coinhaze.formats import registry as formats
from coinhaze.formats.bitcoin_etl import lines as bitcoin_etl
from coinhaze.formats.tabular.arrow_rows import ArrowStream
from coinhaze.formats.tabular.column_use import column_notes, joined_use
from coinhaze.formats.transfers import plain
from coinhaze.ledger import AccountLedger, Ledger
from coinhaze.ledger.completeness import OF_ACCOUNTS, nothing_checkable
from coinhaze.ledger.moving import nothing_in, refuse_unmoving
from coinhaze.ledger.parquet import is_folder, read_folder
from coinhaze.ledger.window import ALL, Window
from coinhaze.options import Unknown

FORMATS: dict[str, ModuleType] = {"bitcoin-etl": bitcoin_etl}
TRANSFERS = {"transfers", "plain"}  # two names of plain columns, where they are of transfers
FOLDER = "folder"
UNCUT: dict[str, Any] = {"window": ALL, "token": None, "unknown": "error"}


def read(
    sources: str | Path | ArrowStream | Sequence[str | Path | ArrowStream],
    *,
    format: str | None = None,
    complete: bool = False,
    first: str | int | None = None,
    last: str | int | None = None,
    token: str | None = None,
    unknown: Unknown = "error",
) -> Ledger:
    """Read one ledger from a store, a ledger folder, or files of one format.

    Rows are put in order by whatever orders them: block, time, index. Tables of Arrow, Polars,
    DuckDB or pandas with plain columns are read as files of them are.

    `complete` says that the ledger begins with its chain, so that an unknown coin is an error.
    `first` and `last` cut a window, by height or time, and `token` chooses one of several; both
    are for stores and the files that can be ingested into one. So is `unknown`: coins spent whose
    value nobody tells are an error, or what hangs on them is left out, which the ledger's notes
    count. A ledger in which nothing moves is an error.
    """
    things: list[Any] = [sources] if _is_one(sources) else list(sources)  # type: ignore[arg-type]
    cut: dict[str, Any] = {"window": Window.of(first, last), "token": token, "unknown": unknown}
    ledger = _read(things, format, complete, cut)
    refuse_unmoving(ledger, things, cut["window"])
    return ledger


def _is_one(sources: object) -> bool:
    return isinstance(sources, str | Path) or is_stream(sources)


def _read(things: list[Any], format: str | None, complete: bool, cut: dict[str, Any]) -> Ledger:
    if not things:
        raise UsageError("no file given: name at least one")
    if any(is_stream(thing) for thing in things):
        return _read_streams(things, format, complete, **cut)
    paths = [Path(thing) for thing in things]
    if any(formats.is_store(path) for path in paths):
        return _read_store(paths, format, complete=complete, **cut)
    if format == FOLDER or (format is None and any(is_folder(path) for path in paths)):
        if len(paths) > 1:
            raise UsageError("a ledger folder is a whole ledger: name it alone")
        _refuse_cut(**cut)
        return read_folder(paths[0], complete=complete)
    names = {format_of(path) for path in paths} if format is None else {format}
    if names == {"transfers"} or (
        names <= TRANSFERS and all(plain.is_transfers(path) for path in paths)
    ):
        _refuse_complete(complete)
        _refuse_unknown(cut["unknown"])
        return _without_blocks(plain.read(paths, token=cut["token"], window=cut["window"]))
    # A ledger of few transactions is made faster straight from bitcoin-etl's lines.
    lines = names <= FORMATS.keys() and not any(formats.is_parquet(path) for path in paths)
    if names <= formats.FORMATS.keys() and not lines:
        return _read_ingested(paths, format, complete=complete, **cut)
    if len(names) > 1:
        raise UsageError(f"files of several formats cannot be one ledger: {', '.join(names)}")
    name = names.pop()
    if name not in FORMATS:
        known = ", ".join(dict.fromkeys(["transfers", *FORMATS, *formats.FORMATS, FOLDER]))
        raise UsageError(f"unknown format {name!r}: one of {known}")
    _refuse_cut(**cut)
    ledger: Ledger = FORMATS[name].read(paths, complete=complete)
    return _without_blocks(ledger) if isinstance(ledger, AccountLedger) else ledger


def _without_blocks(ledger: AccountLedger) -> AccountLedger:
    """Say of a list of transfers that nothing shows whether it has all of them."""
    why = "the source lists transfers, not blocks"
    return replace(ledger, completeness=nothing_checkable(OF_ACCOUNTS, why))


def _read_store(paths: Sequence[Path], format: str | None, **cut: Any) -> Ledger:
    if len(paths) > 1 or format is not None:
        raise UsageError("a store is a whole ledger: name it alone, without a format")
    from coinhaze.store.read import read_store
    from coinhaze.store.store import Store

    with Store(paths[0], read_only=True) as store:
        return read_store(store, **cut)


def _read_ingested(paths: Sequence[Path], format: str | None, **cut: Any) -> Ledger:
    from coinhaze.formats.tabular.file_columns import columns_of
    from coinhaze.store.ingest import expand, ingest
    from coinhaze.store.read import read_store
    from coinhaze.store.store import Store

    with Store(None) as store:
        notes = ingest(paths, store, format=format).notes
        if store.kind is None:
            raise nothing_in(paths)
        ledger = read_store(store, **cut)
    use = joined_use(columns_of(path, format) for path in expand(paths))
    return replace(ledger, notes=(*ledger.notes, *notes, *column_notes(use)), columns=use)


def _read_streams(streams: Sequence[Any], format: str | None, complete: bool, **cut: Any) -> Ledger:
    if format not in (None, "plain") or not all(is_stream(stream) for stream in streams):
        raise UsageError("tables have plain columns and stand alone: no files beside, no format")
    given = plain.Given(streams)
    if given.is_transfers():
        _refuse_complete(complete)
        _refuse_unknown(cut["unknown"])
        return _without_blocks(given.read(token=cut["token"], window=cut["window"]))
    from coinhaze.store.read import read_store, refuse_orphans
    from coinhaze.store.store import Store

    with Store(None) as store:
        for batch in given.batches():
            with store.transaction():
                store.append(batch)
        refuse_orphans(store)
        if store.kind is None:
            raise nothing_in(streams)
        use = given.columns()
        return replace(
            read_store(store, complete=complete, **cut), notes=column_notes(use), columns=use
        )


def is_stream(thing: object) -> bool:
    """Tell whether something gives an Arrow stream."""
    return hasattr(thing, "__arrow_c_stream__")


def _refuse_complete(complete: bool) -> None:
    if complete:
        raise UsageError("`complete` is for coins: transfers carry no list of known coins")


def _refuse_unknown(unknown: str) -> None:
    if unknown != "error":
        raise UsageError("`unknown` is for stores and raw blocks: here every coin has its value")


def _refuse_cut(**cut: Any) -> None:
    _refuse_unknown(cut["unknown"])
    if cut != UNCUT:
        raise UsageError("windows and tokens are cut out of a store: `coinhaze ingest` makes one")


def format_of(path: Path) -> str:
    """Name the format of a file by its first bytes."""
    if formats.is_parquet(path):
        return formats.format_of(path)
    head = formats.head_of(path).removeprefix(b"\xef\xbb\xbf")
    if plain.is_transfers_head(head):
        return "transfers"
    # ethereum-etl's JSON has names that bitcoin-etl's has too, and some more.
    found = formats.recognise(head)
    if found is not None:
        return found
    if bitcoin_etl.recognises(head):
        return "bitcoin-etl"
    start = head[:60].decode("utf-8", "replace").splitlines()
    raise InputError(
        f"{path}: no known format: it begins {start[0] if start else ''!r}; a transfers file "
        "begins with a header that has from,to,amount (with commas); a bitcoin-etl file has "
        'one object a line with "hash" and "block_number", not an array; also read: '
        f"{', '.join(formats.FORMATS)}"
    )
