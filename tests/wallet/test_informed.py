"""Informed bits of a wallet's coins: those of `informed`, and bounds where a chain is a part."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import coinhaze
from coinhaze.ledger import CoinLedger
from coinhaze.wallet.document import wallet_document
from coinhaze.wallet.holdings import find_coin
from coinhaze.wallet.report import WalletReport
from coinhaze.wallet.wallet import Wallet, weigh_wallet
from coinhaze.wallet.words import informed_words, observed_words

OLD = [{"txid": x, "vout": 0, "value": 5, "address": f"old {x}"} for x in "wxyz"]
SWEPT: list[dict[str, Any]] = [
    {"txid": "s", "inputs": OLD, "outputs": [{"value": 20, "address": "me"}]},
    {
        "txid": "p",
        "inputs": [
            {"txid": "s", "vout": 0},
            {"txid": "v", "vout": 0, "value": 20, "address": "old v"},
        ],
        "outputs": [{"value": 20, "address": "ann"}, {"value": 20, "address": "bob"}],
    },
]
MINED: list[dict[str, Any]] = [
    {"txid": "m", "outputs": [{"value": 5, "address": "a"}]},
    {"txid": "n", "outputs": [{"value": 5, "address": "b"}]},
    {
        "txid": "t",
        "inputs": [
            {"txid": "m", "vout": 0},
            {"txid": "n", "vout": 0},
            {"txid": "o", "vout": 0, "value": 10, "address": "c"},
        ],
        "outputs": [{"value": 20, "address": "d"}],
    },
]


def wallet_of(records: list[dict[str, Any]], *names: str, **more: Any) -> Wallet:
    graph = coinhaze.transaction_graph(CoinLedger.from_transactions(records))
    coins = [find_coin(graph, name) for name in names]
    return weigh_wallet(coinhaze.absorbing_chain(graph), coins, **more)


def document_of(wallet: Wallet) -> dict[str, Any]:
    return wallet_document(WalletReport(wallet))


@pytest.mark.parametrize("labels", [{}, {"old w": "Ann", "old v": "Ann"}])
def test_bits_are_those_of_the_ladder_over_the_whole_ledger(labels: dict[str, str]) -> None:
    wallet = wallet_of(SWEPT, "p:0", "p:1", labels=labels)
    scores = coinhaze.score(wallet.chain, nodes=["p:0", "p:1"])
    truth = coinhaze.informed(scores, labels=labels).informed
    assert [each.name for each in wallet.observers] == list(truth)
    for place, holding in enumerate(wallet.holdings):
        for each, name in zip(holding.informed, truth, strict=True):
            assert each.bits == pytest.approx(truth[name].bits[place], abs=1e-9)
            assert each.bits_low <= truth[name].bits[place] + 1e-12
            assert truth[name].bits[place] <= each.bits_high + 1e-12
    row = document_of(wallet)["coins"][0]
    assert row["bits"] == pytest.approx(2.0)  # 1/8 each of four, and 1/2
    assert row["bits_common_input_no_coinjoins"] == pytest.approx(1.0)
    assert ("bits_given" in row) == bool(labels)
    assert row["observed"].startswith("2.00 bits; 1.00 if its inputs had one owner, which most")


def test_a_coin_whose_observers_agree_has_no_sentence() -> None:
    wallet = wallet_of([{"txid": "m", "outputs": [{"value": 5, "address": "a"}]}], "m:0")
    assert observed_words(wallet.holdings[0]) == ""
    assert document_of(wallet)["coins"][0]["bits_change"] == 0


def test_what_was_not_followed_may_be_anybodys() -> None:
    """A quarter each from m and n, one owner's to an observer, and half from beyond."""
    (holding,) = wallet_of(MINED, "t:0", max_origins=16).holdings
    seen = holding.informed[0]
    assert holding.beyond is not None
    assert holding.beyond.open == pytest.approx(0.5)
    assert seen.bits_low == pytest.approx(0, abs=1e-9)  # beyond is the same owner
    assert seen.bits_high == pytest.approx(1 + 4 / 2)  # beyond are 16 others
    assert holding.interval[1] == pytest.approx(1.5 + 4 / 2)
    assert observed_words(holding) == ""
    rng = np.random.default_rng(1)
    for _ in range(50):  # any split of what is beyond, among the same owner and strangers
        parts = rng.dirichlet(np.full(17, 0.3)) / 2
        shares = np.append(parts[1:], 0.5 + parts[0])
        truth = -sum(p * np.log2(p) for p in shares.tolist() if p > 0)
        assert seen.bits_low - 1e-9 <= truth <= seen.bits_high + 1e-9
    assert "transactions that were fetched" in informed_words(
        wallet_of(MINED, "t:0", max_origins=16)
    )


def test_where_nothing_is_inferred_bits_are_null_and_it_is_said() -> None:
    wallet = wallet_of(SWEPT, "p:0", observers=())
    row = document_of(wallet)["coins"][0]
    assert row["bits_change"] is None
    assert row["bits_common_input_no_coinjoins_high"] is None
    assert row["observed"] is None
    assert document_of(wallet)["observers"] == []
    assert "not given" in informed_words(wallet)


def test_the_report_has_the_column_and_the_sentence() -> None:
    parts = WalletReport(wallet_of(SWEPT, "p:0", "p:1")).sections()
    (coins,) = [part for part in parts if part.title == "Your coins"]
    at = [name for name, _ in coins.columns].index("informed bits")
    assert [row[at] for row in coins.rows] == ["1.0000", "1.0000"]
    assert any(line.startswith("Coin 2: 2.00 bits; 1.00 if its inputs") for line in coins.lines)
