"""Bits that are lower bounds say so wherever the page or its API tells them."""

from __future__ import annotations

from pathlib import Path

import pytest

import coinhaze
from coinhaze.explore.explorer import Explorer
from coinhaze.explore.models import Comparison
from coinhaze.explore.query import CoinQuery, Settings, TableQuery, WhatIfQuery
from coinhaze.web.pages.coin_facts import verdict_words
from coinhaze.web.pages.ledger import compare_page, ledger_page, table_page
from store.made_stores import Chain
from web.explorers import explorer_of

MARK = "≥"


@pytest.fixture
def explorer(tmp_path: Path) -> Explorer:
    """u and v spend coins of unknown value, w what both paid; a is known."""
    chain = Chain(first=9)
    chain.block()
    chain.pay("a", made=[("ann", 50)])
    chain.pay("u", [("x", 0, None), ("y", 1, None)], [("bob", 30)])
    chain.pay("v", [("z", 0, None)], [("cat", 10)])
    chain.block()
    chain.pay("w", [("u", 0, None), ("v", 0, None)], [("dan", 29), ("dan", 11)])
    chain.store(tmp_path / "store").close()
    return explorer_of(coinhaze.read(tmp_path / "store", unknown="leave-out"))


def test_a_coins_page_calls_its_bits_a_lower_bound(explorer: Explorer) -> None:
    marked, plain = (explorer.coin(name, CoinQuery()) for name in ("w:0", "a:0"))
    assert (marked.lower_bound, plain.lower_bound) == (True, False)
    said = verdict_words(marked)
    assert f">{MARK}0.81</b>" in said
    assert ">lower bound</span>" in said
    assert "At least as hard to trace as a coin with" in said
    assert "count as one origin: bits are a lower bound." in said
    assert "exact" not in said
    assert marked.place is not None
    assert "Harder than" not in said
    assert "lower bound" not in verdict_words(plain)


def test_a_coin_of_one_lumped_origin_is_not_said_to_have_one(explorer: Explorer) -> None:
    answer = explorer.coin("u:0", CoinQuery())
    assert answer.bits == pytest.approx(0, abs=1e-12)
    assert answer.sentence.shown == f"{MARK}0.00"
    assert "One possible origin" not in answer.sentence.text


def test_the_ledgers_page_and_its_table_mark_lower_bounds(explorer: Explorer) -> None:
    page = explorer.ledger(Settings())
    assert page.summary is not None
    assert (page.summary.scored, page.summary.lower_bounds) == (3, 2)
    # Only the coinbase is known to have one origin.
    assert page.summary.at_zero_bits == pytest.approx(1 / 3)
    text = ledger_page(page, None)
    assert f"<b>{MARK}0.81</b>" in text
    assert "marks lower bounds" in text
    table = explorer.table(TableQuery())
    assert {row.name: row.lower_bound for row in table.rows} == {
        "w:0": True, "w:1": True, "a:0": False,
    }  # fmt: skip
    assert table_page(table, page.card).count(f"<span>{MARK}0.81</span>") == 2


def test_a_table_as_a_file_and_groups_mark_them_too(explorer: Explorer) -> None:
    batches = list(explorer.table_batches(TableQuery()))
    assert batches[-1]["lower_bound"].to_pylist().count(True) == 2
    group = explorer.group("transaction", "w", Settings(), after=None, limit=10)
    assert group.lower_bounds == 2
    assert all(row.lower_bound for row in group.rows)


def test_coins_spent_together_and_ledgers_compared_are_marked(explorer: Explorer) -> None:
    found = explorer.what_if(WhatIfQuery(coins=("w:0", "a:0")))
    assert [coin.lower_bound for coin in found.before] == [True, False]
    assert found.after.lower_bound
    text = compare_page(Comparison(curves=(explorer.curve(Settings()),)), ())
    assert f">{MARK}0.81</td>" in text
    assert "bits are a lower bound." in text
