"""The four files of rusty-blockparser's `csvdump`: separated by semicolons, without headers.

| file | fields |
|---|---|
| `blocks-FIRST-LAST.csv` | hash; height; version; size; previous; Merkle root; time; bits; nonce |
| `transactions-FIRST-LAST.csv` | txid; hash of the block; version; lock time |
| `tx_in-FIRST-LAST.csv` | txid; txid and number of the coin spent; script; sequence |
| `tx_out-FIRST-LAST.csv` | txid; number; value in satoshi; script; address, if any |

Each is recognised by its name, and needs the first two beside it: only these say in which
block a transaction is. All are in the order of the chain, so they are read side by side. Values of
coins made before the first block are not given. Some versions write the height of a coin before its
value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from coinhaze.errors import LedgerError
from coinhaze.formats.bitcoin_raw.networks import Network
from coinhaze.formats.bitcoin_raw.scripts import KeyNames, Script, network_in
from coinhaze.formats.compression import errors_of_reading, numbered_lines, open_plain
from coinhaze.formats.tabular.coin_rows import (
    ROWS,
    InputRows,
    OutputRows,
    StatedBlock,
    at_parents,
    coin_batch,
    numbered,
    rows_of,
    rows_of_blocks,
    texts,
    whole_numbers,
)
from coinhaze.formats.tabular.delimited import fields as counted
from coinhaze.ledger.batches import FLAG, NUMBER, TEXT, Batch

WIDTHS = {"blocks": 9, "transactions": 4, "tx_in": 5, "tx_out": 5}
# Which tables each file fills.
_TABLES = {
    "blocks": ("blocks", "stated_blocks"),
    "transactions": ("transactions",),
    "tx_in": ("inputs",),
    "tx_out": ("outputs",),
}
LONGEST = 16 << 20  # bytes of a line: a script has 4 MB at most, in hex
NO_COIN = "0" * 64  # what a coinbase spends
_NAME = re.compile(r"(blocks|transactions|tx_in|tx_out)((?:-[0-9]+-[0-9]+)?\.csv(?:\.[a-z0-9]+)?)")
_H = b"[0-9a-fA-F]{64}"
_N = rb"[0-9]{1,20}"
_SHAPES = (
    re.compile(rb";".join([_H, _N, rb"-?[0-9]{1,10}", _N, _H, _H, _N, _N, _N])),
    re.compile(rb";".join([_H, _H, rb"-?[0-9]{1,10}", _N])),
    re.compile(rb";".join([_H, _H, _N, b"[0-9a-fA-F]*", _N])),
    re.compile(rb";".join([_H, _N, _N, b"[0-9a-fA-F]*", b"[0-9a-zA-Z]*"])),
    re.compile(rb";".join([_H, _N, _N, _N, b"[0-9a-fA-F]*", b"[0-9a-zA-Z]*"])),
)
_FIX = "give the four files that one run of csvdump wrote, as it named them"


class _Row(NamedTuple):
    where: str
    fields: list[str]


class _Transaction(NamedTuple):
    where: str
    txid: str
    inputs: list[_Row]
    outputs: list[_Row]


def recognises(head: bytes) -> bool:
    """Tell by the shape of its first line whether a file is one of the four."""
    line = head.partition(b"\n")[0].rstrip(b"\r")
    return any(shape.fullmatch(line) for shape in _SHAPES)


def batches(path: Path) -> Iterator[Batch]:
    """Read one of the four files, with those beside it that tell of its blocks."""
    kind, files = _dump(path)
    names = KeyNames(lambda: _network(files))
    for blocks, paid in _blocks(files, kind):
        batch = _batch(blocks, paid, path, names)
        yield Batch(
            {name: table for name, table in batch.tables.items() if name in _TABLES[kind]},
            batch.where,
        )


def _dump(path: Path) -> tuple[str, dict[str, Path]]:
    named = _NAME.fullmatch(path.name)
    if named is None or named[2].endswith(".tmp"):
        what = "csvdump did not finish" if path.suffix == ".tmp" else "its name must tell the table"
        fix = "run it again" if path.suffix == ".tmp" else "such as tx_out-0-1000.csv"
        raise LedgerError(str(path), what, fix=fix)
    files = {kind: path.with_name(kind + named[2]) for kind in WIDTHS}
    for kind in ("blocks", "transactions"):
        if not files[kind].exists():
            what = f"{files[kind].name} is not beside it, and says in which blocks these are"
            raise LedgerError(str(path), what, fix=_FIX)
    return named[1], files


def _rows(path: Path, kind: str) -> Iterator[_Row]:
    width = WIDTHS[kind]
    with errors_of_reading(path), open_plain(path) as file:
        for number, line in numbered_lines(file, path, LONGEST):
            where = f"{path}:{number}"
            try:
                fields = line.decode("ascii").rstrip("\r\n").split(";")
            except UnicodeDecodeError:
                raise LedgerError(where, "text that is not ASCII", value=line[:80]) from None
            if kind == "tx_out" and len(fields) == width + 1 and fields[2].isdecimal():
                del fields[2]
            if len(fields) != width:
                what = f"{counted(len(fields))} where {kind} has {width}"
                raise LedgerError(where, what, value=line[:80].decode().rstrip(), fix=_FIX)
            yield _Row(where, fields)


def _stated(files: dict[str, Path]) -> dict[str, StatedBlock]:
    """Give all blocks by their hash."""
    found: dict[str, StatedBlock] = {}
    for where, (name, height, _, _, previous, root, time, _, _) in _rows(files["blocks"], "blocks"):
        if not (height.isdecimal() and time.isdecimal() and len(height + time) < 36):
            raise LedgerError(where, "height or time is no whole number", value=f"{height};{time}")
        if name in found:
            raise LedgerError(where, "a block twice", value=name, fix=_FIX)
        found[name] = StatedBlock(int(height), name, previous, int(time), None, root)
    return found


def _blocks(
    files: dict[str, Path], kind: str
) -> Iterator[tuple[list[StatedBlock], list[list[_Transaction]]]]:
    """Read files side by side, whole blocks at a time."""
    stated = _stated(files)
    ins, outs = (_grouped(files, k) if k == kind else None for k in ("tx_in", "tx_out"))
    some: list[StatedBlock] = []
    paid: list[list[_Transaction]] = []
    size = 0
    rows = _rows(files["transactions"], "transactions")
    for name, members in groupby(rows, key=lambda row: row.fields[1]):
        here = []
        for where, (txid, *_) in members:
            spent, made = (_next(found, txid, where, files[kind]) for found in (ins, outs))
            here.append(_Transaction(where, txid, spent, made))
            size += len(spent) + len(made) + 1
        if name not in stated:
            what = f"a block missing from {files['blocks'].name}, or one that came before"
            raise LedgerError(here[0].where, what, value=name, fix=_FIX)
        some.append(stated.pop(name))
        paid.append(here)
        if size >= ROWS:
            yield some, paid
            some, paid, size = [], [], 0
    for found in (ins, outs):
        left = None if found is None else next(found, None)
        if left is not None:
            what = f"a transaction missing from {files['transactions'].name}"
            raise LedgerError(left[1][0].where, what, value=left[0], fix=_FIX)
    if stated:
        block = next(iter(stated.values()))
        what = f"block {block.height} has no transaction"
        raise LedgerError(str(files["transactions"]), what, value=block.hash, fix=_FIX)
    if some:
        yield some, paid


_Groups = Iterator[tuple[str, list[_Row]]]


def _grouped(files: dict[str, Path], kind: str) -> _Groups:
    rows = groupby(_rows(files[kind], kind), key=lambda row: row.fields[0])
    return ((txid, list(members)) for txid, members in rows)


def _next(found: _Groups | None, txid: str, where: str, path: Path) -> list[_Row]:
    if found is None:
        return []
    name, rows = next(found, ("", []))
    if not rows:
        what = f"ends before transaction {txid} of {where}"
        raise LedgerError(str(path), what, fix=f"the file is cut short: {_FIX}")
    if name != txid:
        what = f"stands where transaction {txid} of {where} should"
        raise LedgerError(rows[0].where, what, value=name, fix=_FIX)
    return rows


def _batch(
    blocks: Sequence[StatedBlock],
    paid: Sequence[Sequence[_Transaction]],
    path: Path,
    names: KeyNames,
) -> Batch:
    def where(number: int) -> str:
        return f"{path}: block {blocks[number].height}"

    rows, block_rows = rows_of_blocks(blocks, [[t.txid for t in block] for block in paid], where)
    every = [t for block in paid for t in block]
    firsts = set(block_rows.values())
    outputs = _outputs(every, names)
    inputs = _inputs(every, firsts)
    return coin_batch(rows, outputs, inputs, digits=64, blocks=block_rows)


def _numbers(rows: Sequence[_Row], field: int, name: str) -> pa.Array:
    def place(row: int) -> str:
        return rows[row].where

    return whole_numbers([row.fields[field] for row in rows], place, field=name)


def _outputs(every: Sequence[_Transaction], names: KeyNames) -> OutputRows:
    parent = rows_of([len(t.outputs) for t in every])
    made = [row for t in every for row in t.outputs]
    place: Callable[[int], str] = lambda row: made[row].where  # noqa: E731
    scripts: list[Script | None] = [Script(row.fields[3], row.fields[4] or None) for row in made]
    return OutputRows(
        parent,
        vout=_numbers(made, 1, "number of an output"),
        value=_numbers(made, 2, "value in satoshi"),
        owner=texts(names.owners(scripts, place), place, field="address"),
        is_data=pa.array([row.fields[3][:2] == "6a" for row in made], FLAG),
    )


def _inputs(every: Sequence[_Transaction], firsts: set[int]) -> InputRows:
    for number, transaction in enumerate(every):
        mints = [row.fields[1] == NO_COIN for row in transaction.inputs]
        if mints and mints != ([True] if number in firsts else [False] * len(mints)):
            what = "a coinbase is the first transaction of its block, and no other is one"
            raise LedgerError(transaction.where, what, value=transaction.txid, fix=_FIX)
    counts = [0 if number in firsts else len(t.inputs) for number, t in enumerate(every)]
    parent = rows_of(counts)
    spent = [row for n, t in enumerate(every) if n not in firsts for row in t.inputs]
    place = at_parents(parent, lambda row: every[row].where)
    return InputRows(
        parent,
        vin=pa.array(numbered(parent)),
        spent_txid=texts([row.fields[1] for row in spent], place, field="txid of an input"),
        spent_vout=_numbers(spent, 2, "number of a coin spent"),
        value=pa.nulls(len(spent), NUMBER),
        owner=pa.nulls(len(spent), TEXT),
    )


def _network(files: dict[str, Path]) -> Network | None:
    """Find the network by all outputs, so that none of the keys has two names."""
    if not files["tx_out"].exists():
        return None
    blocks = [(b.hash, b.time) for b in _stated(files).values()]
    scripts = (Script(r.fields[3], r.fields[4] or None) for r in _rows(files["tx_out"], "tx_out"))
    return network_in([(scripts, blocks)])
