"""Coins as edges between transactions: a folder of vertices*.csv and edges*.csv, packed or not.

A vertex of note `tx` is a transaction, of note `coinbase` the new money of one; other ends of edges
lie outside the ledger. Every edge is a coin: made by `src_id` as its output number `src_position`,
spent by `dst_id` as its input number `dst_position`. `temporal_index` counts transactions through
all blocks. An edge tells its ends by id only, so each file is read with all of its folder.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coinhaze.errors import InputError, LedgerError
from coinhaze.formats.tabular.coin_rows import (
    HIGHEST,
    LAST_INDEX,
    MAXIMUM,
    Place,
    RowNumbers,
    check_ids,
    check_range,
    numbered,
    rows_of,
    take,
    where_of,
    whole_numbers,
)
from coinhaze.formats.tabular.column_use import in_small_letters
from coinhaze.formats.tabular.delimited import header_of, line_of, read_text
from coinhaze.formats.tabular.table_rows import TableLayout, names_in
from coinhaze.ledger.batches import NUMBER, TEXT, Batch, table_of, with_columns
from coinhaze.ledger.checks import check_names

VERTEX = ("id", "note", "tx_hash", "block_height", "block_hash", "temporal_index")
# Columns that the tables have and that are not needed.
UNNEEDED = (
    "amount_input", "amount_output", "timestamp", "count_input", "count_output", "is_coinbase",
)  # fmt: skip
_NONE = pa.array([], pa.string())
EDGE = ("src_id", "dst_id", "src_position", "dst_position", "address", "value")
LAYOUTS = (TableLayout("vertices", VERTEX), TableLayout("edges", EDGE))


@dataclass(frozen=True, eq=False)
class _Vertices:
    """All transactions of a folder, with the file and the row each stands in."""

    id: pa.Array
    txid: pa.Array
    height: pa.Array
    block: pa.Array
    order: pa.Array
    files: list[Path]
    file: RowNumbers
    row: RowNumbers
    coinbases: pa.Array  # ids of note coinbase, which are no transactions

    def place(self, row: int) -> str:
        """Say where a transaction stands."""
        return _place(self.files[int(self.file[row])])(int(self.row[row]))


def recognises(head: bytes) -> bool:
    """Tell whether the first line names the columns of vertices or edges."""
    return any(layout.fits(names_in(head, any_case=True)) for layout in LAYOUTS)


def needs(names: Sequence[str]) -> list[tuple[list[str], list[str]]]:
    """Give for each table the columns it needs that are there, and those that are not."""
    return [layout.present(in_small_letters(names)) for layout in LAYOUTS]


def batches(path: Path) -> Iterator[Batch]:
    """Read one file with what its folder tells of it, or all files of a folder."""
    folder = path if path.is_dir() else path.parent
    vertex_files, edge_files = _files(folder, "vertices"), _files(folder, "edges")
    vertices = _read_vertices(vertex_files)
    read = 0
    for number, file in enumerate(vertex_files):
        if path in (folder, file):
            read += file.stat().st_size
            yield from _described(file, VERTEX, _transactions(vertices, number, edge_files, read))
    for file in edge_files:
        if path in (folder, file):
            read += file.stat().st_size
            yield from _described(file, EDGE, _coins(vertices, file, read))


def _described(file: Path, needed: tuple[str, ...], batch: Batch) -> Iterator[Batch]:
    use = TableLayout(file.name, needed).use(header_of(file), UNNEEDED)
    return with_columns([batch], use)


def _files(folder: Path, name: str) -> list[Path]:
    try:
        files = sorted(p for p in folder.glob(f"{name}*.csv*") if p.is_file())
    except OSError as error:
        raise InputError(f"{folder}: cannot be read: {error}") from None
    if not files:
        raise InputError(f"{folder}: no {name}*.csv beside the others; edges need vertices")
    return files


def _read_vertices(files: list[Path]) -> _Vertices:
    tables = [read_text(file, VERTEX) for file in files]
    file = rows_of([len(t) for t in tables])
    row = numbered(file)
    all_rows = pa.concat_tables(tables)
    column = {name: pa.concat_arrays(all_rows[name].chunks or [_NONE]) for name in VERTEX}
    coinbases = column["id"].filter(pc.equal(column["note"], "coinbase"))
    chosen = _chosen(pc.equal(column["note"], "tx"))
    column = {name: take(c, chosen) for name, c in column.items()}
    file, row = file[chosen], row[chosen]

    def place(at: int) -> str:
        return _place(files[int(file[at])])(int(row[at]))

    ids = check_names(column["id"], place, field="id")
    _refuse_twice(ids, place)
    numbers = {}
    for name, maximum in (("block_height", HIGHEST), ("temporal_index", LAST_INDEX)):
        numbers[name] = _numbers(column[name], place, name)
        check_range(numbers[name], place, field=name, maximum=maximum)
    txid = check_ids(column["tx_hash"], place, field="tx_hash", digits=64)
    block = check_ids(column["block_hash"], place, field="block_hash", digits=64)
    height, order = numbers["block_height"], numbers["temporal_index"]
    return _Vertices(ids, txid, height, block, order, files, file, row, coinbases)


def _refuse_twice(ids: pa.Array, place: Place) -> None:
    seen: set[str] = set()
    for row, name in enumerate(ids.to_pylist()):
        if name in seen:
            raise LedgerError(place(row), "a vertex given twice", value=name)
        seen.add(name)


def _transactions(vertices: _Vertices, number: int, edge_files: list[Path], read: int) -> Batch:
    rows = np.flatnonzero(vertices.file == number)
    minted: set[str] = set()
    for file in edge_files:
        edges = read_text(file, ("src_id", "dst_id"))
        new = pc.is_in(edges["src_id"], vertices.coinbases)
        minted.update(edges["dst_id"].filter(new).to_pylist())
    blocks: dict[tuple[int, str], int] = {}
    stated = zip(vertices.height.to_pylist(), vertices.block.to_pylist(), strict=True)
    for row, block in enumerate(stated):
        if vertices.file[row] == number:
            blocks.setdefault(block, row)
    tables = {
        "transactions": table_of(
            "transactions",
            {
                "height": take(vertices.height, rows),
                "txid": take(vertices.txid, rows),
                "coinbase": pc.is_in(take(vertices.id, rows), pa.array(sorted(minted), TEXT)),
                "position": pa.array(_positions(vertices)[rows], NUMBER),
            },
        ),
        "blocks": table_of(
            "blocks", {"height": [h for h, _ in blocks], "hash": [name for _, name in blocks]}
        ),
    }
    parents = {"transactions": rows, "blocks": np.array(list(blocks.values()), np.int64)}
    tables = {k: t for k, t in tables.items() if len(t)}
    return Batch(tables, where_of(parents, vertices.place), read)


def _positions(vertices: _Vertices) -> RowNumbers:
    """Count in each block from its first transaction."""
    order = vertices.order.to_numpy()
    _, block = np.unique(vertices.height.to_numpy(), return_inverse=True)
    first = np.full(block.max(initial=-1) + 1, MAXIMUM)
    np.minimum.at(first, block, order)
    positions: RowNumbers = order - first[block]
    return positions


def _coins(vertices: _Vertices, file: Path, read: int) -> Batch:
    edges = read_text(file, EDGE)
    place = _place(file)
    column = {name: pa.concat_arrays(edges[name].chunks or [_NONE]) for name in EDGE}
    for name in ("src_id", "dst_id", "address"):
        check_names(column[name], place, field=name)
    for name in ("src_position", "dst_position", "value"):
        column[name] = _numbers(column[name], place, name)
    column["src"] = pc.index_in(column["src_id"], vertices.id)
    column["dst"] = pc.index_in(column["dst_id"], vertices.id)
    minted = pc.is_in(column["src_id"], vertices.coinbases)
    made = _chosen(column["src"].is_valid())
    spent = _chosen(pc.and_(column["dst"].is_valid(), pc.invert(minted)))
    tables = {
        "outputs": _outputs(vertices, {k: take(c, made) for k, c in column.items()}, place, made),
        "inputs": _inputs(vertices, {k: take(c, spent) for k, c in column.items()}, place, spent),
    }
    tables = {k: t for k, t in tables.items() if len(t)}
    return Batch(tables, where_of({"outputs": made, "inputs": spent}, place), read)


def _outputs(v: _Vertices, edges: dict[str, pa.Array], place: Place, rows: RowNumbers) -> pa.Table:
    _check(edges, ("src_position", LAST_INDEX), ("value", MAXIMUM), place=place, rows=rows)
    return table_of(
        "outputs",
        {
            "height": v.height.take(edges["src"]),
            "txid": v.txid.take(edges["src"]),
            "vout": edges["src_position"],
            "spendable": pa.repeat(True, len(rows)),
            "value": edges["value"],
            "owner": edges["address"],
        },
    )


def _inputs(v: _Vertices, edges: dict[str, pa.Array], place: Place, rows: RowNumbers) -> pa.Table:
    ends = (("src_position", LAST_INDEX), ("dst_position", LAST_INDEX), ("value", MAXIMUM))
    _check(edges, *ends, place=place, rows=rows)
    return table_of(
        "inputs",
        {
            "height": v.height.take(edges["dst"]),
            "txid": v.txid.take(edges["dst"]),
            "vin": edges["dst_position"],
            # A coin from outside is known by the id of its vertex only.
            "spent_txid": pc.coalesce(v.txid.take(edges["src"]), edges["src_id"]),
            "spent_vout": edges["src_position"],
            "value": edges["value"],
            "owner": edges["address"],
        },
    )


def _check(
    edges: dict[str, pa.Array], *ends: tuple[str, int], place: Place, rows: RowNumbers
) -> None:
    for name, maximum in ends:
        check_range(edges[name], lambda row: place(int(rows[row])), field=name, maximum=maximum)


def _chosen(flags: pa.Array) -> RowNumbers:
    return np.flatnonzero(flags.to_numpy(zero_copy_only=False))


def _numbers(column: pa.Array, place: Place, field: str) -> pa.Array:
    """Turn digits to numbers; -1 stands for nothing in these files."""
    wrong = pc.invert(pc.match_substring_regex(column, "^(-1|[0-9]{1,19})$"))
    row = pc.index(wrong, True).as_py()
    if row >= 0:
        raise LedgerError(place(row), f"{field} is not a whole number", value=column[row].as_py())
    try:
        return column.cast(NUMBER)
    except pa.ArrowInvalid:
        return whole_numbers([int(v) for v in column.to_pylist()], place, field=field)


def _place(file: Path) -> Place:
    return lambda row: f"{file}:{line_of(file, row)}"
