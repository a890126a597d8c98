"""Damaged files of Ethereum-like ledgers: rows that obey the schema, or an error of ours."""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from coinhaze.formats.blockchair import ethereum as blockchair_ethereum
from coinhaze.formats.ethereum import cryo
from coinhaze.formats.ethereum import etl as ethereum_etl
from formats.ethereum_files import (
    blockchair_transaction,
    call,
    coinbase_call,
    csv_text,
    erc20,
    json_text,
    reward,
    token_transfer,
    trace,
    transaction,
    tsv_text,
    txid,
)
from formats.ethereum_mutants import is_read_or_refused, mutants
from formats.test_cryo import call as cryo_call
from formats.test_cryo import erc20 as cryo_transfers
from formats.test_cryo import hexadecimal, native
from formats.test_cryo import traces as cryo_traces

MUTANTS, MANY = 250, 20_000  # of each reader's files together

TRANSACTIONS = [transaction(receipt_status=1), transaction(hash=txid(2), to_address=None, value=3)]
TRANSACTIONS[1]["receipt_status"] = None
TRACES = [
    trace(),
    trace(trace_address="0", call_type="delegatecall"),
    trace(trace_address="0,1", status=None),
    trace(trace_address="0,1,10", error="Reverted", status=0),
    reward(),
]
TOKENS = [token_transfer(), token_transfer(value=2**256 - 1, log_index=5)]
BLOCK = {
    "number": 7,
    "hash": txid(7),
    "parent_hash": txid(6),
    "timestamp": 99,
    "withdrawals": [{"index": 3, "address": "0x" + "1" * 40, "amount": 2}],
}
CALLS = [call(), call(index="0.1", failed=1, transferred=0), call(index="0.1.0"), coinbase_call()]


def parquet(rows: list[dict[str, Any]], **types: pa.DataType) -> bytes:
    columns = {n: pa.array([r[n] for r in rows], types.get(n)) for n in rows[0]}
    out = io.BytesIO()
    pq.write_table(pa.table(columns), out, compression="none", use_dictionary=False)
    return out.getvalue()


FILES: dict[str, tuple[ModuleType, bytes]] = {
    "transactions.csv": (ethereum_etl, csv_text(TRANSACTIONS)),
    "transactions.json": (ethereum_etl, json_text(TRANSACTIONS)),
    "traces.csv": (ethereum_etl, csv_text(TRACES)),
    "traces.json": (ethereum_etl, json_text([r | {"trace_address": []} for r in TRACES[:1]])),
    "token_transfers.csv": (ethereum_etl, csv_text(TOKENS)),
    "blocks.json": (ethereum_etl, json_text([BLOCK])),
    "transactions.parquet": (
        ethereum_etl,
        parquet([r | {"value": str(r["value"])} for r in TRANSACTIONS]),
    ),
    "traces.parquet": (ethereum_etl, parquet(TRACES)),
    "erc20_transfers.parquet": (cryo, parquet(pa.table(cryo_transfers()).to_pylist())),
    "native_transfers.csv": (
        cryo,
        csv_text(pa.table(hexadecimal(native([(b"a" * 20, b"b" * 20, 5)]))).to_pylist()),
    ),
    "cryo_traces.parquet": (
        cryo,
        parquet(
            pa.table(
                cryo_traces(
                    [
                        cryo_call("call", b"a" * 20, b"b" * 20, 5),
                        cryo_call("create", b"b" * 20, None, 5, "0", result_address=b"c" * 20),
                    ]
                )
            ).to_pylist(),
            error=pa.string(),
        ),
    ),
    "calls.tsv": (blockchair_ethereum, tsv_text(CALLS)),
    "transactions.tsv": (blockchair_ethereum, tsv_text([blockchair_transaction()])),
    "erc20.tsv": (blockchair_ethereum, tsv_text([erc20(), erc20(token_name='"')])),
}


@pytest.mark.parametrize("count", [MUTANTS, pytest.param(MANY, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", FILES)
def test_a_damaged_file_gives_rows_or_an_error_of_ours(
    tmp_path: Path, name: str, count: int
) -> None:
    reader, good = FILES[name]
    path = tmp_path / name
    assert is_read_or_refused(reader, path, good)
    share = count // sum(other is reader for other, _ in FILES.values())
    read_well = sum(is_read_or_refused(reader, path, m) for m in mutants(good, share, seed=count))
    assert 0 < read_well < share


@pytest.mark.parametrize("name", ["traces.csv", "traces.json", "calls.tsv"])
@pytest.mark.parametrize("count", [MUTANTS // 10, pytest.param(200, marks=pytest.mark.long)])
def test_damaged_gzip_gives_rows_or_an_error_of_ours(tmp_path: Path, name: str, count: int) -> None:
    reader, good = FILES[name]
    packed = gzip.compress(good, mtime=0)
    path = tmp_path / f"{name}.gz"
    assert is_read_or_refused(reader, path, packed)
    outcomes = [is_read_or_refused(reader, path, m) for m in mutants(packed, count, seed=3)]
    assert not all(outcomes)
