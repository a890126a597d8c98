r"""Blockchair dumps of Bitcoin and its relatives: inputs, outputs and transactions, a file a day.

Fields are parted by tabs and never quoted; `\N` is null. A block number of -1 is the mempool's:
such rows are left out. The index of a transaction in its block is not told. Recipients that are no
addresses (`d-...` for data, `m-...`, `s-...`) stand for themselves. Zcash's transactions tell what
went into all shielded pools together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from coinhaze.errors import LedgerError
from coinhaze.ledger.batches import Batch, table_of
from coinhaze.ledger.readers.delimited import Stretch, header_of, stream_text

INPUTS = (
    "transaction_hash", "index", "value", "recipient", "spending_block_id",
    "spending_transaction_hash", "spending_index", "spending_time",
)  # fmt: skip
OUTPUTS = (
    "block_id", "transaction_hash", "index", "time", "value", "recipient", "type",
    "is_from_coinbase", "is_spendable",
)  # fmt: skip
TRANSACTIONS = ("block_id", "hash", "time", "is_coinbase", "input_count", "output_count")
MEMPOOL = "-1"


def recognises(head: bytes) -> bool:
    """Tell whether the first line is the header of one of the three tables."""
    return _kind(head.split(b"\n", 1)[0].decode("utf-8", "replace").split("\t")) is not None


def _kind(names: list[str]) -> tuple[str, ...] | None:
    for columns in (INPUTS, OUTPUTS, TRANSACTIONS):
        if set(columns) <= set(names):
            return columns
    return None


def batches(path: Path) -> Iterator[Batch]:
    """Read one file."""
    names = header_of(path, "\t")
    columns = _kind(names)
    if columns is None:
        raise LedgerError(f"{path}:1", "no Blockchair table of coins", value=names)
    delta = ("shielded_value_delta",) if columns is TRANSACTIONS else ()
    convert = {INPUTS: _inputs, OUTPUTS: _outputs, TRANSACTIONS: _transactions}[columns]
    for stretch in stream_text(
        path, columns, optional=delta, delimiter="\t", null="\\N", quoted=False
    ):
        yield Batch(convert(_Fields(stretch)), lambda _, row, s=stretch: s.where(row), stretch.read)  # type: ignore[misc]


class _Fields:
    """The columns of a stretch, taken out one by one and checked on the way."""

    def __init__(self, stretch: Stretch) -> None:
        self.stretch = stretch
        block = "spending_block_id" if "spending_block_id" in self.names else "block_id"
        self.table = stretch.table
        self.kept = None
        mined = pc.not_equal(self.table[block], MEMPOOL)
        if pc.all(mined, skip_nulls=False).as_py() is not True:
            self.kept = pc.indices_nonzero(pc.fill_null(mined, True))
            self.table = self.table.take(self.kept)

    @property
    def names(self) -> list[str]:
        return list(self.stretch.table.column_names)

    def where(self, row: int) -> str:
        return self.stretch.where(row if self.kept is None else self.kept[row].as_py())

    def _refuse(self, column: str, right: pa.ChunkedArray, rule: str) -> None:
        row = pc.index(pc.fill_null(right, False), False).as_py()
        if row >= 0:
            value = self.table[column][row].as_py()
            raise LedgerError(self.where(row), f"{column} is {rule}", value=value)

    def number(self, column: str, *, most: int = 2**63 - 1) -> pa.ChunkedArray:
        text = self.table[column]
        # A cast alone would take 0x1f for 31; regular expressions are slow.
        digits = pc.and_(pc.ascii_is_decimal(text), pc.less_equal(pc.binary_length(text), 18))
        self._refuse(column, digits, "no whole number")
        number = pc.cast(text, pa.int64())
        self._refuse(column, pc.less_equal(number, most), f"above {most}")
        return number

    def signed(self, column: str) -> pa.ChunkedArray:
        text = self.table[column]
        self._refuse(column, pc.match_substring_regex(text, "^-?[0-9]{1,18}$"), "no whole number")
        return pc.cast(text, pa.int64())

    def hash(self, column: str) -> pa.ChunkedArray:
        text = self.table[column]
        self._refuse(column, pc.match_substring_regex(text, "^[0-9a-f]{64}$"), "no hash")
        return text

    def flag(self, column: str) -> pa.ChunkedArray:
        text = self.table[column]
        self._refuse(column, pc.is_in(text, value_set=pa.array(["0", "1"])), "neither 0 nor 1")
        return pc.equal(text, "1")

    def moment(self, column: str) -> pa.ChunkedArray:
        text = self.table[column]
        rule = "no time like 2021-04-01 00:00:00"
        self._refuse(column, pc.equal(pc.binary_length(text), 19), rule)
        try:
            return pc.cast(pc.cast(text, pa.timestamp("s")), pa.int64())
        except pa.ArrowInvalid as error:
            raise LedgerError(self.where(0), f"{column} is no time", value=str(error)) from None


def _inputs(fields: _Fields) -> dict[str, pa.Table]:
    height = fields.number("spending_block_id", most=2**31 - 1)
    txid = fields.hash("spending_transaction_hash")
    inputs = {
        "height": height,
        "txid": txid,
        "vin": fields.number("spending_index", most=2**32 - 1),
        "spent_txid": fields.hash("transaction_hash"),
        "spent_vout": fields.number("index", most=2**32 - 1),
        "value": fields.number("value"),
        "owner": fields.table["recipient"],
    }
    spenders = {
        "height": height,
        "txid": txid,
        "coinbase": pa.repeat(False, len(txid)),
        "time": fields.moment("spending_time"),
    }
    return _tables(inputs=inputs) | {"transactions": _each_once(spenders)}


def _outputs(fields: _Fields) -> dict[str, pa.Table]:
    height = fields.number("block_id", most=2**31 - 1)
    txid = fields.hash("transaction_hash")
    dead = pc.or_(
        pc.equal(pc.fill_null(fields.table["is_spendable"], ""), "0"),
        pc.equal(pc.fill_null(fields.table["type"], ""), "nulldata"),
    )
    outputs = {
        "height": height,
        "txid": txid,
        "vout": fields.number("index", most=2**32 - 1),
        "spendable": pc.invert(dead),
        "value": fields.number("value"),
        "owner": fields.table["recipient"],
    }
    makers = {
        "height": height,
        "txid": txid,
        "coinbase": fields.flag("is_from_coinbase"),
        "time": fields.moment("time"),
    }
    return _tables(outputs=outputs) | {"transactions": _each_once(makers)}


def _tables(**columns: Mapping[str, object]) -> dict[str, pa.Table]:
    return {name: table_of(name, given) for name, given in columns.items()}


def _each_once(columns: Mapping[str, object]) -> pa.Table:
    """Tell of a transaction once where its rows stand together, as they do."""
    table = table_of("transactions", columns)
    txid = table["txid"].combine_chunks()
    new = pc.not_equal(txid[1:], txid[:-1])
    return table.filter(pa.concat_arrays([pa.repeat(True, min(1, len(txid))), new]))


def _transactions(fields: _Fields) -> dict[str, pa.Table]:
    height = fields.number("block_id", most=2**31 - 1)
    txid = fields.hash("hash")
    made = {
        "height": height,
        "txid": txid,
        "coinbase": fields.flag("is_coinbase"),
        "time": fields.moment("time"),
    }
    tables = _tables(transactions=made)
    if "shielded_value_delta" in fields.names:
        delta = fields.signed("shielded_value_delta")
        flows = {"height": height, "txid": txid, "into_pool": delta}
        moved = pa.table(flows).filter(pc.not_equal(delta, 0))
        pool = pa.repeat("shielded", len(moved))
        tables["pool_flows"] = table_of("pool_flows", {n: moved[n] for n in flows} | {"pool": pool})
    return tables
