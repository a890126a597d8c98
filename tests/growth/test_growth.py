"""Growth: known answers, exact fractions on every kind of graph, and walks that are drawn."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import coinhaze
import twin
import vectors
from coinhaze.errors import InputError, UsageError
from coinhaze.growth.growth import QUANTILES, Forward, growth, weighted_quantiles
from coinhaze.simulate import simulate_town, simulate_week
from coinhaze.simulate.rings import ring_economy

TRANSFERS = [(a, b, int(x)) for a, b, x in vectors.load("account_temporal")["transfers"]]
UTXO = vectors.load("utxo")["transactions"]
POOLS = vectors.load("pools")["transactions"]
RINGS = vectors.load("rings")["transactions"]
# Each: the ledger, how its graph is made, and the same graph from the twin.
GRAPHS: dict[str, tuple[Any, dict[str, Any], twin.Graph]] = {
    "accounts": (vectors.accounts("account_temporal"), {}, twin.account_graph(TRANSFERS)),
    "snapshots": (
        vectors.accounts("account_temporal"),
        {"time": "temporal"},
        twin.account_graph(TRANSFERS, "temporal"),
    ),
    "coins": (vectors.coins("utxo"), {}, twin.coin_graph(UTXO)),
    "addresses": (vectors.coins("utxo"), {"view": "address"}, twin.address_graph(UTXO)),
    "addresses in time": (
        vectors.coins("utxo"),
        {"view": "address", "time": "temporal"},
        twin.address_graph(UTXO, "temporal"),
    ),
    "pools": (vectors.coins("pools"), {"view": "coin"}, twin.coin_graph(POOLS)),
    "rings": (vectors.coins("rings"), {}, twin.ring_graph(RINGS)),
}


def is_payment(tail: str, head: str, temporal: bool) -> bool:
    """Tell whether an edge is a payment: not into a transaction or ring, not a wait."""
    waits = temporal and tail.rpartition(":")[0] == head.rpartition(":")[0]
    return not head.startswith(("tx:", "ring:")) and (tail.startswith("tx:") or not waits)


class Slow:
    """All walks of a graph in exact fractions, one move after another."""

    def __init__(self, graph: twin.Graph, *, temporal: bool) -> None:
        self.temporal = temporal
        self.out: dict[str, dict[str, int]] = {}
        for (tail, head), amount in graph.edges.items():
            self.out.setdefault(tail, {})[head] = amount
        sources = [node for node, amount in graph.opening.items() if amount > 0]
        self.at = [{node: Fraction(1, len(sources)) for node in sources}]
        self.ended: list[dict[str, Fraction]] = [{}]

    def pay(self) -> None:
        """Let every walk make one payment more, or end."""
        going = dict(self.at[-1])
        paid: Counter[str] = Counter()
        ended = Counter(self.ended[-1])
        while going:
            node, mass = going.popitem()
            edges = self.out.get(node, {})
            if not edges:
                ended[node] += mass  # type: ignore[assignment]
            for head, amount in edges.items():
                part = mass * Fraction(amount, sum(edges.values()))
                if is_payment(node, head, self.temporal):
                    paid[head] += part  # type: ignore[assignment]
                else:
                    going[head] = going.get(head, Fraction(0)) + part
        self.at.append(dict(paid))  # type: ignore[arg-type]
        self.ended.append(dict(ended))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", list(GRAPHS))
def test_all_walks_weighed_are_exact_fractions(name: str) -> None:
    ledger, settings, graph = GRAPHS[name]
    rows = twin.uniform(graph) if name == "rings" else twin.proportional(graph)
    bits = {node: answer.bits for node, answer in twin.solve(rows).items() if answer}
    temporal = settings.get("time") == "temporal" or name in ("coins", "pools")
    slow = Slow(graph, temporal=temporal)
    found = growth(ledger, length=5, accuracy="exact", **settings)
    for made in range(6):
        at, ended = slow.at[made], slow.ended[made]
        share = float(sum(at.values()))
        assert found.share[made] == pytest.approx(share, abs=1e-12)
        total = sum(float(mass) * bits[node] for node, mass in at.items())
        if at:
            assert found.bits_mean[made] == pytest.approx(total / share, abs=1e-9)
        else:
            assert np.isnan(found.bits_mean[made])
        held = total + sum(float(mass) * bits[node] for node, mass in ended.items())
        assert found.bits_held[made] == pytest.approx(held, abs=1e-9)
        slow.pay()


def test_a_line_has_no_bits_however_long() -> None:
    rows = [(f"n{k}", f"n{k + 1}", 7) for k in range(6)]
    found = growth(coinhaze.AccountLedger.from_transfers(rows), length=8)
    assert found.share.tolist() == [1.0] * 7 + [0.0, 0.0]
    assert found.bits_mean[:7].tolist() == [0.0] * 7
    assert np.isnan(found.bits_mean[7:]).all()
    assert found.bits_held.tolist() == [0.0] * 9


@pytest.mark.parametrize("k", [2, 8, 32])
def test_k_equal_sources_that_meet_gain_log2_k_at_once(k: int) -> None:
    rows = [(f"s{j}", "m", 3) for j in range(k)] + [("m", "a", 2 * k), ("m", "b", k)]
    found = growth(coinhaze.AccountLedger.from_transfers(rows), length=3)
    assert found.bits_mean[:3] == pytest.approx([0.0, np.log2(k), np.log2(k)], abs=1e-9)
    assert found.share.tolist() == pytest.approx([1.0, 1.0, 1.0, 0.0])
    assert found.quantiles[:, 1] == pytest.approx([np.log2(k)] * len(QUANTILES))
    assert found.bits_held[3] == pytest.approx(np.log2(k))


def test_the_next_payment_is_chosen_by_amount() -> None:
    # Of a's money three quarters go to the mixed m, a quarter to the lone l; b pays m alone.
    rows = [("a", "m", 3), ("a", "l", 1), ("b", "m", 3)]
    found = growth(coinhaze.AccountLedger.from_transfers(rows), length=1)
    assert found.bits_mean[1] == pytest.approx((0.75 * 1 + 0.25 * 0 + 1) / 2)
    assert found.quantiles[:, 1].tolist() == [0.0, 1.0, 1.0, 1.0, 1.0]


def test_money_that_waits_makes_no_payment() -> None:
    rows = [("a", "m", 1), ("b", "m", 1), ("m", "c", 2)]
    ledger = coinhaze.AccountLedger.from_transfers(rows)
    found = growth(ledger, length=2, time="temporal")
    # a meets m alone, waits while b pays it, and is paid on with b's money.
    assert found.bits_mean == pytest.approx([0.0, 0.5, 1.0], abs=1e-9)
    assert found.share.tolist() == [1.0, 1.0, 1.0]


def test_drawn_walks_are_those_of_the_slow_walker() -> None:
    graph = coinhaze.transaction_graph(simulate_town(transactions=60, people=12, seed=2))
    forward = Forward.of(graph)
    first = np.flatnonzero(graph.sources)[:20]
    visited, ends = forward.walks(first, length=4, seed=7)
    mask = 2**64 - 1
    weyl = 0x9E3779B97F4A7C15

    def mix(z: int) -> int:
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & mask
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB & mask
        return z ^ (z >> 31)

    for w, start in enumerate(first.tolist()):
        state = mix((mix(7 * weyl & mask) + w * weyl) & mask)
        node, path, end = start, [start], -1
        while len(path) < 5:
            edges = np.flatnonzero(forward.tail == node)
            if len(edges) == 0:
                end = node
                break
            state = (state + weyl) & mask
            reach = np.cumsum(forward.weight[edges]) / forward.weight[edges].sum()
            taken = edges[int(np.argmax(reach > (mix(state) >> 11) * 2.0**-53))]
            node = int(forward.head[taken])
            if forward.pays[taken]:
                path.append(node)
        assert visited[w].tolist() == path + [-1] * (5 - len(path))
        assert ends[w] == end


@pytest.mark.parametrize("settings", [{}, {"time": "temporal"}], ids=["stationary", "temporal"])
def test_drawn_walks_come_near_to_all_walks(settings: dict[str, Any]) -> None:
    chain = coinhaze.absorbing_chain(
        coinhaze.transaction_graph(simulate_week("dai-week", size=0.01), **settings)
    )
    every = growth(chain, length=8)
    drawn = growth(chain, length=8, walks=20_000, seed=5)
    assert drawn.walks is not None
    near = np.abs(drawn.bits_mean - every.bits_mean)
    assert np.all(near <= 4.5 * drawn.drawn_error + 1e-12)
    # At the beginning every source counts as often, so nothing is left to chance.
    assert near[0] <= 1e-9
    spread = np.sqrt(every.share * (1 - every.share) / drawn.walks)
    assert np.all(np.abs(drawn.share - every.share) <= 4.5 * spread + 1e-12)


def test_the_same_seed_draws_the_same_walks_and_another_seed_others() -> None:
    ledger = simulate_week("dai-week", size=0.01)
    one, same, other = (growth(ledger, walks=50, seed=seed, length=5) for seed in (3, 3, 4))
    assert one.to_arrow().equals(same.to_arrow())
    assert not one.to_arrow().equals(other.to_arrow())
    assert one.walks == 50
    assert (one.sources > 50) is True
    assert "50 walks" in one.how
    assert "seed 3" in one.how


def test_with_few_sources_every_one_is_walked_from_equally_often() -> None:
    rows = [("a", "m", 1), ("b", "m", 1), ("c", "m", 1), ("m", "d", 3)]
    found = growth(coinhaze.AccountLedger.from_transfers(rows), walks=10, length=2)
    assert found.walks == 9
    assert found.share[0] == pytest.approx(1.0)
    assert found.bits_mean == pytest.approx([0.0, np.log2(3), np.log2(3)], abs=1e-9)


def test_threads_and_drawing_do_not_change_a_bit() -> None:
    ledger = simulate_week("dai-week", size=0.01)
    one, two = (growth(ledger, threads=threads, length=6) for threads in (1, 2))
    assert one.to_arrow().equals(two.to_arrow())


def test_estimates_say_how_far_they_can_be_trusted() -> None:
    ledger = simulate_week("dai-week", size=0.01)
    exact, rough = growth(ledger, length=4), growth(ledger, length=4, accuracy="preview")
    assert exact.certainty == "bits are exact"
    assert rough.standard_error is not None
    assert "estimates" in rough.certainty
    assert np.all(np.abs(exact.bits_mean - rough.bits_mean) <= 4.5 * rough.standard_error)


def test_hidden_amounts_are_walked_the_same() -> None:
    found = growth(ring_economy(blocks=40, ring=4).ledger, length=4)
    assert found.share[0] == 1.0
    assert found.bits_mean[1] > found.bits_mean[0]


def test_quantiles_weigh_what_they_count() -> None:
    chance = np.random.default_rng(3)
    values = chance.integers(0, 9, 40).astype(np.float64)
    count = chance.integers(1, 5, 40)
    # The slow way: write each value as often as it counts, and take the k-th.
    spread = np.sort(np.repeat(values, count))
    slow = [spread[int(np.ceil(q * len(spread))) - 1] for q in QUANTILES]
    assert weighted_quantiles(values, count / 7, QUANTILES).tolist() == slow


def test_what_cannot_be_walked_is_refused() -> None:
    ledger = coinhaze.AccountLedger.from_transfers([("a", "b", 1)])
    with pytest.raises(UsageError, match="1 or more"):
        growth(ledger, walks=0)
    with pytest.raises(UsageError, match="1 or more"):
        growth(ledger, length=0)
    with pytest.raises(UsageError, match="leave the list out"):
        growth(ledger, listed=["a"])
    with pytest.raises(InputError, match="no source"):
        growth(coinhaze.AccountLedger.from_transfers([("a", "b", 0)]))
