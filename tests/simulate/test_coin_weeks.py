"""Simulated weeks of coins: valid to the last rule, the same for the same seed, as asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from coinhaze import CoinLedger, absorbing_chain, kernels, transaction_graph
from coinhaze.ledger.coins import POOLS
from coinhaze.simulate.weeks.bitcoin import CHAIN, bitcoin_week
from coinhaze.simulate.weeks.coin_columns import empty_book, hex_names, share_table
from coinhaze.simulate.weeks.coin_kernels import DUST, uniform
from coinhaze.simulate.weeks.zcash import zcash_history, zcash_week
from graph.tables import edges

Make = Callable[..., CoinLedger]
WEEKS: dict[str, tuple[Make, float]] = {
    "bitcoin": (bitcoin_week, 0.0005),
    "zcash": (zcash_week, 0.01),
}
WORD = 2**64

every_week = pytest.mark.parametrize("name", WEEKS)


def week(name: str, *, seed: int = 1, times: float = 1.0) -> CoinLedger:
    make, size = WEEKS[name]
    return make(size=size * times, seed=seed)


def transactions(ledger: CoinLedger) -> list[dict[str, Any]]:
    """Read the window's transactions back in Python, as a reader of a file would give them."""
    txids, owners = ledger.txids.to_pylist(), ledger.owners.to_pylist()
    heights, times = ledger.heights.to_pylist(), ledger.times.to_pylist()
    assert ledger.output_value is not None
    values = ledger.output_value.ints()
    found: dict[int, dict[str, Any]] = {
        int(row): {
            "txid": txids[row],
            "inputs": [],
            "outputs": [],
            "pools": {},
            "coinbase": bool(ledger.coinbase[row]),
            "height": heights[row],
            "time": times[row],
        }
        for row in np.flatnonzero(ledger.inside)
    }
    for coin, row in enumerate(ledger.output_tx.tolist()):
        owner = int(ledger.output_owner[coin])
        if row in found:
            found[row]["outputs"].append(
                {
                    "value": values[coin],
                    "address": None if ledger.owner_is_coin[owner] else owners[owner],
                    "vout": int(ledger.output_vout[coin]),
                    "spendable": bool(ledger.output_spendable[coin]),
                }
            )
    for row, coin in zip(ledger.input_tx.tolist(), ledger.input_output.tolist(), strict=True):
        found[row]["inputs"].append(
            {
                "txid": txids[ledger.output_tx[coin]],
                "vout": int(ledger.output_vout[coin]),
                "value": values[coin],
                "address": owners[ledger.output_owner[coin]],
            }
        )
    flows = zip(ledger.flow_tx.tolist(), ledger.flow_pool, ledger.flow_into.ints(), strict=True)
    for row, pool, into in flows:
        found[row]["pools"][POOLS[pool]] = into
    return list(found.values())


def fee(transaction: dict[str, Any]) -> int:
    paid = sum(o["value"] for o in transaction["outputs"]) + sum(transaction["pools"].values())
    return int(sum(i["value"] for i in transaction["inputs"]) - paid)


@every_week
def test_a_week_passes_every_check_of_a_reader_and_gives_the_same_graphs(name: str) -> None:
    ledger = week(name)
    # Outputs above inputs, a coin spent twice, before it is made or by its maker, a coinbase
    # that spends, two outputs with one number: each would be refused here.
    again = CoinLedger.from_transactions(transactions(ledger))
    for view in ("coin", "address"):
        ours, theirs = (transaction_graph(each, view=view) for each in (ledger, again))
        assert edges(ours) == edges(theirs)
        assert int(ours.sinks.sum()) == int(theirs.sinks.sum())
    assert ledger.facts() == again.facts()


@every_week
def test_a_small_week_needs_no_compiler(name: str) -> None:
    week(name, times=0.1)
    assert not kernels._compiling


