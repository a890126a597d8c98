import dataclasses
import gzip
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from coinhaze.errors import CoinhazeError, InputError, LedgerError, UsageError
from coinhaze.ledger import AccountLedger, CoinLedger
from coinhaze.readers import read
from coinhaze.store.ingest import ingest
from coinhaze.store.store import Store

HEADER = "from,to,amount\n"
GOOD = HEADER + "a,b,5\nb,c,3\n"
LARGEST = 2**256 - 1


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    # Not tmp_path: it is named after the test, whose words could pass for words of the message.
    return tmp_path_factory.mktemp("f")


@pytest.fixture
def path(folder: Path) -> Path:
    return folder / "transfers.csv"


def rows(ledger: AccountLedger | CoinLedger) -> list[tuple[str, str, int]]:
    assert isinstance(ledger, AccountLedger)
    table = ledger.tables()["transfers"].to_pylist()
    return [(r["from"], r["to"], int(r["amount"])) for r in table]


def read_text(path: Path, text: str | bytes, **settings: str) -> list[tuple[str, str, int]]:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return rows(read(path, format=settings.get("format")))


def times(path: Path, text: str) -> list[datetime | None]:
    path.write_text(text)
    ledger = read(path)
    assert isinstance(ledger, AccountLedger)
    assert ledger.times is not None
    found: list[datetime | None] = ledger.times.to_pylist()
    return found


def refusal(path: Path, text: str | bytes, **settings: str) -> CoinhazeError:
    with pytest.raises(CoinhazeError) as caught:
        read_text(path, text, **settings)
    assert isinstance(caught.value, InputError)
    assert str(path) in str(caught.value)
    return caught.value


def refused_row(path: Path, row: str | bytes, *, value: str, rule: str) -> None:
    row = row.encode() if isinstance(row, str) else row
    error = refusal(path, GOOD.encode() + row + b"\nx,y,1\n")
    assert isinstance(error, LedgerError)
    assert str(error).startswith(f"{path}:4: ")
    assert value in str(error)
    assert rule in str(error)


# Good files


def test_a_plain_file_is_read_in_its_order(path: Path) -> None:
    assert read_text(path, GOOD) == [("a", "b", 5), ("b", "c", 3)]


def test_a_path_may_be_text(path: Path) -> None:
    path.write_text(GOOD)
    assert rows(read(str(path))) == rows(read(path)) == rows(read([path]))


def test_the_format_may_be_named(path: Path) -> None:
    assert read_text(path, GOOD, format="transfers") == read_text(path, GOOD)


def test_columns_are_found_by_name_in_any_order(path: Path) -> None:
    assert read_text(path, "amount,to,from\n5,b,a\n") == [("a", "b", 5)]


def test_other_columns_are_ignored(path: Path) -> None:
    assert read_text(path, "note,from,to,amount,x\nhi,a,b,5,1.5\n") == [("a", "b", 5)]


def test_another_column_may_change_its_kind_far_down_the_file(path: Path) -> None:
    many = "1,a,b,5\n" * 200_000
    found = read_text(path, "note,from,to,amount\n" + many + "hello,a,b,6\n")
    assert len(found) == 200_001
    assert found[-1] == ("a", "b", 6)


def test_a_byte_order_mark_is_skipped(path: Path) -> None:
    assert read_text(path, b"\xef\xbb\xbf" + GOOD.encode()) == read_text(path, GOOD)


def test_lines_may_end_with_carriage_returns(path: Path) -> None:
    assert read_text(path, GOOD.replace("\n", "\r\n")) == read_text(path, GOOD)


def test_the_final_newline_may_be_missing(path: Path) -> None:
    assert read_text(path, GOOD.rstrip("\n")) == read_text(path, GOOD)


@pytest.mark.parametrize("header", [HEADER, HEADER.rstrip("\n"), "from,to,amount,time\n"])
def test_a_header_without_rows_is_refused(path: Path, header: str) -> None:
    assert "no transfers" in str(refusal(path, header))


def test_a_ledger_in_which_nothing_moves_is_refused(path: Path) -> None:
    assert "nothing moves" in str(refusal(path, HEADER + "a,b,0\nb,a,0\n"))
    assert "nothing moves" in str(refusal(path, HEADER + "a,a,5\n"))


def test_fields_may_be_quoted(path: Path) -> None:
    text = '"from","to","amount"\n"a, Inc.","b ""B""","5"\n'
    assert read_text(path, text) == [("a, Inc.", 'b "B"', 5)]


