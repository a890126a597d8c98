"""Order, identity and columns of the exports people hold are never guessed."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coinhaze
from coinhaze.errors import LedgerError, UsageError
from coinhaze.ledger import AccountLedger, CoinLedger
from coinhaze.ledger.parquet import read_folder, write_folder
from coinhaze.readers import read
from coinhaze.store.ingest import ingest
from coinhaze.store.read import read_store
from coinhaze.store.store import Store

SIX = [
    ("a", "b", 10, 100), ("c", "b", 10, 200), ("b", "d", 8, 300), ("e", "b", 4, 400),
    ("b", "f", 6, 500), ("d", "f", 2, 600),
]  # fmt: skip
HEX = "0x" + "0" * 63


def table(rows: Sequence[tuple[Any, ...]], *names: str) -> pa.Table:
    return pa.table({name: [row[k] for row in rows] for k, name in enumerate(names)})


def written(path: Path, content: pa.Table | str) -> Path:
    if isinstance(content, str):
        path.write_text(content)
    elif path.suffix == ".parquet":
        pq.write_table(content, path)
    elif path.suffix == ".arrow":
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, content.schema) as writer:
            writer.write_table(content)
    else:
        pyarrow.csv.write_csv(content, path)
    return path


def paid(ledger: AccountLedger | CoinLedger) -> list[tuple[Any, ...]]:
    assert isinstance(ledger, AccountLedger)
    return [tuple(row.values()) for row in ledger.tables()["transfers"].to_pylist()]


def parties(ledger: AccountLedger | CoinLedger) -> list[str]:
    return [f"{row[0]}{row[1]}" for row in paid(ledger)]


def notes(ledger: AccountLedger | CoinLedger) -> str:
    return "; ".join(ledger.notes)


# Order

WAYS: dict[str, Callable[[Path, pa.Table], Any]] = {
    "csv": lambda folder, t: written(folder / "t.csv", t),
    "parquet": lambda folder, t: written(folder / "t.parquet", t),
    "arrow": lambda folder, t: written(folder / "t.arrow", t),
    "table": lambda _, t: t,
    "duckdb": lambda _, t: duckdb.from_arrow(t),
    "files": lambda folder, t: [
        written(folder / f"{k}.csv", t[first : first + 2]) for k, first in enumerate((0, 4, 2))
    ],
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("when", ["time", "Blockno", "evt_block_number"])
def test_newest_first_is_the_ledger_that_oldest_first_is(
    tmp_path: Path, way: str, when: str
) -> None:
    oldest = table(SIX, "from", "to", "amount", when)
    newest = oldest.take(list(range(6))[::-1])
    expected = coinhaze.score(oldest, time="temporal")
    found = coinhaze.score(WAYS[way](tmp_path, newest), time="temporal")
    assert found.to_arrow() == expected.to_arrow()
    assert f"6 rows were put in order by {when}: " in "; ".join(found.chain.graph.notes)
    assert not expected.chain.graph.notes
    assert paid(read(WAYS[way](tmp_path, newest))) == paid(read(oldest))


@pytest.mark.parametrize(
    "name",
    [
        "time", "timestamp", "TimeStamp", "block_time", "block_timestamp", "evt_block_time",
        "UnixTimestamp", "unixtime", "DateTime (UTC)", "datetime", "Date", "height", "block_number",
        "blockNumber", "Block Number", "Blockno", "block_height", "block", "block_id",
        "evt_block_number", "BLOCK_NUMBER", "block_signed_at", "ts", "slot", "block_date",
    ],
)  # fmt: skip
def test_what_orders_a_file_is_found_under_the_names_exports_use(tmp_path: Path, name: str) -> None:
    newest = table(SIX[::-1], "from", "to", "amount", name)
    ledger = read(written(tmp_path / "t.csv", newest))
    assert parties(ledger) == ["ab", "cb", "bd", "eb", "bf", "df"]
    assert ledger.columns == {"used": ("from", "to", "amount", name), "unused": (), "unknown": ()}


TIMES = [
    ["100", "200", "1612180800"],
    ["1612180800001", "1612180800002", "1612180801000"],
    ["2021-02-01T12:00:00Z", "2021-02-01T12:00:00.000001Z", "2021-02-01T12:00:01Z"],
    ["2021-02-01 12:00:00", "2021-02-01 12:00:00.000000001", "2021-02-01 12:00:01"],
    ["2021-02-01 12:00:00.000 UTC", "2021-02-01 12:00:00.500 UTC", "2021-02-01 12:00:01.000 UTC"],
    # In this order by the clock, not by their letters.
    ["2021-02-01T14:00:00+03:00", "2021-02-01T13:30:00+02:00", "2021-02-01T12:00:00+00"],
    ["2021-01-31", "2021-02-01", "2021-02-01 00:00:01"],
    ["9999-12-31T00:00:00.000001", "9999-12-31T00:00:00.000002", "9999-12-31T00:00:01"],
]


@pytest.mark.parametrize("times", TIMES, ids=[t[1] for t in TIMES])
def test_times_order_exactly_however_they_are_written(tmp_path: Path, times: list[str]) -> None:
    rows = [("a", "b", 1, times[0]), ("b", "c", 1, times[1]), ("c", "d", 1, times[2])]
    for order in ((0, 1, 2), (2, 1, 0), (1, 2, 0), (2, 0, 1)):
        text = "from,to,amount,time\n" + "".join(",".join(map(str, rows[k])) + "\n" for k in order)
        assert parties(read(written(tmp_path / "t.csv", text))) == ["ab", "bc", "cd"]


def test_a_time_that_cannot_be_read_is_refused_by_its_line(tmp_path: Path) -> None:
    path = written(tmp_path / "t.csv", "from,to,amount,block_time\na,b,1,2021-02-01\nb,c,1,noon\n")
    with pytest.raises(LedgerError, match=r"t\.csv:3: block_time is not like .*'noon'"):
        read(path)
    path = written(tmp_path / "t.csv", "from,to,amount,Blockno\na,b,1,7\nb,c,1,0x8\n")
    with pytest.raises(LedgerError, match=r"t\.csv:3: Blockno is not a whole number.*'0x8'"):
        read(path)


@pytest.mark.parametrize("index", ["transaction_index", "TX_POSITION"])
def test_the_block_comes_before_the_index_of_the_transaction_and_that_before_the_log(
    index: str,
) -> None:
    rows = [("a", "b", 1, 7, 2, 0), ("b", "c", 1, 7, 2, 5), ("c", "d", 1, 7, 10, 1)]
    rows += [("d", "e", 1, 8, 0, 0)]
    names = ("from", "to", "amount", "block_number", index, "log_index")
    for seed in range(8):
        mixed = random.Random(seed).sample(rows, len(rows))
        ledger = read(table(mixed, *names))
        assert parties(ledger) == ["ab", "bc", "cd", "de"]
        assert "share their place" not in notes(ledger)
        if mixed != rows:
            assert f"by block_number, {index}, log_index" in notes(ledger)


def test_ties_keep_the_order_of_the_file_turned_round_where_it_runs_newest_first() -> None:
    rows = [("a", "b", 1, 5), ("b", "c", 1, 5), ("c", "d", 1, 6), ("d", "e", 1, 6)]
    names = ("from", "to", "amount", "time")
    for given_rows in (rows, rows[::-1]):
        ledger = read(table(given_rows, *names))
        assert parties(ledger) == ["ab", "bc", "cd", "de"]
        assert "share their place" not in notes(ledger)


def test_ties_that_nothing_decides_are_counted() -> None:
    names = ("from", "to", "amount", "time")
    unsorted = [("c", "d", 1, 6), ("a", "b", 1, 5), ("b", "c", 1, 5), ("d", "e", 1, 7)]
    ledger = read(table(unsorted, *names))
    assert parties(ledger) == ["ab", "bc", "cd", "de"]
    assert "2 rows share their place in the order (time)" in notes(ledger)
    one_second = [("a", "b", 1, 5), ("b", "c", 1, 5), ("c", "d", 1, 5)]
    assert "3 rows share their place" in notes(read(table(one_second, *names)))


def test_pages_of_an_explorer_follow_each_other_by_what_they_cover(tmp_path: Path) -> None:
    rows = [("a", "b", 1, 4), ("b", "c", 1, 5), ("c", "d", 1, 5), ("d", "e", 1, 5)]
    rows += [("e", "f", 1, 6)]
    whole = table(rows[::-1], "from", "to", "amount", "block_number")
    first = written(tmp_path / "page1.csv", whole[:2])
    second = written(tmp_path / "page2.csv", whole[2:])
    for order in ([first, second], [second, first]):
        ledger = read(order)
        assert parties(ledger) == ["ab", "bc", "cd", "de", "ef"]
        assert "share their place" not in notes(ledger)


def test_columns_that_contradict_each_other_are_refused_by_two_rows(tmp_path: Path) -> None:
    text = "from,to,amount,height,time\na,b,1,1,100\nb,c,1,2,90\n"
    path = written(tmp_path / "t.csv", text)
    says = r"t\.csv:3: height says that this row comes after .*t\.csv:2, time that it comes before"
    with pytest.raises(LedgerError, match=says):
        read(path)
    with Store(None) as store, pytest.raises(LedgerError, match=says):
        ingest([path], store)
    text = "from,to,amount,UnixTimestamp,DateTime (UTC)\na,b,1,60,1970-01-01 00:02:00\n"
    text += "b,c,1,61,1970-01-01 00:01:01\n"
    with pytest.raises(LedgerError, match=r"UnixTimestamp says .* DateTime \(UTC\) that it comes"):
        read(written(tmp_path / "t.csv", text))


def test_a_log_index_alone_orders_or_is_refused() -> None:
    names = ("from", "to", "amount", "log_index")
    assert parties(read(table([("b", "c", 1, 9), ("a", "b", 1, 2)], *names))) == ["ab", "bc"]
    rows = [("a", "b", 1, 0), ("b", "c", 1, 3), ("c", "d", 1, 0), ("d", "e", 1, 1)]
    with pytest.raises(LedgerError, match=r"row 3: log_index is that of .*row 1 too"):
        read(table(rows, *names))


def test_steps_that_count_in_transactions_do_not_mix_them() -> None:
    rows = [("a", "b", 1, 5, "x", 0), ("b", "c", 1, 5, "x", 1), ("c", "d", 1, 5, "y", 0)]
    rows += [("d", "e", 1, 6, "z", 0)]
    for name in ("step", "log_index"):
        names = ("from", "to", "amount", "height", "txid", name)
        for given_rows in (rows, rows[::-1]):
            assert parties(read(table(given_rows, *names))) == ["ab", "bc", "cd", "de"]


def test_a_nonce_orders_the_transactions_of_its_sender_only() -> None:
    names = ("from", "to", "amount", "block_number", "nonce")
    rows = [("a", "b", 1, 5, 8), ("x", "y", 1, 5, 1), ("a", "d", 1, 4, 6), ("a", "c", 1, 5, 7)]
    ledger = read(table(rows, *names))
    assert parties(ledger) == ["ad", "ac", "xy", "ab"]
    assert "3 rows share their place" in notes(ledger)
    with pytest.raises(LedgerError, match=r"block_number says .* nonce that it comes before"):
        read(table([("a", "b", 1, 5, 8), ("a", "c", 1, 6, 7)], *names))
    # In a table of tokens the nonce is that of whoever sent the transaction.
    token = table([("a", "b", 1, 5, 8), ("a", "c", 1, 6, 7)], *names)
    token = token.append_column("contract_address", pa.array(["t", "t"]))
    assert read(token).columns["unused"] == ("nonce",)


keys = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3)),
    min_size=2,
    max_size=10,
    unique=True,
)


@settings(max_examples=40, deadline=None)
@given(keys, st.randoms(use_true_random=False), st.sampled_from(["index", "log", "time"]))
def test_any_permutation_of_a_file_with_a_total_order_is_one_ledger(
    found: list[tuple[int, int, int]], dice: random.Random, by: str
) -> None:
    people = "abcde"
    drawn = [(dice.choice(people), dice.choice(people), dice.randrange(5), *k) for k in found]
    rows: list[tuple[Any, ...]] = [("a", "b", 1, 9, 9, 9), *drawn]
    names = ["from", "to", "amount", "block_number", "transaction_index", "log_index"]
    if by == "time":
        rows = [(*row[:3], row[3] * 100 + row[4] * 10 + row[5]) for row in rows]
        names[3:] = ["block_time"]
    if by == "log":  # counts in the block, and the transaction's index is not told
        rows = [(*row[:4], f"t{row[3:5]}", row[4] * 10 + row[5]) for row in rows]
        names[4] = "tx_hash"
    straight = read(table(sorted(rows, key=lambda row: row[3:]), *names))
    mixed = dice.sample(rows, len(rows))
    cut = dice.randrange(len(rows))
    for way in (table(mixed, *names), [table(mixed[:cut], *names), table(mixed[cut:], *names)]):
        again = read(way)
        assert paid(again) == paid(straight)
        assert again.columns == straight.columns


@settings(max_examples=8, deadline=None)
@given(keys, st.randoms(use_true_random=False))
def test_a_store_orders_a_file_as_reading_it_does(
    tmp_path_factory: pytest.TempPathFactory,
    found: list[tuple[int, int, int]],
    dice: random.Random,
) -> None:
    names = ("from", "to", "amount", "height", "time")
    rows = [("a", "b", n + 1, k[0], k[0] * 10) for n, k in enumerate(found)]
    path = tmp_path_factory.mktemp("f") / "t.csv"
    written(path, table(dice.sample(rows, len(rows)), *names))
    with Store(None) as store:
        ingest([path], store)
        stored = read_store(store)
    assert [row[:3] for row in paid(stored)] == [row[:3] for row in paid(read(path))]


# Identity


def overlap(**more: list[Any]) -> pa.Table:
    hashes = [HEX + c for c in "1123"]
    rows = {"from": ["a", "a", "b", "c"], "to": ["b", "b", "c", "d"], "value": [5, 5, 3, 1]}
    return pa.table(rows | {"evt_tx_hash": hashes, "evt_block_number": [1, 1, 2, 3]} | more)


def test_an_event_listed_twice_counts_once_wherever_it_is_listed(tmp_path: Path) -> None:
    pages = overlap(evt_index=[0, 1, 0, 0])
    one, two = written(tmp_path / "1.csv", pages[:3]), written(tmp_path / "2.csv", pages[1:])
    for order in ([one, two], [two, one], [one, one, two]):
        ledger = read(order)
        assert parties(ledger) == ["ab", "ab", "bc", "cd"]
        assert "2 rows came twice" in notes(ledger) or "5 rows came twice" in notes(ledger)
        assert "identical" not in notes(ledger)


def test_without_an_index_identical_rows_all_count_and_are_noted(tmp_path: Path) -> None:
    pages = overlap()
    one, two = written(tmp_path / "1.csv", pages[:3]), written(tmp_path / "2.csv", pages[2:])
    ledger = read([one, two])
    assert parties(ledger) == ["ab", "ab", "bc", "bc", "cd"]
    assert "4 rows are each identical to another" in notes(ledger)
    assert "2 rows are each identical" in notes(read(pages))
    assert "identical" not in notes(read(pages[1:]))


@pytest.mark.parametrize("column", ["from", "to", "value", "evt_block_number", "time"])
def test_one_event_with_two_contents_is_refused_across_files(tmp_path: Path, column: str) -> None:
    pages = overlap(evt_index=[0, 1, 0, 0], time=[10, 10, 20, 30])
    values = pages[column].to_pylist()
    values[2] = "z" if isinstance(values[2], str) else values[2] + 1
    other = pages.set_column(pages.column_names.index(column), column, pa.array(values))
    one, two = written(tmp_path / "1.csv", pages[:3]), written(tmp_path / "2.csv", other[2:])
    says = r"2\.csv:2: the same id with another .*see .*1\.csv:4"
    with pytest.raises(LedgerError, match=says):
        read([one, two])


def test_several_contracts_need_a_choice_and_the_message_names_the_option() -> None:
    mixed = overlap(evt_index=[0, 1, 0, 0], contract_address=["0xAA", "0xaa", "0xbb", "0xbb"])
    with pytest.raises(UsageError, match=r"2 tokens \(.*0xbb\): name one \(--token"):
        read(mixed)
    assert parties(read(mixed, token="0xAA")) == ["ab", "ab"]
    assert parties(read(mixed, token="0xbb")) == ["bc", "cd"]
    with pytest.raises(UsageError, match="no token 'x'"):
        read(mixed, token="x")
    dai, other = "0x6B175474E89094C44Da98b954EedeAC495271d0F", "0xbb"
    known = overlap(evt_index=[0, 1, 0, 0], contract_address=[dai, dai, other, other])
    with pytest.raises(UsageError, match=r"2 tokens \(0x6b17.* \(DAI\), 0xbb\)|\(0x6B17.* \(DAI\)"):
        read(known)
    assert parties(read(known, token="DAI")) == parties(read(known, token=dai)) == ["ab", "ab"]
    with pytest.raises(UsageError, match="no token 'USDC'"):
        read(known, token="USDC")
    symbols = overlap(evt_index=[0, 1, 0, 0], symbol=["DAI", "DAI", "DAI", "USDC"])
    with pytest.raises(UsageError, match=r"2 tokens \(DAI, USDC\)"):
        read(symbols)


# Columns


def test_every_column_is_used_known_and_unused_or_unknown(tmp_path: Path) -> None:
    more = {"evt_index": [0, 1, 0, 0], "gas_price": [1] * 4, "isError": [0] * 4, "seq no": [1] * 4}
    path = written(tmp_path / "t.csv", overlap(**more))
    ledger = read(path)
    assert ledger.columns == {
        "used": ("from", "to", "value", "evt_tx_hash", "evt_block_number", "evt_index"),
        "unused": ("gas_price", "isError"),
        "unknown": ("seq no",),
    }
    assert "columns not used, their names are not known: seq no" in notes(ledger)
    assert "columns not used, whatever they say of rows: isError" in notes(ledger)
    folder = write_folder(ledger, tmp_path / "folder")
    again = read_folder(folder)
    assert (again.columns, again.notes) == (ledger.columns, ledger.notes)


def test_a_second_column_of_times_that_cannot_be_read_is_unused(tmp_path: Path) -> None:
    text = 'From,To,Value,UnixTimestamp,DateTime (UTC),"USD, then"\n'
    text += 'a,b,1,90,"1/2/2021 10:00",1\nb,c,1,80,"1/1/2021 10:00",1\n'
    ledger = read(written(tmp_path / "t.csv", text))
    assert parties(ledger) == ["bc", "ab"]
    assert ledger.columns == {
        "used": ("From", "To", "Value", "UnixTimestamp"),
        "unused": ("DateTime (UTC)",),
        "unknown": ("USD, then",),
    }


def test_columns_of_other_formats_are_sorted_too(tmp_path: Path) -> None:
    address = "0x" + "1" * 40
    token = {
        "token_address": [address], "from_address": [address], "to_address": ["0x" + "2" * 40],
        "value": ["5"], "transaction_hash": [HEX + "1"], "log_index": [0], "block_number": [1],
        "last_modified": [1], "colour": ["red"],
    }  # fmt: skip
    for name in ("t.csv", "t.parquet"):
        ledger = read(written(tmp_path / name, pa.table(token)))
        assert ledger.columns["used"] == tuple(token)[:7]
        assert ledger.columns["unused"] == ("last_modified",)
        assert ledger.columns["unknown"] == ("colour",)
        assert "colour" in notes(ledger)


def test_columns_of_tables_of_coins_are_sorted_too() -> None:
    made = pa.table({"height": [1], "txid": ["aa"], "coinbase": [True], "weight": [4]})
    coins = pa.table({"height": [1], "txid": ["aa"], "vout": [0], "value": [5]})
    ledger = read([made, coins])
    assert ledger.columns["unknown"] == ("weight",)
    assert set(ledger.columns["used"]) == {"height", "txid", "coinbase", "vout", "value"}


def test_coins_of_which_none_is_worth_anything_are_refused(tmp_path: Path) -> None:
    made = pa.table({"height": [1], "txid": ["aa"], "coinbase": [True]})
    coins = pa.table({"height": [1], "txid": ["aa"], "vout": [0], "value": [0]})
    with pytest.raises(coinhaze.CoinhazeError, match="nothing moves") as caught:
        read([made, coins])
    assert caught.value.exit_code == 3
    paths = [written(tmp_path / "m.csv", made[:0]), written(tmp_path / "c.csv", coins[:0])]
    with pytest.raises(coinhaze.CoinhazeError, match="nothing to score") as caught:
        read(paths)
    assert caught.value.exit_code == 3


def test_a_raw_amount_is_taken_before_a_rounded_one() -> None:
    both = pa.table({"from": ["a"], "to": ["b"], "amount": ["0.5"], "amount_raw": ["500"]})
    ledger = read(both)
    assert paid(ledger) == [("a", "b", 500)]
    assert ledger.columns["unused"] == ("amount",)
