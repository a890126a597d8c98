"""A ledger proves itself: what is missing is found when it is read, in every format that tells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import coinhaze
from coinhaze.errors import LedgerError, UsageError
from coinhaze.formats.bitcoin_raw.wire import id_text, merkle_root
from coinhaze.graph.holes import from_holes
from coinhaze.ledger import CoinLedger, write_folder
from coinhaze.ledger.batches import STATEMENTS, Batch, Rows, gather
from coinhaze.ledger.completeness import (
    COINBASES,
    COUNTS,
    HEIGHTS,
    INDEXES,
    LINKS,
    LOGS,
    MERKLE,
    OF_COINS,
    TOTALS,
    TRANSACTIONS,
    BlockCounts,
    Check,
    Completeness,
    check_blocks,
    gaps,
)
from coinhaze.ledger.window import LedgerWindow
from coinhaze.readers import read
from coinhaze.store.checks import coin_completeness
from coinhaze.store.ingest import ingest
from coinhaze.store.read import read_store
from coinhaze.store.store import Store
from coinhaze.store.verify import verify
from store.made_stores import Chain, stored

from .etl_chain import Record, five_blocks, name, transaction, write_blockchair, write_etl

Write = Callable[[Path, Sequence[Record], Sequence[int]], Path]


def counts_of(
    height: np.typing.NDArray[np.int64],
    index: np.typing.NDArray[np.int64],
    coinbase: np.typing.NDArray[np.bool_],
) -> BlockCounts:
    """Count transactions one row each; an index of -1 is not given."""
    heights, block = np.unique(height, return_inverse=True)
    inside = [index[block == n] for n in range(len(heights))]
    return BlockCounts(
        height=heights,
        transactions=np.array([len(i) for i in inside]),
        coinbases=np.array([int(coinbase[block == n].sum()) for n in range(len(heights))]),
        indexed=np.array([int((i >= 0).sum()) for i in inside]),
        indexes=np.array([len(set(i[i >= 0].tolist())) for i in inside]),
        highest=np.array([int(i.max()) for i in inside]),
    )


def as_lines(folder: Path, records: Sequence[Record], without: Sequence[int]) -> Path:
    return write_etl(folder / "t.json", records, without=without)


def as_store(folder: Path, records: Sequence[Record], without: Sequence[int]) -> Path:
    lines = write_etl(folder / "t.json", records, without=without)
    with Store(folder / "t.duckdb") as store:
        ingest([lines], store)
    return folder / "t.duckdb"


def as_blockchair(folder: Path, records: Sequence[Record], without: Sequence[int]) -> Path:
    tables = write_blockchair(folder / "tables", records, without=without)
    with Store(folder / "b.duckdb") as store:
        ingest([tables], store)
    return folder / "b.duckdb"


def as_folder(folder: Path, records: Sequence[Record], without: Sequence[int]) -> Path:
    return write_folder(read(as_store(folder, records, without)), folder / "ledger")


def as_plain(folder: Path, records: Sequence[Record], without: Sequence[int]) -> Path:
    """Give plain tables, which need not be of whole blocks; here each has its coinbase."""
    with Store(as_store(folder, records, without), read_only=True) as source:
        tables = {
            n: source.table(f"SELECT * FROM {n}") for n in ("transactions", "outputs", "inputs")
        }
    with Store(folder / "p.duckdb") as store:
        rows = {n: t.cast(coinhaze.ledger.batches.SCHEMAS[n]) for n, t in tables.items()}
        with store.transaction():
            store.append(Batch(rows))
    return folder / "p.duckdb"


FORMATS: dict[str, Write] = {
    "bitcoin-etl lines": as_lines,
    "bitcoin-etl store": as_store,
    "blockchair": as_blockchair,
    "folder": as_folder,
    "plain": as_plain,
}


def statuses(record: Completeness) -> dict[str, str]:
    return {check.name: check.status for check in record.checks}


def check(record: Completeness, name: str) -> Check:
    (found,) = (check for check in record.checks if check.name == name)
    return found


@pytest.mark.parametrize("format", FORMATS)
def test_a_whole_ledger_fails_nothing_and_says_what_it_showed(tmp_path: Path, format: str) -> None:
    record = read(FORMATS[format](tmp_path, five_blocks(), ())).completeness
    assert [c.name for c in record.checks] == list(OF_COINS)
    assert not record.failed
    assert record.line().startswith("completeness: ")
    assert statuses(record)[HEIGHTS] == statuses(record)[COINBASES] == "passed"
    assert record.holes == ()
    assert all(c.detail for c in record.checks)


@pytest.mark.parametrize("format", FORMATS)
def test_one_block_of_five_removed_is_found_and_counted(tmp_path: Path, format: str) -> None:
    """The coin of block 4 has 1 bit; without block 3 it would be given 0, and no word about it."""
    whole = coinhaze.score(FORMATS["bitcoin-etl lines"](tmp_path, five_blocks(), ()))
    coin = f"{name(4, 1)}:0"
    names = whole.chain.graph.names.of(whole.nodes).to_pylist()
    assert whole.bits[names.index(coin)] == 1
    (tmp_path / "hole").mkdir()
    path = FORMATS[format](tmp_path / "hole", five_blocks(), (3,))
    scores = coinhaze.score(path)
    record = scores.completeness
    assert (record.holes, record.missing_from) == (((3, 3),), 3)
    found = check(record, HEIGHTS)
    assert (found.status, found.failures, found.first) == ("failed", 1, "height 3")
    names = scores.chain.graph.names.of(scores.nodes).to_pylist()
    assert scores.bits[names.index(coin)] == 0
    touched = from_holes(scores.chain.graph)[scores.nodes]
    assert [n for n, hit in zip(names, touched, strict=True) if hit] == [coin]
    (note,) = scores.notes
    assert "first at height 3; 1 of 5 nodes has a share" in note
    with pytest.raises(LedgerError, match="heights contiguous failed"):
        coinhaze.score(path, strict=True)


def test_what_blockchair_and_bitcoin_etl_say_is_compared(tmp_path: Path) -> None:
    for n, (format, own) in enumerate(
        (("bitcoin-etl lines", 5), ("bitcoin-etl store", 5), ("blockchair", 5))
    ):
        folder = tmp_path / str(n)
        folder.mkdir()
        told = statuses(read(FORMATS[format](folder, five_blocks(), ())).completeness)
        assert told[COUNTS] == told[TOTALS] == "passed", format
        assert sum(status == "passed" for status in told.values()) == own
        # Blockchair's blocks say how many transactions they have, bitcoin-etl's lines their order.
        assert told[TRANSACTIONS if format == "blockchair" else INDEXES] == "passed"


@pytest.mark.parametrize("format", ["bitcoin-etl lines", "bitcoin-etl store", "blockchair"])
@pytest.mark.parametrize(
    ("field", "value", "failed", "detail"),
    [
        ("input_count", 3, COUNTS, "2 of 3 inputs there"),
        ("output_count", 3, COUNTS, "2 of 3 outputs there"),
        ("input_value", 101, TOTALS, "100 of 101 in there"),
        ("output_value", 99, TOTALS, "100 of 99 out there"),
    ],
)
def test_inputs_and_outputs_other_than_the_transaction_says(
    tmp_path: Path, format: str, field: str, value: int, failed: str, detail: str
) -> None:
    records = five_blocks()
    records[3][field] = value
    assert records[3]["hash"] == name(3, 1)
    record = read(FORMATS[format](tmp_path, records, ())).completeness
    assert [c.name for c in record.failed] == [failed]
    found = record.failed[0]
    assert (found.failures, found.detail) == (1, detail)
    assert found.first == f"height 3 transaction {name(3, 1)}"
    # Nothing is known to be missing that a source could have been made by.
    assert record.missing_from is None
    if format != "bitcoin-etl lines":
        path = next(tmp_path.glob("*.duckdb"))
        with Store(path, read_only=True) as store:
            assert coin_completeness(store).failed == record.failed  # in SQL, without a ledger


@pytest.mark.parametrize("format", ["bitcoin-etl lines", "bitcoin-etl store"])
@pytest.mark.parametrize(
    ("field", "value", "failed", "detail"),
    [
        ("output_count", 0, COUNTS, "2 of -1 outputs there"),
        ("output_value", 5, TOTALS, "100 of -2 out there"),
        ("output_count", -3, COUNTS, "2 of -4 outputs there"),
    ],
)
def test_fewer_than_are_shielded_is_a_contradiction_and_not_silence(
    tmp_path: Path, format: str, field: str, value: int, failed: str, detail: str
) -> None:
    records = five_blocks()
    hidden = {"index": 2, "value": 7, "type": "shielded", "addresses": []}
    mix = transaction(3, 1, [(name(1, 0), 0, 50), (name(2, 0), 0, 57)], [60, 40])
    mix |= {"outputs": [*mix["outputs"], hidden], "output_count": 3, "output_value": 107}
    records[1] = transaction(2, 0, [], [57])
    records[3] = mix
    whole = read(FORMATS[format](tmp_path, records, ())).completeness
    assert whole.failed == ()
    records[3] = mix | {field: value}
    again = tmp_path / "again"
    again.mkdir()
    record = read(FORMATS[format](again, records, ())).completeness
    assert [(c.name, c.detail) for c in record.failed] == [(failed, detail)]


@pytest.mark.parametrize(
    ("kind", "wrong"), [(pa.float64(), 0.123456789012), (pa.decimal128(38, 2), Decimal("0.5"))]
)
def test_a_total_that_is_none_leaves_its_neighbours_compared(
    tmp_path: Path, kind: pa.DataType, wrong: object
) -> None:
    aws = pa.types.is_floating(kind)
    unit = 1e-8 if aws else 1
    records = five_blocks()
    records[3]["output_value"] = 101
    for record in records:
        for field in ("input_value", "output_value"):
            record[field] = record[field] * unit if aws else Decimal(record[field])
        for end in (*record["inputs"], *record["outputs"]):
            if aws:
                end |= {"address": end.pop("addresses")[0], "value": end["value"] * unit}
    records[0]["output_value"] = wrong
    table = pa.Table.from_pylist(records)
    place = table.column_names.index("output_value")
    values = pa.array([r["output_value"] for r in records], kind)
    path = tmp_path / "t.parquet"
    pq.write_table(table.set_column(place, "output_value", values), path)
    found = read(path).completeness
    assert [(c.name, c.detail) for c in found.failed] == [(TOTALS, "100 of 101 out there")]


@pytest.mark.parametrize("format", ["bitcoin-etl lines", "bitcoin-etl store"])
def test_indexes_that_leave_one_out_or_repeat_one(tmp_path: Path, format: str) -> None:
    for n, index in enumerate((2, 0)):
        records = five_blocks()
        records[5]["index"] = index
        folder = tmp_path / str(n)
        folder.mkdir()
        record = read(FORMATS[format](folder, records, ())).completeness
        assert [c.name for c in record.failed] == [INDEXES]
        assert record.failed[0].first == "height 4"
        assert record.missing_from == 4  # a coin spent there or later may be of what is missing


def test_a_transaction_that_blockchairs_block_has_and_the_files_have_not(tmp_path: Path) -> None:
    folder = write_blockchair(tmp_path / "tables", five_blocks())
    lines = (folder / "blocks.tsv").read_text().splitlines()
    lines[4] = lines[4][:-1] + "3"
    (folder / "blocks.tsv").write_text("\n".join(lines))
    record = read(list(folder.iterdir())).completeness
    assert [(c.name, c.first) for c in record.failed] == [(TRANSACTIONS, "height 4")]
    assert record.failed[0].detail == "2 of 3 transactions there"


def test_a_block_without_its_coinbase(tmp_path: Path) -> None:
    records = [r for r in five_blocks() if r["hash"] != name(3, 0)]
    record = read(write_etl(tmp_path / "t.json", records)).completeness
    assert [(c.name, c.first) for c in record.failed] == [
        (COINBASES, "height 3"),
        (INDEXES, "height 3"),
    ]


def test_transactions_that_are_no_whole_blocks_are_not_taken_for_them() -> None:
    chain = Chain()
    for txid in ("a", "b"):
        chain.block()
        chain.height += 3
        chain.pay(txid, [("x", 0, 5)] if txid == "b" else [], [("ann", 5)])
    with chain.store() as store:
        record = read_store(store).completeness
    assert statuses(record)[HEIGHTS] == statuses(record)[COINBASES] == "not checkable"
    assert check(record, HEIGHTS).detail == "the source lists transactions, not whole blocks"


def test_links_between_blocks() -> None:
    chain = Chain()
    for n in range(4):
        chain.block()
        chain.pay(f"{n}", made=[("ann", 50)])
    with chain.store() as store:
        assert check(read_store(store).completeness, LINKS).status == "passed"
        store.ask("UPDATE blocks SET previous = 'elsewhere' WHERE height >= 2")
        found = check(read_store(store).completeness, LINKS)
        assert (found.status, found.failures, found.first) == ("failed", 2, "height 2")


def with_roots(ids: dict[int, list[str]], stated: dict[int, list[str]]) -> Store:
    """A store of blocks with these transactions, that states the roots of those."""
    chain, roots = Chain(first=min(ids)), Rows("stated_blocks")
    for height, txids in ids.items():
        chain.block()
        for n, txid in enumerate(txids):
            chain.pay(txid, [(f"{height}{n}", 0, 9)] if n else [], [("ann", 5)])
        root = id_text(merkle_root([bytes.fromhex(t)[::-1] for t in stated[height]]))
        roots.add(height=height, transaction_count=len(stated[height]), merkle_root=root)
    return stored(gather([*chain.rows.values(), roots]), None)


def test_merkle_roots_are_computed_from_the_ids() -> None:
    ids = {7: [name(7, n) for n in range(5)], 8: [name(8, 0)], 9: [name(9, n) for n in range(2)]}
    with with_roots(ids, ids) as store:
        record = read_store(store).completeness
        assert check(record, MERKLE).status == "passed"
        assert "3 of 3 blocks" in check(record, MERKLE).detail
    other = ids | {8: [name(8, 1)], 9: ids[9][::-1]}
    with with_roots(ids, other) as store:
        found = check(read_store(store).completeness, MERKLE)
        assert (found.status, found.failures, found.first) == ("failed", 2, "height 8")


def test_a_transaction_lost_from_a_raw_block_after_it_was_stored() -> None:
    ids = {7: [name(7, n) for n in range(4)]}
    with with_roots(ids, ids) as store:
        for table in ("transactions", "inputs", "outputs"):
            store.ask(f"DELETE FROM {table} WHERE txid = ?", [name(7, 2)])
        record = read_store(store).completeness
        assert [c.name for c in record.failed] == [INDEXES, TRANSACTIONS, MERKLE]
        assert record.missing_from == 7


def logs(rows: Sequence[tuple[int, int, int, str]]) -> Store:
    table = Rows("transfers")
    for height, position, step, txid in rows:
        table.add(
            height=height, position=position, step=step, txid=txid, token="coin", sender="a",
            recipient="b", amount="1", kind="token",
        )  # fmt: skip
    return stored(gather([table]), None)


@pytest.mark.parametrize(
    ("rows", "first"),
    [
        ([(5, 0, 0, "t"), (5, 0, 3, "t"), (5, 1, 4, "u"), (6, 0, 0, "v")], None),
        ([(5, 0, 0, "t"), (5, 1, 2, "u"), (5, 0, 3, "t")], 5),  # u stands between logs of t
        ([(5, 0, 7, "t"), (6, 0, 2, "u"), (6, 1, 2, "v")], 6),  # one index twice
        ([(5, 1, 0, "t"), (5, 0, 1, "u")], 5),  # u comes before t, its logs after
    ],
)
def test_log_indexes_in_order(rows: Sequence[tuple[int, int, int, str]], first: int | None) -> None:
    with logs(rows) as store:
        found = check(read_store(store).completeness, LOGS)
    assert found.status == ("passed" if first is None else "failed")
    assert found.first == ("" if first is None else f"height {first}")


def test_heights_of_accounts_are_checked_where_all_blocks_are_listed() -> None:
    with logs([(5, 0, 0, "t"), (9, 0, 0, "u")]) as store:
        record = read_store(store).completeness
        assert statuses(record)[HEIGHTS] == "not checkable"
        rows = ", ".join(f"({h}, 'b{h}', 'b{h - 1}', NULL)" for h in (5, 6, 8, 9))
        store.ask(f"INSERT INTO blocks VALUES {rows}")
        ledger = read_store(store)
        assert ledger.completeness.holes == ((7, 7),)
        assert statuses(ledger.completeness)[LINKS] == "passed"
    # What an account had at first it may have got in the block that is not there.
    (note,) = coinhaze.score(ledger).notes
    assert "1 of 1 node has a share" in note


def test_transfers_alone_show_nothing(tmp_path: Path) -> None:
    path = tmp_path / "transfers.csv"
    path.write_text("from,to,amount\na,b,1\n")
    record = read(path).completeness
    assert set(statuses(record).values()) == {"not checkable"}
    assert record.line() == "completeness: not checkable in this format"
    assert coinhaze.score(path).notes == ()


def test_a_hole_touches_what_was_spent_after_it_and_no_coinbase() -> None:
    chain = Chain()
    for height in range(6):
        chain.block()
        chain.pay(f"c{height}", made=[("ann", 50)])
        if height in (1, 5):
            chain.pay(f"s{height}", [(f"x{height}", 0, 9)], [("bob", 9)])
            chain.pay(f"t{height}", [(f"s{height}", 0, 9), (f"c{height}", 0, 50)], [("cat", 59)])
    with chain.store() as store:
        for table in ("blocks", "transactions", "outputs"):
            store.ask(f"DELETE FROM {table} WHERE height = 3")
        scores = coinhaze.score(read_store(store))
    names = scores.chain.graph.names.of(scores.nodes).to_pylist()
    assert isinstance(scores.chain, coinhaze.AbsorbingChain)
    touched = from_holes(scores.chain.graph, scores.chain.walk.q)[scores.nodes]
    # x1 was spent before block 3: it cannot have been made in it.
    assert [n for n, hit in zip(names, touched, strict=True) if hit] == ["t5:0"]


def test_a_window_is_judged_by_its_own_blocks(tmp_path: Path) -> None:
    path = as_store(tmp_path, five_blocks(), (3,))
    for first, last, holes in (
        (1, 2, ()),
        (4, 5, ()),
        (2, 5, ((3, 3),)),
        (3, 5, ((3, 3),)),  # at the edge, with blocks of the store beyond
        (1, 3, ((3, 3),)),
    ):
        assert read(path, first=first, last=last).completeness.holes == holes
    with Store(path, read_only=True) as store:
        time = 1_600_000_000 + 600 * 2
        assert read_store(store, LedgerWindow("time", time, None)).completeness.holes == ((3, 3),)


def test_left_out_transactions_are_not_missing_ones() -> None:
    chain = Chain()
    for height in range(3):
        chain.block()
        chain.pay(f"c{height}", made=[("ann", 50)])
    chain.pay("s", [("x", 0, None), ("c0", 0, 50)], [("bob", 9)])
    with chain.store() as store:
        ledger = read_store(store, unknown="leave-out")
    assert len(ledger) == 3
    assert not ledger.completeness.failed
    assert check(ledger.completeness, INDEXES).status == "passed"


def test_complete_holds_for_stores_and_all_that_is_read_through_one(tmp_path: Path) -> None:
    path = as_store(tmp_path, five_blocks(), ())
    ledger = read(path, complete=True)
    assert isinstance(ledger, CoinLedger)
    assert ledger.complete
    (tmp_path / "b").mkdir()
    for source in (as_store(tmp_path / "b", five_blocks(), (3,)), tmp_path / "b" / "t.json"):
        with pytest.raises(LedgerError, match="an unknown coin in a complete ledger"):
            read(source, complete=True)
    tables = write_blockchair(tmp_path / "tables", five_blocks(), without=(3,))
    with pytest.raises(LedgerError, match="an unknown coin in a complete ledger"):
        read(list(tables.iterdir()), complete=True)
    with logs([(5, 0, 0, "t")]) as store, pytest.raises(UsageError, match="is for coins"):
        read_store(store, complete=True)


def test_stores_of_version_1_open_and_say_why_less_can_be_checked(tmp_path: Path) -> None:
    path = as_store(tmp_path, five_blocks(), ())
    with Store(path) as store:
        for table in STATEMENTS:
            store.ask(f"DROP TABLE {table}")
        store.ask("UPDATE about SET value = '1'")
    with Store(path, read_only=True) as store:
        before = store.digest()
        record = read_store(store).completeness
        assert not record.failed
        assert statuses(record)[HEIGHTS] == "passed"
        assert "ingest again" in check(record, COUNTS).detail
        assert not verify(store).completeness.failed
    with Store(path) as store:  # gets the tables
        assert store.digest() == before
        assert store.has_statements
    with Store(path, read_only=True) as store:
        assert statuses(read_store(store).completeness)[COUNTS] == "not checkable"
        assert store.digest() == before


def test_a_folder_carries_the_record_and_the_notes(tmp_path: Path) -> None:
    ledger = read(as_lines(tmp_path, five_blocks(), (3,)))
    path = write_folder(replace(ledger, notes=("a note",)), tmp_path / "ledger")
    again = read(path)
    assert again.completeness == ledger.completeness
    assert again.notes == ("a note",)
    (path / "ledger.json").write_text(
        (path / "ledger.json").read_text().replace('"not checkable"', '"unheard of"')
    )
    with pytest.raises(LedgerError, match="not a completeness record"):
        read(path)


# The machine may be busy: what is drawn here is small.
calmly = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


@calmly
@given(st.sets(st.integers(0, 30), min_size=1), st.integers(0, 30), st.integers(0, 30))
def test_gaps_are_what_counting_finds(heights: set[int], one: int, other: int) -> None:
    low, high = min(one, other), max(one, other)
    found = gaps(np.array(sorted(heights)), low, high)
    missing = [h for a, b in found for h in range(a, b + 1)]
    assert missing == [h for h in range(low, high + 1) if h not in heights]
    assert all(b + 1 < c for (_, b), (c, _) in pairwise(found))


@calmly
@given(
    st.dictionaries(
        st.integers(0, 12), st.lists(st.integers(-1, 4), min_size=1, max_size=5), min_size=1
    ),
    st.data(),
)
def test_checks_of_blocks_find_what_looking_at_each_block_does(
    blocks: dict[int, list[int]], data: st.DataObject
) -> None:
    """Indexes by height, -1 where not given; the first of each block is its coinbase, or not."""
    coinbases = {h: data.draw(st.booleans(), label=f"coinbase of {h}") for h in blocks}
    stated = {h: data.draw(st.integers(1, 5), label=f"stated of {h}") for h in sorted(blocks)}
    rows = [
        (h, i, coinbases[h] and n == 0)
        for h, indexes in blocks.items()
        for n, i in enumerate(indexes)
    ]
    height, index, coinbase = (np.array(column) for column in zip(*rows, strict=True))
    found = check_blocks(
        counts_of(height, index, coinbase),
        whole=True,
        stated=(np.array(list(stated)), np.array(list(stated.values()))),
    )
    by_name = {c.name: c for c in found.checks}
    missing = [h for h in range(min(blocks), max(blocks)) if h not in blocks]
    given_all = {h: i for h, i in blocks.items() if min(i) >= 0}
    torn = [h for h, i in given_all.items() if sorted(i) != list(range(len(i)))]
    bare = [h for h in blocks if not coinbases[h]]
    fewer = [h for h, n in stated.items() if n != len(blocks[h])]
    told = any(len(i) > 1 for i in given_all.values()) or len(given_all) == len(blocks)
    for check_name, wrong in (
        (HEIGHTS, missing),
        (COINBASES, bare),
        (INDEXES, torn if told else []),
        (TRANSACTIONS, fewer),
    ):
        seen = by_name[check_name]
        assert seen.failures == len(wrong)
        assert seen.first == (f"height {min(wrong)}" if wrong else "")
    assert (by_name[INDEXES].status == "not checkable") == (not told)
    lacking = missing + bare + (torn if told else []) + fewer
    assert found.missing_from == (min(lacking) if lacking else None)
