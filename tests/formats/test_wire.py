from __future__ import annotations

import random

import numpy as np
import pytest

from coinhaze.formats.bitcoin_raw.wire import (
    Cursor,
    Malformed,
    double_sha256,
    id_letters,
    id_text,
    merkle_root,
    text_column,
)
from formats import block_samples as samples


@pytest.mark.parametrize("n", [0, 1, 252, 253, 65535, 65536, 2**32 - 1, 2**32, 2**64 - 1])
def test_compact_sizes_are_read_as_written(n: int) -> None:
    cursor = Cursor(samples.compact(n) + b"rest")
    assert cursor.compact_size() == n
    assert cursor.take(4) == b"rest"


@pytest.mark.parametrize("octets", ["fdfc00", "feffff0000", "ffffffffff00000000", "fd0000"])
def test_a_size_longer_than_it_needs_to_be_is_refused(octets: str) -> None:
    with pytest.raises(Malformed, match="more bytes than it needs"):
        Cursor(bytes.fromhex(octets)).compact_size()


@pytest.mark.parametrize("octets", ["", "fd", "fd01", "fe010203", "ff01020304050607", "03aabb"])
def test_nothing_is_read_past_the_end(octets: str) -> None:
    with pytest.raises(Malformed, match="left"):
        Cursor(bytes.fromhex(octets)).text()


def test_a_cursor_stops_at_its_own_end_not_at_that_of_the_bytes() -> None:
    cursor = Cursor(b"abcdef", 2, 4)
    assert cursor.take(2) == b"cd"
    with pytest.raises(Malformed, match="0 are left"):
        cursor.take(1)


def test_a_count_of_more_than_can_follow_is_refused_before_memory_is_set_aside() -> None:
    with pytest.raises(Malformed, match="18446744073709551615 things"):
        Cursor(b"\xff" * 9 + bytes(100)).count(41)
    with pytest.raises(Malformed, match="3 things of 41"):
        Cursor(b"\3" + bytes(122)).count(41)
    assert Cursor(b"\3" + bytes(123)).count(41) == 3


def test_signed_numbers_keep_their_sign() -> None:
    assert Cursor(b"\xff" * 8).signed(8) == -1
    assert Cursor(b"\xff" * 8).unsigned(8) == 2**64 - 1


def test_the_first_transaction_and_block_of_bitcoin_have_their_names() -> None:
    header = bytes.fromhex(
        "01000000" + 64 * "0" + "3ba3edfd7a7b12b27ac72c3e67768f617fc81bc3888a51323a9fb8aa4b1e5e4a"
        "29ab5f49ffff001d1dac2b7c"
    )
    assert id_text(double_sha256(header)) == (
        "000000000019d6689c085ae165831e934ff763ae46a2a6c172b3f1b60a8ce26f"
    )


@pytest.mark.parametrize("number", [1, 2, 3, 4, 5, 7, 12, 33])
def test_merkle_roots_agree_with_the_slow_twin(number: int) -> None:
    ids = [random.Random(i).randbytes(32) for i in range(number)]
    assert merkle_root(ids) == samples.root(ids)


def test_a_list_that_repeats_its_end_to_keep_the_root_is_refused() -> None:
    """CVE-2012-2459: both lists below have one root."""
    a, b, c = (bytes([i]) * 32 for i in range(3))
    assert samples.root([a, b, c]) == samples.root([a, b, c, c])
    merkle_root([a, b, c])
    with pytest.raises(Malformed, match="twice"):
        merkle_root([a, b, c, c])
    d, e, f = (bytes([i]) * 32 for i in range(3, 6))
    six = [a, b, c, d, e, f]
    assert samples.root(six) == samples.root([*six, e, f])
    with pytest.raises(Malformed, match="twice"):
        merkle_root([*six, e, f])


def test_no_transactions_have_no_root() -> None:
    with pytest.raises(Malformed, match="no transactions"):
        merkle_root([])


def test_columns_of_ids_are_the_ids_backwards_in_hex() -> None:
    rows = np.random.default_rng(1).integers(0, 256, (5, 32)).astype(np.uint8)
    assert text_column(id_letters(rows)).to_pylist() == [id_text(r.tobytes()) for r in rows]
    assert text_column(id_letters(rows[:0])).to_pylist() == []


def test_a_column_of_more_bytes_than_its_offsets_reach_is_cut() -> None:
    rows = np.random.default_rng(1).integers(0, 256, (7, 32)).astype(np.uint8)
    column = text_column(id_letters(rows), maximum=200)  # three ids of 64 letters each
    assert [len(chunk) for chunk in column.chunks] == [3, 3, 1]
    assert column.to_pylist() == [id_text(r.tobytes()) for r in rows]
    column.validate(full=True)


@pytest.mark.long
def test_ids_of_more_than_two_gigabytes_are_all_there() -> None:
    count = 2**31 // 64 + 3
    letters = np.full((count, 64), ord("a"), dtype=np.uint8)
    letters[-1] = ord("f")
    column = text_column(letters)
    assert column.num_chunks == 2
    assert len(column) == count
    assert [str(column[k]) for k in (0, count - 2, count - 1)] == ["a" * 64, "a" * 64, "f" * 64]
