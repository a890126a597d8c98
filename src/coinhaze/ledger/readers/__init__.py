"""Files -> ledgers, one format a file. The format is found by content, or forced by name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from coinhaze.errors import InputError, UsageError
from coinhaze.ledger import formats
from coinhaze.ledger.accounts import AccountLedger
from coinhaze.ledger.coins import CoinLedger
from coinhaze.ledger.folder import is_folder, read_folder
from coinhaze.ledger.readers import bitcoin_etl, transfers
from coinhaze.ledger.window import ALL, Window

FORMATS: dict[str, ModuleType] = {
    "transfers": transfers,
    "bitcoin-etl": bitcoin_etl,
}
FOLDER = "folder"

Ledger = CoinLedger | AccountLedger


def read(
    sources: str | Path | Sequence[str | Path],
    *,
    format: str | None = None,
    complete: bool = False,
    first: str | int | None = None,
    last: str | int | None = None,
    token: str | None = None,
) -> Ledger:
    """Read one ledger from a store, a ledger folder, or files of one format in the order given.

    `complete` says that the ledger begins with its chain, so that an unknown coin is an error.
    `first` and `last` cut a window, by height or time, and `token` chooses one of several; both
    are for stores and the files that can be ingested into one.
    """
    paths = [Path(s) for s in ([sources] if isinstance(sources, str | Path) else sources)]
    if not paths:
        raise UsageError("no file given: name at least one")
    cut: dict[str, Any] = {"window": Window.of(first, last), "token": token}
    if any(formats.is_store(path) for path in paths):
        return _read_store(paths, format, **cut)
    if format == FOLDER or (format is None and any(is_folder(path) for path in paths)):
        if len(paths) > 1:
            raise UsageError("a ledger folder is a whole ledger: name it alone")
        _refuse_cut(**cut)
        return read_folder(paths[0], complete=complete)
    names = {format_of(path) for path in paths} if format is None else {format}
    # A ledger of few transactions is made faster straight from bitcoin-etl's lines.
    lines = names <= FORMATS.keys() and not any(formats.is_parquet(path) for path in paths)
    if names <= formats.FORMATS.keys() and not lines:
        return _read_ingested(paths, format, **cut)
    if len(names) > 1:
        raise UsageError(f"files of several formats cannot be one ledger: {', '.join(names)}")
    name = names.pop()
    if name not in FORMATS:
        known = ", ".join(dict.fromkeys([*FORMATS, *formats.FORMATS, FOLDER]))
        raise UsageError(f"unknown format {name!r}: one of {known}")
    _refuse_cut(**cut)
    if complete and name == "transfers":
        raise UsageError("`complete` is for coins: transfers carry no list of known coins")
    ledger: Ledger = FORMATS[name].read(paths, complete=complete)
    return ledger


def _read_store(
    paths: Sequence[Path], format: str | None, *, window: Window, token: str | None
) -> Ledger:
    if len(paths) > 1 or format is not None:
        raise UsageError("a store is a whole ledger: name it alone, without a format")
    from coinhaze.ledger.store import Store
    from coinhaze.ledger.stored import read_store

    with Store(paths[0], read_only=True) as store:
        return read_store(store, window, token=token)


def _read_ingested(
    paths: Sequence[Path], format: str | None, *, window: Window, token: str | None
) -> Ledger:
    from coinhaze.ledger.ingest import ingest
    from coinhaze.ledger.store import Store
    from coinhaze.ledger.stored import read_store

    with Store(None) as store:
        ingest(paths, store, format=format)
        return read_store(store, window, token=token)


def _refuse_cut(*, window: Window, token: str | None) -> None:
    if window != ALL or token is not None:
        raise UsageError("windows and tokens are cut out of a store: `coinhaze ingest` makes one")


def format_of(path: Path) -> str:
    """Name the format of a file by its first bytes."""
    if formats.is_parquet(path):
        return formats.format_of(path)
    head = formats.head_of(path).removeprefix(b"\xef\xbb\xbf")
    if transfers.recognises(head):
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
        "begins with a header that has from,to,amount (lower case, commas); a bitcoin-etl file has "
        'one object a line with "hash" and "block_number", not an array; also read: '
        f"{', '.join(formats.FORMATS)}"
    )
