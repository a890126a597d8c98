from __future__ import annotations

import gzip
import tarfile
from pathlib import Path
from typing import Any

import pytest

from coinhaze.errors import CoinhazeError, InputError, LedgerError
from coinhaze.formats.ethereum import etl as ethereum_etl
from coinhaze.formats.ethereum import traces
from formats.ethereum_files import (
    EXPECTED,
    ZERO,
    Row,
    address,
    blocks,
    columns_of,
    csv_text,
    json_text,
    parquet,
    read,
    token_transfer,
    trace,
    transaction,
    transfers,
    txid,
    write,
)


def of(tmp_path: Path, rows: list[Row]) -> list[Row]:
    return transfers(ethereum_etl, write(tmp_path / "rows.csv", csv_text(rows)))


def kept(tmp_path: Path, rows: list[Row]) -> list[tuple[str, str]]:
    return [(row["recipient"], row["amount"]) for row in of(tmp_path, rows)]


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.json", "a.json.gz"])
def test_a_transaction_is_read_the_same_from_csv_and_json(tmp_path: Path, name: str) -> None:
    text = csv_text if "csv" in name else json_text
    path = write(tmp_path / name, text([transaction()]))
    assert transfers(ethereum_etl, path) == [EXPECTED]
    block = {"height": 100, "hash": txid(0xB10C), "previous": None, "time": 1446561880}
    assert blocks(ethereum_etl, path) == [block]
    head = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    assert ethereum_etl.recognises(head[:4096])


def test_bigquery_json_has_numbers_as_text(tmp_path: Path) -> None:
    row = {name: value if value is None else str(value) for name, value in transaction().items()}
    row["block_timestamp"] = "2015-11-03 14:44:40 UTC"
    path = write(tmp_path / "a.json", json_text([row]))
    assert transfers(ethereum_etl, path) == [EXPECTED]


def test_a_byte_order_mark_and_carriage_returns_are_no_part_of_the_rows(tmp_path: Path) -> None:
    text = b"\xef\xbb\xbf" + csv_text([transaction()]).replace(b"\n", b"\r\n")
    assert transfers(ethereum_etl, write(tmp_path / "a.csv", text)) == [EXPECTED]
    text = b"\xef\xbb\xbf" + json_text([transaction()]) + b"\r\n\n"
    assert transfers(ethereum_etl, write(tmp_path / "a.json", text)) == [EXPECTED]


# Transactions


def test_failed_transactions_move_nothing(tmp_path: Path) -> None:
    rows = [
        transaction(receipt_status=0),
        transaction(receipt_status=1, hash=txid(2)),
        transaction(receipt_status=None, hash=txid(3)),
    ]
    assert [row["txid"] for row in of(tmp_path, rows)] == [txid(2), txid(3)]
    rows = [{("status" if k == "receipt_status" else k): v for k, v in r.items()} for r in rows]
    assert [row["txid"] for row in of(tmp_path, rows)] == [txid(2), txid(3)]


def test_a_status_that_is_neither_done_nor_failed_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="receipt_status is not a whole number from 0 to 1"):
        of(tmp_path, [transaction(receipt_status=2)])


def test_values_of_zero_are_dropped_and_self_transfers_retained(tmp_path: Path) -> None:
    ann = address("ann")
    rows = [transaction(value=0), transaction(to_address=ann, hash=txid(2))]
    assert kept(tmp_path, rows) == [(ann, str(10**20))]


def test_a_contract_that_a_transaction_makes_is_named(tmp_path: Path) -> None:
    rows = [
        transaction(to_address=None, receipt_contract_address=address("new")),
        transaction(to_address=None, receipt_contract_address=None, hash=txid(2)),
    ]
    recipients = [row["recipient"] for row in of(tmp_path, rows)]
    assert recipients == [address("new"), f"created by {txid(2)}"]


def test_hex_is_brought_to_lower_case_with_its_prefix(tmp_path: Path) -> None:
    ann = address("jo")  # 6a6f: letters that have a case
    row = transaction(from_address=ann.upper(), to_address=ann[2:].upper(), hash=txid(0xAB).upper())
    (found,) = of(tmp_path, [row])
    assert (found["sender"], found["recipient"], found["txid"]) == (ann, ann, txid(0xAB))


