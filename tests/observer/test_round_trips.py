"""Round trips through pools: planted ones are found, and their links say what they should."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import coinhaze
from coinhaze.errors import UsageError
from coinhaze.ledger import CoinLedger
from coinhaze.ledger.coins import POOLS
from coinhaze.observer.round_trips import Crossing, crossings_of, find_round_trips, round_trip_links
from coinhaze.simulate.weeks.zcash import zcash_week
from coinhaze.store.ingest import ingest
from coinhaze.store.store import Store

FEE = 1_000


def records(ledger: CoinLedger) -> Iterator[dict[str, Any]]:
    """Write a ledger as plain transactions again."""
    assert ledger.output_value is not None
    values = ledger.output_value.ints()
    made: dict[int, list[int]] = {}
    spent: dict[int, list[int]] = {}
    flows: dict[int, dict[str, int]] = {}
    for output, tx in enumerate(ledger.output_tx.tolist()):
        made.setdefault(tx, []).append(output)
    for tx, output in zip(ledger.input_tx.tolist(), ledger.input_output.tolist(), strict=True):
        spent.setdefault(tx, []).append(output)
    into = ledger.flow_into.ints()
    for tx, pool, v in zip(ledger.flow_tx.tolist(), ledger.flow_pool.tolist(), into, strict=True):
        flows.setdefault(tx, {})[POOLS[pool]] = v
    txids = ledger.txids.to_pylist()
    for tx, txid in enumerate(txids):
        if ledger.inside[tx]:
            yield {
                "txid": txid,
                "height": ledger.heights[tx].as_py(),
                "pools": flows.get(tx, {}),
                "inputs": [
                    {"txid": txids[ledger.output_tx[o]], "vout": int(ledger.output_vout[o])}
                    | {"value": values[o]}
                    for o in spent.get(tx, ())
                ],
                "outputs": [
                    {"value": values[o], "vout": int(ledger.output_vout[o])}
                    for o in made.get(tx, ())
                ],
            }


def with_planted(ledger: CoinLedger, count: int) -> tuple[CoinLedger, dict[str, str]]:
    """Put round trips into a ledger: a deposit, and the same value out again some blocks on."""
    chance = random.Random(1)
    by_height: dict[int, list[dict[str, Any]]] = {}
    for record in records(ledger):
        by_height.setdefault(record["height"], []).append(record)
    heights, truth = sorted(by_height), {}
    for k in range(count):
        value = chance.randrange(10**8, 10**11)
        first = chance.randrange(len(heights) - 60)
        there, back = heights[first], heights[first + chance.randrange(1, 60)]
        coin = {"txid": f"saved{k}", "vout": 0, "value": value + FEE}
        by_height[there].append(
            {"txid": f"in{k}", "height": there, "inputs": [coin], "pools": {"sapling": value}}
        )
        paid = [{"value": value // 3}, {"value": value - value // 3 - FEE}]
        by_height[back].append(
            {"txid": f"out{k}", "height": back, "outputs": paid, "pools": {"sapling": -value}}
        )
        truth[f"out{k}"] = f"in{k}"
    rows = [record for height in heights for record in by_height[height]]
    return CoinLedger.from_transactions(rows), truth


def test_planted_round_trips_are_found_in_a_simulated_week() -> None:
    ledger, truth = with_planted(zcash_week(size=0.02), 40)
    graph = coinhaze.transaction_graph(ledger)
    trips = find_round_trips(crossings_of(graph), blocks=100)
    assert {t.withdrawal.txid: t.deposits[0].txid for t in trips if t.alone} == truth
    links = round_trip_links(graph, trips, confidence=1.0)
    assert len(links) == 2 * len(truth)
    plain = coinhaze.score(graph, nodes=["out0:0"])
    known = coinhaze.score(graph, nodes=["out0:0"], links=links)
    assert known.bits.tolist() == [0.0]
    assert known.to_arrow()["top_source"].to_pylist() == ["saved0:0"]
    assert plain.bits[0] >= 0
    # Half believed, half the money still comes out of the pool as before.
    half = coinhaze.origins(graph, "out0:0", links=round_trip_links(graph, trips, confidence=0.5))
    assert dict(zip(*half.sources().to_pydict().values(), strict=True))["saved0:0"] >= 0.5


def crossings(*rows: tuple[str, int, int]) -> list[Crossing]:
    return [Crossing(txid, "pool:sapling", height, into) for txid, height, into in rows]


def found(*rows: tuple[str, int, int], **settings: Any) -> list[tuple[str, tuple[str, ...], int]]:
    trips = find_round_trips(crossings(*rows), **settings)
    return [(t.withdrawal.txid, tuple(d.txid for d in t.deposits), t.among) for t in trips]


def test_several_of_one_value_share_the_chance() -> None:
    assert found(("a", 1, 5), ("b", 2, 5), ("x", 3, -5)) == [("x", ("a", "b"), 2)]
    assert found(("a", 1, 5), ("x", 3, -5), ("y", 4, -5)) == [("x", ("a",), 2), ("y", ("a",), 2)]
    three = found(("a", 1, 5), ("b", 1, 5), ("x", 3, -5), ("y", 3, -5), ("z", 3, -5))
    assert [among for _, _, among in three] == [3, 3, 3]


def test_what_competing_withdrawals_leave_stays_with_the_pool() -> None:
    ledger = CoinLedger.from_transactions(
        [
            {"txid": "in", "height": 1, "pools": {"sapling": 5}}
            | {"inputs": [{"txid": "saved", "vout": 0, "value": 5}]},
            {"txid": "x", "height": 2, "pools": {"sapling": -5}, "outputs": [{"value": 5}]},
            {"txid": "y", "height": 3, "pools": {"sapling": -5}, "outputs": [{"value": 5}]},
        ]
    )
    graph = coinhaze.transaction_graph(ledger)
    trips = find_round_trips(crossings_of(graph))
    links = round_trip_links(graph, trips, confidence=0.8)
    assert links["x:0"]["tx:in"] == pytest.approx(0.4)
    assert [sum(row.values()) for row in links.values()] == pytest.approx([1, 1])


def test_what_comes_later_lies_too_far_or_is_another_value_does_not_fit() -> None:
    assert found(("x", 3, -5), ("a", 3, 5)) == []
    assert found(("a", 1, 5), ("x", 102, -5)) == []
    assert found(("a", 1, 5), ("x", 102, -5), blocks=101) == [("x", ("a",), 1)]
    assert found(("a", 1, 5), ("x", 2, -4)) == []
    assert found(("a", 1, 5), ("x", 2, -4), fees=(0, 1)) == [("x", ("a",), 1)]
    assert found(("a", 1, 5), ("x", 2, -5), min_amount=6) == []
    assert found(("a", 1, 5), ("a", 1, -5)) == []
    assert found(("a", -1, 5), ("x", 2, -5)) == []
    other = [Crossing("a", "pool:sprout", 1, 5), *crossings(("x", 2, -5))]
    assert find_round_trips(other) == []


def mixed_ledger() -> CoinLedger:
    return CoinLedger.from_transactions(
        [
            {"txid": "a", "height": 1, "inputs": [{"txid": "o", "vout": 0, "value": 60}]}
            | {"pools": {"sapling": 60}},
            {"txid": "b", "height": 1, "inputs": [{"txid": "p", "vout": 0, "value": 60}]}
            | {"pools": {"sapling": 60}},
            {"txid": "w", "height": 2, "inputs": [{"txid": "q", "vout": 0, "value": 40}]}
            | {"pools": {"sapling": -60}, "outputs": [{"value": 100}, {"value": 0}]},
        ]
    )


def test_a_link_keeps_what_came_from_elsewhere() -> None:
    graph = coinhaze.transaction_graph(mixed_ledger())
    trips = find_round_trips(crossings_of(graph))
    links = round_trip_links(graph, trips, confidence=0.9)
    assert list(links) == ["w:0"]
    assert links["w:0"] == pytest.approx(
        {"q:0": 0.4, "tx:a": 0.27, "tx:b": 0.27, "pool:sapling": 0.06}
    )
    answer = coinhaze.origins(graph, "w:0", links=links)
    assert dict(zip(*answer.sources().to_pydict().values(), strict=True)) == pytest.approx(
        {"q:0": 0.4, "o:0": 0.3, "p:0": 0.3}
    )


@pytest.mark.parametrize(
    "settings",
    [{"view": "address"}, {"view": "address", "time": "temporal"}, {"pools": "merged"}],
    ids=["address", "temporal", "merged"],
)
def test_links_fit_every_view(settings: dict[str, Any]) -> None:
    graph = coinhaze.transaction_graph(mixed_ledger(), **settings)
    links = round_trip_links(graph, find_round_trips(crossings_of(graph)), confidence=1.0)
    answer = coinhaze.origins(graph, "w:0", links=links)
    assert sorted(answer.probability.round(12).tolist()) == [0.3, 0.3, 0.4]


def test_what_makes_no_sense_is_refused() -> None:
    graph = coinhaze.transaction_graph(mixed_ledger())
    for confidence in (0.0, 1.5, float("nan")):
        with pytest.raises(UsageError, match="confidence is a chance"):
            round_trip_links(graph, [], confidence=confidence)
    with pytest.raises(UsageError, match="not below 0"):
        find_round_trips([], fees=())
    accounts = coinhaze.AccountLedger.from_transfers([("a", "b", 1)])
    with pytest.raises(UsageError, match="ledger of coins"):
        crossings_of(coinhaze.transaction_graph(accounts))


def test_a_third_of_real_withdrawals_have_the_value_of_a_deposit(
    data: Path, tmp_path: Path
) -> None:
    """101 blocks of Zcash: what crossed the pools is known, though values of coins are not."""
    with Store(tmp_path / "store") as store:
        ingest([str(data / "zcash_main_663150_663250" / "*")], store)
        rows = store.ask(
            "SELECT txid, pool, height, into_pool FROM pool_flows JOIN transactions "
            "USING (height, txid) ORDER BY height, position, pool"
        )
    real = [Crossing(t, p, int(h), int(v)) for t, p, h, v in rows]
    assert [sum(c.into > 0 for c in real), sum(c.into < 0 for c in real)] == [26, 27]
    trips = find_round_trips(real)
    assert len(trips) == 9
    assert sorted(t.withdrawal.into for t in trips if t.alone) == [-2_500_142_390, -500_289_099]
