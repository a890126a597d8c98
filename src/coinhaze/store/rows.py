"""Rows of coins out of a store: one pass over each table, names numbered as they stream by.

A week of Bitcoin names its transactions nine times each, by 64 letters each; here every
name is stored once, and a row is a few numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from coinhaze.amounts import Bools, Ints
from coinhaze.errors import LedgerError
from coinhaze.ledger.batches import SCHEMAS
from coinhaze.ledger.coins import DUPLICATE_COINBASES, MAX_OUTPUTS
from coinhaze.ledger.text import Names, Numbers
from coinhaze.ledger.window import LedgerWindow
from coinhaze.store.store import Store

Wholes = npt.NDArray[np.uint32]
Kind = TypeVar("Kind", bound=np.generic)

_LOST = " OR ".join(
    f"(height = {heights[0]} AND txid = '{txid}')" for txid, heights in DUPLICATE_COINBASES.items()
)
_NAME = f"CASE WHEN {_LOST} THEN txid || '@' || height ELSE txid END"


@dataclass(frozen=True, eq=False)
class Transactions:
    """The transactions of a window by height, position and id, and their names by number."""

    names: Names
    heights: Ints
    position: Ints  # -1 where no source gives it
    coinbase: Bools
    times: pa.Int64Array

    @property
    def span(self) -> str:
        """Give the SQL condition that the heights of all rows of the window fulfil."""
        if not len(self.heights):
            return "false"
        return f"height BETWEEN {self.heights[0]} AND {self.heights[-1]}"

    def find(self, batch: pa.RecordBatch) -> Numbers:
        """Number the transactions that rows belong to by name and height; -1: none of these."""
        found = self.names.find(batch["name"])
        if len(self.heights):
            found[self.heights[found] != _ints(batch["height"])] = -1
        return found


@dataclass(frozen=True, eq=False)
class Outputs:
    """Coins that transactions of the window make; an owner of -1 is the coin itself."""

    tx: Numbers
    vout: Wholes
    value: pa.Int64Array  # null where hidden
    owner: Numbers
    spendable: Bools

    def in_order(self, place: Ints) -> Outputs:
        """Give transactions their places, and sort by them and by number."""
        tx = place[self.tx].astype(np.int32)
        rows = sorting(tx, self.vout)
        return Outputs(
            tx[rows],
            self.vout[rows],
            self.value.take(pa.array(rows)),
            self.owner[rows],
            self.spendable[rows],
        )


@dataclass(frozen=True, eq=False)
class Mentions:
    """Coins that transactions of the window spend, or may spend: members of rings.

    `maker` is a transaction of the window, or, below 0, -1 - k for the earlier one `older` k.
    """

    tx: Numbers
    vin: Wholes
    maker: Numbers
    vout: Wholes
    older: Names

    def in_order(self, place: Ints) -> tuple[Mentions, Ints]:
        """Give transactions their places, sort by them and by vin, and say where rows were."""
        tx = place[self.tx].astype(np.int32)
        rows = sorting(tx, self.vin)
        maker, own = self.maker[rows], self.maker[rows] >= 0
        maker[own] = place[maker[own]]
        return Mentions(tx[rows], self.vin[rows], maker, self.vout[rows], self.older), rows


def sorting(first: Numbers, second: Wholes) -> Ints:
    """Give the rows sorted by one column, then by another."""
    key = first.astype(np.uint64) << np.uint64(32) | second
    if bool(np.all(key[1:] >= key[:-1])):
        return np.arange(len(key))
    return np.argsort(key, kind="stable")


def read_transactions(store: Store, window: LedgerWindow) -> Transactions:
    """Read the transactions of a window in order, as far as sources give it."""
    names, columns = Names(), _Pieces()
    for batch in store.stream(
        f"SELECT {_NAME} AS name, height, coalesce(position, -1) AS place, coinbase, time FROM "
        f"transactions WHERE {window.inside()} ORDER BY height, position, txid"
    ):
        number = names.add(batch["name"])
        first = len(columns)
        columns.add(
            heights=_ints(batch["height"]),
            position=_ints(batch["place"]),
            coinbase=_flags(batch["coinbase"]),
            times=_nullable(batch["time"]),
        )
        if len(names) < len(columns):
            row = int(np.flatnonzero(number != np.arange(first, len(columns)))[0])
            name, height = batch["name"][row].as_py(), batch["height"][row].as_py()
            raise LedgerError(
                store.place_of(height, name),
                "one id at two heights",
                value=name,
                fix="if the chain was reorganised, ingest from its node; else one source is wrong",
            )
    return Transactions(
        names,
        columns.take("heights", np.int64),
        columns.take("position", np.int64),
        columns.take("coinbase", np.bool_),
        columns.take_nullable("times"),
    )


def read_outputs(store: Store, made: Transactions, owners: Names) -> Outputs:
    """Read the coins that transactions of the window make, numbering their owners."""
    columns = _Pieces()
    wanted = f"vout, value, owner, spendable AND NOT ({_LOST}) AS spendable"
    for batch, tx in _batches(store, made, "outputs", wanted):
        columns.add(
            tx=tx,
            vout=_wholes(batch, "vout"),
            value=_nullable(batch["value"]),
            owner=owners.add(batch["owner"]),
            spendable=_flags(batch["spendable"]),
        )
    return Outputs(
        columns.take("tx", np.int32),
        columns.take("vout", np.uint32),
        columns.take_nullable("value"),
        columns.take("owner", np.int32),
        columns.take("spendable", np.bool_),
    )


def read_inputs(
    store: Store, made: Transactions, owners: Names
) -> tuple[Mentions, pa.Int64Array, Numbers]:
    """Read what transactions of the window spend; of earlier coins, in order, value and owner."""
    older, columns = Names(), _Pieces()
    wanted = "vin, spent_txid AS coin_txid, spent_vout AS coin_vout, value, owner"
    for batch, tx in _batches(store, made, "inputs", wanted):
        mentioned = _mentioned(batch, tx, made, older)
        rows = pa.array(np.flatnonzero(mentioned["maker"] < 0))
        columns.add(
            value=_nullable(batch["value"].take(rows)),
            owner=owners.add(batch["owner"].take(rows)),
            **mentioned,
        )
    value, owner = columns.take_nullable("value"), columns.take("owner", np.int32)
    return _mentions(columns, older), value, owner


def read_rings(store: Store, made: Transactions) -> Mentions:
    """Read the members of the rings of a window."""
    older, columns = Names(), _Pieces()
    wanted = "vin, member_txid AS coin_txid, member_vout AS coin_vout"
    for batch, tx in _batches(store, made, "rings", wanted):
        columns.add(**_mentioned(batch, tx, made, older))
    return _mentions(columns, older)


def read_flows(store: Store, made: Transactions) -> pa.Table:
    """Read what transactions of the window move into pools and out of them."""
    kinds = [("tx", pa.int32()), ("pool", pa.string()), ("into_pool", pa.int64())]
    parts = [
        pa.table({"tx": tx, "pool": batch["pool"], "into_pool": batch["into_pool"]})
        for batch, tx in _batches(store, made, "pool_flows", "pool, into_pool")
    ]
    return pa.concat_tables([pa.schema(kinds).empty_table(), *parts])


NOT_STATED = -(2**63)


@dataclass(frozen=True, eq=False)
class StatedTransactions:
    """What sources say of inputs and outputs of transactions; `NOT_STATED` where they do not.

    A number below 0 is stated, and wrong: a source that counts fewer inputs than are shielded.
    """

    tx: Numbers
    columns: dict[str, Ints]


def read_stated(store: Store, made: Transactions) -> StatedTransactions | None:
    """Read what sources say of the transactions of a window, if any of it was stored."""
    if not store.has_statements or not store.ask("SELECT 1 FROM stated_transactions LIMIT 1"):
        return None
    names = [n for n in SCHEMAS["stated_transactions"].names if n not in ("height", "txid")]
    wanted = ", ".join(f"coalesce({n}, {NOT_STATED}) AS {n}" for n in names)
    columns = _Pieces()
    for batch, tx in _batches(store, made, "stated_transactions", wanted):
        columns.add(tx=tx, **{n: _ints(batch[n]) for n in names})
    found = {n: columns.take(n, np.int64) for n in names}
    return StatedTransactions(columns.take("tx", np.int32), found)


def _batches(
    store: Store, made: Transactions, table: str, wanted: str
) -> Iterator[tuple[pa.RecordBatch, Numbers]]:
    """Read the rows of a table that belong to transactions of the window, and to which."""
    query = f"SELECT {_NAME} AS name, height, {wanted} FROM {table} WHERE {made.span}"
    for batch in store.stream(query):
        tx = made.find(batch)
        ours = tx >= 0
        yield (batch, tx) if ours.all() else (batch.filter(pa.array(ours)), tx[ours])


def _mentioned(
    batch: pa.RecordBatch, tx: Numbers, made: Transactions, older: Names
) -> dict[str, Any]:
    maker = made.names.find(batch["coin_txid"])
    earlier = maker < 0
    maker[earlier] = -1 - older.add(batch["coin_txid"].filter(pa.array(earlier)))
    vin, vout = _wholes(batch, "vin"), _wholes(batch, "coin_vout")
    return {"tx": tx, "vin": vin, "maker": maker, "vout": vout}


def _mentions(columns: _Pieces, older: Names) -> Mentions:
    return Mentions(
        columns.take("tx", np.int32),
        columns.take("vin", np.uint32),
        columns.take("maker", np.int32),
        columns.take("vout", np.uint32),
        older,
    )


class _Pieces:
    """Columns that come in pieces, put together one at a time."""

    def __init__(self) -> None:
        self._pieces: dict[str, list[Any]] = {}
        self._rows = 0

    def __len__(self) -> int:
        return self._rows

    def add(self, **pieces: Any) -> None:
        self._rows += len(next(iter(pieces.values())))
        for name, piece in pieces.items():
            self._pieces.setdefault(name, []).append(piece)

    def take(self, name: str, kind: type[Kind]) -> npt.NDArray[Kind]:
        """Give a column whole and forget its pieces."""
        return np.concatenate([np.empty(0, dtype=kind), *self._pieces.pop(name, [])])

    def take_nullable(self, name: str) -> pa.Int64Array:
        return pa.concat_arrays([pa.array([], pa.int64()), *self._pieces.pop(name, [])])


# All of these copy: one column of a batch that is retained holds the whole batch in memory.
def _ints(column: pa.Array) -> Ints:
    return np.array(column, dtype=np.int64)


def _wholes(batch: pa.RecordBatch, name: str) -> Wholes:
    numbers = np.asarray(batch[name])
    wrong = (numbers < 0) | (numbers > MAX_OUTPUTS)
    if wrong.any():
        row = int(wrong.argmax())
        raise LedgerError(
            f"transaction {batch['name'][row].as_py()}",
            f"{name} out of range: a whole number from 0 to {MAX_OUTPUTS}",
            value=int(numbers[row]),
        )
    return numbers.astype(np.uint32)


def _flags(column: pa.Array) -> Bools:
    return np.array(column.to_numpy(zero_copy_only=False), dtype=np.bool_)


def _nullable(column: pa.Array) -> pa.Int64Array:
    unknown = None if not column.null_count else np.asarray(column.is_null())
    return pa.array(np.array(column.fill_null(0), dtype=np.int64), mask=unknown)
