"""A ledger as a folder: one Parquet file a table, and ledger.json that says what they are.

The columns are those of the data model. Rows refer to each other by their index, and names stand
once: transfers name accounts by their row in accounts.parquet.
"""

from __future__ import annotations

import contextlib
import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from coinhaze.errors import InputError, LedgerError, UsageError
from coinhaze.ledger.accounts import AccountLedger
from coinhaze.ledger.atomic import put_in_place
from coinhaze.ledger.build.tables import (
    ACCOUNT_TABLES,
    COIN_TABLES,
    account_tables,
    coin_tables,
    ledger_from_account_tables,
)
from coinhaze.ledger.checks import exact_amount
from coinhaze.ledger.coins import CoinLedger
from coinhaze.ledger.completeness import (
    OF_ACCOUNTS,
    OF_COINS,
    Completeness,
    nothing_checkable,
)
from coinhaze.threads import cores, together
from coinhaze.units import Unit, unit_named

ABOUT = "ledger.json"
VERSION = 1
ROWS = 1 << 26  # of a row group: what lies in one piece is not put together when it is read
NO_RECORD = "the folder has no record of what was found when its ledger was read"
TABLES = {"coins": COIN_TABLES, "accounts": ACCOUNT_TABLES}


def write_folder(ledger: CoinLedger | AccountLedger, path: str | Path) -> Path:
    """Write a ledger whole or not at all, replacing nothing but an earlier ledger folder.

    >>> import tempfile
    >>> ledger = AccountLedger.from_transfers([("alice", "bob", 5)])
    >>> with tempfile.TemporaryDirectory() as home:
    ...     read_folder(write_folder(ledger, f"{home}/ledger")).accounts.to_pylist()
    ['alice', 'bob']
    """
    path = Path(path)
    check_folder(path)
    coins = isinstance(ledger, CoinLedger)
    about: dict[str, Any] = {"coinhaze_ledger": VERSION, "kind": "coins" if coins else "accounts"}
    about |= {"notes": list(ledger.notes), "columns": dict(ledger.columns)}
    if isinstance(ledger, CoinLedger):
        # Digits as text: many readers of JSON would round large numbers.
        values = {pool: str(value) for pool, value in ledger.pool_values.items()}
        about |= {"complete": ledger.complete, "pool_values": values}
        tables = coin_tables(ledger)
    else:
        tables = account_tables(ledger)
    # What was found when it was read: it cannot be found again from the tables.
    if ledger.unit is not None:
        about["unit"] = ledger.unit.spelling
    if ledger.completeness.checks:
        about["completeness"] = ledger.completeness.record()

    def write(folder: Path) -> None:
        for name, table in tables.items():
            place = folder / f"{name}.parquet"
            pq.write_table(table, place, compression="zstd", row_group_size=ROWS)
        text = json.dumps(about, indent=1) + "\n"
        (folder / ABOUT).write_text(text, encoding="utf-8")

    put_in_place(path, write)
    return path


def read_folder(path: str | Path, *, complete: bool = False) -> CoinLedger | AccountLedger:
    """Read a ledger from its folder, checking every rule: anybody may have written it."""
    path = Path(path)
    about = _about(path)
    kind = about["kind"]
    names = TABLES[kind]
    # Two at a time, since each is in memory twice while it is put together.
    found = together([partial(_table, path / f"{name}.parquet") for name in names], min(2, cores()))
    tables = dict(zip(names, found, strict=True))
    pa.default_memory_pool().release_unused()  # what unpacking took, as much again as the tables

    def place(table: str, row: int | None) -> str:
        return f"{path / table}.parquet" + ("" if row is None else f": row {row}")

    facts = {name: about[name] for name in ("notes", "columns", "completeness", "unit")}
    if kind == "accounts":
        return replace(ledger_from_account_tables(tables, place=place), **facts)
    ledger = CoinLedger.from_columns(
        tables,
        complete=complete or about["complete"],
        pool_values=about["pool_values"],
        place=place,
    )
    return replace(ledger, **facts)


def is_folder(path: Path) -> bool:
    """Tell whether a path is a folder that says it holds a ledger."""
    return (path / ABOUT).is_file()


