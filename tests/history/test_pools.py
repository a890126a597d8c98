"""Shielded pools in a history: each has a row, as `coinhaze.score` has it in the order of time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coinhaze
from coinhaze import CoinLedger, History, LedgerError, UnknownName
from coinhaze.history.follow import Follower
from coinhaze.history.scores.live_coins import LiveCoins
from coinhaze.history.scores.over_time import changed_rows
from history.branches import Branch
from history.test_tape import compare

Transactions = list[dict[str, Any]]


def spend(*names: str) -> list[dict[str, Any]]:
    return [{"txid": n.split(":")[0], "vout": int(n.split(":")[1])} for n in names]


# Two coins are shielded one after the other; what comes out has the row of both.
SHIELDED: Transactions = [
    {"txid": "a", "inputs": [], "outputs": [{"value": 60}], "height": 0},
    {"txid": "b", "inputs": [], "outputs": [{"value": 20}], "pools": {"orchard": 5}, "height": 0},
    {"txid": "in1", "inputs": spend("a:0"), "pools": {"sapling": 60}, "height": 1},
    {"txid": "in2", "inputs": spend("b:0"), "pools": {"sapling": 20}, "height": 2},
    {"txid": "out", "outputs": [{"value": 8}], "pools": {"sapling": -10}, "height": 3},
    {"txid": "move", "pools": {"sapling": -30, "orchard": 29}, "height": 4},
]


def made(transactions: Transactions, *, complete: bool = True) -> CoinLedger:
    return CoinLedger.from_transactions(transactions, complete=complete)


def test_what_leaves_a_pool_comes_from_all_that_entered(tmp_path: Path) -> None:
    history = compare(made(SHIELDED), tmp_path / "x")
    found = history.origins("out:0")
    assert {o.source: o.probability for o in found.origins} == {"tx:a": 0.75, "tx:b": 0.25}
    pool = history.origins("pool:sapling")
    assert (pool.balance, pool.height) == (40, 4)
    assert pool.bits == pytest.approx(found.bits)
    moved = history.origins("pool:orchard")
    assert moved.balance == 34
    assert {o.source: o.probability for o in moved.origins} == pytest.approx(
        {"tx:a": 0.75 * 29 / 34, "tx:b": (5 + 0.25 * 29) / 34}
    )
    kept = history.scores()
    order = np.argsort(-kept.bits)
    names = kept.to_arrow()["node"].to_pylist()
    for name in names:
        assert history.origins(name).rank == 1 + sum(kept.bits > kept.bits[names.index(name)])
    assert {names[k] for k in order} == {"out:0", "pool:sapling", "pool:orchard"}
    with pytest.raises(UnknownName, match="no pool 'pool:sprout' that holds something"):
        history.origins("pool:sprout")
    groups = {row["group"]: row["coins"] for row in history.table("script-type").to_pylist()}
    assert groups == {"unknown": 1, "pool": 2}


def test_sources_and_ways_are_those_of_the_window(tmp_path: Path) -> None:
    ledger = made(SHIELDED[4:], complete=False)  # what the pools held before is a source
    history = compare(ledger, tmp_path / "x")
    graph = coinhaze.transaction_graph(ledger)
    for name in history.scores().to_arrow()["node"].to_pylist():
        sources = coinhaze.origins(graph, name).sources().to_pydict()
        expected = dict(zip(sources["source"], sources["probability"], strict=True))
        ours = {o.source: o.probability for o in history.origins(name).origins}
        assert ours == pytest.approx(expected)
        assert "pool:sapling:0" in ours


@pytest.mark.parametrize("at", [1, 2, 3, 4])
def test_a_history_goes_on_with_what_its_pools_hold(tmp_path: Path, at: int) -> None:
    whole = compare(made(SHIELDED), tmp_path / "whole")
    History.index(tmp_path / "x", made([t for t in SHIELDED if t["height"] < at]))
    values = {(t["txid"], k): o for t in SHIELDED for k, o in enumerate(t.get("outputs", []))}
    later = [
        t | {"inputs": [i | values[i["txid"], i["vout"]] for i in t.get("inputs", [])]}
        for t in SHIELDED
        if t["height"] >= at
    ]
    grown = History.index(tmp_path / "x", made(later, complete=False))
    assert grown.score(accuracy="exact").to_arrow() == whole.score(accuracy="exact").to_arrow()


def test_more_than_a_pool_has_cannot_leave_it(tmp_path: Path) -> None:
    more = {"txid": "z", "outputs": [{"value": 9}], "pools": {"sapling": -999}, "height": 5}
    with pytest.raises(LedgerError, match=r"block 5: transaction z: takes more .*pool:sapling"):
        History.index(tmp_path / "x", made([*SHIELDED, more]))
    # A window that shows later that a pool held more from the start.
    path = tmp_path / "window"
    before = History.index(path, made(SHIELDED[4:], complete=False))
    with pytest.raises(LedgerError, match="takes more out of a shielded pool"):
        History.index(path, made([*SHIELDED[4:], more], complete=False))
    assert History.open(path).manifest == before.manifest


def test_values_above_what_a_history_holds_are_refused(tmp_path: Path) -> None:
    half = {"inputs": [], "outputs": [], "pools": {"sapling": 2**62}}
    ledger = made([half | {"txid": "a"}, half | {"txid": "b"}])
    with pytest.raises(LedgerError, match="2\\^63 - 1"):
        History.index(tmp_path / "x", ledger)
    with pytest.raises(LedgerError, match="a flow of a pool worth more than 2\\^63 - 1"):
        History.index(tmp_path / "x", made([half | {"txid": "a", "pools": {"sapling": 2**64}}]))


def test_pools_are_counted_month_by_month(tmp_path: Path) -> None:
    timed = [t | {"time": 1_600_000_000 + 86_400 * 40 * t["height"]} for t in SHIELDED]
    history = History.index(tmp_path / "x", made(timed))
    history.score(draws=64, seed=1, over_time=True)
    table = history.over_time().to_pydict()
    ends = [(85, 3), (85, 3), (85, 2), (83, 3), (82, 3)]
    found = dict(zip(table["month"], zip(table["value"], table["coins"], strict=True), strict=True))
    assert [found[month] for month in ("2020-09", "2020-10", "2020-12", "2021-01", "2021-02")] == [
        *ends
    ]
    assert len(changed_rows(history.tape)) > 0


def test_a_pool_of_many_deposits(tmp_path: Path) -> None:
    """Equal deposits in a pool, one withdrawal between each two: bits of every one are known."""
    n = 300
    ledger: Transactions = []
    for k in range(n):
        ledger.append({"txid": f"c{k}", "inputs": [], "outputs": [], "pools": {"sapling": 100}})
    ledger.append({"txid": "w", "outputs": [{"value": 7}], "pools": {"sapling": -7}})
    history = compare(made(ledger), tmp_path / "x", draws=1024)
    exact = history.score(accuracy="exact")
    assert exact.bits == pytest.approx(np.full(2, np.log2(n)))
    assert history.manifest.slots == 2  # of the pool, and of what comes in


def test_a_history_that_follows_has_its_pools(tmp_path: Path) -> None:
    branch = Branch(5).grow(50)
    assert max(map(max, branch.pools)) > 0
    path = tmp_path / "x"
    History.index_blocks(path, [b.content for b in branch.blocks[:20]])
    with Follower(path, draws=64, seed=1, retained=10, commit_after=5) as follower:
        for block in branch.blocks[20:]:
            follower.add(block)
            follower.commit_old()
        height = follower.committed.last_height
        held = [v for v in branch.pools[height] if v]
    history = History.open(path)
    coins = LiveCoins.of(history.tape)
    assert sorted(coins.value[coins.vout < 0].tolist()) == sorted(held)
    kept = history.scores().to_arrow()
    assert history.score(draws=64, seed=1).to_arrow() == kept
