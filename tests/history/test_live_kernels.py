"""A coin is found among those of its maker, in whatever order and place they stand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coinhaze import History
from coinhaze.history.index import live
from coinhaze.history.index.live_kernels import (
    COUNT,
    FIRST,
    VALUE,
    VOUT,
    WORDS,
    coin_of,
    move_together,
)
from coinhaze.simulate.history import bitcoin_history


@pytest.mark.parametrize("rising", [True, False])
@pytest.mark.parametrize("compiled", [True, False])
def test_a_coin_is_found_by_its_number(rising: bool, compiled: bool) -> None:
    find = coin_of.compiled if compiled else coin_of.plain
    rng = np.random.default_rng(3)
    for largest in (1, 2, 3, 10, 40, 300, 5000):
        for count in sorted({1, min(2, largest), largest // 2 or 1, largest}):
            # Numbers of an even spread, and bunches of them far apart.
            spread = np.sort(rng.choice(largest, count, replace=False))
            for vouts in (spread, spread + 10_000 * (spread % 7 == 0).cumsum()):
                order = np.arange(count) if rising else rng.permutation(count)
                coins = np.full((count + 5, 2), 10**6, np.int64)
                coins[2 : count + 2, VOUT] = vouts[order]
                coins[2 : count + 2, VALUE] = np.where(rng.random(count) < 0.3, -1 - order, order)
                words = np.zeros((1, WORDS), np.uint64)
                words[0, FIRST] = 2
                halves = words.view(np.uint32)
                halves[0, COUNT] = count
                wanted = {int(v): k for k, v in enumerate(coins[:, VOUT]) if coins[k, VALUE] >= 0}
                for vout in {
                    0,
                    largest - 1,
                    largest,
                    int(vouts[0]),
                    *rng.choice(vouts, 9).tolist(),
                }:
                    expected = wanted.get(vout, -1)
                    assert find(words, halves, coins, 0, np.int64(vout)) == expected


@pytest.mark.parametrize(("young", "spent"), [(0.0, 9.0), (0.0, 0.0), (0.2, 0.1)])
def test_where_coins_stand_changes_no_bit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, young: float, spent: float
) -> None:
    parts = [some for part in bitcoin_history(60) for some in part.parts(1500)]
    history = History.index_blocks(tmp_path / "1.history", parts)
    counted = []

    def counts(*arguments: Any) -> tuple[int, int]:
        counted.append(arguments[6])
        found: tuple[int, int] = move_together(*arguments)
        return found

    for name, value in {"_FEW": 0, "_YOUNG": young, "_SPENT": spent}.items():
        monkeypatch.setattr(live, name, value)
    monkeypatch.setattr(live, "move_together", counts)
    moved = History.index_blocks(tmp_path / "2.history", parts)
    assert moved.manifest.pieces == history.manifest.pieces
    assert moved.manifest.live == history.manifest.live
    assert any(first > 0 for first in counted)  # the youngest
    assert (counted.count(0) > 2) == (spent < 9.0)  # all
