"""Figures that simulated technologies take from real CoinJoins, counted again."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest

import coinhaze
from coinhaze import CoinLedger
from coinhaze.graph.clusters.coinjoins import satoshi
from coinhaze.simulate.technologies import wasabi, whirlpool


def unpack(data: Path, into: Path, archive: str, name: str) -> CoinLedger:
    with zipfile.ZipFile(data / "btc_coinjoin_dumplings" / archive) as packed:
        packed.extractall(into)
    ledger = coinhaze.read(next(into.rglob(name)))
    assert isinstance(ledger, CoinLedger)
    return ledger


def rows(ledger: CoinLedger) -> list[tuple[list[int], list[int]]]:
    """List values in and values out of every transaction."""
    value = satoshi(ledger)
    spent: dict[int, list[int]] = {int(tx): [] for tx in np.flatnonzero(ledger.inside)}
    made: dict[int, list[int]] = {tx: [] for tx in spent}
    for tx, coin in zip(ledger.input_tx.tolist(), ledger.input_output.tolist(), strict=True):
        spent[tx].append(int(value[coin]))
    for coin, tx in enumerate(ledger.output_tx.tolist()):
        if tx in made:
            made[tx].append(int(value[coin]))
    return [(spent[tx], made[tx]) for tx in spent]


def test_whirlpool_mixes_eight_coins_two_of_them_new(data: Path, tmp_path: Path) -> None:
    ledger = unpack(data, tmp_path, "dumplings__sw_202403.zip", "SamouraiCoinJoins.txt")
    mixes = rows(ledger)
    sizes = [len(spent) for spent, _ in mixes]
    new = [sum(v > made[0] for v in spent) for spent, made in mixes]
    assert len(mixes) == 1403
    assert (min(sizes), max(sizes)) == (whirlpool.MIN_PEOPLE, whirlpool.MAX_PEOPLE)
    assert sizes.count(whirlpool.MAX_PEOPLE) == 905
    assert (new.count(whirlpool.NEW), new.count(3)) == (1372, 31)


def test_whirlpool_splits_pay_a_flat_fee_and_make_at_most_seventy(
    data: Path, tmp_path: Path
) -> None:
    ledger = unpack(data, tmp_path, "dumplings__sw_202403.zip", "SamouraiTx0s.txt")
    made = [out for _, out in rows(ledger) if len(set(out)) > 1]  # the list also holds mixes
    assert max(out.count(v) for out in made for v in set(out)) == whirlpool.MAX_PARTS
    pool = range(whirlpool.POOL + 1, whirlpool.POOL + 20_000)
    splits = [out for out in made if any(v in pool for v in out)]
    assert (sum(whirlpool.ENTRY in out for out in splits), len(splits)) == (160, 162)


def test_wasabi_held_a_round_an_hour_of_ten_to_seventy_people(data: Path, tmp_path: Path) -> None:
    ledger = unpack(data, tmp_path, "dumplings__ww1_202405.zip", "WasabiCoinJoins.txt")
    rounds = rows(ledger)
    equal = [max(made.count(v) for v in set(made)) for _, made in rounds]
    coins = sum(len(spent) for spent, _ in rounds) / sum(equal)
    assert len(rounds) == 196
    assert (min(equal), max(equal)) == (wasabi.MIN_PEOPLE, 70)
    assert coins == pytest.approx(1.4, abs=0.05)
    moments = np.sort(ledger.times.drop_null().to_numpy())
    assert np.median(np.diff(moments)) / 3600 == pytest.approx(wasabi.HOURS, abs=0.02)
