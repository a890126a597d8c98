"""Heuristics that give links: pay-outs of services, and habits at pools."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import coinhaze
from coinhaze.errors import UnknownName, UsageError
from coinhaze.graph.clusters.deposit_pools import (
    address_reuse_links,
    denomination_links,
    gas_price_links,
    short_pools,
)
from coinhaze.graph.clusters.heuristics import HEURISTICS, find, heuristic
from coinhaze.graph.clusters.services import find_services, payout_links
from coinhaze.ledger import AccountLedger, CoinLedger
from coinhaze.ledger.links import Link

GAME = [
    ("a", "dice", 100), ("b", "dice", 100), ("c", "dice", 500), ("dice", "d", 99),
    ("dice", "e", 495), ("dice", "f", 400),
]  # fmt: skip


def test_a_payout_is_shared_by_the_payins_that_fit() -> None:
    links = payout_links(AccountLedger.from_transfers(GAME), ["dice"], confidence=0.8)
    assert links == {"3": Link({"a": 0.5, "b": 0.5}, 0.8), "4": Link({"c": 1.0}, 0.8)}


def test_only_recent_payins_count() -> None:
    ledger = AccountLedger.from_transfers(GAME)
    assert payout_links(ledger, ["dice"], last=1) == {"4": Link({"c": 1.0}, 0.5)}
    assert "3" not in payout_links(ledger, ["dice"], fee=0.005)
    assert "3" in payout_links(ledger, ["dice"], fee=0.01)
    whole = AccountLedger.from_transfers([("a", "dice", 100), ("dice", "b", 100)])
    assert payout_links(whole, ["dice"], fee=0.0) == {"1": Link({"a": 1.0}, 0.5)}


def test_time_narrows_payins() -> None:
    columns = zip(*GAME, strict=True)
    times = pa.array([0, 50, 60, 100, 110, 120], pa.timestamp("s", "UTC"))
    ledger = AccountLedger.from_columns(*columns, times=times)
    assert payout_links(ledger, ["dice"], within=60)["3"].origins == {"b": 1.0}
    assert payout_links(ledger, ["dice"], within=50)["3"].origins == {"b": 1.0}
    assert "3" not in payout_links(ledger, ["dice"], within=49)
    with pytest.raises(UsageError, match="have a time"):
        payout_links(AccountLedger.from_transfers(GAME), ["dice"], within=60)


def test_a_service_of_coins_is_linked_to_the_transaction_that_paid_it() -> None:
    def pays(
        txid: str, spent: str, owner: str, value: int, to: str, height: int
    ) -> dict[str, object]:
        coin, _, vout = spent.rpartition(":")
        given = {"txid": coin, "vout": int(vout), "value": value, "address": owner}
        made = [{"value": value, "address": to}]
        return {"txid": txid, "inputs": [given], "outputs": made, "height": height}

    ledger = CoinLedger.from_transactions(
        [
            pays("in", "x:0", "alice", 100, "shop", 1),
            pays("later", "y:0", "bob", 100, "shop", 9),
            pays("out", "in:0", "shop", 100, "carol", 10),
        ]
    )
    assert payout_links(ledger, ["shop"], within=5)["out:0"].origins == {"tx:later": 1.0}
    # The coin view follows the coin itself; the observer of pay-outs believes otherwise.
    links = payout_links(ledger, ["shop"], within=5, confidence=0.75)
    origins = coinhaze.origins(ledger, "out:0", links=links)
    assert {r["source"]: r["probability"] for r in origins.sources().to_pylist()} == {
        "y:0": 0.75,
        "x:0": 0.25,
    }


def test_a_payment_of_several_is_nobodys_payout() -> None:
    alice, shop = (
        {"txid": txid, "vout": 0, "value": 50, "address": owner}
        for txid, owner in (("x", "alice"), ("y", "shop"))
    )
    pays_in = {"txid": "in", "inputs": [alice], "outputs": [{"value": 50, "address": "shop"}]}
    joint = {"txid": "out", "inputs": [alice | {"txid": "z"}, shop]}
    ledger = CoinLedger.from_transactions(
        [pays_in, joint | {"outputs": [{"value": 50, "address": "carol"}]}]
    )
    assert payout_links(ledger, ["shop"]) == {}


def test_services_are_found_by_their_crowd() -> None:
    rows = [(f"p{k}", "hub", 5) for k in range(4)] + [("hub", f"q{k}", 5) for k in range(4)]
    ledger = AccountLedger.from_transfers([*rows, ("q1", "q2", 1)])
    assert find_services(ledger, min_parties=4) == ["hub"]
    assert find_services(ledger, min_parties=5) == []


def test_settings_that_make_no_sense_are_refused() -> None:
    ledger = AccountLedger.from_transfers(GAME)
    with pytest.raises(UnknownName, match="nobody"):
        payout_links(ledger, ["nobody"])
    with pytest.raises(UsageError, match="fee=1"):
        payout_links(ledger, ["dice"], fee=1)
    with pytest.raises(UnknownName, match="pool:9"):
        address_reuse_links(ledger, ["pool:9"])
    with pytest.raises(UnknownName, match="not in the ledger: 77"):
        gas_price_links(ledger, {"77": 5}, ["dice"])


POOLS = [
    ("a", "pool:1", 5),  # 0
    ("b", "pool:1", 5),
    ("a", "pool:2", 50),  # 2
    ("pool:1", "z", 5),
    ("pool:2", "z", 50),  # 4
    ("pool:1", "b", 5),
    ("pool:1", "relayers:1", 1),
]


def test_a_recipient_who_deposited_before_is_linked_to_himself() -> None:
    ledger = AccountLedger.from_transfers(POOLS)
    assert address_reuse_links(ledger) == {"5": Link({"b": 1.0}, 0.5)}
    backwards = AccountLedger.from_transfers([("pool:1", "b", 5), ("b", "pool:1", 5)])
    assert address_reuse_links(backwards) == {}


def test_only_an_odd_gas_price_links() -> None:
    ledger = AccountLedger.from_transfers(POOLS)
    assert gas_price_links(ledger, {"0": 7, "1": 8, "3": 8}) == {"3": Link({"b": 1.0}, 0.5)}
    assert gas_price_links(ledger, {"0": 8, "1": 8, "3": 8}) == {}
    assert gas_price_links(ledger, {"2": 8, "3": 8}) == {}
    assert gas_price_links(ledger, {"1": 8, "6": 8}) == {}, "what relayers got is no withdrawal"
    backwards = AccountLedger.from_transfers([("pool:1", "z", 5), ("b", "pool:1", 5)])
    assert gas_price_links(backwards, {"0": 8, "1": 8}) == {}


def test_the_same_numbers_in_several_pools_link() -> None:
    ledger = AccountLedger.from_transfers(POOLS)
    assert denomination_links(ledger) == {
        "3": Link({"a": 1.0}, 0.5),
        "4": Link({"a": 1.0}, 0.5),
    }
    twin = AccountLedger.from_transfers([("c", "pool:1", 5), ("c", "pool:2", 50), *POOLS])
    assert denomination_links(twin) == {}
    late = AccountLedger.from_transfers([POOLS[3], POOLS[4], POOLS[0], POOLS[2]])
    assert denomination_links(late) == {}


def test_a_pool_that_pays_out_what_it_took_in_is_not_short() -> None:
    rows = [("a", "pool:1", 5), ("pool:1", "b", 5)]
    assert short_pools(AccountLedger.from_transfers(rows)) == {}
    assert short_pools(AccountLedger.from_transfers([*rows, ("pool:1", "b", 1)])) == {"pool:1": 1}


def test_what_nobody_measured_is_off() -> None:
    assert all(h.origin == "measured" for h in HEURISTICS if h.on)
    assert all(0 < h.confidence < 1 for h in HEURISTICS)
    assert len({h.name for h in HEURISTICS}) == len(HEURISTICS)
    with pytest.raises(UsageError, match="one of common-input"):
        heuristic("luck")


def test_every_heuristic_can_be_requested_by_name() -> None:
    accounts = AccountLedger.from_transfers(POOLS)
    coins = CoinLedger.from_transactions([{"txid": "a", "inputs": [], "outputs": [{"value": 9}]}])
    for h in HEURISTICS:
        ledger = accounts if h.gives == "links" else coins
        header, *rows = find(
            ledger, h.name, gas_prices={"1": 8, "3": 8}, services=["pool:1", "pool:2"]
        )
        assert len(header) == (4 if h.gives == "links" else 2)
        assert all(len(row) == len(header) for row in rows)
        assert rows or h.gives != "links"
        if h.gives != "links":
            with pytest.raises(UsageError, match="ledgers of coins"):
                find(accounts, h.name)


def test_the_table_in_the_docs_is_what_we_ship() -> None:
    page = (Path(__file__).parents[2] / "docs/knowledge.md").read_text()
    rows = [[c.strip() for c in line.split("|")[1:-1]] for line in page.splitlines() if "|" in line]
    shown = [row for row in rows if row and row[-1] in ("on", "off")]
    assert shown == [
        [f"`{h.name}`", h.gives, h.assumes, f"{h.confidence:.3f}", h.origin, h.source, default]
        for h in HEURISTICS
        for default in (["on"] if h.on else ["off"])
    ]
