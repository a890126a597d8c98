"""CoinJoins taken apart, as links of a chain."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest

import coinhaze
from coinhaze import CoinLedger, absorbing_chain, transaction_graph
from coinhaze.errors import UnknownName, UsageError
from coinhaze.observer.coinjoin_links import coinjoin_links


def spent(name: str, value: int) -> dict[str, Any]:
    return {"txid": name, "vout": 0, "value": value, "address": f"of {name}"}


def paid(*values: int) -> list[dict[str, Any]]:
    return [{"value": v, "address": f"to {k}"} for k, v in enumerate(values)]


@pytest.fixture
def mix() -> CoinLedger:
    """Two mix 10 each, one of them with change; beside it a payment with one reading."""
    return CoinLedger.from_transactions(
        [
            {"txid": "j", "inputs": [spent("x", 10), spent("y", 14)], "outputs": paid(10, 10, 4)},
            {"txid": "p", "inputs": [spent("v", 8), spent("w", 5)], "outputs": paid(12, 1)},
        ]
    )


def bits_of(ledger: CoinLedger, view: Literal["coin", "address"], links: Any) -> dict[str, float]:
    chain = absorbing_chain(transaction_graph(ledger, view=view), links=links)
    scores = coinhaze.score(chain)
    names = chain.graph.names.of(scores.nodes).to_pylist()
    return dict(zip(names, scores.bits.tolist(), strict=True))


def test_outputs_of_one_transaction_differ_with_links(mix: CoinLedger) -> None:
    before = bits_of(mix, "coin", None)
    assert before["j:0"] == pytest.approx(before["j:2"])
    found = coinjoin_links(mix, ["j"])
    assert not found.refused
    after = bits_of(mix, "coin", found.links)
    # 4 is change of the 14 in two readings of three, and of both in the third.
    share = (2 * 0 + 10 / 24) / 3
    assert found.links["j:2"]["x:0"] == pytest.approx(share)
    assert after["j:2"] < before["j:2"]
    assert after["j:0"] == pytest.approx(after["j:1"])
    assert after["p:0"] == before["p:0"]


def test_a_transaction_with_one_reading_is_left_as_it_was(mix: CoinLedger) -> None:
    assert coinjoin_links(mix, ["p"]).links == {}


def test_links_name_addresses_in_the_address_view(mix: CoinLedger) -> None:
    links = coinjoin_links(mix, ["j"], view="address").links
    assert set(links["j:0"]) == {"of x", "of y"}
    assert sum(links["j:0"].values()) == pytest.approx(1, abs=1e-12)
    chain = absorbing_chain(transaction_graph(mix, view="address"), links=links)
    found = coinhaze.origins(chain, "to 2").sources().to_pylist()
    assert found[0]["source"] == "of y"


def test_two_coins_of_one_address_are_one_origin() -> None:
    both = [spent("x", 5) | {"address": "a"}, spent("y", 5) | {"address": "a"}]
    ledger = CoinLedger.from_transactions([{"txid": "j", "inputs": both, "outputs": paid(5, 5)}])
    links = coinjoin_links(ledger, ["j"], view="address").links
    assert links["j:0"] == pytest.approx({"a": 1.0})


def test_recognised_coinjoins_are_taken_apart_unless_some_are_named() -> None:
    ins = [spent(c, 100_000) for c in "abcd"] + [spent("e", 100_300)]
    ledger = CoinLedger.from_transactions(
        [
            {"txid": "whirl", "inputs": ins, "outputs": [{"value": 100_000}] * 5},
            {"txid": "p", "inputs": [spent("v", 8), spent("w", 8)], "outputs": paid(8, 8)},
        ]
    )
    links = coinjoin_links(ledger).links
    assert set(links) == {f"whirl:{k}" for k in range(5)}
    shares = np.array([list(row.values()) for row in links.values()])
    assert shares.sum(axis=1) == pytest.approx(1, abs=1e-12)
    assert bits_of(ledger, "coin", links)["whirl:0"] == pytest.approx(np.log2(5), abs=1e-3)


def test_what_is_too_large_is_reported(mix: CoinLedger) -> None:
    found = coinjoin_links(mix, ["j"], steps=1)
    assert found.links == {}
    assert "more than 1 steps" in found.refused["j"]


def test_what_cannot_be_taken_apart_is_refused() -> None:
    ledger = CoinLedger.from_transactions(
        [{"txid": "c", "inputs": [], "outputs": paid(5), "coinbase": True}]
    )
    with pytest.raises(UsageError, match="transaction c cannot be taken apart"):
        coinjoin_links(ledger, ["c"])
    shielding = {"inputs": [spent("x", 10), spent("y", 14)], "outputs": paid(10, 10)}
    pool = CoinLedger.from_transactions([{"txid": "s", "pools": {"sapling": 4}} | shielding])
    with pytest.raises(UsageError, match="money crossed a pool"):
        coinjoin_links(pool, ["s"])
    with pytest.raises(UnknownName, match="no transaction 'nope'"):
        coinjoin_links(ledger, ["nope"])