def test_names_that_look_like_nulls_or_numbers_stay_names(path: Path) -> None:
    text = HEADER + "null,NA,1\nNaN,1,2\n007,1.0,3\n"
    assert read_text(path, text) == [("null", "NA", 1), ("NaN", "1", 2), ("007", "1.0", 3)]


def test_names_beyond_ascii_are_retained(path: Path) -> None:
    assert read_text(path, HEADER + "Zoë,東京,1\n") == [("Zoë", "東京", 1)]


def test_identical_rows_are_two_transfers(path: Path) -> None:
    assert read_text(path, HEADER + "a,b,5\na,b,5\n") == [("a", "b", 5)] * 2


def test_zero_is_an_amount(path: Path) -> None:
    assert read_text(path, HEADER + "a,b,0\na,b,1\n") == [("a", "b", 0), ("a", "b", 1)]


@pytest.mark.parametrize("amount", [2**31, 2**53 + 1, 10**18, 2**63, 2**64 + 1, 2**255, LARGEST])
def test_large_amounts_are_exact(path: Path, amount: int) -> None:
    assert read_text(path, HEADER + f"a,b,1\na,b,{amount}\n")[1] == ("a", "b", amount)


def test_gzip_is_unpacked(path: Path) -> None:
    packed = path.with_suffix(".csv.gz")
    assert read_text(packed, gzip.compress(GOOD.encode())) == read_text(path, GOOD)


def test_gzip_of_several_members_is_read_to_its_end(path: Path) -> None:
    packed = path.with_suffix(".csv.gz")
    parts = gzip.compress(GOOD.encode()) + gzip.compress(b"x,y,1\n")
    assert read_text(packed, parts) == [*read_text(path, GOOD), ("x", "y", 1)]


def test_gzip_is_known_by_its_content_not_its_name(path: Path) -> None:
    expected = read_text(path, GOOD)
    assert read_text(path, gzip.compress(GOOD.encode())) == expected


def test_a_name_may_be_very_long(path: Path) -> None:
    name = "a" * 10_000
    assert read_text(path, HEADER + f"{name},b,1\n") == [(name, "b", 1)]


def test_files_follow_one_another_in_the_order_given(folder: Path) -> None:
    first, second = folder / "z.csv", folder / "a.csv.gz"
    first.write_text(GOOD)
    second.write_bytes(gzip.compress(b"amount,from,to\n7,c,d\n"))
    assert rows(read([first, second])) == [("a", "b", 5), ("b", "c", 3), ("c", "d", 7)]
    assert rows(read([second, first])) == [("c", "d", 7), ("a", "b", 5), ("b", "c", 3)]


def test_an_error_names_the_file_and_line_among_several(folder: Path) -> None:
    paths = [folder / f"{k}.csv" for k in range(4)]
    for path, text in zip(paths, [GOOD, HEADER, GOOD, HEADER + "a,b,-7\n"], strict=True):
        path.write_text(text)
    with pytest.raises(LedgerError) as caught:
        read(paths)
    assert str(caught.value).startswith(f"{paths[3]}:2: ")
    assert "-7" in str(caught.value)


def test_times_are_seconds_since_1970(path: Path) -> None:
    found = times(path, "from,to,amount,time\nb,c,3,0\na,b,5,1612180800\n")
    assert found == [datetime(1970, 1, 1, tzinfo=UTC), datetime(2021, 2, 1, 12, tzinfo=UTC)]


@pytest.mark.parametrize("text", ["2021-02-01T12:00:00Z", "2021-02-01T14:00:00+02:00"])
def test_times_may_be_iso_8601(path: Path, text: str) -> None:
    found = times(path, f"time,from,to,amount\n{text},a,b,5\n")
    assert found == [datetime(2021, 2, 1, 12, tzinfo=UTC)]


def test_an_empty_time_is_unknown(path: Path) -> None:
    found = times(path, "from,to,amount,time\na,b,5,\nb,c,3,1612180800\n")
    assert found == [None, datetime(2021, 2, 1, 12, tzinfo=UTC)]


def test_rows_are_put_in_the_order_of_their_times(path: Path) -> None:
    text = "from,to,amount,time\na,b,5,200\nb,c,3,100\n"
    assert read_text(path, text) == [("b", "c", 3), ("a", "b", 5)]


