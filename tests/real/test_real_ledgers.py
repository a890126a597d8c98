"""Real ledgers, end to end: read, scored both ways, and held against the laws."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import coinhaze
from coinhaze.options import Time

Rows = Iterator[tuple[str, str, str]]


def dgd_token(data: Path) -> Rows:
    with gzip.open(data / "erc20_token_dgd" / "networkdgd.txt.gz", "rt") as file:
        rows = sorted((line.split() for line in file if line.strip()), key=lambda r: int(r[2]))
    for sender, receiver, _, value in rows:
        yield sender, receiver, value


def ether(data: Path) -> Rows:
    files = sorted((data / "eth_480000_499999").glob("*transactions*.parquet"))
    table = pa.concat_tables([pq.read_table(f) for f in files])
    table = table.sort_by([("block_number", "ascending"), ("transaction_index", "ascending")])
    for row in table.select(["from_address", "to_address", "value", "hash"]).to_pylist():
        yield row["from_address"], row["to_address"] or f"created by {row['hash']}", row["value"]


def dai(data: Path) -> Rows:
    with gzip.open(data / "erc20_dai_2019_12_12" / "dai_transfers.csv.gz", "rt") as file:
        for row in csv.DictReader(file):
            yield row["txfrom"], row["txto"], row["txvalue"]


@pytest.mark.parametrize("source", [dgd_token, ether, dai])
@pytest.mark.parametrize("time", ["stationary", "temporal"])
def test_a_real_ledger_is_scored_and_obeys_the_laws(
    data: Path, tmp_path: Path, source: Callable[[Path], Rows], time: Time
) -> None:
    path = tmp_path / "transfers.csv"
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["from", "to", "amount"])
        writer.writerows(source(data))
    scores = coinhaze.score(path, time=time)
    assert len(scores) > 500
    assert not np.isnan(scores.bits).any()
    assert scores.width <= 1e-9
    assert scores.conservation is not None
    assert scores.conservation < 1e-10
    assert np.abs(scores.mass - 1).max() < 1e-10
    assert scores.summary().bits_mean > 0.3


def test_money_is_retained_to_the_last_unit(data: Path) -> None:
    ledger = coinhaze.AccountLedger.from_transfers(dai(data))
    graph = coinhaze.transaction_graph(ledger)
    assert graph.opening is not None
    assert graph.closing is not None
    assert sum(graph.opening.ints()) == sum(graph.closing.ints())
