"""The tape of a history gives what `coinhaze.score` gives, whatever the ledger and its pieces."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import coinhaze
from coinhaze import CoinLedger, History, LedgerError, ResourceError, UsageError
from coinhaze.history.scores.live_coins import LiveCoins
from coinhaze.history.scores.score import TapeDraws, score_rows
from coinhaze.ledger.coin_blocks import blocks_of
from coinhaze.ledger.coins import POOLS
from coinhaze.simulate import simulate_week
from coinhaze.simulate.history import bitcoin_history
from coinhaze.solve.pool import Budget
from history.tape_twin import Coin, Pool, Twin, twin_of
from properties.comparison import profile
from properties.strategies import transactions

LARGEST = 2**63 - 1


def compare(
    ledger: CoinLedger, path: Path, *, draws: int = 64, piece_rows: int = 1 << 20
) -> History:
    """Hold a history against `coinhaze.score`: exact bits, steps, intervals, names, balances."""
    history = History.index(path, ledger, piece_rows=piece_rows)
    exact = history.score(accuracy="exact")
    drawn = history.score(draws=draws, seed=5)
    table = exact.to_arrow().to_pydict()
    scores = coinhaze.score(ledger)
    graph = scores.chain.graph
    names = graph.names.of(scores.nodes).to_pylist()
    assert sorted(table["node"]) == sorted(names)
    order = {name: k for k, name in enumerate(table["node"])}
    at = np.array([order[name] for name in names], dtype=np.int64)
    assert graph.closing is not None
    assert [table["balance"][k] for k in at] == graph.closing.take(scores.nodes).ints()
    np.testing.assert_allclose(exact.bits[at], scores.bits, rtol=0, atol=1e-9)
    np.testing.assert_allclose(exact.steps[at], scores.steps, rtol=1e-9)
    assert np.all(exact.bits_low[at] <= scores.bits_high)
    assert np.all(exact.bits_high[at] >= scores.bits_low)
    assert np.all(exact.bits_high - exact.bits_low <= 1e-9)
    assert not exact.miss.any()
    # One in a thousand million misses: none of these does.
    assert np.all(drawn.bits_low <= exact.bits_high)
    assert np.all(drawn.bits_high >= exact.bits_low)
    assert np.all((drawn.bits_low <= drawn.bits) & (drawn.bits <= drawn.bits_high))
    return history


def named(ledger: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Give every input the value of its coin, as a source that is complete in itself does."""
    values = {
        (t["txid"], k): o["value"] for t in ledger for k, o in enumerate(t["outputs"])
    }  # no vout is given by the strategy
    return [
        dict(t)
        | {
            "inputs": [
                i | {"value": values.get((i["txid"], i["vout"]), i.get("value"))}
                for i in t["inputs"]
            ]
        }
        for t in ledger
    ]


def largest(ledger: Sequence[Mapping[str, Any]]) -> int:
    sums: list[int] = []
    held = {pool: [0] for pool in POOLS}
    for t in ledger:
        flows = t.get("pools", {})
        sums.append(sum(i["value"] for i in t["inputs"]) - sum(min(v, 0) for v in flows.values()))
        sums.append(sum(o["value"] for o in t["outputs"]) + sum(max(v, 0) for v in flows.values()))
        for pool, value in flows.items():
            held[pool] = [*held[pool], held[pool][-1] + value]
    return max([*sums, *(max(values) - min(values) for values in held.values())])


@profile(150)
@given(
    st.one_of(transactions(maximum=12), transactions(maximum=12, pools=True)),
    st.sampled_from([1, 2, 1 << 20]),
)
def test_random_ledgers_have_the_scores_of_the_solver(
    ledger: list[dict[str, Any]], piece_rows: int
) -> None:
    made = CoinLedger.from_transactions(ledger)
    with TemporaryDirectory() as home:
        path = Path(home) / "x.history"
        whole = named(ledger)
        if largest(whole) > LARGEST:
            with pytest.raises(LedgerError, match="2\\^63 - 1"):
                History.index(path, made)
            assert not (path / "history.json").exists()
            return
        history = compare(made, path, piece_rows=piece_rows)
        agree_with(history, twin_of(whole))