@pytest.mark.long
@every_week
def test_compiled_kernels_write_the_same_week(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tables = []
    for small in (1 << 40, -1):
        monkeypatch.setattr(kernels, "SMALL", small)
        monkeypatch.setattr(kernels, "_compiling", False)
        monkeypatch.setattr(kernels, "MAX_SECONDS", 60.0)
        tables.append(week(name).tables())
        assert kernels._compiling == (small < 0)
    assert all(tables[0][t].equals(tables[1][t]) for t in tables[1])


@every_week
def test_every_transaction_but_a_coinbase_pays_a_fee_and_coinbases_collect_them(name: str) -> None:
    blocks: Counter[int] = Counter()
    rewards: Counter[int] = Counter()
    for transaction in transactions(week(name)):
        if transaction["coinbase"]:
            assert not transaction["inputs"]
            rewards[transaction["height"]] += -fee(transaction)
        else:
            assert fee(transaction) > 0
            blocks[transaction["height"]] += fee(transaction)
    subsidy = {"bitcoin": 625_000_000, "zcash": 312_500_000}[name]
    assert all(rewards[height] == subsidy + blocks[height] for height in rewards)


@every_week
@pytest.mark.parametrize("times", [1, pytest.param(20, marks=pytest.mark.long)])
def test_no_coin_in_the_open_is_worth_nothing_and_coinbases_ripen(name: str, times: int) -> None:
    ledger = week(name, times=times)
    assert ledger.output_value is not None
    values = np.array(ledger.output_value.ints())
    assert np.all(values[ledger.output_spendable] > 0)
    assert np.all(values[~ledger.output_spendable] == 0)
    heights = np.array([-1 if h is None else h for h in ledger.heights.to_pylist()])
    mined = ledger.coinbase[ledger.output_tx[ledger.input_output]]
    made = heights[ledger.output_tx[ledger.input_output[mined]]]
    assert len(made) > 0 or times == 1 or name == "bitcoin"  # of which a week has 1,066 blocks
    assert np.all(heights[ledger.input_tx[mined]] >= made + 100)


@every_week
def test_the_same_seed_gives_the_same_bits_and_another_other_ones(name: str) -> None:
    one, again, other = week(name), week(name), week(name, seed=2)
    tables = one.tables()
    assert all(tables[t].equals(again.tables()[t]) for t in tables)
    assert not tables["outputs"].equals(other.tables()["outputs"])
    assert not tables["owners"].equals(other.tables()["owners"])


@pytest.mark.long
@every_week
def test_twice_the_size_is_about_twice_the_ledger(name: str) -> None:
    small, large = (week(name, times=times).facts() for times in (10, 20))
    for count in ("transactions", "coinbases", "inputs", "outputs"):
        ratio = large[count] / small[count]  # type: ignore[operator]
        assert 1.6 < ratio < 2.4, count
    # Those who are there are met again: addresses grow more slowly.
    assert 1.2 < large["owners"] / small["owners"] < 2.1  # type: ignore[operator]


@every_week
def test_names_are_different_and_every_owner_has_a_coin(name: str) -> None:
    ledger = week(name)
    for names in (ledger.txids.to_pylist(), ledger.owners.to_pylist()):
        assert len(set(names)) == len(names)
    assert {len(t) for t in ledger.txids.to_pylist()} == {64}
    assert np.array_equal(np.unique(ledger.output_owner), np.arange(len(ledger.owners)))


@pytest.mark.long
def test_a_share_of_the_week_has_that_share_of_blocks_and_transactions() -> None:
    ledger = bitcoin_week(size=0.01)
    assert ledger.facts()["coinbases"] == round(CHAIN.blocks * 0.01)
    assert abs(len(ledger) - CHAIN.transactions * 0.01) <= 1


@pytest.mark.long
def test_bitcoin_has_hot_wallets_batches_sweeps_joins_and_data() -> None:
    ledger = bitcoin_week(size=0.01)
    outputs = Counter(ledger.output_tx[ledger.inside[ledger.output_tx]].tolist())
    inputs = Counter(ledger.input_tx.tolist())
    coins = Counter(ledger.output_owner.tolist())
    assert max(outputs.values()) >= 100
    assert max(inputs.values()) >= 100
    assert coins.most_common(1)[0][1] > 500
    assert ledger.output_value is not None
    equal = Counter(zip(ledger.output_tx.tolist(), ledger.output_value.ints(), strict=True))
    assert max(equal.values()) >= 5
    assert 0 < int(ledger.owner_is_coin.sum()) < 0.05 * len(ledger)


@pytest.mark.long
def test_bitcoin_has_one_large_strong_component_of_addresses_and_transactions() -> None:
    import scipy.sparse

    graph = transaction_graph(bitcoin_week(size=0.05), view="address")
    n = len(graph)
    ones = np.ones(len(graph.tail))
    matrix = scipy.sparse.csr_array((ones, (graph.tail, graph.head)), shape=(n, n))
    _, label = scipy.sparse.csgraph.connected_components(matrix, connection="strong")
    sizes = np.sort(np.bincount(label))
    assert sizes[-1] > 0.2 * n > 100 * sizes[-2]


def test_zcash_coinbases_are_spent_into_a_pool_only() -> None:
    for transaction in transactions(zcash_week(size=0.02)):
        if transaction["pools"].get("sapling", 0) > 0 and len(transaction["inputs"]) > 1:
            assert not transaction["outputs"]
    ledger = zcash_week(size=0.02)
    spends_reward = ledger.input_tx[ledger.coinbase[ledger.output_tx[ledger.input_output]]]
    assert len(spends_reward) > 0
    assert not np.any(np.isin(spends_reward, ledger.output_tx))
    assert np.all(np.isin(spends_reward, ledger.flow_tx))


def test_zcash_has_transactions_that_show_a_fee_and_nothing_else() -> None:
    hidden = [
        t
        for t in transactions(zcash_week(size=0.02))
        if not (t["inputs"] or t["outputs"]) and t["pools"].keys() == {"sapling"}
    ]
    assert hidden
    assert all(0 < -t["pools"]["sapling"] < 100_000 for t in hidden)


def test_pools_pay_out_more_than_enters_so_that_their_history_counts() -> None:
    history = zcash_history(size=0.02)
    assert history == zcash_history(size=0.02)
    assert history != zcash_history(size=0.02, seed=2)
    ledger = zcash_week(size=0.02)
    for view in ("address", "coin"):
        graph = transaction_graph(ledger, view=view)
        chain = absorbing_chain(graph, history=history)
        assert len(chain.history) == len(history)
        assert not chain.notes


def test_names_are_splitmix_words_in_hexadecimal() -> None:
    def word(z: int) -> int:
        z = z * 0x9E3779B97F4A7C15 % WORD
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % WORD
        z = (z ^ z >> 27) * 0x94D049BB133111EB % WORD
        return z ^ z >> 31

    names = hex_names(50, seed=3, prefix="0x", digits=40).to_pylist()
    start = 3 * 0x10001
    for row, name in enumerate(names):
        assert name == "0x" + "".join(f"{word(start + 3 * row + k):016x}" for k in range(3))[:40]


def test_dice_are_splitmix64() -> None:
    book = empty_book(transactions=1, coins=1, dice=7)
    state = 7
    for _ in range(100):
        state = (state + 0x9E3779B97F4A7C15) % WORD
        z = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 % WORD
        z = (z ^ z >> 27) * 0x94D049BB133111EB % WORD
        assert uniform(book) == ((z ^ z >> 31) >> 11) * 2.0**-53


def test_a_table_of_shares_gives_each_its_share() -> None:
    assert np.bincount(share_table([1, 0, 3], places=400)).tolist() == [100, 0, 300]
    assert DUST == 546
