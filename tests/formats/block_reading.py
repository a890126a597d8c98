"""Reading of files of raw blocks, for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from coinhaze.errors import LedgerError
from coinhaze.formats.bitcoin_raw import blocks as bitcoin_blocks

Rows = list[dict[str, Any]]


def write(folder: Path, octets: bytes, called: str = "blk00000.dat") -> Path:
    path = folder / called
    path.write_bytes(octets)
    return path


def rows(path: Path) -> dict[str, Rows]:
    """Read all rows of all tables."""
    names = ("blocks", "stated_blocks", "transactions", "outputs", "inputs")
    tables: dict[str, Rows] = {name: [] for name in names}
    for batch in bitcoin_blocks.batches(path):
        for table, read in batch.tables.items():
            tables[table] += read.to_pylist()
    return tables


def heights(path: Path) -> list[int]:
    return [row["height"] for row in rows(path)["blocks"]]


def fault(path: Path) -> str:
    with pytest.raises(LedgerError) as caught:
        rows(path)
    return str(caught.value)
