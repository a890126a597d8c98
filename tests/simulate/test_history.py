"""Simulated histories: the same for a seed, valid, and of the shape of the blocks they follow."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from coinhaze import History, kernels
from coinhaze.errors import UsageError
from coinhaze.ledger.coin_blocks import CoinBlocks
from coinhaze.simulate.history import HEIGHTS, bitcoin_history


def shape(blocks: list[CoinBlocks], low: int, high: int) -> dict[str, float]:
    """Measure payments in blocks of some heights of the real chain."""
    total = sum(len(part.sizes) for part in blocks)
    inputs, outputs, lost = [], [], []
    for part in blocks:
        height = np.repeat(HEIGHTS * part.heights // total, part.sizes)
        chosen = (height >= low) & (height < high) & ~part.coinbase
        inputs.append(part.inputs[chosen])
        outputs.append(part.outputs[chosen])
        lost.append(~part.made_spendable[np.repeat(chosen, part.outputs)])
    i, o, never = (np.concatenate(parts) for parts in (inputs, outputs, lost))
    return {
        "inputs": float(i.mean()),
        "outputs": float(o.mean()),
        "one input": float((i == 1).mean()),
        "two outputs": float((o == 2).mean()),
        "lost": float(never.mean()),
    }


def test_a_seed_gives_the_same_history(tmp_path: Path) -> None:
    tips = [
        History.index_blocks(tmp_path / name, bitcoin_history(20, seed=seed)).manifest
        for name, seed in (("a", 1), ("b", 1), ("c", 2))
    ]
    assert tips[0] == tips[1]
    assert tips[0].tip != tips[2].tip


@pytest.mark.long
def test_compiled_kernels_make_the_same_history(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    for small in (1 << 40, -1):
        monkeypatch.setattr(kernels, "SMALL", small)
        monkeypatch.setattr(kernels, "_compiling", False)
        monkeypatch.setattr(kernels, "MAX_SECONDS", 60.0)
        (part,) = bitcoin_history(4)
        made.append(part)
        assert kernels._compiling == (small < 0)
    for field in fields(CoinBlocks):
        np.testing.assert_array_equal(*(getattr(part, field.name) for part in made))


def test_shapes_are_those_of_the_measured_blocks() -> None:
    blocks = list(bitcoin_history(400))
    late = shape(blocks, 560_065, HEIGHTS)
    assert late["inputs"] == pytest.approx(1.995, rel=0.1)
    assert late["outputs"] == pytest.approx(2.501, rel=0.1)
    assert late["one input"] == pytest.approx(0.745, rel=0.1)
    assert late["two outputs"] == pytest.approx(0.768, rel=0.1)
    assert late["lost"] == pytest.approx(0.0497, rel=0.1)
    sizes = np.concatenate([part.sizes for part in blocks])
    assert sizes[-1] == pytest.approx(2623.5, rel=0.01)
    assert sizes[0] == 1


def test_coins_are_worth_something_and_payments_make_what_they_spend() -> None:
    for part in bitcoin_history(60):
        spendable = part.made_spendable
        assert part.made_values[spendable].min() >= 546
        assert (part.made_values[~spendable] == 0).all()
        spent, made = np.zeros(len(part), np.int64), np.zeros(len(part), np.int64)
        np.add.at(spent, np.repeat(np.arange(len(part)), part.inputs), part.spent_values)
        np.add.at(made, np.repeat(np.arange(len(part)), part.outputs), part.made_values)
        assert (spent == made)[~part.coinbase].all()


def test_histories_are_valid_and_cut_short_go_on(tmp_path: Path) -> None:
    whole = History.index_blocks(tmp_path / "a", bitcoin_history(60), piece_rows=5000)
    assert len(whole.manifest.pieces) > 1
    parts = list(bitcoin_history(60))
    first = [part for k, part in enumerate(parts) if k == 0]
    History.index_blocks(tmp_path / "b", first, piece_rows=5000)
    again = History.index_blocks(tmp_path / "b", bitcoin_history(60), piece_rows=5000)
    assert again.manifest.tip == whole.manifest.tip
    assert (again.manifest.rows, again.manifest.coins) == (
        whole.manifest.rows,
        whole.manifest.coins,
    )


@pytest.mark.parametrize(("blocks", "seed"), [(0, 1), (HEIGHTS + 1, 1), (5, -1), (5, 2**31)])
def test_what_cannot_be_simulated_is_refused(blocks: int, seed: int) -> None:
    with pytest.raises(UsageError, match=r"blocks are|seed is"):
        next(bitcoin_history(blocks, seed=seed))
