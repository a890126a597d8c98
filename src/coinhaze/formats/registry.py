"""What a file is: its format, told by what it begins with, and its digest.

Light, since every command asks: no database, no compiled loops.
"""

from __future__ import annotations

import hashlib
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from coinhaze.errors import InputError, UsageError
from coinhaze.formats.compression import UNREADABLE, open_plain

# Formats by name, and the module that reads each; told apart by what a file begins with, in this
# order. Modules are imported when they are needed.
FORMATS = {
    "blockchair": "blockchair.bitcoin",
    "blockchair-ethereum": "blockchair.ethereum",
    "ethereum-etl": "ethereum.etl",
    "mev-inspect": "ethereum.mev_inspect",
    "bitcoin-etl": "bitcoin_etl.batches",
    "bitcoin-json": "json.bitcoin",
    "esplora": "json.esplora",
    "utxo-edges": "tabular.utxo_edges",
    "dumplings": "json.dumplings",
    "tornado": "ethereum.tornado",
    "bitcoin-blocks": "bitcoin_raw.blocks",
    "zcash-blocks": "zcash_raw.blocks",
    "plain": "transfers.plain",
}
PARQUET = b"PAR1"
HEAD = 1 << 16
DUCKDB = b"DUCK"  # at byte 8


def reader_of(format: str) -> Any:
    """Give the module that reads a format."""
    if format not in FORMATS:
        raise UsageError(f"unknown format {format!r}: one of {', '.join(FORMATS)}")
    return import_module(f"coinhaze.formats.{FORMATS[format]}")


def format_of(path: Path) -> str:
    """Name the format of a file by what it begins with."""
    head = head_of(path)
    name = _recognise_columns(path) if is_parquet(path) else recognise(head)
    if name is None:
        raise InputError(
            f"{path}: no known format: it begins {head[:60]!r}; --format forces one of "
            f"{', '.join(FORMATS)}"
        )
    return name


def _recognise_columns(path: Path) -> str | None:
    """Name the format of a Parquet file by its columns."""
    try:
        names = pq.read_schema(path).names
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read as Parquet: {error}") from None
    for name in FORMATS:
        knows = getattr(reader_of(name), "recognises_columns", None)
        if knows is not None and knows(names):
            return name
    return None


def recognise(head: bytes) -> str | None:
    """Name the format of a file that begins with these bytes, unpacked."""
    return next((name for name in FORMATS if reader_of(name).recognises(head)), None)


def head_of(path: Path) -> bytes:
    """Give what a file begins with, unpacked."""
    try:
        with open_plain(path) as file:
            return bytes(file.read(HEAD))
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise InputError(f"{path}: is a folder; name the files in it") from None
    except UNREADABLE as error:
        raise InputError(f"{path}: cannot be read: {error}") from None


def is_parquet(path: Path) -> bool:
    """Tell whether a file is Parquet."""
    return _starts(path, 4) == PARQUET


def is_store(path: Path) -> bool:
    """Tell whether a file is a DuckDB database."""
    return _starts(path, 12)[8:] == DUCKDB


def _starts(path: Path, size: int) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(size)
    except OSError:
        return b""


def digest_of(path: Path) -> str:
    """Give the SHA-256 of a file."""
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
