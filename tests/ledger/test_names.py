"""Names numbered by the compiled table are those a dictionary numbers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coinhaze.ledger import text
from coinhaze.ledger.text import Names
from coinhaze.ledger.text_kernels import number_texts

TEXTS = st.lists(st.none() | st.text("ab:0é", max_size=3), max_size=30)
KINDS = st.sampled_from([pa.string(), pa.large_string()])


def numbered(known: dict[str, int], texts: list[str | None], *, adds: bool) -> list[int]:
    """The slow twin: a dictionary of Python strings."""
    if adds:
        for text in texts:
            if text is not None:
                known.setdefault(text, len(known))
    return [-1 if text is None else known.get(text, -1) for text in texts]


@settings(deadline=None)
@given(st.lists(st.tuples(TEXTS, st.booleans()), max_size=6), KINDS, st.integers(0, 3))
def test_numbers_are_those_of_a_dictionary(
    pieces: list[tuple[list[str | None], bool]], kind: pa.DataType, skipped: int
) -> None:
    names, known = Names(), dict[str, int]()
    for texts, adds in pieces:
        column, rest = pa.array(texts, kind).slice(skipped), texts[skipped:]
        found = names.add(column) if adds else names.find(column)
        assert found.tolist() == numbered(known, rest, adds=adds)
    assert len(names) == len(known)
    assert names.texts().to_pylist() == list(known)


def test_a_table_that_grows_forgets_nothing() -> None:
    names, known = Names(), dict[str, int]()
    chance = np.random.default_rng(5)
    for _ in range(20):
        texts = [f"name{k}" for k in chance.integers(0, 20_000, 2_000)]
        assert names.add(pa.array(texts)).tolist() == numbered(known, list(texts), adds=True)
    assert names.find(pa.array(list(known))).tolist() == list(range(len(known)))
    assert names.find(pa.array(["name", "name-1", ""])).tolist() == [-1, -1, -1]


def test_texts_of_one_hash_are_distinguished() -> None:
    """All in one slot: only the letters tell them from each other."""
    import importlib

    kernels = importlib.import_module("coinhaze.ledger.text_kernels")
    texts = [f"t{k}" for k in range(300)]
    column = pa.array(texts * 2)
    offsets = np.frombuffer(column.buffers()[1], np.int32)[: len(column) + 1]
    data = np.frombuffer(column.buffers()[2], np.uint8)
    ends, letters = np.zeros(601, np.int64), np.empty(5000, np.uint8)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "upper_half", lambda data, first, last: np.uint64(7))
        patch.setattr(kernels, "same_text", kernels.same_text.py_func)
        slots = np.zeros(1024, np.uint64)
        numbers, count = number_texts.py_func(offsets, data, slots, ends, letters, 0, True)
    assert count == 300
    assert numbers.tolist() == [*range(300), *range(300)]


def test_released_names_come_in_the_order_requested_and_are_gone() -> None:
    names = Names()
    names.add(pa.array(["a", "b", "c"]))
    assert names.release(pa.array([2, 0])).to_pylist() == ["c", "a"]
    assert len(names) == 0
    assert names.find(pa.array(["a"])).tolist() == [-1]


def test_much_text_has_wide_offsets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "MAX_TEXT", 5)
    names = Names()
    names.add(pa.array(["abc", "de"]))
    assert names.texts().type == pa.string()
    names.add(pa.array(["f"]))
    assert names.texts().type == pa.large_string()
    assert names.texts().to_pylist() == ["abc", "de", "f"]