def agree_with(history: History, twin: Twin) -> None:
    """Hold every row, slot, term and live coin against the twin's."""
    pieces = history.tape.pieces
    slots = [int(s) for p in pieces for s in p.row_slot]
    assert slots == [row.slot for row in twin.rows]
    counts = [int(c) for p in pieces for c in p.row_terms]
    assert counts == [len(row.terms) for row in twin.rows]
    terms = [t for row in twin.rows for t in row.terms]
    assert [int(s) for p in pieces for s in p.slot] == [slot for slot, _ in terms]
    weights = [float(w) for p in pieces for w in p.weight]
    assert weights == pytest.approx([float(w) for _, w in terms], rel=1e-15)
    assert history.manifest.slots == twin.used
    pools = [p for p in twin.pools.values() if p.value > 0]
    things: list[Coin | Pool] = [*twin.coins.values(), *pools]
    held = sorted((c.row, c.value) for c in things if c.value > 0)
    coins = LiveCoins.of(history.tape)
    assert sorted(zip(coins.row.tolist(), coins.value.tolist(), strict=True)) == held
    assert sorted(coins.steps) == pytest.approx(
        sorted(float(c.steps) for c in things if c.value > 0), rel=1e-14
    )
    rows = np.arange(len(twin.rows))
    bits = [-sum(float(p) * math.log2(p) for p in row.distribution.values()) for row in twin.rows]
    exact = score_rows(history.tape, rows, accuracy="exact")
    np.testing.assert_allclose(exact.bits, bits, atol=1e-12)
    known = [len(row.distribution) for row in twin.rows]
    assert np.all(history.tape.fact("sources", rows) >= known)


@pytest.mark.parametrize("size", [0.004, pytest.param(0.02, marks=pytest.mark.long)])
def test_a_simulated_week_has_the_scores_of_the_solver(size: float, tmp_path: Path) -> None:
    ledger = simulate_week("bitcoin-week", size=size)
    assert isinstance(ledger, CoinLedger)
    history = compare(ledger, tmp_path / "x.history", draws=1024, piece_rows=1000)
    assert len(history.manifest.pieces) > 1


def test_pieces_change_no_bit(tmp_path: Path) -> None:
    ledger = simulate_week("bitcoin-week", size=0.004)
    assert isinstance(ledger, CoinLedger)
    found = []
    for rows in (1000, 1 << 20):
        history = History.index(tmp_path / f"{rows}.history", ledger, piece_rows=rows)
        for threads in (1, 2):
            scores = history.score(seed=1, threads=threads)
            found.append(scores.to_arrow())
    assert all(table.equals(found[0]) for table in found)


