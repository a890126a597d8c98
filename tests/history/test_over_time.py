"""Bits of what was unspent at the end of each month: the same as of a history that ends there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from coinhaze import CoinLedger, History
from coinhaze.errors import InputError
from coinhaze.history.follow import Follower
from coinhaze.ledger.coin_blocks import CoinBlocks, blocks_of, months_of
from coinhaze.simulate.history import bitcoin_history
from history.branches import Branch
from history.test_tape import pool

DAY = 86_400


def parts(blocks: int) -> list[CoinBlocks]:
    """Make a history of which each month has some blocks."""
    return [part for many in bitcoin_history(blocks) for part in many.parts(1)]


def twin(tmp_path: Path, blocks: list[CoinBlocks], months: list[str]) -> list[tuple[float, ...]]:
    """Index and score exactly, again for each month, all blocks up to its end."""
    found: list[tuple[float, ...]] = []
    for month in months:
        end = int(np.datetime64(month, "M").astype(int))
        some = [b for b in blocks if months_of(b.times)[0] <= end]
        history = History.index_blocks(tmp_path / f"{month}.history", some)
        scores = history.score(accuracy="exact")
        value = scores.coins.value
        by_value = float((scores.bits * value).sum() / value.sum())
        found.append((len(scores), int(value.sum()), float(scores.bits.mean()), by_value))
    return found


def test_every_month_is_that_of_a_history_that_ends_there(tmp_path: Path) -> None:
    blocks = parts(60)
    history = History.index_blocks(tmp_path / "x.history", blocks, piece_rows=700)
    assert len(history.manifest.pieces) > 3
    with pytest.raises(InputError, match="--over-time"):
        history.over_time()
    exact = history.score(accuracy="exact", over_time=True)
    table = history.over_time()
    months = table["month"].to_pylist()
    assert len(months) > 20
    some = months[:: len(months) // 6] + months[-1:]
    rows = [row for row in table.to_pylist() if row["month"] in some]
    for row, (coins, value, mean, by_value) in zip(rows, twin(tmp_path, blocks, some), strict=True):
        assert (row["coins"], row["value"]) == (coins, value), row["month"]
        assert row["bits_mean"] == pytest.approx(mean, abs=1e-9)
        assert row["bits_by_value"] == pytest.approx(by_value, abs=1e-9)
        assert row["miss"] == 0
    assert exact.bits.mean() == pytest.approx(table["bits_mean"][-1].as_py(), abs=1e-9)
    proven = table.to_pylist()
    drawn = history.score(draws=256, seed=5, over_time=True, miss=1e-3)
    for one, sure in zip(history.over_time().to_pylist(), proven, strict=True):
        for name in ("bits_mean", "bits_by_value"):
            assert one[f"{name}_low"] <= sure[name] <= one[f"{name}_high"], one
            assert one[f"{name}_high"] - one[f"{name}_low"] < 2.0
        assert one["coins"] == sure["coins"]
    again = History.open(history.path)
    assert again.over_time().equals(history.over_time())
    # The scores of unspent coins are those of a pass without the months.
    alone = again.score(draws=256, seed=5, miss=1e-3)
    np.testing.assert_array_equal(alone.bits, drawn.bits)
    np.testing.assert_array_equal(alone.bits_high, drawn.bits_high)
    assert not again.manifest.months


def test_a_history_that_grows_in_parts_has_the_same_months(tmp_path: Path) -> None:
    blocks = parts(40)
    whole = History.index_blocks(tmp_path / "whole", blocks)
    for first in range(0, len(blocks), 7):
        grown = History.index_blocks(tmp_path / "grown", blocks[: first + 7])
    whole.score(accuracy="exact", over_time=True)
    grown.score(accuracy="exact", over_time=True)
    for one, other in zip(
        whole.over_time().to_pylist(), grown.over_time().to_pylist(), strict=True
    ):
        assert one == {
            name: pytest.approx(v) if name != "month" else v for name, v in other.items()
        }


def test_a_follower_goes_on_with_the_month_that_is_not_over(tmp_path: Path) -> None:
    branch = Branch(3)
    branch.grow(60)
    path = tmp_path / "x.history"
    History.index_blocks(path, [b.content for b in branch.blocks[:20]]).score(
        draws=128, seed=7, over_time=True
    )
    with Follower(path, draws=128, seed=7, retained=5, commit_after=3) as follower:
        for block in branch.blocks[20:]:
            follower.add(block)
            follower.commit_old()
    followed = History.open(path)
    assert followed.manifest.last_height > 30
    found = followed.over_time().to_pylist()
    followed.score(draws=128, seed=7, over_time=True)
    scored = followed.over_time().to_pylist()
    assert [m["month"] for m in found] == [m["month"] for m in scored]
    for name, value in scored[-1].items():
        assert found[-1][name] == (value if name == "month" else pytest.approx(value))


def test_what_has_no_times_has_no_months(tmp_path: Path) -> None:
    history = History.index(tmp_path / "x.history", CoinLedger.from_transactions(pool(5)))
    with pytest.raises(InputError, match="no times"):
        history.score(seed=1, over_time=True)


def test_a_month_that_is_over_does_not_begin_again(tmp_path: Path) -> None:
    """Blocks may be earlier than those before them; they spend coins of a month that began."""
    ledger = CoinLedger.from_transactions(
        [{"txid": name, "inputs": [], "outputs": [{"value": 5}, {"value": 7}], "height": h,
          "time": h * DAY} for h, name in enumerate("abc")]
        + [{"txid": "d", "inputs": [{"txid": "b", "vout": 1}, {"txid": "b", "vout": 0}],
            "outputs": [{"value": 12}], "height": 3, "time": 3 * DAY},
           {"txid": "e", "inputs": [], "outputs": [{"value": 1}], "height": 4, "time": 4 * DAY}]
    )  # fmt: skip
    blocks = replace(blocks_of(ledger), times=np.array([20, 31, 29, 30, 90]) * DAY)
    expected = [("1970-01", 2, 12), ("1970-02", 5, 36), ("1970-03", 5, 36), ("1970-04", 6, 37)]
    for cuts in (1, 5):
        path = tmp_path / f"{cuts}.history"
        for part in blocks.parts(len(blocks) // cuts):
            history = History.index_blocks(path, [part])
        history.score(accuracy="exact", over_time=True)
        rows = history.over_time().to_pylist()
        assert [(row["month"], row["coins"], row["value"]) for row in rows] == expected