@pytest.mark.parametrize(
    ("column", "value", "fault"),
    [
        ("hash", "", "hash is missing"),
        ("hash", "0x12", "hash is not 64 hexadecimal digits"),
        ("hash", "0x" + "g" * 64, "hash is not 64"),
        ("hash", txid(1)[:-1] + "\x00", "hash is not 64"),
        ("from_address", "", "from_address is missing"),
        ("from_address", address("x") + "0", "from_address is not 40"),
        ("to_address", "bob", "to_address is not 40"),
        ("block_number", "2147483648", "block_number is not a whole number from 0 to 2147483647"),
        ("block_number", "-1", "block_number is not a whole number"),
        ("block_number", "9" * 30, "block_number is not a whole number"),
        ("block_number", "", "block_number is missing"),
        ("transaction_index", "1.0", "transaction_index is not a whole number"),
        ("block_hash", "0x", "block_hash is not 64"),
    ],
)
def test_a_field_that_breaks_a_rule_is_refused_by_line(
    tmp_path: Path, column: str, value: str, fault: str
) -> None:
    rows = [transaction(), transaction(hash=txid(2)) | {column: value}]
    with pytest.raises(LedgerError, match=r"rows\.csv:3: " + fault):
        of(tmp_path, rows)


# Files


def test_columns_are_found_by_name_in_any_order(tmp_path: Path) -> None:
    assert of(tmp_path, [dict(reversed(transaction().items()))]) == [EXPECTED]


def test_a_header_without_rows_is_an_empty_day(tmp_path: Path) -> None:
    header = csv_text([transaction()]).split(b"\n")[0]
    for text in (header, header + b"\n"):
        assert transfers(ethereum_etl, write(tmp_path / "a.csv", text)) == []
    assert transfers(ethereum_etl, write(tmp_path / "a.csv.gz", header + b"\n")) == []


GOOD = csv_text([transaction(), transaction(hash=txid(2))])


@pytest.mark.parametrize(
    "content",
    [
        b"",
        GOOD.replace(b",21000,", b","),
        GOOD.replace(b",21000,", b",21000,,"),
        GOOD + GOOD,
        GOOD.replace(b",0x,", b",\xff,").replace(b"0x" + b"61", b"\xff\xff61"),
        GOOD.replace(b"nonce", b"hash"),
        GOOD.replace(b"value", b"worth"),
        b"\x00" + GOOD,
        json_text([transaction()]) + b"{",
        json_text([transaction()]) + b"[]\n",
        json_text([transaction(value=1.5)]),
        json_text([transaction(value=1e20)]),
        json_text([transaction(value=True)]),
        json_text([transaction(value=-1)]),
        json_text([transaction(value="9" * 100)]),
        json_text([transaction()]).replace(b"100000000000000000000", b"NaN"),
        json_text([transaction()]).replace(b"100000000000000000000", b"9" * 5000),
        json_text([transaction()]).replace(b'"0x"', b'"\\ud800"'),
        json_text([transaction()]).replace(b'"0x"', b"[" * 5000),
        json_text([transaction()]).replace(b"{", b"[{", 1),
        b'{"hash": "0x", ',
        b"PAR1",
        b"PAR1" + GOOD + b"PAR1",
    ],
)
def test_malformed_files_are_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(InputError, match="rows"):
        list(ethereum_etl.batches(write(tmp_path / "rows", content)))