def test_a_file_without_times_has_none(path: Path) -> None:
    path.write_text(GOOD)
    ledger = read(path)
    assert isinstance(ledger, AccountLedger)
    assert ledger.times is None


def test_times_of_one_file_are_retained_beside_a_file_without(folder: Path) -> None:
    timed, plain = folder / "timed.csv", folder / "plain.csv"
    timed.write_text("from,to,amount,time\na,b,5,1612180800\n")
    plain.write_text(GOOD)
    ledger = read([timed, plain])
    assert isinstance(ledger, AccountLedger)
    assert ledger.times is not None, "times were read and dropped without a word"
    assert ledger.times.to_pylist() == [datetime(2021, 2, 1, 12, tzinfo=UTC), None, None]


# Amounts that are none


def test_a_negative_amount_is_refused(path: Path) -> None:
    refused_row(path, "a,b,-5", value="'-5'", rule="amount is negative")


def test_a_fractional_amount_is_refused(path: Path) -> None:
    refused_row(path, "a,b,1.5", value="'1.5'", rule="amount is not a whole number")


def test_a_whole_number_with_a_decimal_point_is_refused(path: Path) -> None:
    refused_row(path, "a,b,1.0", value="'1.0'", rule="amount is not a whole number")


@pytest.mark.parametrize("amount", ["1e18", "1E+18"])
def test_an_amount_with_an_exponent_is_refused(path: Path, amount: str) -> None:
    refused_row(path, f"a,b,{amount}", value=repr(amount), rule="amount is not a whole number")


@pytest.mark.parametrize("amount", ["NaN", "nan", "-nan"])
def test_not_a_number_is_refused(path: Path, amount: str) -> None:
    refused_row(path, f"a,b,{amount}", value=repr(amount), rule="amount is not a number")


@pytest.mark.parametrize("amount", ["inf", "-inf", "Infinity"])
def test_an_infinite_amount_is_refused(path: Path, amount: str) -> None:
    refused_row(path, f"a,b,{amount}", value=repr(amount), rule="amount is not a number")


def test_an_empty_amount_is_refused(path: Path) -> None:
    refused_row(path, "a,b,", value="''", rule="amount is missing")


def test_a_dump_null_is_a_missing_amount(path: Path) -> None:
    refused_row(path, "a,b,\\N", value="\\N", rule="amount is missing")


def test_an_amount_with_underscores_is_refused(path: Path) -> None:
    refused_row(path, "a,b,1_000", value="'1_000'", rule="amount is not a")


def test_an_amount_with_a_plus_sign_is_refused(path: Path) -> None:
    refused_row(path, "a,b,+5", value="'+5'", rule="amount is not a")


def test_an_amount_with_a_quoted_thousands_comma_is_refused(path: Path) -> None:
    refused_row(path, 'a,b,"1,000"', value="'1,000'", rule="amount is not a")


def test_a_hexadecimal_amount_is_refused(path: Path) -> None:
    refused_row(path, "a,b,0x10", value="'0x10'", rule="amount is not a number")


def test_digits_of_other_scripts_are_refused(path: Path) -> None:
    refused_row(path, "a,b,\u0665", value="\u0665", rule="amount is not a number")


@pytest.mark.parametrize("amount", [" 5", "5 ", "\u00a05"])
def test_an_amount_with_spaces_is_refused_for_what_it_is(path: Path, amount: str) -> None:
    refused_row(path, f"a,b,{amount}", value=repr(amount), rule="amount is not a")


def test_an_amount_above_uint256_is_refused(path: Path) -> None:
    refused_row(path, f"a,b,{2**256}", value=str(2**256), rule="amount is above 2^256 - 1")


def test_an_amount_of_thousands_of_digits_is_refused(path: Path) -> None:
    refused_row(path, "a,b," + "9" * 5000, value="'999", rule="amount is above 2^256 - 1")


def test_leading_zeros_do_not_make_an_amount_large(path: Path) -> None:
    text = HEADER + "a,b," + "0" * 150 + "7\n"
    try:
        assert read_text(path, text) == [("a", "b", 7)]
    except LedgerError as error:
        assert "above" not in str(error)  # noqa: PT017


def test_minus_zero_is_refused(path: Path) -> None:
    refused_row(path, "a,b,-0", value="'-0'", rule="amount is negative")


# Rows that are none


