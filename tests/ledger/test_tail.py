from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coinhaze
from coinhaze import AccountLedger, CoinLedger
from coinhaze.errors import UsageError
from coinhaze.ledger.window import last_part
from coinhaze.simulate.small_worlds import random_coins


def told(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Records whose inputs tell the value and owner of the coin they spend."""
    made = {(r["txid"], vout): output for r in records for vout, output in enumerate(r["outputs"])}
    return [r | {"inputs": [i | made[i["txid"], i["vout"]] for i in r["inputs"]]} for r in records]


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 10_000), share=st.floats(0.05, 1.0))
def test_the_end_of_a_coin_ledger_is_what_its_records_alone_would_give(
    seed: int, share: float
) -> None:
    records = told(random_coins(seed)[0].records)
    count = max(1, round(share * len(records)))
    late = last_part(CoinLedger.from_transactions(records), share)
    twin = CoinLedger.from_transactions(records[len(records) - count :])
    assert isinstance(late, CoinLedger)
    assert late.facts() | {"first_height": None, "last_height": None} == twin.facts()
    for view in ({}, {"view": "address"}, {"view": "address", "time": "temporal"}):
        one, other = (table_of(ledger, **view) for ledger in (late, twin))
        assert one.keys() == other.keys()
        for node, bits in other.items():
            assert one[node] == pytest.approx(bits, abs=1e-12), node


@settings(deadline=None, max_examples=40)
@given(
    transfers=st.lists(
        st.tuples(st.sampled_from("abcde"), st.sampled_from("abcde"), st.integers(0, 50)),
        min_size=1,
        max_size=30,
    ),
    share=st.floats(0.05, 1.0),
)
def test_the_end_of_an_account_ledger_is_what_its_transfers_alone_would_give(
    transfers: list[tuple[str, str, int]], share: float
) -> None:
    count = max(1, round(share * len(transfers)))
    late = last_part(AccountLedger.from_transfers(transfers), share)
    twin = AccountLedger.from_transfers(transfers[len(transfers) - count :])
    for time in ("stationary", "temporal"):
        assert table_of(late, time=time) == pytest.approx(table_of(twin, time=time), abs=1e-12)


def test_rings_and_pools_are_cut_too() -> None:
    rings = CoinLedger.from_transactions(
        [
            {"txid": "a", "rings": [["x:0", "y:0"]], "outputs": 1, "height": 1},
            {"txid": "b", "rings": [["a:0", "z:0"]], "outputs": 1, "height": 2},
        ]
    )
    late = last_part(rings, 0.5)
    assert isinstance(late, CoinLedger)
    assert coinhaze.score(late, nodes=["b:0"]).bits == pytest.approx([1.0])
    assert set(late.txids.to_pylist()) == {"a", "z", "b"}
    pools = CoinLedger.from_transactions(
        [
            {"txid": "a", "outputs": [{"value": 1}], "pools": {"sapling": 9}, "height": 1},
            {"txid": "b", "outputs": [{"value": 5}], "pools": {"sapling": -5}, "height": 2},
        ]
    )
    late = last_part(pools, 0.5)
    assert coinhaze.score(late, nodes=["b:0"]).bits == pytest.approx([0.0])
    assert isinstance(late, CoinLedger)
    assert len(late.flow_tx) == 1


def test_a_share_outside_of_the_ledger_is_refused() -> None:
    ledger = AccountLedger.from_transfers([("a", "b", 1)])
    assert last_part(ledger, 1.0) is ledger
    for share in (0.0, -1.0, 1.5, np.nan):
        with pytest.raises(UsageError, match="share"):
            last_part(ledger, share)


def table_of(ledger: Any, **settings: Any) -> dict[str, float]:
    rows = coinhaze.score(ledger, **settings).to_arrow().to_pylist()
    return {row["node"]: -1.0 if row["bits"] is None else row["bits"] for row in rows}
