"""Tables under any names: columns and decimals as given, other separators, zip, and what is said
of files that are no table that is known."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import coinhaze
from coinhaze.cli import cli
from coinhaze.errors import CoinhazeError, InputError, LedgerError, UsageError
from coinhaze.formats.transfers.columns import ColumnChoice
from coinhaze.ledger import AccountLedger
from coinhaze.store.ingest import ingest
from coinhaze.store.read import read_store
from coinhaze.store.store import Store

ETHER = 10**18
# Ann pays 1.5 and Ben 0.5 to Cid, who pays on: 3 parts of 4 of his money were Ann's.
MIXED = "payer;payee;Total;when\nann;cid;1.5;2021-01-01\nben;cid;0.5;2021-01-02\n"
MIXED += "cid;dan;2.000000000000000000;2021-01-03\n"
CHOICE = "from=payer,to=payee,amount=Total,time=when"


def put(folder: Path, text: str, name: str = "t.csv") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def accounts(*given: object, **settings: object) -> AccountLedger:
    ledger = coinhaze.read(*given, **settings)  # type: ignore[arg-type]
    assert isinstance(ledger, AccountLedger)
    return ledger


def test_chosen_columns_and_decimals_are_scored_as_by_hand(tmp_path: Path) -> None:
    path = put(tmp_path, MIXED)
    ledger = accounts(path, columns=CHOICE, decimals=18)
    assert ledger.amounts.ints() == [3 * ETHER // 2, ETHER // 2, 2 * ETHER]
    scores = coinhaze.score(path, columns=CHOICE, decimals=18)
    # -(3/4) log2(3/4) - (1/4) log2(1/4)
    assert scores["dan"].bits == pytest.approx(0.8112781244591328, abs=1e-12)
    assert f"read as given: columns {CHOICE}; decimals 18" in scores.notes


def test_a_store_of_chosen_columns_holds_the_same_and_remembers_them(tmp_path: Path) -> None:
    path = put(tmp_path, MIXED)
    with Store(None) as store:
        ingest([path], store, columns=CHOICE, decimals=18)
        ledger = read_store(store)
        (source,) = store.sources()
    assert isinstance(ledger, AccountLedger)
    assert ledger.amounts.ints() == [3 * ETHER // 2, ETHER // 2, 2 * ETHER]
    assert source.format == f"transfers, columns {CHOICE}; decimals 18"


def test_the_choice_stands_in_the_provenance(tmp_path: Path) -> None:
    path, out = put(tmp_path, MIXED), tmp_path / "scores.json"
    options = ["--columns", CHOICE, "--decimals", "18", "-o", str(out)]
    done = CliRunner().invoke(cli, ["score", str(path), *options])
    assert done.exit_code == 0, done.output
    told = json.dumps(json.loads(out.read_text())["provenance"])
    assert f"read as given: columns {CHOICE}; decimals 18" in told


def test_tables_in_memory_take_the_same_choice() -> None:
    table = pa.table({"payer": ["ann"], "payee": ["ben"], "Total": ["1.25"]})
    ledger = accounts(table, columns="from=payer,to=payee,amount=Total", decimals=2)
    assert ledger.amounts.ints() == [125]


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("header", ["from to amount", "FROM To Amount", "Sender recipient VALUE"])
def test_separators_and_letter_case_do_not_matter(
    tmp_path: Path, separator: str, header: str
) -> None:
    rows = [header.split(), ["ann", "ben", "5"], ['"b, e; n"', "cid", "3"]]
    path = put(tmp_path, "\n".join(separator.join(row) for row in rows))
    ledger = accounts(path)
    assert ledger.amounts.ints() == [5, 3]
    assert "b, e; n" in ledger.accounts.to_pylist()
    with Store(None) as store:
        assert ingest([path], store).rows == 3  # and the block that the file stands for


def test_a_line_break_in_a_field_leaves_lines_counted(tmp_path: Path) -> None:
    path = put(tmp_path, 'from;to;amount\n"a;\nb";c;1\nd;e;x\n')
    with pytest.raises(LedgerError, match=r"t\.csv:\d+: "):
        coinhaze.read(path)
    path = put(tmp_path, 'from;to;amount;note\nb;c;1;"a;\nb"\nd;e;x;\n')
    with pytest.raises(LedgerError, match=r"t\.csv:4: amount is not a number: 'x'"):
        coinhaze.read(path)


@pytest.mark.parametrize("kind", [pa.int64(), pa.decimal128(20, 3), pa.string()])
def test_decimals_of_every_type_are_exact(tmp_path: Path, kind: pa.DataType) -> None:
    path = tmp_path / "t.parquet"
    amounts = pa.array(["7", "12"]).cast(kind)
    pq.write_table(pa.table({"from": ["a", "b"], "to": ["b", "c"], "amount": amounts}), path)
    assert accounts(path, decimals=6).amounts.ints() == [7_000_000, 12_000_000]


# The likeliest mistakes, and the words that name what mends each.
MISTAKES: dict[str, tuple[str, dict[str, object], str]] = {
    "no choice": (MIXED, {},
        "Total, when. If .*: --columns from=payer,to=payee,amount=Total,time=when --decimals N"),
    "a column that is not there": (
        MIXED, {"columns": "from=payr,to=payee,amount=Total"},
        "no column 'payr', named for 'from' .*the file has payer, payee, Total, when",
    ),
    "one column not chosen": (
        MIXED, {"columns": "from=payer,to=payee"}, "known to hold amount.*--columns amount=...",
    ),
    "turned round": (
        MIXED, {"columns": "payer=from"}, "'payer' is not one of from, to, amount",
    ),
    "no equals sign": (MIXED, {"columns": "payer,payee,Total"}, "are named like from=sender,to="),
    "one thing twice": (MIXED, {"columns": "from=payer,from=payee"}, "'from' is there twice"),
    "decimals left out": (
        MIXED, {"columns": CHOICE}, r"Total|amount is not a whole number.*'1\.5'.*--decimals",
    ),
    "too few decimals": (
        MIXED, {"columns": CHOICE, "decimals": 0},
        r"t\.csv:2: Total has more than 0 places after the point: '1.5' .*never rounded",
    ),
    "a comma before decimals": (
        MIXED.replace("1.5", "1,5"), {"columns": CHOICE, "decimals": 18},
        r"t\.csv:2: Total is not a decimal number >= 0: '1,5' .*a point before decimals",
    ),
    "an exponent": (
        MIXED.replace("1.5", "15e-1"), {"columns": CHOICE, "decimals": 18}, "export it again",
    ),
    "a negative amount": (
        MIXED.replace("1.5", "-1.5"), {"columns": CHOICE, "decimals": 18}, ">= 0: '-1.5'",
    ),
    "decimals of what is raw": (
        "from,to,amount_raw,amount\na,b,5,0.5\n", {"decimals": 18},
        "amount_raw is in the smallest unit already.*leave out --decimals",
    ),
    "decimals out of range": (MIXED, {"columns": CHOICE, "decimals": 78}, "from 0 to 77, not 78"),
    "another format": (
        MIXED, {"columns": CHOICE, "format": "blockchair"},
            "--columns cannot .*: leave out --format for",
    ),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_answered_by_what_mends_it(tmp_path: Path, mistake: str) -> None:
    text, settings, words = MISTAKES[mistake]
    with pytest.raises(CoinhazeError, match=words):
        accounts(put(tmp_path, text), **settings)


def test_floating_point_numbers_are_refused_with_decimals_too(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"from": ["a"], "to": ["b"], "amount": [0.5]}), path)
    with pytest.raises(LedgerError, match="amount is stored as double, which loses digits"):
        accounts(path, decimals=18)


def test_stores_and_folders_take_no_choice(tmp_path: Path) -> None:
    path = tmp_path / "s.duckdb"
    with Store(path) as store:
        ingest([put(tmp_path, "from,to,amount\na,b,5\n")], store)
    with pytest.raises(UsageError, match=r"with a store, .*leave out --decimals"):
        accounts(path, decimals=3)
    with (
        Store(None) as store,
        pytest.raises(UsageError, match="--decimals cannot be used with --format tornado"),
    ):
        ingest([put(tmp_path, MIXED)], store, format="tornado", decimals=3)


def test_a_choice_is_written_as_it_is_read() -> None:
    choice = ColumnChoice.of("from=a, log_index=b", 3)
    assert str(choice) == "columns from=a,log_index=b; decimals 3"
    assert not ColumnChoice.of(None, None)


# zip


def zipped(*members: tuple[str, str]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members:
            archive.writestr(name, text)
    return out.getvalue()


def test_a_zip_archive_of_one_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "t.zip"
    path.write_bytes(zipped(("__MACOSX/._t.csv", "x"), ("f/t.csv", "from,to,amount\na,b,5\n")))
    assert accounts(path).amounts.ints() == [5]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (
            zipped(("a.csv", "1"), ("b.csv", "2")),
            r"zip archive of 2 files \(a.csv, b.csv\).*unpack",
        ),
        (zipped(), "zip archive of 0 files"),
        (zipped(("[Content_Types].xml", ""), ("xl/a.xml", "")), "office program: save it as CSV"),
        (zipped(("a.csv", "from,to,amount\n"))[:-30], "cannot be read"),
        (b"from,to,amount\na,b,5\n", "cannot be read"),
    ],
    ids=["two files", "none", "office", "cut off", "no archive"],  # archives hold the time
)
def test_a_zip_archive_that_is_none_or_holds_several_is_refused(
    tmp_path: Path, content: bytes, words: str
) -> None:
    path = tmp_path / "t.zip"
    path.write_bytes(content)
    with pytest.raises(InputError, match=words):
        coinhaze.read(path)


def test_a_zip_archive_with_a_password_is_refused(tmp_path: Path) -> None:
    content = bytearray(zipped(("a.csv", "from,to,amount\na,b,5\n")))
    content[6] |= 1  # in the header of the file, and in the directory
    content[content.index(b"PK\x01\x02") + 8] |= 1
    path = tmp_path / "t.zip"
    path.write_bytes(content)
    with pytest.raises(InputError, match="with a password: unpack it first"):
        coinhaze.read(path)


# Files of no known format

UNKNOWN: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "the file is empty: export or download it again"),
    "white space": (b" \r\n\n", "the file is empty"),
    "only a mark of byte order": (b"\xef\xbb\xbf", "the file is empty"),
    "other columns": (
        b"payer,to,amount\nann,ben,5\n",
        "separated by commas, with the columns payer, to, amount. If these are transfers: "
        "--columns from=payer$",
    ),
    "columns of ethereum-etl": (
        b"token_address,from_address,to_address,value,transaction_hash,block_number\n",
        "Nearest is ethereum-etl, which also needs log_index. If these are transfers: --columns "
        "from=from_address,to=to_address$",
    ),
    "columns that nobody has": (
        b"colour\ttaste\n1\t2\n",
        "separated by tabs.*--columns from=NAME,to=NAME,amount=NAME$",
    ),
    "JSON": (b'{"colour": 1, "taste": {"sweet": 2}}', "JSON with the keys colour, taste, sweet"),
    "prose": (b"Dear all\n", "text that begins 'Dear all'"),
    "a web page": (b"<!DOCTYPE html><html>", "a web page and no data.*download the data again"),
    "SQLite": (b"SQLite format 3\0" + bytes(80), "an SQLite database: export"),
    "bytes": (bytes(range(128, 256)) * 4, "binary data that begins like nothing known"),
    "zeros": (bytes(100), "binary data"),
}


@pytest.mark.parametrize("kind", UNKNOWN)
def test_an_unknown_file_is_described(tmp_path: Path, kind: str) -> None:
    content, words = UNKNOWN[kind]
    path = tmp_path / "t.txt"
    path.write_bytes(content)
    with pytest.raises(InputError, match=f"no known format: .*{words}") as caught:
        coinhaze.read(path)
    assert str(caught.value).isprintable()
    assert "\ufffd" not in str(caught.value)


def test_unknown_parquet_is_described(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"from": ["a"], "to": ["b"], "worth": [1]}), path)
    words = (
        "Parquet with the columns from, to, worth. If these are transfers: --columns amount=NAME"
    )
    with pytest.raises(InputError, match=words):
        coinhaze.read(path)
    assert accounts(path, columns="amount=worth").amounts.ints() == [1]


def test_a_failed_ingest_leaves_no_store(tmp_path: Path) -> None:
    store, good = tmp_path / "s.duckdb", put(tmp_path, "from,to,amount\na,b,5\n", "good.csv")
    bad = put(tmp_path, "from,to,amount,height\na,b,x,1\n", "bad.csv")
    done = CliRunner().invoke(cli, ["ingest", str(bad), "-o", str(store)])
    assert isinstance(done.exception, InputError)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bad.csv", "good.csv"]
    # What was there before, or is whole, stays.
    assert CliRunner().invoke(cli, ["ingest", str(good), "-o", str(store)]).exit_code == 0
    assert CliRunner().invoke(cli, ["ingest", str(bad), "-o", str(store)]).exit_code != 0
    assert store.exists()
    other = tmp_path / "o.duckdb"
    done = CliRunner().invoke(cli, ["ingest", str(good), str(bad), "-o", str(other)])
    assert isinstance(done.exception, InputError)
    assert other.exists()
