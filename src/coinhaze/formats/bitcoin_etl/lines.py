"""bitcoin-etl transactions.json: one transaction a line, for Bitcoin and its relatives.

Values are whole satoshi. Zcash exports show pool flows as inputs and outputs of type "shielded";
which pool it was is not told, so they all go to the pool named `shielded`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from coinhaze.errors import LedgerError
from coinhaze.formats.bitcoin_etl.rows import owner_of
from coinhaze.formats.compression import BOM, errors_of_reading, open_plain
from coinhaze.formats.json.records import FAULTS, RecordFormat
from coinhaze.ledger.checks import check_name, exact_amount, whole_number
from coinhaze.ledger.coins import CoinLedger, Input, Output, Transaction
from coinhaze.ledger.completeness import (
    COUNTS,
    LINKS,
    MERKLE,
    NO_PREVIOUS,
    NO_ROOT,
    OF_COINS,
    TOTALS,
    BlockCounts,
    Completeness,
    Stated,
    check_blocks,
    compare_stated,
    not_checkable,
    stated_number,
)

GENESIS_COINBASE = "4a5e1e4baab89f3a32518a88c31bc87f618f76673e2cc77ab2127b7afdeda33b"


class _Input(msgspec.Struct):
    spent_transaction_hash: str | None = None
    spent_output_index: int | None = None
    type: str | None = None
    addresses: list[str] | None = None
    value: int | None = None


class _Output(msgspec.Struct):
    index: int
    value: int
    type: str | None = None
    script_hex: str | None = None
    addresses: list[str] | None = None


class _Transaction(msgspec.Struct):
    hash: str
    block_number: int
    inputs: list[_Input]
    outputs: list[_Output]
    index: int | None = None
    block_timestamp: int | None = None
    is_coinbase: bool | None = None
    input_count: int | float | str | None = None
    output_count: int | float | str | None = None
    input_value: int | float | str | None = None
    output_value: int | float | str | None = None


class _Row(NamedTuple):
    """A transaction, its place in the block if given, and what it says of itself."""

    height: int
    place: int | None
    transaction: Transaction
    counts: tuple[Stated, Stated]
    totals: tuple[Stated, Stated]

    def order(self) -> tuple[int, int]:
        # Without an index the order of lines stands: the sort is stable.
        return self.height, self.place or 0


# Strict, one a line: no array, and no two on one line.
_format: RecordFormat[_Transaction] = RecordFormat(
    "bitcoin-etl transaction", msgspec.json.Decoder(_Transaction)
)


def read(paths: list[Path], *, complete: bool = False) -> CoinLedger:
    """Read transactions of all files, in the order of block and index."""
    rows = [row for path in paths for row in _oldest_first(list(_rows(path)))]
    rows.sort(key=_Row.order)
    ledger = CoinLedger.from_transactions((row.transaction for row in rows), complete=complete)
    return replace(ledger, completeness=_completeness(rows))


def _completeness(rows: Sequence[_Row]) -> Completeness:
    """Check what the format allows: it gives no hash of the block before, and no Merkle root."""
    rows = list({(row.height, row.transaction.txid): row for row in rows}.values())
    coinbase = np.array([not row.transaction.inputs for row in rows], dtype=np.bool_)
    index = np.array([-1 if row.place is None else row.place for row in rows], dtype=np.int64)
    told = [row.transaction.coinbase for row in rows]
    coinbase &= np.array([flag is not False for flag in told], dtype=np.bool_)
    heights = np.array([row.height for row in rows], dtype=np.int64)
    found = check_blocks(BlockCounts.of(heights, index, coinbase), whole=True)
    names = [f"height {row.height} transaction {row.transaction.txid}" for row in rows]
    by_name = {check.name: check for check in found.checks} | {
        COUNTS: compare_stated(COUNTS, names, [row.counts for row in rows]),
        TOTALS: compare_stated(TOTALS, names, [row.totals for row in rows]),
        LINKS: not_checkable(LINKS, NO_PREVIOUS),
        MERKLE: not_checkable(MERKLE, NO_ROOT),
    }
    checks = tuple(by_name[name] for name in OF_COINS)
    return Completeness(checks, found.holes, found.missing_from)


def _oldest_first(rows: list[_Row]) -> list[_Row]:
    """Turn a file round that runs newest first: lines without an index keep their order."""
    heights = [row.height for row in rows]
    rises = any(after > before for before, after in itertools.pairwise(heights))
    falls = any(after < before for before, after in itertools.pairwise(heights))
    return rows[::-1] if falls and not rises else rows


def _rows(path: Path) -> Iterator[_Row]:
    with errors_of_reading(path), open_plain(path) as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                yield _transaction(line.removeprefix(BOM), f"{path}:{number}")


def _transaction(line: bytes, where: str) -> _Row:
    try:
        t = _format.decoder.decode(line)
    except FAULTS as error:
        raise _format.explain(line, error, where) from None
    assert not isinstance(t, list)
    check_name(t.hash, where, field="hash")
    height = whole_number(t.block_number, where, field="block_number")
    index = None if t.index is None else whole_number(t.index, where, field="index")
    into_pool = sum(_shielded(o, where) for o in t.outputs if o.type == "shielded")
    into_pool -= sum(_shielded(i, where) for i in t.inputs if i.type == "shielded")
    transaction = Transaction(
        txid=t.hash,
        inputs=tuple(_input(i, where) for i in t.inputs if i.type != "shielded"),
        outputs=tuple(_output(o, t.hash) for o in t.outputs if o.type != "shielded"),
        pools=(("shielded", into_pool),) if into_pool else (),
        coinbase=t.is_coinbase,
        height=height,
        time=t.block_timestamp,
        where=where,
    )
    return _Row(height, index, transaction, *_stated(t))


def _stated(t: _Transaction) -> tuple[tuple[Stated, Stated], tuple[Stated, Stated]]:
    """Pair what is there with what the transaction says; nothing where that means nothing.

    A coinbase has no inputs here, and before `enrich_transactions` inputs have no values.
    """
    valued = all(i.value is not None for i in t.inputs)
    spends = bool(t.inputs) or t.is_coinbase is False
    inputs = stated_number(t.input_count) if spends else None
    worth = stated_number(t.input_value) if spends and valued else None
    value_in = sum(i.value or 0 for i in t.inputs)
    value_out = sum(o.value for o in t.outputs)
    counts = (
        Stated("inputs", len(t.inputs), inputs),
        Stated("outputs", len(t.outputs), stated_number(t.output_count)),
    )
    totals = (
        Stated("in", value_in, worth),
        Stated("out", value_out, stated_number(t.output_value)),
    )
    return counts, totals


def _shielded(flow: _Input | _Output, where: str) -> int:
    return exact_amount(flow.value, where, field="shielded value")


def _input(i: _Input, where: str) -> Input:
    if i.spent_transaction_hash is None or i.spent_output_index is None:
        raise LedgerError(where, "an input that names no coin", value=i)
    return Input(i.spent_transaction_hash, i.spent_output_index, i.value, owner_of(i.addresses))


def _output(o: _Output, txid: str) -> Output:
    data = o.type == "nulldata" or (o.script_hex or "").startswith("6a")
    spendable = not data and txid != GENESIS_COINBASE
    return Output(o.value, owner_of(o.addresses), o.index, spendable)
