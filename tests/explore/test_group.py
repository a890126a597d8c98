"""Addresses, transactions and blocks: their coins together, on every kind of ledger."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import coinhaze
from coinhaze.errors import UnknownName
from coinhaze.explore.explorer import Explorer
from coinhaze.explore.models import GroupAnswer, GroupKind
from coinhaze.explore.query import CoinQuery, Settings
from properties import strategies
from properties.comparison import profile
from web.explorers import assert_no_nan, explorer_of, town


@pytest.fixture(scope="module")
def explorer() -> Explorer:
    return explorer_of(town(), lists={"l": ["person3", "person7"]}, labels={"exchange": "North"})


def all_rows(explorer: Explorer, kind: GroupKind, name: str, asked: Settings) -> list[GroupAnswer]:
    pages, after = [], None
    while True:
        pages.append(explorer.group(kind, name, asked, after=after, limit=13))
        after = pages[-1].after
        if after is None:
            return pages


def test_an_address_has_all_its_coins_and_what_is_left(explorer: Explorer) -> None:
    pages = all_rows(explorer, "address", "exchange", Settings())
    ledger = explorer.index.coins
    owner = ledger.owners.to_pylist().index("exchange")
    coins = np.flatnonzero(ledger.output_owner == owner)
    unspent = coins[~np.isin(coins, ledger.input_output)]
    assert pages[0].coins == len(coins)
    assert pages[0].unspent == len(unspent)
    assert pages[0].label == "North"
    assert pages[0].total is not None
    assert ledger.output_value is not None
    assert int(pages[0].total.smallest) == sum(ledger.output_value.take(unspent).ints())
    names = [row.name for page in pages for row in page.rows]
    assert sorted(names) == sorted(ledger.output_names(coins).to_pylist())
    bits = [row.bits for page in pages for row in page.rows if row.bits is not None]
    assert bits == sorted(bits, reverse=True)


def test_bits_of_a_group_are_those_of_its_coins(explorer: Explorer) -> None:
    tx = explorer.index.coins.txids[-1].as_py()
    group = explorer.group("transaction", tx, Settings(), after=None, limit=100)
    assert group.coins == len(group.rows) > 0
    for row in group.rows:
        answer = explorer.coin(row.name, CoinQuery())
        assert answer.bits is not None
        assert row.bits_low is not None
        assert row.bits_high is not None
        assert row.bits_low - 1e-9 <= answer.bits <= row.bits_high + 1e-9
    values = [row.bits for row in group.rows if row.bits is not None]
    assert group.bits_low == pytest.approx(min(values))
    assert group.bits_high == max(values)
    assert group.histogram.zeros + sum(group.histogram.counts) == len(values)


def test_exposure_of_a_group_is_its_coins_by_value(explorer: Explorer) -> None:
    asked = Settings(list="l")
    for tx in ("t100", "t201", "t300"):
        group = explorer.group("transaction", tx, asked, after=None, limit=100)
        assert group.exposure is not None
        assert group.exposure.share is not None
        parts = [(explorer.coin(row.name, CoinQuery(list="l")), row) for row in group.rows]
        worth = [int(row.amount.smallest) if row.amount else 0 for _, row in parts]
        share = [a.exposure.share or 0.0 if a.exposure else 0.0 for a, _ in parts]
        assert group.exposure.share == pytest.approx(np.average(share, weights=worth), abs=1e-9)


def test_a_block_has_the_coins_of_all_its_transactions() -> None:
    rows = [
        {"txid": "a", "height": 7, "time": 10, "outputs": [{"value": 5}, {"value": 6}]},
        {"txid": "b", "height": 7, "inputs": [{"txid": "a", "vout": 0}], "outputs": [{"value": 5}]},
        {"txid": "c", "height": 8, "outputs": [{"value": 9}]},
    ]
    explorer = explorer_of(coinhaze.CoinLedger.from_transactions(rows))
    block = explorer.group("block", "7", Settings(), after=None, limit=10)
    assert block.transactions == ("a", "b")
    assert block.height == 7
    assert {row.name for row in block.rows} == {"a:0", "a:1", "b:0"}
    assert block.unspent == 2
    assert explorer.group("transaction", "a", Settings(), after=None, limit=10).time == 10
    for kind, name in (("block", "9"), ("block", "x"), ("transaction", "z"), ("address", "q")):
        with pytest.raises(UnknownName, match=f"no {kind}"):
            explorer.group(kind, name, Settings(), after=None, limit=10)  # type: ignore[arg-type]


def test_accounts_have_an_address_page_and_no_blocks() -> None:
    explorer = explorer_of(coinhaze.AccountLedger.from_transfers([("a", "c", 1), ("b", "c", 3)]))
    found = explorer.group("address", "c", Settings(), after=None, limit=10)
    assert found.coins == 1
    assert found.rows[0].bits == pytest.approx(0.8112781244591328)
    assert found.total is not None
    assert found.total.smallest == "4"
    with pytest.raises(UnknownName, match="accounts only"):
        explorer.group("block", "1", Settings(), after=None, limit=10)


@pytest.mark.parametrize("policy", ["uniform", "fifo", "lifo", "poison"])
def test_groups_are_reported_by_every_rule(explorer: Explorer, policy: str) -> None:
    asked = Settings(policy=policy, list="l")
    found = explorer.group("transaction", "t201", asked, after=None, limit=100)
    assert_no_nan(found.model_dump())
    for row in found.rows:
        answer = explorer.coin(row.name, CoinQuery(policy=policy, list="l"))
        assert row.bits == pytest.approx(answer.bits, abs=0.051)
    assert found.exposure is not None
    assert (found.exposure.touched is None) == (policy != "poison")


@given(strategies.transactions(pools=True), st.sampled_from(["coin", "address"]))
@profile(20)
def test_every_group_of_a_small_ledger_answers(
    rows: list[strategies.Transaction], view: str
) -> None:
    ledger = coinhaze.CoinLedger.from_transactions(rows)
    explorer = explorer_of(ledger)
    asked = Settings(view=view)  # type: ignore[arg-type]
    for tx in ledger.txids.filter(ledger.inside).to_pylist():
        found = explorer.group("transaction", tx, asked, after=None, limit=10)
        assert_no_nan(found.model_dump())
    for owner, coin in zip(ledger.owners.to_pylist(), ledger.owner_is_coin, strict=True):
        if not coin:
            try:
                found = explorer.group("address", owner, asked, after=None, limit=10)
            except UnknownName:
                continue  # all its coins are worth nothing
            assert_no_nan(found.model_dump())


@given(strategies.ring_transactions())
@profile(10)
def test_groups_of_hidden_coins_have_no_amounts(rows: list[strategies.Transaction]) -> None:
    explorer = explorer_of(coinhaze.CoinLedger.from_transactions(rows))
    found = explorer.group("transaction", "t0", Settings(), after=None, limit=10)
    assert found.total is None
    assert found.bits_weighted_mean is None
    assert_no_nan(found.model_dump())
