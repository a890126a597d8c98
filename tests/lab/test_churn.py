"""Churn: exact on the worked case, on pasts that share nothing, and on a made-up economy."""

from __future__ import annotations

import math

import pytest

import vectors
from coinhaze.errors import UsageError
from coinhaze.lab.lab import churn, churn_apart
from coinhaze.ledger import CoinLedger
from coinhaze.simulate.rings import ring_economy


def test_the_worked_rings_grow_as_they_should() -> None:
    table = churn(vectors.coins("rings"), ["t0:0", "t1:0", "t2:0"])
    assert table["bits"].to_pylist() == pytest.approx([1.0, 1.5, 2.0], abs=1e-12)
    assert table["bits"].to_pylist()[:2] == pytest.approx(churn_apart(2, 2)[1:], abs=1e-12)


@pytest.mark.parametrize("ring", [2, 5, 16])
@pytest.mark.parametrize("fresh", [True, False])
def test_pasts_that_share_nothing_follow_the_closed_form(ring: int, fresh: bool) -> None:
    records: list[dict[str, object]] = []
    old, decoy, coins = 0, 0.0, list[str]()

    def add(members: list[str]) -> str:
        records.append({"txid": f"t{len(records)}", "rings": [members], "outputs": 1})
        return f"t{len(records) - 1}:0"

    def member() -> str:
        nonlocal old, decoy
        old += ring
        fresh_ones = [f"o{old - k}:0" for k in range(ring)]
        decoy = 0.0 if fresh else math.log2(ring)
        return fresh_ones[0] if fresh else add(fresh_ones)

    coins.append(add([f"first{k}:0" for k in range(ring)]))
    for _ in range(4):
        coins.append(add([coins[-1], *(member() for _ in range(ring - 1))]))
    bits = churn(CoinLedger.from_transactions(records), coins)["bits"].to_pylist()
    assert bits == pytest.approx(
        churn_apart(ring, 4, start=math.log2(ring), decoys=decoy), abs=1e-9
    )
    if fresh:
        assert bits[-1] < math.log2(ring) * ring / (ring - 1)


def test_a_made_up_economy_gains_by_churn_but_little_by_each_hop() -> None:
    economy = ring_economy(blocks=200, ring=8, hops=6, wait=30)
    table = churn(economy.ledger, economy.churned)
    bits = table["bits"].to_pylist()
    assert bits[0] == pytest.approx(3.0, abs=1e-9)
    assert min(bits[1:]) > bits[0]
    assert table["possible_sources"].to_pylist()[-1] > table["possible_sources"].to_pylist()[0]
    assert all(
        low <= b <= high
        for low, b, high in zip(
            table["bits_low"].to_pylist(), bits, table["bits_high"].to_pylist(), strict=True
        )
    )


def test_what_is_no_way_of_a_coin_is_refused() -> None:
    with pytest.raises(UsageError, match="name it as it was"):
        churn(vectors.coins("rings"), [])
    with pytest.raises(UsageError, match="name it as it was"):
        churn(vectors.coins("rings"), "t0:0")
    with pytest.raises(UsageError):
        churn_apart(0, 3)
