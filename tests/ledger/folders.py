"""Small ledgers of every kind, to be written to folders and spoilt."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from coinhaze.ledger import AccountLedger, CoinLedger

Spoil = Callable[[list[Any]], object]


def coins(**settings: Any) -> CoinLedger:
    """Two coinbases, earlier coins, a data output, an output without an address."""
    return CoinLedger.from_transactions(
        [
            {"txid": "m1", "outputs": [{"value": 50, "address": "miner"}], "height": 7, "time": 9},
            {"txid": "m2", "outputs": [{"value": 50, "address": "miner"}]},
            {
                "txid": "p1",
                "inputs": [
                    {"txid": "m1", "vout": 0},
                    {"txid": "x", "vout": 3, "value": 7, "address": "ann"},
                ],
                "outputs": [
                    {"value": 30, "address": "bob"},
                    {"value": 20},
                    {"value": 0, "spendable": False},
                ],
            },
            {
                "txid": "p2",
                "inputs": [{"txid": "p1", "vout": 1}],
                "outputs": [{"value": 19, "address": "ann"}],
            },
        ],
        **settings,
    )


def shielded() -> CoinLedger:
    """Value in and out of pools, with a value the chain gives for one of them."""
    return CoinLedger.from_transactions(
        [
            {"txid": "m", "outputs": [{"value": 50, "address": "a"}]},
            {"txid": "in", "inputs": [{"txid": "m", "vout": 0}], "pools": {"sapling": 49}},
            {"txid": "out", "pools": {"orchard": -9}, "outputs": [{"value": 8, "address": "b"}]},
        ],
        pool_values={"orchard": 2**200},
    )


def rings() -> CoinLedger:
    """Hidden amounts, rings with a posterior."""
    return CoinLedger.from_transactions(
        [
            {"txid": "a", "outputs": 2},
            {"txid": "b", "rings": [["a:0", "a:1"], ["z:0"]], "posteriors": [[0.25, 0.75], [1]]},
        ]
    )


def accounts() -> AccountLedger:
    """Amounts of 256 bits, ids, times and fees."""
    return AccountLedger.from_columns(
        ["a", "b", "c"],
        ["b", "c", "a"],
        [2**256 - 1, 5, 0],
        ids=["t:0", "t:1", "u:0"],
        times=pa.array([1, None, 3], pa.timestamp("s", "UTC")),
        fees=[1, 2, 3],
    )


def same(a: CoinLedger | AccountLedger, b: CoinLedger | AccountLedger) -> bool:
    """Tell whether two ledgers hold the same."""
    settings = ("complete", "pool_values")
    alike = all(getattr(a, name, None) == getattr(b, name, None) for name in settings)
    return type(a) is type(b) and alike and a.tables() == b.tables()


def spoil(folder: Path, table: str, column: str, change: Spoil) -> None:
    """Rewrite one column of one file, its type kept if the new values fit it."""
    path = folder / f"{table}.parquet"
    data = pq.read_table(path)
    values = data[column].to_pylist()
    change(values)
    kind = data.schema.field(column).type
    if pa.types.is_integer(kind) and any(isinstance(v, float) for v in values):
        kind = pa.float64()  # Arrow would cut fractions off
    try:
        new = pa.array(values, kind)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        new = pa.array(values)
    pq.write_table(data.set_column(data.column_names.index(column), column, new), path)


def put(row: int, value: object) -> Spoil:
    """Put a value into a row."""
    return lambda values: values.__setitem__(row, value)


def repeat_rows(folder: Path, table: str, rows: list[int]) -> None:
    """Keep these rows of a file, in this order."""
    path = folder / f"{table}.parquet"
    pq.write_table(pq.read_table(path).take(pa.array(np.array(rows))), path)