def test_a_row_too_short_is_refused(path: Path) -> None:
    refused_row(path, "a,b", value="'a,b'", rule="2 fields where the header has 3")


def test_a_row_too_long_is_refused(path: Path) -> None:
    refused_row(path, "a,b,1,2", value="'a,b,1,2'", rule="4 fields where the header has 3")


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_blank_lines_are_no_rows_and_shift_no_line_named(path: Path, end: str) -> None:
    """A blank line states nothing, at the end or inside; a row of empty fields is a row."""
    rows = ["from,to,amount", "a,b,5", "", "b,c,3", "", ""]
    assert read_text(path, end.join(rows)) == [("a", "b", 5), ("b", "c", 3)]
    assert read_text(path, end.join(["from,to,amount", "a,b,5", *[""] * 9_000_000])) == [
        ("a", "b", 5)
    ]
    error = refusal(path, end.join([*rows, "c,d,-1", ""]))
    assert str(error).startswith(f"{path}:7: ")
    error = refusal(path, end.join([*rows, "c,d", ""]))
    assert str(error).startswith(f"{path}:7: 2 fields where the header has 3")
    error = refusal(path, end.join([*rows, "c,d,1", "", "c,d,-1", "c,d,-2"]))
    assert str(error).startswith(f"{path}:9: ")
    refused_row(path, ",,", value="", rule="missing")


def test_a_row_too_short_far_down_is_named_by_its_line(path: Path) -> None:
    error = refusal(path, HEADER + "a,b,5\n" * 300_000 + "a,b\n")
    assert str(error).startswith(f"{path}:300002: ")


def test_a_bad_amount_far_down_is_named_by_its_line(path: Path) -> None:
    error = refusal(path, HEADER + "a,b,5\n" * 300_000 + "a,b,-1\n")
    assert str(error).startswith(f"{path}:300002: ")


def test_a_line_break_inside_quotes_does_not_shift_the_lines_named(path: Path) -> None:
    error = refusal(path, 'note,from,to,amount\n"one\ntwo",a,b,5\nx,a,b,-5\n')
    assert str(error).startswith(f"{path}:4: ")


def test_a_line_break_inside_quotes_does_not_shift_the_lines_of_short_rows(path: Path) -> None:
    error = refusal(path, 'note,from,to,amount\n"one\ntwo",a,b,5\nx,a\n')
    assert str(error).startswith(f"{path}:4: ")


def test_an_open_quote_is_refused(path: Path) -> None:
    error = refusal(path, HEADER + '"a,b,5\nb,c,3\n')
    assert str(error).startswith(f"{path}:2: ")


@pytest.mark.parametrize("row", [b"a\xff,b,5", b"a,\xc3,5", b"a,b,5\xfe"])
def test_invalid_utf8_is_refused(path: Path, row: bytes) -> None:
    bad = row.decode("latin1").translate({ord(","): None, ord("a"): None, ord("b"): None})
    shown = f"x{ord(bad.replace('5', '')):02x}"
    refused_row(path, row, value=shown, rule="UTF")


def test_invalid_utf8_in_a_row_too_short_is_refused(path: Path) -> None:
    refused_row(path, b"a\xff,b", value="xff", rule="")


@pytest.mark.parametrize("header", [b"from,to,amount,\xff\n", b"fr\xffom,to,amount\n"])
def test_invalid_utf8_in_the_header_is_refused(path: Path, header: bytes) -> None:
    error = refusal(path, header + b"a,b,5,1\n", format="transfers")
    assert str(error).startswith(f"{path}:1: ")


def test_a_nul_byte_in_a_name_is_refused(path: Path) -> None:
    refused_row(path, "a\0,b,5", value="'a\\x00'", rule="from holds a control character")


@pytest.mark.parametrize("code", [1, 7, 8, 9, 11, 12, 27, 31, 127])
def test_a_control_character_in_a_name_is_refused(path: Path, code: int) -> None:
    name = f"b{chr(code)}x"
    refused_row(path, f"a,{name},5", value=repr(name), rule="to holds a control character")


def test_a_missing_sender_is_refused(path: Path) -> None:
    refused_row(path, ",b,5", value="", rule="from is missing")


def test_a_missing_receiver_is_refused(path: Path) -> None:
    refused_row(path, 'a,"",5', value="", rule="to is missing")


def test_a_header_repeated_inside_the_file_is_refused(path: Path) -> None:
    refused_row(path, HEADER.strip(), value="'amount'", rule="amount is not a number")


