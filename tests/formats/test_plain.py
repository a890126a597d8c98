"""Plain columns in Parquet, Arrow, CSV and streams: one ledger however they came."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import coinhaze
from coinhaze.errors import CoinhazeError, InputError, LedgerError, UsageError
from coinhaze.formats.registry import format_of
from coinhaze.formats.tabular import plain, table_rows
from coinhaze.ledger import AccountLedger, CoinLedger
from coinhaze.ledger.batches import SCHEMAS
from coinhaze.readers import read
from coinhaze.store.ingest import ingest
from coinhaze.store.read import read_store
from coinhaze.store.store import Store
from coinhaze.store.verify import verify
from ledger.mutants import mutants as damaged

ZERO = "0x" + "0" * 40
LARGEST = 2**256 - 1
Columns = dict[str, Any]

PAID: Columns = {
    "from": [ZERO, "ann", "bob", "ann"],
    "to": ["ann", "bob", "cat", "ann"],
    "amount": [10, 7, 3, 1],
}
NAMED = PAID | {
    "txid": ["t1", "t1", "t2", "t3"],
    "log_index": [0, 4, 1, 0],
    "height": [5, 5, 6, 9],
    "time": [100, 100, 200, 300],
}
COINS: dict[str, Columns] = {
    "transactions": {
        "height": [1, 2], "txid": ["aa", "bb"], "coinbase": [True, False], "position": [0, 0],
    },
    "outputs": {
        "height": [1, 2, 2], "txid": ["aa", "bb", "bb"], "vout": [0, 0, 1], "value": [50, 30, 19],
        "owner": ["ann", "bob", None], "spendable": [True, True, True],
    },
    "inputs": {
        "height": [2], "txid": ["bb"], "vin": [0], "spent_txid": ["aa"], "spent_vout": [0],
    },
}  # fmt: skip


def as_parquet(path: Path, table: pa.Table) -> None:
    pq.write_table(table, path, row_group_size=2)


def as_file(path: Path, table: pa.Table) -> None:
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=2)


def as_stream(path: Path, table: pa.Table) -> None:
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=2)


def as_csv(path: Path, table: pa.Table) -> None:
    pyarrow.csv.write_csv(table, path)


WRITERS: dict[str, Callable[[Path, pa.Table], None]] = {
    "parquet": as_parquet, "arrow": as_file, "arrows": as_stream, "csv": as_csv,
}  # fmt: skip
BINARY = [kind for kind in WRITERS if kind != "csv"]


def written(folder: Path, kind: str, columns: Columns | pa.Table, name: str = "file") -> Path:
    table = columns if isinstance(columns, pa.Table) else pa.table(columns)
    path = folder / f"{name}.{kind}"
    WRITERS[kind](path, table)
    return path


def transfers(ledger: AccountLedger | CoinLedger) -> list[dict[str, Any]]:
    assert isinstance(ledger, AccountLedger)
    rows: list[dict[str, Any]] = ledger.tables()["transfers"].to_pylist()
    return [row | {"amount": int(row["amount"])} for row in rows]


def in_store(paths: list[Path], **cut: Any) -> AccountLedger | CoinLedger:
    with Store(None) as store:
        ingest(paths, store)
        verify(store)
        return read_store(store, **cut)


@pytest.mark.parametrize("kind", WRITERS)
def test_transfers_are_read_as_rows_of_a_csv_file_are(tmp_path: Path, kind: str) -> None:
    path = written(tmp_path, kind, PAID)
    assert transfers(read(path)) == [
        {"from": a, "to": b, "amount": n} for a, b, n in zip(*PAID.values(), strict=True)
    ]
    scores = coinhaze.score(path)
    assert scores.to_arrow()["top_source"].to_pylist() == ["mint:0"] * 3


@pytest.mark.parametrize("kind", WRITERS)
def test_ids_heights_and_times_are_retained(tmp_path: Path, kind: str) -> None:
    path = written(tmp_path, kind, NAMED)
    assert format_of(path) == "transfers"
    for ledger in (read(path), in_store([path])):
        rows = transfers(ledger)
        assert [row["id"] for row in rows] == ["t1:0", "t1:4", "t2:1", "t3:0"]
        assert [row["time"].timestamp() for row in rows] == NAMED["time"]
    window = read(path, first=6, last=8)
    assert [row["id"] for row in transfers(window)] == ["t2:1"]


def test_all_ways_give_the_same_ledger(tmp_path: Path) -> None:
    table = pa.table(NAMED)
    ways: list[Any] = [written(tmp_path, kind, NAMED) for kind in WRITERS]
    ways += [table, table.to_reader(), duckdb.from_arrow(table), [table[:2], table[2:]]]
    found = [transfers(read(way)) for way in ways]
    assert all(rows == found[0] for rows in found)


def test_objects_are_scored_as_files_are(tmp_path: Path) -> None:
    table, path = pa.table(NAMED), written(tmp_path, "parquet", NAMED)
    assert coinhaze.score(table).to_arrow() == coinhaze.score(path).to_arrow()
    assert coinhaze.score([table]).to_arrow() == coinhaze.score([path]).to_arrow()
    tokens = table.append_column("token", pa.array(["X", "x", "y", "y"]))
    assert len(read(tokens, token="x")) == 2
    assert len(read(tokens, token="y", first=6)) == 2


@pytest.mark.parametrize(
    "amounts",
    [
        pa.array([10, 7, 3, 1], pa.uint64()),
        pa.array([10, 7, 3, 1], pa.int8()),
        pa.array([Decimal(n) for n in (10, 7, 3, 1)], pa.decimal128(38, 0)),
        pa.array([Decimal(n) for n in (10, 7, 3, 1)], pa.decimal256(76, 9)),
        pa.array(["10", "007", "3", "1"]),
        pa.array(["10", "7", "3", "1"], pa.large_string()),
        pa.array(["10", "7", "3", "1"], pa.string_view()),
        pa.array(["10", "7", "3", "1"]).dictionary_encode(),
        pa.array([n.to_bytes(32) for n in (10, 7, 3, 1)], pa.binary(32)),
    ],
    ids=lambda a: str(a.type),
)
def test_amounts_may_have_any_type_that_is_exact(tmp_path: Path, amounts: pa.Array) -> None:
    table = pa.table(PAID | {"amount": amounts})
    ways: list[Any] = [table, written(tmp_path, "arrow", table), written(tmp_path, "arrows", table)]
    for way in ways:
        assert [row["amount"] for row in transfers(read(way))] == [10, 7, 3, 1]


@pytest.mark.parametrize("kind", WRITERS)
def test_amounts_are_exact_to_the_largest_of_256_bits(tmp_path: Path, kind: str) -> None:
    amounts = [LARGEST, 2**64, 2**53 + 1, 0]
    ways = [pa.array([str(n) for n in amounts])]
    if kind != "csv":
        ways.append(pa.array([n.to_bytes(32) for n in amounts], pa.binary(32)))
    for column in ways:
        path = written(tmp_path, kind, NAMED | {"amount": column})
        assert [row["amount"] for row in transfers(read(path))] == amounts
        assert [row["amount"] for row in transfers(in_store([path]))] == amounts


@pytest.mark.parametrize(
    ("column", "says"),
    [
        (pa.array([10.0, 7, 3, 1]), r"amount is stored as double, which loses digits .*integers"),
        (pa.array([10, 7, 3, 1], pa.float32()), "which loses digits"),
        (pa.array([10, 7, -3, 1]), r"row 3: amount is negative: -3"),
        (pa.array([10, None, 3, 1]), r"row 2: amount is missing"),
        (pa.array(["10", "7", "1e3", "1"]), r"row 3: amount is not a whole number.*'1e3'"),
        (pa.array(["10", "7", str(2**256), "1"]), r"row 3: amount is above 2\^256 - 1"),
        (pa.array([Decimal("1.5")] * 4, pa.decimal128(9, 1)), "row 1: amount is not whole"),
        (pa.array([b"x" * 31] * 4, pa.binary(31)), "row 1: amount is not 32 bytes"),
        (pa.array([True] * 4), "column amount holds bool, not amounts"),
    ],
    ids=range(9),
)
@pytest.mark.parametrize("kind", BINARY)
def test_amounts_that_are_none_are_refused_by_row(
    tmp_path: Path, kind: str, column: pa.Array, says: str
) -> None:
    path = written(tmp_path, kind, NAMED | {"amount": column})
    for act in (read, lambda path: in_store([path])):
        with pytest.raises(LedgerError, match=says) as refused:
            act(path)
        assert str(path) in str(refused.value)


REFUSED: dict[str, tuple[Columns, str]] = {
    "no sender": (PAID | {"from": [None, "a", "b", "c"]}, "row 1: from is missing"),
    "an empty name": (PAID | {"to": ["a", "", "b", "c"]}, "row 2: to is missing"),
    "a NUL in a name": (PAID | {"to": ["a", "b\0", "b", "c"]}, "row 2: to holds a control"),
    "names as numbers": (PAID | {"to": [1, 2, 3, 4]}, "column to holds int64, not text"),
    "two spellings": (PAID | {"value": [1] * 4}, "columns amount, value both mean amount"),
    "heights against times": (
        NAMED | {"height": [5, 5, 4, 9]},
        "row 1: height says that this row comes after .*row 3, time that it comes before",
    ),
    "a negative height": (NAMED | {"height": [-1, 4, 6, 9]}, "row 1: height is not a whole number"),
    "no log index": (NAMED | {"log_index": [0, None, 1, 1]}, "row 2: log_index is missing"),
    "a position alone": (PAID | {"position": [0, 1, 2, 3]}, "a position without a height"),
    "ids that change": (
        PAID | {"id": ["a:0", "a:1", "b", "c:1"]},
        "row 3: id does not end in a number as those before do",
    ),
    "a time that is none": (PAID | {"time": ["1", "2", "x", "3"]}, "row 3: time is not like"),
    "a time beyond all": (PAID | {"time": [2**60] * 4}, "row 1: time is not a whole number"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_columns_that_break_a_rule_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(table_rows, "AT_ONCE", 2)
    columns, says = REFUSED[name]
    path = written(tmp_path, "parquet", columns)
    with pytest.raises(LedgerError, match=says):
        list(plain.batches(path))
    with pytest.raises(LedgerError, match=says):
        read(pa.table(columns))


def test_one_id_with_two_contents_is_refused_and_the_same_twice_is_one(tmp_path: Path) -> None:
    twice = {name: [*column, column[0]] for name, column in NAMED.items() if name != "height"}
    assert len(read(pa.table(twice))) == 4
    twice["amount"][-1] += 1
    with pytest.raises(LedgerError, match="the same id"):
        read(pa.table(twice))


def test_rows_without_ids_are_each_a_transfer_of_its_own(tmp_path: Path) -> None:
    table = pa.table(PAID)
    assert len(read([table, table])) == 8
    path = written(tmp_path, "parquet", pa.concat_tables([table, table]))
    assert len(in_store([path])) == len(read(path)) == 8


def test_a_store_takes_one_file_without_heights_and_refuses_a_second(tmp_path: Path) -> None:
    one = written(tmp_path, "parquet", PAID)
    two = written(tmp_path, "arrow", PAID, "other")
    with Store(None) as store:
        ingest([one], store)
        assert ingest([one], store).known == 1
        with pytest.raises(
            LedgerError, match="takes one table without heights, and has one already"
        ):
            ingest([two], store)
        assert len(read_store(store)) == 4


def test_overlapping_files_that_tell_positions_are_one_ledger(tmp_path: Path) -> None:
    table = pa.table(NAMED | {"position": [3, 3, 0, 0]})
    paths = [
        written(tmp_path, "parquet", part, str(k)) for k, part in enumerate((table[:3], table[1:]))
    ]
    assert [row["id"] for row in transfers(read(paths))] == ["t1:0", "t1:4", "t2:1", "t3:0"]


def test_what_a_store_exports_is_read_again(tmp_path: Path) -> None:
    with Store(tmp_path / "store") as store:
        ingest([written(tmp_path, "parquet", NAMED | {"amount": [str(LARGEST)] * 4})], store)
        before, path = read_store(store), tmp_path / "export.parquet"
    # A store opened by coinhaze writes no other file; anybody may export with the database alone.
    with duckdb.connect(str(tmp_path / "store"), read_only=True) as database:
        database.execute(
            f"COPY (SELECT * FROM transfers ORDER BY amount) TO '{path}' (FORMAT parquet)"
        )
    assert transfers(read(path)) == transfers(before)


def test_fees_lower_balances_and_are_refused_by_a_store(tmp_path: Path) -> None:
    path = written(tmp_path, "parquet", PAID | {"fee": [0, 2, 0, 0]})
    ledger = read(path)
    assert isinstance(ledger, AccountLedger)
    assert ledger.fees is not None
    assert ledger.fees.ints() == [0, 2, 0, 0]
    with pytest.raises(LedgerError, match=r"row 2: fee is not 0.*a store keeps no fees"):
        in_store([path])


def test_several_tokens_are_not_added_up(tmp_path: Path) -> None:
    path = written(tmp_path, "csv", PAID | {"token": ["DAI", "DAI", "USDC", "USDC"]})
    with pytest.raises(UsageError, match=r"2 tokens \(DAI, USDC\): name one \(--token"):
        read(path)
    assert [row["amount"] for row in transfers(read(path, token="dai"))] == [10, 7]


@pytest.mark.parametrize("kind", WRITERS)
def test_tables_of_coins_are_a_ledger(tmp_path: Path, kind: str) -> None:
    paths = [written(tmp_path, kind, columns, name) for name, columns in COINS.items()]
    for ledger in (read(paths), in_store(paths), read([pa.table(c) for c in COINS.values()])):
        assert isinstance(ledger, CoinLedger)
        assert ledger.output_names().to_pylist() == ["aa:0", "bb:0", "bb:1"]
        assert ledger.output_value is not None
        assert ledger.output_value.ints() == [50, 30, 19]
        assert ledger.owners.to_pylist() == ["ann", "bob", "bb:1"]


def test_rows_of_coins_without_their_transactions_are_refused(tmp_path: Path) -> None:
    for name in ("outputs", "inputs"):
        table = pa.table(COINS[name])
        says = rf"{name}: a row of a transaction that is not there.*'\d aa|bb'"
        with pytest.raises(LedgerError, match=says):
            read(table)
        with pytest.raises(LedgerError, match=says):
            read(written(tmp_path, "parquet", table))


@pytest.mark.parametrize(
    ("table", "changes", "says"),
    [
        ("outputs", {"value": [5.0, 3, 1]}, "value is stored as double.*whole satoshi"),
        ("outputs", {"value": ["5", str(2**63), "1"]}, "row 2: value is above"),
        ("outputs", {"value": [5, -1, 1]}, "row 2: value is not a whole number"),
        ("outputs", {"vout": [0, 2**32, 1]}, "row 2: vout is not a whole number"),
        ("outputs", {"owner": ["a", "b\n", "c"]}, "row 2: owner holds a control character"),
        ("transactions", {"coinbase": [True, None]}, "row 2: coinbase is missing"),
        ("transactions", {"coinbase": [2, 0]}, "row 1: coinbase is not a whole number"),
        ("transactions", {"height": [1, 2**31]}, "row 2: height is not a whole number"),
        ("transactions", {"time": [1, 2**32]}, "row 2: time is above"),
        ("inputs", {"spent_txid": [None]}, "row 1: spent_txid is missing"),
    ],
    ids=range(10),
)
def test_rows_of_coins_that_break_a_rule_are_refused(
    tmp_path: Path, table: str, changes: Columns, says: str
) -> None:
    path = written(tmp_path, "parquet", COINS[table] | changes)
    with pytest.raises(LedgerError, match=says):
        list(plain.batches(path))


def test_values_of_coins_may_be_decimals_or_digits(tmp_path: Path) -> None:
    for values in (["50", "30", "19"], [Decimal(50), Decimal(30), Decimal(19)]):
        path = written(tmp_path, "parquet", COINS["outputs"] | {"value": values})
        (batch,) = plain.batches(path)
        assert batch.tables["outputs"]["value"].to_pylist() == [50, 30, 19]


def test_pools_that_are_none_are_refused(tmp_path: Path) -> None:
    flows = {"height": [1], "txid": ["aa"], "pool": ["puddle"], "into_pool": [-5]}
    with pytest.raises(LedgerError, match="row 1: pool is none of sprout"):
        list(plain.batches(written(tmp_path, "arrow", flows)))
    (batch,) = plain.batches(written(tmp_path, "arrow", flows | {"pool": ["sapling"]}))
    assert batch.tables["pool_flows"]["into_pool"].to_pylist() == [-5]


def test_a_stream_that_was_cut_is_refused_wherever_it_was(tmp_path: Path) -> None:
    for kind in BINARY:
        path = written(tmp_path, kind, NAMED)
        good = path.read_bytes()
        for size in range(8, len(good), 7):
            path.write_bytes(good[:size])
            with pytest.raises(InputError):
                list(plain.batches(path))
    path = written(tmp_path, "arrows", NAMED)
    path.write_bytes(path.read_bytes() + b"more")
    with pytest.raises(InputError, match="without its end"):
        list(plain.batches(path))


def test_packed_arrow_is_refused_and_packed_csv_is_read(tmp_path: Path) -> None:
    for kind in BINARY:
        packed = tmp_path / f"packed.{kind}"
        packed.write_bytes(gzip.compress(written(tmp_path, kind, NAMED).read_bytes()))
        with pytest.raises(InputError, match=r"unpack it first|no known format"):
            read(packed)
    packed = tmp_path / "packed.csv"
    packed.write_bytes(gzip.compress(written(tmp_path, "csv", NAMED).read_bytes()))
    assert len(read(packed)) == 4


def test_rows_are_read_some_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_rows, "AT_ONCE", 3)
    n = 20
    columns = {"from": ["a"] * n, "to": ["b"] * n, "amount": list(range(n))}
    for kind in BINARY:
        batches = list(plain.batches(written(tmp_path, kind, columns)))
        assert max(len(b.tables["transfers"]) for b in batches) <= 3
        rows = [r for b in batches for r in b.tables["transfers"].to_pylist()]
        assert [int(r["amount"]) for r in rows] == [r["step"] for r in rows] == list(range(n))
        assert batches[-1].where("transfers", 0).endswith("row 19") or len(batches) > 7


def test_what_has_no_plain_columns_is_not_taken_for_them(tmp_path: Path) -> None:
    table = pa.table({"from": ["a"], "amount": [1]})
    for kind in WRITERS:
        path = written(tmp_path, kind, table)
        with pytest.raises(InputError, match="no known format"):
            format_of(path)
        with pytest.raises(LedgerError, match=r"no plain columns.*transfers have from, to, amount"):
            list(plain.batches(path))
    with pytest.raises(LedgerError, match="table 0: no plain columns"):
        read(table)
    assert not plain.recognises(b'{"height": 5, "hash": "ab", "time": 3}\n')
    with pytest.raises(UsageError, match="stand alone"):
        read([pa.table(PAID), tmp_path])


PIECES = [
    b"", b"\0", b"\xff" * 4, b"\xff" * 8, b"\x7f", b"ARROW1\0\0", b"PAR1", b"\0" * 8, b"\x01",
    b"9" * 30, b"-", b",", b"\n", b'"', b"\x00\x00\x00\x80", b"\xff\xff\xff\x7f", b"amount", b"id",
]  # fmt: skip
mutants = partial(damaged, pieces=PIECES, cuts=(0, 1, 1, 2, 4, 8, 40), repeats=(4, 8, 64, 400))


def obey(path: Path) -> None:
    for batch in plain.batches(path):
        for name, table in batch.tables.items():
            table.validate(full=True)
            assert table.schema.equals(SCHEMAS[name])
            for number, row in enumerate(table.to_pylist()):
                assert 0 <= row["height"] < 2**31
                if name == "transfers":
                    assert 0 <= int(row["amount"]) <= LARGEST
                    assert row["sender"]
                    assert row["recipient"]
                    assert str(path) in batch.where(name, number)
                assert row.get("value") is None or 0 <= row["value"] < 2**63


@pytest.mark.parametrize("count", [250, pytest.param(2500, marks=pytest.mark.long)])
@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize("what", ["transfers", "outputs"])
def test_damaged_files_give_rows_that_obey_or_an_error(
    tmp_path: Path, kind: str, what: str, count: int
) -> None:
    path = written(tmp_path, kind, NAMED if what == "transfers" else COINS["outputs"])
    good, kept = path.read_bytes(), 0
    obey(path)
    for body in mutants(good, count, seed=count):
        path.write_bytes(body)
        refused = ""
        try:
            plain.recognises(body[:4096])
            obey(path)
            kept += 1
        except CoinhazeError as error:
            refused = str(error)
        except BaseException as stray:
            stray.add_note(f"reading {body!r}")
            raise
        assert not refused or str(path) in refused
    assert 0 < kept < count
