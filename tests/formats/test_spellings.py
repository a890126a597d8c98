"""Tables of every format in capitals, with other separators, packed: the rows are the same."""

from __future__ import annotations

import csv
import gzip
import io
import lzma
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from benchmarks.blockchair_files import OUTPUTS

from coinhaze.errors import LedgerError
from coinhaze.formats.registry import format_named, format_of
from coinhaze.formats.transfers.columns import ColumnChoice
from formats import ethereum_files as ethereum
from formats import test_cryo as cryo
from formats import test_dune as dune
from formats import test_etherscan as etherscan
from formats.json_samples import rows
from formats.test_blockchair import COIN
from formats.test_utxo_edges import EDGES, VERTICES

Table = list[list[str]]
SPELLINGS: dict[str, Callable[[str], str]] = {
    "as it is": str, "capitals": str.upper, "titles": str.title,
}  # fmt: skip


def of_rows(found: list[dict[str, Any]]) -> Table:
    return [[*found[0]], *(["" if v is None else str(v) for v in row.values()] for row in found)]


def of_dump(names: tuple[str, ...] | list[str], row: dict[str, Any]) -> Table:
    cells = ("\\N" if row.get(name) is None else str(row[name]) for name in names)
    return [[*names], [*cells]]


def of_columns(columns: dict[str, Any]) -> Table:
    parts = zip(*(column.to_pylist() for column in columns.values()), strict=True)
    return [[*columns], *(["" if v is None else str(v) for v in row] for row in parts)]


TABLES: dict[str, Table] = {
    "blockchair": of_dump(OUTPUTS.split(), COIN),
    "blockchair-ethereum": of_dump(ethereum.CALL, ethereum.call()),
    "ethereum-etl": of_rows([ethereum.token_transfer()]),
    "cryo": of_columns(cryo.hexadecimal(cryo.erc20())),
    "dune": of_rows([dune.transfer(*move) for move in dune.MOVES]),
    "etherscan": of_rows(
        [{n: row.get(n, "") for n in etherscan.TOKENS} for row in etherscan.PAID]
    ),
    "transfers": [["from", "to", "amount"], ["ann", "ben", "5"], ["ben", "cid", "3"]],
    "plain": [["height", "txid", "vout", "value", "owner"], ["1", "a" * 64, "0", "5", "ann"]],
    "utxo-edges": [line.split(",") for line in EDGES.splitlines()],
}  # fmt: skip


def written(table: Table, separator: str) -> bytes:
    made = io.StringIO()
    csv.writer(made, delimiter=separator, lineterminator="\n").writerows(table)
    return made.getvalue().encode()


def read(path: Path, content: bytes, kind: str) -> Any:
    file = path / "edges.csv"
    file.write_bytes(content)
    (path / "vertices.csv").write_text(VERTICES)
    assert format_of(file) == kind
    choice = {"choice": ColumnChoice.of(None, 6)} if kind == "etherscan" else {}
    found = rows(format_named(kind).batches(file, **choice))
    for table in found.values():  # a file without blocks is named by its digest
        for row in table:
            row.pop("hash", None)
            if kind in ("transfers", "plain"):
                row.pop("txid", None)
    return found


@pytest.mark.parametrize("kind", TABLES)
def test_rows_are_the_same_however_a_table_is_spelt(tmp_path: Path, kind: str) -> None:
    table = TABLES[kind]
    natural = "\t" if kind.startswith("blockchair") else ","
    expected = read(tmp_path, written(table, natural), kind)
    assert any(expected.values())
    for spell in SPELLINGS.values():
        spelt = [[spell(name) for name in table[0]], *table[1:]]
        for separator in (",", ";", "\t"):
            assert read(tmp_path, written(spelt, separator), kind) == expected


def zipped(content: bytes) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("table.csv", content)
    return made.getvalue()


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, zipped])
def test_rows_are_the_same_however_a_table_is_packed(
    tmp_path: Path, kind: str, pack: Callable[[bytes], bytes]
) -> None:
    content = written(TABLES[kind], ";")
    assert read(tmp_path, pack(content), kind) == read(tmp_path, content, kind)


def test_rounded_amounts_of_dune_are_refused_whatever_parts_them(tmp_path: Path) -> None:
    table = [[c for n, c in zip(TABLES["dune"][0], row, strict=True) if n != "amount_raw"]
             for row in TABLES["dune"]]  # fmt: skip
    for separator in (",", ";", "\t"):
        with pytest.raises(LedgerError, match="rounded, and not exact"):
            read(tmp_path, written(table, separator), "dune")
