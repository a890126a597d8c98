"""Dumplings: transactions around CoinJoins of Bitcoin, one per line.

A line is `txid:::block:::index:::time:::inputs:::outputs`, where an input is written
`txid-vout-value+script+type`, an output `value+script+type`, and `}{` stands between two of them.
Values are whole satoshi. A block is named by its hash and no height is given, so the block's time
in seconds takes the height's place: windows and order go by it. Should times of blocks run back
between a coin and its spending, the ledger is refused when it is read. An index of 0, which only a
coinbase can have and no coinbase is listed, means that the index is not known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from coinhaze.errors import LedgerError
from coinhaze.formats.bitcoin_raw.networks import BITCOIN
from coinhaze.formats.bitcoin_raw.scripts import owners_of
from coinhaze.formats.compression import BOM, errors_of_reading, numbered_lines, open_plain
from coinhaze.formats.tabular.coin_rows import (
    ROWS,
    InputRows,
    OutputRows,
    Place,
    TransactionRows,
    at_parents,
    coin_batch,
    numbered,
    rows_of,
    texts,
    whole_numbers,
)
from coinhaze.ledger.batches import FLAG, NUMBER, Batch

LONGEST = 1 << 24  # bytes of a line; a transaction that fills a block has some millions

_HEAD = re.compile(rb"[0-9a-fA-F]{64}:::[0-9a-fA-F]{64}:::[0-9]+:::[0-9]+:::")
_SPENT = re.compile("([0-9a-fA-F]{64})-([0-9]{1,10})-([0-9]{1,19})\\+((?:[0-9a-fA-F]{2})*)\\+\\w*")
_MADE = re.compile("([0-9]{1,19})\\+((?:[0-9a-fA-F]{2})*)\\+\\w*")


class _Line(NamedTuple):
    number: int
    txid: str
    position: str
    time: str
    spent: list[tuple[str, str, str, str]]
    made: list[tuple[str, str]]


def recognises(head: bytes) -> bool:
    """Tell whether a file begins with a transaction and its block, separated by three colons."""
    return _HEAD.match(head.removeprefix(BOM)) is not None


def batches(path: Path) -> Iterator[Batch]:
    """Read a file."""
    lines: list[_Line] = []
    rows = read = 0
    with errors_of_reading(path), open_plain(path) as file:
        for number, text in numbered_lines(file, path, LONGEST):
            read += len(text)
            if not text.strip():
                continue
            line = _parsed(text, number, path)
            lines.append(line)
            rows += len(line.spent) + len(line.made)
            if rows >= ROWS:
                yield _batch(lines, path, read)
                lines, rows = [], 0
    if lines:
        yield _batch(lines, path, read)


def _parsed(text: bytes, number: int, path: Path) -> _Line:
    where = f"{path}:{number}"
    try:
        parts = text.decode("ascii").rstrip("\r\n").split(":::")
    except UnicodeDecodeError:
        raise LedgerError(where, "text that is not ASCII", value=text[:60]) from None
    if len(parts) != 6:
        fix = "txid:::block:::index:::time:::inputs:::outputs"
        raise LedgerError(where, f"{len(parts)} fields, not 6", value=text[:60], fix=fix)
    txid, block, index, time, spent, made = parts
    if not re.fullmatch("[0-9a-fA-F]{64}", block):
        raise LedgerError(where, "hash of the block is not 64 hex digits", value=block)
    inputs = [
        _matched(_SPENT, s, where, "input", "txid-vout-value+script+type") for s in _split(spent)
    ]
    outputs = [_matched(_MADE, m, where, "output", "value+script+type") for m in _split(made)]
    if not inputs or not outputs:
        raise LedgerError(where, "a transaction without inputs or outputs", value=txid)
    return _Line(number, txid, index, time, inputs, outputs)  # type: ignore[arg-type]


def _split(joined: str) -> list[str]:
    return joined.split("}{") if joined else []


def _matched(form: re.Pattern[str], text: str, where: str, what: str, fix: str) -> tuple[str, ...]:
    found = form.fullmatch(text)
    if found is None:
        raise LedgerError(where, f"not an {what}", value=text, fix=fix)
    return found.groups()


def _batch(lines: Sequence[_Line], path: Path, read: int) -> Batch:
    def place(row: int) -> str:
        return f"{path}:{lines[row].number}"

    times = whole_numbers([line.time for line in lines], place, field="time")
    index = whole_numbers([line.position for line in lines], place, field="index in the block")
    transactions = TransactionRows(
        place,
        height=times,
        txid=texts([line.txid for line in lines], place, field="txid"),
        coinbase=pa.repeat(pa.scalar(False, FLAG), len(lines)),
        position=pc.if_else(pc.equal(index, 0), pa.scalar(None, NUMBER), index),
        time=times,
    )
    outputs, inputs = _outputs(lines, place), _inputs(lines, place)
    return coin_batch(transactions, outputs, inputs, digits=64, read=read)


def _outputs(lines: Sequence[_Line], place: Place) -> OutputRows:
    parent = rows_of([len(line.made) for line in lines])
    value, script = zip(*(made for line in lines for made in line.made), strict=True)
    owner, spendable = owners_of([bytes.fromhex(s) for s in script], BITCOIN)

    of_row = at_parents(parent, place)
    return OutputRows(
        parent,
        vout=pa.array(numbered(parent)),
        value=whole_numbers(value, of_row, field="value of an output"),
        owner=owner,
        is_data=pc.invert(spendable),
    )


def _inputs(lines: Sequence[_Line], place: Place) -> InputRows:
    parent = rows_of([len(line.spent) for line in lines])
    txid, vout, value, script = zip(*(s for line in lines for s in line.spent), strict=True)

    of_row = at_parents(parent, place)
    return InputRows(
        parent,
        vin=pa.array(numbered(parent)),
        spent_txid=texts(txid, of_row, field="txid of an input"),
        spent_vout=whole_numbers(vout, of_row, field="vout of an input"),
        value=whole_numbers(value, of_row, field="value of an input"),
        owner=owners_of([bytes.fromhex(s) for s in script], BITCOIN)[0],
    )