@pytest.mark.parametrize("time", ["yesterday", "-5", "1.5", "NaN", "99999999999999", "2021-13-01"])
def test_a_time_that_is_none_is_refused(path: Path, time: str) -> None:
    error = refusal(path, f"from,to,amount,time\na,b,5,1612180800\na,b,5,{time}\n")
    assert str(error).startswith(f"{path}:3: ")
    assert repr(time) in str(error)
    assert "time" in str(error)


def test_a_bad_time_among_iso_times_is_refused(path: Path) -> None:
    error = refusal(path, "from,to,amount,time\na,b,5,2021-02-01T12:00:00Z\na,b,5,noon\n")
    assert str(error).startswith(f"{path}:3: ")
    assert "'noon'" in str(error)


def test_times_of_two_kinds_are_refused(path: Path) -> None:
    text = "from,to,amount,time\na,b,5,1612180800\na,b,5,2021-02-01T12:00:00Z\n"
    error = refusal(path, text)
    assert "time" in str(error)
    assert "seconds since 1970" in str(error)
    assert str(error).startswith(f"{path}:3: ")


# Files that are none


def test_a_missing_column_is_refused(path: Path) -> None:
    error = refusal(path, "from,to\na,b\n")
    assert "with the columns from, to" in str(error)
    assert "If these are transfers: --columns amount=NAME" in str(error)
    error = refusal(path, "from,to\na,b\n", format="transfers")
    assert str(error).startswith(f"{path}:1: ")
    assert "no column 'amount'" in str(error)


@pytest.mark.parametrize("column", ["from", "to", "amount", "time"])
def test_a_column_given_twice_is_refused(path: Path, column: str) -> None:
    error = refusal(path, f"from,to,amount,time,{column}\na,b,5,0,5\n")
    assert str(error).startswith(f"{path}:1: ")
    assert f"'{column}'" in str(error)
    assert "more than one column" in str(error)


@pytest.mark.parametrize("name", [None, "transfers"])
def test_an_empty_file_is_refused(path: Path, name: str | None) -> None:
    path.write_bytes(b"")
    with pytest.raises(InputError) as caught:
        read(path, format=name)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("name", [None, "transfers"])
def test_plain_text_named_gz_is_read_or_refused_by_name(folder: Path, name: str | None) -> None:
    path = folder / "transfers.csv.gz"
    path.write_text(GOOD)
    with pytest.raises(InputError) as caught:
        read(path, format=name)
    assert str(path) in str(caught.value)


def packed(rows: int) -> bytes:
    return gzip.compress((HEADER + "".join(f"a{k},b{k * k},{k}\n" for k in range(rows))).encode())


@pytest.mark.parametrize("rows", [3, 20_000])
@pytest.mark.parametrize("name", [None, "transfers"])
def test_gzip_with_a_bad_checksum_is_refused(folder: Path, rows: int, name: str | None) -> None:
    path = folder / "transfers.csv.gz"
    data = packed(rows)
    path.write_bytes(data[:-8] + bytes(b ^ 255 for b in data[-8:-4]) + data[-4:])
    with pytest.raises(InputError) as caught:
        read(path, format=name)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("rows", [3, 20_000])
@pytest.mark.parametrize("name", [None, "transfers"])
@pytest.mark.parametrize("keep", ["half", "all but the trailer", "all but one byte"])
def test_gzip_cut_short_is_refused(folder: Path, rows: int, name: str | None, keep: str) -> None:
    path = folder / "transfers.csv.gz"
    data = packed(rows)
    end = {"half": len(data) // 2, "all but the trailer": -8, "all but one byte": -1}[keep]
    path.write_bytes(data[:end])
    with pytest.raises(InputError) as caught:
        read(path, format=name)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("name", [None, "transfers"])
def test_gzip_that_cannot_be_unpacked_is_refused(folder: Path, name: str | None) -> None:
    path = folder / "transfers.csv.gz"
    data = packed(3)
    path.write_bytes(data[:10] + b"\xff\xff\xff" + data[13:])
    with pytest.raises(InputError) as caught:
        read(path, format=name)
    assert str(path) in str(caught.value)


def test_an_empty_gzip_is_refused(folder: Path) -> None:
    path = folder / "transfers.csv.gz"
    path.write_bytes(gzip.compress(b""))
    with pytest.raises(InputError) as caught:
        read(path)
    assert str(path) in str(caught.value)


def test_what_begins_as_parquet_is_read_as_that(path: Path) -> None:
    assert "cannot be read as Parquet" in str(refusal(path, "PAR1"))


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("hello\n", "text that begins 'hello'"),
        (
            "sender;receiver;value\n",
            "semicolons, with the columns sender, receiver, value. If these are transfers: "
            "--columns to=receiver",
        ),
        ("\x00\x01\x02", "binary data"),
    ],
)
def test_an_unknown_format_is_refused_with_what_was_seen(path: Path, text: str, seen: str) -> None:
    assert f"no known format: {seen}" in str(refusal(path, text)).replace(
        "a table, separated by ", ""
    )


