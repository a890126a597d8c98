import re

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coinhaze.ledger.text import TextIndex, repeated_row, text_buffers, text_hashes
from coinhaze.ledger.text_kernels import number_lengths

TEXTS = st.lists(st.text("ab:019é", max_size=4), max_size=30)


def fnv(text: str) -> int:
    value = 0xCBF29CE484222325
    for octet in text.encode():
        value = (value ^ octet) * 0x100000001B3 % 2**64
    return value


def ending(text: str) -> int:
    if re.fullmatch("[0-9]+", text):
        return -1
    found = re.search(":([0-9]+)$", text)
    return len(found[1]) if found else 0


@settings(deadline=None)
@given(TEXTS, st.sampled_from([pa.string(), pa.large_string()]), st.integers(0, 3))
def test_hashes_and_endings_are_those_of_the_slow_twin(
    texts: list[str], kind: pa.DataType, skipped: int
) -> None:
    column, rest = pa.array(texts, kind).slice(skipped), texts[skipped:]
    assert text_hashes(column).tolist() == [fnv(t) for t in rest]
    assert number_lengths(*text_buffers(column)).tolist() == [ending(t) for t in rest]


@settings(deadline=None)
@given(TEXTS)
def test_a_repeat_is_found_where_it_first_stands(texts: list[str]) -> None:
    repeats = [k for k, text in enumerate(texts) if text in texts[:k]]
    assert repeated_row(pa.array(texts, pa.string())) == (repeats[0] if repeats else -1)


@settings(deadline=None)
@given(TEXTS, st.text("ab:01", max_size=3))
def test_the_index_finds_every_row(texts: list[str], asked: str) -> None:
    index = TextIndex(pa.array(texts, pa.string()))
    for text in {*texts, asked}:
        rows = [k for k, t in enumerate(texts) if t == text]
        assert index.rows(text).tolist() == rows
        assert index.row(text) == (rows[0] if rows else -1)


def test_texts_of_one_hash_are_distinguished(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "coinhaze.ledger.text.text_hashes", lambda column: np.zeros(len(column), np.uint64)
    )
    assert TextIndex(pa.array(["a", "b", "a"])).rows("a").tolist() == [0, 2]
    assert repeated_row(pa.array(["a", "b", "c"])) == -1
    assert repeated_row(pa.array(["a", "b", "a", "b"])) == 2


def test_half_a_letter_is_in_no_column() -> None:
    assert TextIndex(pa.array(["a"])).row("\ud800") == -1