def test_less_memory_changes_no_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = simulate_week("bitcoin-week", size=0.001)
    assert isinstance(ledger, CoinLedger)
    history = History.index(tmp_path / "x.history", ledger)
    rows = np.unique(LiveCoins.of(history.tape).row)
    needed = TapeDraws(history.tape, (), 4, np.float32).room_bytes
    widths = []
    solve = TapeDraws.solve

    def noted(self: TapeDraws, first: int, room: np.ndarray) -> np.ndarray:
        widths.append(room.shape[1])
        return solve(self, first, room)

    monkeypatch.setattr(TapeDraws, "solve", noted)
    limited = Budget(threads=1, memory=1 << 40)
    whole = score_rows(history.tape, rows, draws=128, seed=4, budget=limited)
    monkeypatch.setattr(Budget, "room", lambda self, usual=0: needed - 1)
    half = score_rows(history.tape, rows, draws=128, seed=4, budget=limited)
    assert widths == [64, 64, 32, 32]
    for name in ("bits", "bits_low", "bits_high", "miss"):
        np.testing.assert_array_equal(getattr(half, name), getattr(whole, name))
    monkeypatch.setattr(Budget, "room", lambda self, usual=0: needed // 2 - 1)
    with pytest.raises(ResourceError):
        score_rows(history.tape, rows, draws=128, seed=4, budget=limited)


def test_draws_are_those_of_a_preview(tmp_path: Path) -> None:
    """Sources are hashed by their names, so the same seed draws the same numbers."""
    halves = [{"value": 100 + k, "address": "a"} for k in range(60)]
    ledger: list[dict[str, Any]] = [
        {"txid": f"c{k}", "inputs": [], "outputs": [half, {"value": (k * k) % 37 + 5}]}
        for k, half in enumerate(halves)
    ]
    for vout in range(2):
        spent = [{"txid": f"c{k}", "vout": vout} for k in range(60)]
        ledger.append({"txid": f"all{vout}", "inputs": spent, "outputs": [{"value": 99}]})
    coins = CoinLedger.from_transactions(ledger, complete=True)
    ours = History.index(tmp_path / "x.history", coins).score(draws=256, seed=9)
    theirs = coinhaze.score(coins, accuracy="preview", draws=256, seed=9)
    assert ours.bits == pytest.approx(theirs.bits, abs=1e-6)
    assert ours.bits_low == pytest.approx(theirs.bits_low, abs=1e-4)
    assert ours.bits_high == pytest.approx(theirs.bits_high, abs=1e-4)


def pool(deposits: int) -> list[dict[str, Any]]:
    """Make a pool that takes in equal deposits one by one, each mixed with all before."""
    ledger: list[dict[str, Any]] = [
        {"txid": f"c{k}", "inputs": [], "outputs": [{"value": 100}], "height": 0}
        for k in range(deposits)
    ]
    held, value = ("c0", 0), 100
    for k in range(1, deposits):
        spent = [held, (f"c{k}", 0)]
        value += 100
        ledger.append(
            {
                "txid": f"p{k}",
                "inputs": [{"txid": t, "vout": v} for t, v in spent],
                "outputs": [{"value": value}],
                "height": k,
            }
        )
        held = (f"p{k}", 0)
    return ledger


def test_a_pool_of_10_000_equal_deposits_is_right_to_its_interval(tmp_path: Path) -> None:
    ledger = CoinLedger.from_transactions(pool(10_000), complete=True)
    history = History.index(tmp_path / "x.history", ledger)
    exact = history.score(accuracy="exact")
    assert exact.bits == pytest.approx([math.log2(10_000)], abs=1e-9)
    assert exact.bits_high - exact.bits_low <= 1e-9
    for seed in range(5):
        drawn = history.score(draws=1024, seed=seed)
        assert drawn.bits_low <= math.log2(10_000) <= drawn.bits_high
        # Rounding adds little to what draws give at this number of them.
        assert drawn.bits_high - drawn.bits_low <= 1.03 * 1.06


def test_a_coin_of_very_many_small_inputs_is_right_to_its_interval(tmp_path: Path) -> None:
    receipts = 100_000
    ledger: list[dict[str, Any]] = [
        {"txid": f"c{k}", "inputs": [], "outputs": [{"value": 1}]} for k in range(receipts)
    ]
    spent = [{"txid": f"c{k}", "vout": 0} for k in range(receipts)]
    ledger.append({"txid": "all", "inputs": spent, "outputs": [{"value": receipts}]})
    made = CoinLedger.from_transactions(ledger, complete=True)
    history = History.index(tmp_path / "x.history", made)
    drawn = history.score(draws=1024, seed=2)
    assert drawn.bits_low <= math.log2(receipts) <= drawn.bits_high
    assert drawn.bits_high - drawn.bits_low <= 1.03 * 1.06


def test_intervals_miss_at_most_as_often_as_stated(tmp_path: Path) -> None:
    ledger = simulate_week("bitcoin-week", size=0.001)
    assert isinstance(ledger, CoinLedger)
    history = History.index(tmp_path / "x.history", ledger)
    rows = np.unique(LiveCoins.of(history.tape).row)
    truth = score_rows(history.tape, rows, accuracy="exact")
    mixed = truth.bits > 0
    missed = total = 0
    for seed in range(40):
        drawn = score_rows(history.tape, rows, draws=64, miss=0.05, seed=seed)
        wrong = (drawn.bits_low > truth.bits_high) | (drawn.bits_high < truth.bits_low)
        missed += int((wrong & mixed).sum())
        total += int(mixed.sum())
        assert not np.any(wrong & ~mixed)
    assert 0 < missed <= 0.05 * total


def test_every_transaction_has_the_scores_of_its_row(tmp_path: Path) -> None:
    blocks = bitcoin_history(8)
    history = History.index_blocks(tmp_path / "x.history", blocks, piece_rows=100)
    written = history.write_transactions(tmp_path / "all", draws=128, seed=3)
    assert len(written) == len(history.manifest.pieces) > 3
    query = f"select txid, bits, bits_low, bits_high, steps from '{tmp_path}/all/*.parquet'"
    found = {row[0]: row[1:] for row in duckdb.connect().execute(query).fetchall()}
    assert len(found) == len(history)
    coins = history.score(draws=128, seed=3).to_arrow().to_pylist()
    for coin in coins:
        txid = coin["node"].rpartition(":")[0]
        kept = (coin["bits"], coin["bits_low"], coin["bits_high"], coin["steps"])
        assert found[txid] == kept
    with pytest.raises(UsageError, match="is not empty; write elsewhere"):
        history.write_transactions(tmp_path / "all")


def test_transactions_that_move_no_money_have_no_bits(tmp_path: Path) -> None:
    ledger = CoinLedger.from_transactions(
        [
            {"txid": "c", "inputs": [], "outputs": [{"value": 0}, {"value": 5}]},
            {"txid": "t", "inputs": [{"txid": "c", "vout": 0}], "outputs": [{"value": 0}]},
        ],
        complete=True,
    )
    history = History.index(tmp_path / "x.history", ledger)
    (path,) = history.write_transactions(tmp_path / "all", accuracy="exact")
    rows = duckdb.connect().execute(f"select txid, bits, steps from '{path}'").fetchall()
    assert rows == [("c", 0.0, 2.0), ("t", None, None)]


def test_a_width_takes_the_draws_it_needs(tmp_path: Path) -> None:
    history = History.index(tmp_path / "x.history", CoinLedger.from_transactions(pool(30)))
    scores = history.score(accuracy=1.0, seed=1)
    assert np.all(scores.bits_high - scores.bits_low <= 1.0)
    assert scores.about["draws"] % 64 == 0
    with pytest.raises(coinhaze.AccuracyError, match="ask for exact"):
        history.score(accuracy=1e-6)
    joint = history.score(accuracy=1.0, seed=1, simultaneous=True)
    assert joint.miss.max() <= 1e-9


def test_unspendable_outputs_and_duplicate_ids_leave_the_counts(tmp_path: Path) -> None:
    txid = "d5d27987d2a3dfc724e359870c6644b40e497bdc0589a033220fe15429d88599"
    lost = {"value": 50, "spendable": False}
    ledger = CoinLedger.from_transactions(
        [
            {"txid": f"{txid}@91812", "inputs": [], "outputs": [lost], "height": 91812},
            {"txid": txid, "inputs": [], "outputs": [{"value": 50}], "height": 91842},
            {"txid": "ab" * 32, "inputs": [], "outputs": [{"value": 9}], "height": 91843},
            {
                "txid": "cd" * 32,
                "inputs": [{"txid": txid, "vout": 0}, {"txid": "ab" * 32, "vout": 0}],
                "outputs": [{"value": 20}, lost | {"value": 30}],
                "height": 91844,
            },
        ],
        complete=True,
    )
    history = compare(ledger, tmp_path / "x.history")
    history.score(accuracy="exact")
    assert history.manifest.names == "hash"
    assert history.manifest.coins == 1
    names = [o.source for o in history.origins("cd" * 32 + ":0").origins]
    assert names == [f"tx:{txid}", "tx:" + "ab" * 32]
    burnt = history.origins("cd" * 32 + ":1")  # it has a score like any node, but is no sink
    assert (burnt.balance, burnt.rank) == (None, None)
    assert burnt.bits == pytest.approx(history.scores().bits[0])
    assert [o.source for o in history.origins(f"{txid}@91812:0").origins] == [f"tx:{txid}@91812"]
    # The slots of the lost coinbase and of all that was spent were used again.
    assert history.manifest.slots == 2


def test_blocks_come_apart_where_they_are_whole() -> None:
    ledger = CoinLedger.from_transactions(pool(20))
    blocks = blocks_of(ledger)
    parts = list(blocks.parts(3))
    assert sum(map(len, parts)) == len(blocks)
    assert [h for p in parts for h in p.heights] == list(blocks.heights)
    rest = blocks.without(len(parts[0]))
    assert rest.names is not None
    assert blocks.names is not None
    assert rest.names.to_pylist() == blocks.names.to_pylist()[len(parts[0]) :]
    assert len(rest.spent_vouts) == len(blocks.spent_vouts)
