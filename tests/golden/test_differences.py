"""The comparison itself: what it lets pass, and what it must not."""

from __future__ import annotations

import doctest
from pathlib import Path
from typing import Any

import pytest
from benchmarks import golden, json_differences
from benchmarks.json_differences import differences, normalised


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (1.0, 1.0 + 4e-16),
        (0.0, 3e-16),
        (float("nan"), float("nan")),
        ({"a": [1, "x", None]}, {"a": [1, "x", None]}),
    ],
)
def test_last_digits_may_differ(old: Any, new: Any) -> None:
    assert not [*differences(old, new)]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (1.0, 1.0 + 1e-11),
        (1, 1.0),
        (1, True),
        (10**30, 10**30 + 1),
        (None, 0),
        (0.5, float("nan")),
        ([1, 2], [1]),
        ({"a": 1}, {"a": 1, "b": 2}),
        ({"a": 1}, {}),
        ("12 coins", "13 coins"),
        ("0.5 bits", "0.50 bits"),
    ],
)
def test_numbers_and_fields_may_not(old: Any, new: Any) -> None:
    assert [found.words for found in differences(old, new)] == [False]


def test_words_are_distinguished_from_numbers() -> None:
    (found,) = differences(["12 coins kept"], ["12 coins retained"])
    assert found.words
    assert str(found) == "[0]: '12 coins kept' became '12 coins retained'"


def test_what_is_no_result_is_replaced() -> None:
    made = {"software": "coinhaze 0.1.0", "inputs": [{"file": "a.parquet", "sha256": "00"}]}
    later = {"software": "coinhaze 2.0", "inputs": [{"file": "a.parquet", "sha256": "ff"}]}
    assert normalised(made) == normalised(later)
    text = {"file": "a.csv", "sha256": "00"}
    assert normalised(text) == text


def test_examples_hold() -> None:
    assert doctest.testmod(json_differences).failed == 0


@pytest.mark.long
def test_a_checkout_agrees_with_itself_on_a_real_ledger(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    here = str(Path(golden.__file__).parent.parent)
    monkeypatch.setattr("sys.argv", ["golden", here, "--only", "dash: verify"])
    with pytest.raises(SystemExit) as stop:
        golden.main()
    assert stop.value.code == 0
    assert "dash: verify dash.duckdb: same" in capsys.readouterr().out