def test_an_unknown_format_name_is_refused(path: Path) -> None:
    path.write_text(GOOD)
    with pytest.raises(UsageError, match=r"unknown format 'parquet'.*transfers.*bitcoin-etl"):
        read(path, format="parquet")


@pytest.mark.parametrize("name", [None, "transfers"])
def test_a_missing_file_is_refused(path: Path, name: str | None) -> None:
    with pytest.raises(InputError, match=r"(?i)no such file") as caught:
        read(path, format=name)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("name", [None, "transfers"])
def test_a_directory_is_refused(folder: Path, name: str | None) -> None:
    with pytest.raises(InputError, match=r"is a folder|directory") as caught:
        read(folder, format=name)
    assert str(folder) in str(caught.value)


def test_a_good_file_beside_a_missing_one_is_refused(folder: Path) -> None:
    good = folder / "good.csv"
    good.write_text(GOOD)
    with pytest.raises(InputError, match=r"missing\.csv"):
        read([good, folder / "missing.csv"])


def test_no_file_is_refused() -> None:
    with pytest.raises(UsageError, match="no file"):
        read([])


def test_files_of_two_formats_are_refused(folder: Path) -> None:
    transfers, coins = folder / "t.csv", folder / "t.json"
    transfers.write_text(GOOD)
    coins.write_text('{"hash": "t", "block_number": 1, "inputs": [], "outputs": []}\n')
    with pytest.raises(UsageError, match="several formats"):
        read([transfers, coins])


def test_transfers_cannot_be_complete(path: Path) -> None:
    path.write_text(GOOD)
    with pytest.raises(UsageError, match="complete"):
        read(path, complete=True)


def test_a_field_larger_than_a_block_is_read_or_refused(path: Path) -> None:
    text = HEADER + "a" * 3_000_000 + ",b,1\n"
    try:
        assert len(read_text(path, text)) == 1
    except InputError as error:
        assert str(path) in str(error)  # noqa: PT017


def test_a_refused_file_is_left_as_it_was(path: Path) -> None:
    text = HEADER + "a,b,-1\n"
    refusal(path, text)
    assert path.read_text() == text
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_a_ledger_cannot_be_changed(path: Path) -> None:
    path.write_text(GOOD)
    ledger = read(path)
    assert isinstance(ledger, AccountLedger)
    with pytest.raises(dataclasses.FrozenInstanceError):
        ledger.amounts = ledger.amounts  # type: ignore[misc]
    for column in (ledger.sender, ledger.receiver):
        with pytest.raises(ValueError, match="read-only"):
            column[0] = 1


def test_a_file_is_opened_twice_to_recognise_it_and_to_read_it(path: Path) -> None:
    path.write_text(GOOD)
    program = (
        "import sys, coinhaze\n"
        "seen = []\n"
        "sys.addaudithook(lambda e, v: seen.append(str(v[0])) if e == 'open' else None)\n"
        "coinhaze.read(sys.argv[1])\n"
        "print(seen.count(sys.argv[1]))\n"
    )
    command = [sys.executable, "-c", program, str(path)]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout == "2\n"


def test_names_that_differ_by_spaces_alone_are_noted(path: Path) -> None:
    path.write_text(HEADER + "a, b,5\nb,c,3\n x,c,1\n")
    found = read(path)
    assert len([note for note in found.notes if "are two accounts" in note]) == 1
    assert "' b' and 'b' are two accounts" in found.notes[-1]
    store = path.with_suffix(".duckdb")
    with Store(store) as opened:
        ingest([path], opened)
    assert found.notes[-1] in read(store).notes
    path.write_text(HEADER + " x,c,1\n")
    assert not read(path).notes
