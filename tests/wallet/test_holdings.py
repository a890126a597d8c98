from __future__ import annotations

import pytest

import coinhaze
from coinhaze.errors import InputError, UsageError
from coinhaze.formats.lists.coins import ListedCoin
from coinhaze.graph import TransactionGraph
from coinhaze.ledger import CoinLedger
from coinhaze.wallet.holdings import find_coins, find_listed
from coinhaze.wallet.wallet import CoinSet

FIRST = "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa"
OTHER = "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4"
BURNT = "1111111111111111111114oLvT2"
TEST = "mipcBbFg9gMiCh81Kj8tqqdgoZub1ZJRfn"


def graph() -> TransactionGraph:
    return coinhaze.transaction_graph(
        CoinLedger.from_transactions(
            [
                {"txid": "a", "outputs": [{"value": 6, "address": FIRST}]},
                {"txid": "b", "outputs": [{"value": 2, "address": FIRST}, {"value": 2}]},
                {"txid": "c", "inputs": [{"txid": "b", "vout": 0}]}
                | {"outputs": [{"value": 2, "address": OTHER}]},
                {"txid": "d", "outputs": [{"value": 4, "address": FIRST}]},
            ]
        )
    )


def listed(**entry: object) -> ListedCoin:
    return ListedCoin("mine.csv:3", **entry)  # type: ignore[arg-type]


def test_an_address_stands_for_its_unspent_coins_each_named_once() -> None:
    coins = find_coins(graph(), [listed(coin="d:0", label="rent"), listed(address=FIRST)])
    assert [(c.name, c.value, c.address, c.label) for c in coins] == [
        ("d:0", 4, FIRST, "rent"),
        ("a:0", 6, FIRST, None),
    ]
    assert [coin.name for coin in find_coins(graph(), [listed(coin="b:1", value=2)])] == ["b:1"]


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"coin": "b:0"}, "mine.csv:3: coin b:0 is spent already, by c"),
        ({"coin": "x:0"}, "mine.csv:3: no coin 'x:0' in the ledger"),
        (
            {"coin": "b:1", "value": 3},
            "mine.csv:3: coin b:1 is worth 0.00000002 BTC in the ledger, 0.00000003 BTC in",
        ),
        ({"address": TEST}, f"mine.csv:3: {TEST} is an address of bitcoin .*, the ledger's are of"),
        ({"address": "0x" + "ab" * 20}, "is an address of ethereum"),
        ({"address": FIRST[:-1] + "b"}, "not in the ledger, and no address of a network known"),
        (
            {"address": "1111111111111111111114oLvT2"},
            "mine.csv:3: address 1.* is not in the ledger",
        ),
    ],
    ids=["spent", "unknown", "value", "network", "ethereum", "checksum", "absent"],
)
def test_what_cannot_be_found_is_named_with_its_place(entry: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        find_coins(graph(), [listed(**entry)])


def test_an_empty_list_and_spent_addresses_are_refused() -> None:
    with pytest.raises(InputError, match="names no coin"):
        find_coins(graph(), [])
    spent = coinhaze.transaction_graph(
        CoinLedger.from_transactions(
            [
                {"txid": "a", "outputs": [{"value": 6, "address": FIRST}]},
                {"txid": "b", "inputs": [{"txid": "a", "vout": 0}], "outputs": [{"value": 6}]},
            ]
        )
    )
    with pytest.raises(InputError, match="has no unspent coin"):
        find_coins(spent, [listed(address=FIRST)])


def test_spent_coins_and_empty_addresses_of_labels_are_passed_over_and_counted() -> None:
    whole = coinhaze.transaction_graph(
        CoinLedger.from_transactions(
            [
                {"txid": "a", "outputs": [{"value": 6, "address": FIRST}, {"value": 1}]},
                {"txid": "b", "inputs": [{"txid": "a", "vout": 0}]}
                | {"outputs": [{"value": 6, "address": OTHER}]},
            ]
        )
    )
    spent = listed(coin="a:0", labelled=True)
    empty = listed(address=FIRST, labelled=True)
    coins, notes = find_listed(whole, [spent, empty, listed(address=OTHER, labelled=True)])
    assert [coin.name for coin in coins] == ["b:0"]
    assert notes == [
        "of a wallet's labels, 1 coin is spent, and passed over",
        "of a wallet's labels, 1 address has no unspent coin, and passed over",
    ]
    assert find_listed(whole, [listed(coin="a:1", labelled=True)])[1] == []
    with pytest.raises(InputError, match="coin a:0 is spent already, by b"):
        find_listed(whole, [spent, empty])
    with pytest.raises(InputError, match="has no unspent coin"):
        find_listed(whole, [listed(coin="a:1"), listed(address=FIRST)])


def test_pairs_say_what_becomes_of_doubt_and_exposure() -> None:
    whole = graph()
    chain = coinhaze.absorbing_chain(whole)
    exposed = coinhaze.absorbing_chain(whole, listed=[OTHER])
    coins = find_coins(whole, [listed(coin=name) for name in ("a:0", "c:0", "b:1", "d:0")])
    purse = CoinSet(chain, coins, exposed=exposed)
    pairs = {pair.coins: pair for pair in purse.pairs()}
    assert len(pairs) == 6
    tainted = pairs["a:0", "c:0"]
    assert tainted.exposure == 0.25
    assert tainted.exposure_before == (0.0, 1.0)
    assert tainted.taints(0.1) == ("a:0",)
    assert tainted.taints(0.1)
    assert not tainted.taints(0.25)
    assert not pairs["a:0", "d:0"].taints(0.0)
    assert pairs["a:0", "d:0"].after.bits == pytest.approx(0.9709505944546686)
    assert pairs["a:0", "d:0"].gain == pytest.approx(0.9709505944546686)
    # Both came out of one transaction: putting them together again adds no doubt.
    assert pairs["c:0", "b:1"].gain == pytest.approx(0.0)
    every = purse.together([coin.name for coin in coins])
    assert every.exposure == pytest.approx(2 / 14)
    assert every.shares == (6 / 14, 2 / 14, 2 / 14, 4 / 14)
    with pytest.raises(UsageError, match="each once"):
        purse.together(["a:0", "a:0"])
    with pytest.raises(UsageError, match="made with `listed`"):
        CoinSet(chain, coins, exposed=chain)