def folder_files(path: Path) -> list[Path]:
    """List the files of a ledger's folder, in the order of their names."""
    kind = _about(path)["kind"]
    return sorted([path / ABOUT, *(path / f"{name}.parquet" for name in TABLES[kind])])


def unpacked_bytes(path: Path) -> int:
    """Estimate the bytes a ledger's folder takes in memory; files that cannot be read take 0."""
    total = 0
    with contextlib.suppress(OSError, pa.ArrowException, LedgerError, InputError):
        for file in folder_files(path):
            if file.suffix == ".parquet":
                about = pq.ParquetFile(file).metadata
                total += sum(
                    about.row_group(k).total_byte_size for k in range(about.num_row_groups)
                )
    return total


def check_folder(path: Path) -> None:
    """Refuse, before any work is done, to write where something other than a ledger stands."""
    if not path.absolute().parent.is_dir():
        raise InputError(f"{path}: cannot be written: there is no folder {path.parent}")
    if not path.exists() and not path.is_symlink():
        return
    known = {ABOUT, *(f"{name}.parquet" for names in TABLES.values() for name in names)}
    if path.is_symlink() or not is_folder(path):
        raise UsageError(f"{path}: is there already and is no ledger folder; write elsewhere")
    strange = sorted(p.name for p in path.iterdir() if p.name not in known)
    if strange:
        raise UsageError(f"{path}: holds {strange[0]!r} beside a ledger; write elsewhere")


def _about(path: Path) -> dict[str, Any]:
    """Read ledger.json: version, kind, and for coins `complete` and the values of pools."""
    where = str(path / ABOUT)
    try:
        about = json.loads((path / ABOUT).read_bytes())
    except FileNotFoundError:
        raise InputError(f"{path}: is a folder without {ABOUT}; name the files in it") from None
    except OSError as error:
        raise InputError(f"{where}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise LedgerError(where, f"not JSON: {error}") from None
    if not isinstance(about, dict) or "coinhaze_ledger" not in about:
        raise LedgerError(where, "does not describe a ledger", value=about)
    version = about["coinhaze_ledger"]
    if version is True or version != VERSION:
        raise LedgerError(
            where, "unknown version", value=version, fix=f"this coinhaze reads version {VERSION}"
        )
    kind = about.get("kind")
    if kind not in ("coins", "accounts"):
        raise LedgerError(where, "unknown kind: coins or accounts", value=kind)
    complete, values = about.get("complete", False), about.get("pool_values", {})
    if not isinstance(complete, bool):
        raise LedgerError(where, "complete is not true or false", value=complete)
    if not isinstance(values, dict):
        raise LedgerError(where, "pool_values is no table of pool and value", value=values)
    pools = {p: exact_amount(v, f"{where}: pool {p}", field="value") for p, v in values.items()}
    facts: dict[str, Any] = {"notes": _texts(about.get("notes", []), where, "notes")}
    columns = about.get("columns", {})
    if not isinstance(columns, dict):
        raise LedgerError(where, "columns is no table of kinds and names", value=columns)
    facts["columns"] = {k: _texts(names, where, "columns") for k, names in columns.items()}
    names = OF_COINS if kind == "coins" else OF_ACCOUNTS
    facts["completeness"] = nothing_checkable(names, NO_RECORD)
    facts["unit"] = _unit(about.get("unit"), where)
    if "completeness" in about:
        facts["completeness"] = Completeness.of_record(about["completeness"], where)
    return {"kind": kind, "complete": complete, "pool_values": pools, **facts}


def _unit(value: object, where: str) -> Unit | None:
    if value is None:
        return None
    try:
        return unit_named(str(value))
    except UsageError:
        raise LedgerError(where, "unit is not NAME:DECIMALS", value=value) from None


def _texts(value: object, where: str, field: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise LedgerError(where, f"{field} is not a list of texts", value=value)
    return tuple(value)


def _table(path: Path) -> pa.Table:
    try:
        return pq.ParquetFile(path).read(use_threads=cores() > 1).combine_chunks()
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; it is part of the ledger") from None
    # Damaged files make Arrow raise errors of several kinds, memory errors among them, where a
    # length reads as petabytes.
    except (pa.ArrowException, OSError, ValueError, MemoryError, KeyError) as error:
        first = (str(error) or type(error).__name__).splitlines()[0]
        raise InputError(f"{path}: cannot be read as Parquet: {first}") from None