def test_damaged_gzip_is_refused(tmp_path: Path) -> None:
    packed = gzip.compress(GOOD * 1)
    cut, wrong = packed[: len(packed) // 2], packed[:-8] + b"\0\0\0\0" + packed[-4:]
    for content in (cut, wrong, b"", GOOD):
        path = tmp_path / "rows.csv.gz"
        path.write_bytes(content)
        with pytest.raises(InputError, match="rows"):
            list(ethereum_etl.batches(path))


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        list(ethereum_etl.batches(tmp_path / "none.csv"))


@pytest.mark.parametrize(
    "head",
    [
        b"from,to,amount\na,b,1\n",
        b'{"hash": "aa", "block_number": 1, "inputs": [], "outputs": []}\n',
        b"block_id\thash\ttime\n",
        b"",
        b"\x00\xff",
        b"PAR1",
    ],
)
def test_other_formats_are_not_recognised(head: bytes) -> None:
    assert not ethereum_etl.recognises(head)


def test_a_first_line_longer_than_the_head_is_recognised() -> None:
    text = json_text([trace(input="0x" + "0" * 9000)])
    assert ethereum_etl.recognises(text[:4096])


# Token transfers and blocks


def test_token_transfers_keep_tokens_apart_and_are_ordered_by_their_log(tmp_path: Path) -> None:
    rows = [
        token_transfer(),
        token_transfer(token_address=address("other"), log_index=1),
        token_transfer(from_address=ZERO, log_index=5),
        token_transfer(to_address=ZERO, log_index=6),
        token_transfer(value=0, log_index=7),
    ]
    found = of(tmp_path, rows)
    assert [(r["step"], r["position"], r["token"]) for r in found] == [
        (1, 1, address("other")),
        (4, 4, address("token")),
        (5, 5, address("token")),
        (6, 6, address("token")),
    ]
    assert {r["kind"] for r in found} == {"token"}
    assert (found[2]["sender"], found[3]["recipient"]) == (ZERO, ZERO)


def test_logs_of_ether_itself_are_no_token(tmp_path: Path) -> None:
    assert of(tmp_path, [token_transfer(token_address="0x" + "f" * 39 + "e")]) == []


def test_the_same_row_twice_is_given_twice_with_one_key(tmp_path: Path) -> None:
    first, second = of(tmp_path, [token_transfer(), token_transfer()])
    assert first == second


def block(**changes: Any) -> Row:
    row = {
        "number": 7,
        "hash": txid(7),
        "parent_hash": txid(6),
        "timestamp": 99,
        "withdrawals": [{"index": 3, "address": address("val"), "amount": 2}],
    }
    return row | changes


def test_blocks_bring_withdrawals_in_wei(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", json_text([block(), block(number=8, withdrawals=[])]))
    (found,) = transfers(ethereum_etl, path)
    assert found == {
        "height": 7,
        "position": traces.AFTER_ALL,
        "step": 3,
        "txid": "withdrawal:7",
        "token": "",
        "sender": ZERO,
        "recipient": address("val"),
        "amount": str(2 * 10**9),
        "kind": "withdrawal",
        "time": 99,
    }
    assert blocks(ethereum_etl, path)[0] == {
        "height": 7,
        "hash": txid(7),
        "previous": txid(6),
        "time": 99,
    }


def test_withdrawals_are_the_same_in_csv_and_parquet(tmp_path: Path) -> None:
    paid = {"index": 3, "address": address("val"), "amount": 2}
    text = f'{{"index":3,"address":"{address("val")}","amount":"2"}}'
    rows = [block(withdrawals=f"{text},{text.replace(':3', ':4')}")]
    found = of(tmp_path, rows)
    assert [r["step"] for r in found] == [3, 4]
    path = parquet(tmp_path / "a.parquet", columns_of([block(withdrawals=[paid])]))
    assert transfers(ethereum_etl, path) == found[:1]


@pytest.mark.parametrize(
    "paid",
    [
        "{",
        "[1]",
        '{"index":1}',
        '{"index":1,"address":"0x12","amount":1}',
        f'{{"index":-1,"address":"{ZERO}","amount":1}}',
        f'{{"index":1,"address":"{ZERO}","amount":-1}}',
        f'{{"index":1,"address":"{ZERO}","amount":1.5}}',
        f'{{"index":1,"address":"{ZERO}","amount":{2**64}}}',
        f'{{"index":{2**64},"address":"{ZERO}","amount":1}}',
    ],
)
def test_withdrawals_that_break_a_rule_are_refused(tmp_path: Path, paid: str) -> None:
    with pytest.raises(LedgerError, match=r"rows\.csv:2: .*withdrawal"):
        of(tmp_path, [block(withdrawals=paid)])


# Real files


@pytest.fixture(scope="module")
def fixtures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import os

    folder = os.environ.get("COINHAZE_DATA")
    if not folder:
        pytest.skip("COINHAZE_DATA is not set: no real ledgers to test on")
    to = tmp_path_factory.mktemp("etl")
    with tarfile.open(Path(folder) / "etl_fixtures/ethereum-etl_tests_resources.tar.xz") as tar:
        tar.extractall(to, filter="data")
    return to / "tests" / "resources"


def test_the_ether_of_november_2015_has_its_known_facts(data: Path) -> None:
    folder = data / "eth_480000_499999"
    found = transfers(ethereum_etl, folder / "transactions.parquet")
    assert len(found) == 26_674
    senders, recipients = {r["sender"] for r in found}, {r["recipient"] for r in found}
    made = {r for r in recipients if r.startswith("created by")}
    assert len(made) == 1
    assert len(senders | recipients - made) == 3_102
    assert len(senders - recipients) == 195
    assert len(recipients - made - senders) == 1_201
    assert len({(r["height"], r["position"]) for r in found}) == len(found)
    assert len(blocks(ethereum_etl, folder / "transactions.parquet")) == 9_655
    assert len(transfers(ethereum_etl, folder / "token_transfers.parquet")) == 60


def test_the_dai_of_a_day_has_its_known_facts(data: Path) -> None:
    found = transfers(ethereum_etl, data / "erc20_dai_2019_12_12" / "dai_transfers.csv.gz")
    assert len(found) == 4_926
    assert sum(r["sender"] == ZERO for r in found) == 347
    assert sum(r["recipient"] == ZERO for r in found) == 190
    assert len({r["sender"] for r in found} | {r["recipient"] for r in found}) == 1_612
    assert len({(r["txid"], r["step"]) for r in found}) == len(found)
    assert {r["token"] for r in found} == {ethereum_etl.UNNAMED_TOKEN}


def test_every_file_of_ethereum_etl_s_own_tests_is_read(fixtures: Path) -> None:
    read_well, refused = 0, []
    for path in sorted(fixtures.rglob("expected_*")):
        head = path.read_bytes()[:4096]
        if ethereum_etl.recognises(head):
            try:
                read(ethereum_etl, path)
                read_well += 1
            except CoinhazeError as error:
                refused.append(str(error))
    assert read_well == 26
    assert len(refused) == 1
    assert "geth does not tell what a selfdestruct moved" in refused[0]


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("test_export_traces_job/block_with_create", ["call", "reward"]),
        ("test_export_traces_job/block_with_error", ["call", "reward"]),
        ("test_export_traces_job/block_with_subtraces", ["call", "call", "reward"]),
        ("test_export_traces_job/block_with_suicide", ["selfdestruct", "reward"]),
        ("test_extract_geth_traces_job/block_with_error", ["call"]),
        ("test_extract_geth_traces_job/block_with_subtraces", ["call", "call"]),
    ],
)
def test_traces_of_ethereum_etl_s_own_tests_move_what_they_say(
    fixtures: Path, name: str, kinds: list[str]
) -> None:
    found = transfers(ethereum_etl, fixtures / name / "expected_traces.csv")
    assert [r["kind"] for r in found] == kinds


def test_csv_and_json_of_the_same_blocks_agree(fixtures: Path) -> None:
    folder = fixtures / "test_export_blocks_job/blocks_with_transactions_and_withdrawals"
    for table in ("transactions", "blocks"):
        csv_rows = transfers(ethereum_etl, folder / f"expected_{table}.csv")
        assert csv_rows == transfers(ethereum_etl, folder / f"expected_{table}.json")
        assert len(csv_rows) == {"transactions": 135, "blocks": 32}[table]
    # Eight of them failed, which only the receipts tell.
    stream = fixtures / "test_stream/blocks_17173049_17173050/expected_transactions.json"
    assert len(transfers(ethereum_etl, stream)) == 127
