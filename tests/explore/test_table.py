"""A ledger's table, histogram, field and curve: the scores' own rows, in every order."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import coinhaze
from coinhaze.errors import InputError
from coinhaze.explore.distribution import histogram_of_bits
from coinhaze.explore.explorer import Explorer
from coinhaze.explore.query import Settings, TableQuery
from coinhaze.explore.table import Table
from coinhaze.measures import Scores
from coinhaze.web.pages.words import bits_title
from properties import strategies
from properties.comparison import profile
from web.explorers import assert_no_nan, explorer_of, town

COLUMNS = ("name", "kind", "amount", "bits", "steps", "sources", "top_share")


@pytest.fixture(scope="module")
def explorer() -> Explorer:
    return explorer_of(town())


def scores_of(explorer: Explorer) -> Scores:
    return explorer.views.scores(explorer.views.default)


def all_pages(explorer: Explorer, ask: TableQuery) -> list[str]:
    names: list[str] = []
    while True:
        page = explorer.table(ask)
        names += [row.name for row in page.rows]
        assert len(page.rows) <= ask.limit
        if page.after is None:
            assert len(names) == page.total
            return names
        ask = ask.model_copy(update={"after": page.after})


@pytest.mark.parametrize("sort", [f"{sign}{c}" for c in COLUMNS for sign in ("", "-")])
def test_pages_of_any_order_make_the_whole_table_once(explorer: Explorer, sort: str) -> None:
    names = all_pages(explorer, TableQuery(sort=sort, limit=97))
    rows = scores_of(explorer).to_arrow().to_pylist()
    assert sorted(names) == sorted(row["node"] for row in rows)
    column = {"name": "node", "amount": "balance", "top_share": "top_probability"}
    key = column.get(sort.lstrip("-"), sort.lstrip("-"))
    by_name = {row["node"]: row[key] for row in rows}
    values = [by_name[n] for n in names]
    if key == "balance":
        values = [int(v) for v in values]
    elif isinstance(values[0], float):
        values = [round(v, 9) for v in values]
    assert values == sorted(values, reverse=sort.startswith("-"))


def test_ties_keep_the_ledger_s_order_both_ways(explorer: Explorer) -> None:
    scores = scores_of(explorer)
    place = {
        name: k for k, name in enumerate(scores.chain.graph.names.of(scores.nodes).to_pylist())
    }
    for sort in ("sources", "-sources"):
        rows = [explorer.table(TableQuery(sort=sort, limit=1000)).rows][0]
        for one, two in itertools.pairwise(rows):
            assert one.sources != two.sources or place[one.name] < place[two.name]


def test_ranges_leave_what_lies_in_them(explorer: Explorer) -> None:
    scores = scores_of(explorer)
    ask = TableQuery(bits_low=1.0, bits_high=3.0, steps_low=4.0, steps_high=12.0, limit=50)
    kept = (scores.bits >= 1) & (scores.bits <= 3) & (scores.steps >= 4) & (scores.steps <= 12)
    names = all_pages(explorer, ask)
    assert 50 < len(names) == int(kept.sum())
    expected = scores.chain.graph.names.of(scores.nodes[kept]).to_pylist()
    assert set(names) == set(expected)
    nothing = explorer.table(TableQuery(bits_low=99.0))
    assert nothing.total == 0
    assert nothing.rows == ()
    assert nothing.after is None


def test_all_rows_come_as_columns_in_the_same_order(explorer: Explorer) -> None:
    ask = TableQuery(sort="-amount", bits_low=0.5)
    batches = list(explorer.table_batches(ask))
    assert batches[0].num_rows == 0
    names = [name for batch in batches for name in batch["name"].to_pylist()]
    assert names == all_pages(explorer, ask.model_copy(update={"limit": 1000}))
    assert batches[0].schema.names == [
        "name", "kind", "amount", "bits", "bits_low", "bits_high", "miss", "steps",
        "bits_common_input_no_coinjoins", "bits_change", "sources", "top", "top_share",
    ]  # fmt: skip


@pytest.mark.parametrize("cursor", ["", "x", "%%%", "WyItYml0cyIsIDFd" * 9, "bnVsbA", "W10", "é"])
def test_what_is_no_cursor_is_refused(explorer: Explorer, cursor: str) -> None:
    with pytest.raises(InputError, match="cursor"):
        explorer.table(TableQuery(after=cursor))


def test_a_cursor_of_another_order_is_refused(explorer: Explorer) -> None:
    after = explorer.table(TableQuery(sort="steps", limit=5)).after
    with pytest.raises(InputError, match="something else"):
        explorer.table(TableQuery(sort="-steps", limit=5, after=after))


def test_a_row_has_the_scores_own_numbers(explorer: Explorer) -> None:
    row = explorer.table(TableQuery(limit=1)).rows[0]
    scores = scores_of(explorer)
    k = int(np.nanargmax(np.round(scores.bits, 9)))
    assert (row.bits, row.steps) == (scores.bits[k], scores.steps[k])
    assert row.sources == scores.sources[k]
    assert row.top_share == scores.top_probability[k]
    assert row.href == f"/l/made/coin/{row.name}"


def test_rows_say_whether_their_interval_is_proven(explorer: Explorer) -> None:
    proven = explorer.table(TableQuery(limit=1)).rows[0]
    assert (proven.certified, proven.miss) == (True, 0.0)
    assert bits_title(proven) == "exact"
    scores = coinhaze.score(scores_of(explorer).chain, accuracy="preview", seed=1)
    rows = Table(scores, explorer._nodes(explorer.views.default)).rows(np.arange(len(scores)))
    for row, miss in zip(rows, scores.miss.tolist(), strict=True):
        assert row.miss == miss
        assert row.certified == (miss == 0)
        drawn = "misses with probability at most 1e-09" in str(bits_title(row))
        assert drawn == (miss > 0)
    assert any(row.miss for row in rows)


def test_the_histogram_counts_every_coin_once(explorer: Explorer) -> None:
    bits = scores_of(explorer).bits
    found = explorer.histogram(Settings())
    assert found.zeros + sum(found.counts) == np.sum(~np.isnan(bits))
    assert found.zeros == np.sum(bits <= 1e-9)
    for k, count in enumerate(found.counts):
        low, high = 0.25 * k, 0.25 * (k + 1)
        inside = (bits > max(low, 1e-9) + 1e-9) & (bits <= high + 2.5e-10)
        assert count == int(inside.sum())


def test_a_bar_holds_its_upper_end() -> None:
    found = histogram_of_bits(np.array([0.0, 0.25, 0.2500001, 1.0, 2.0]))
    assert (found.zeros, found.counts) == (1, (1, 1, 0, 1, 0, 0, 0, 1))


def test_the_field_counts_every_coin_and_is_small(explorer: Explorer) -> None:
    found = explorer.density(Settings())
    assert sum(found.counts) == np.sum(~np.isnan(scores_of(explorer).bits))
    assert len(found.counts) == found.columns * found.rows == 16_000
    assert len(found.model_dump_json()) < 60_000
    assert len(found.outliers) <= 500
    for dot in found.outliers:
        assert found.bits_low <= dot.bits <= found.bits_high
        assert found.steps_low <= dot.steps <= found.steps_high


def test_the_curve_is_the_share_of_coins_with_at_most_so_many_bits(explorer: Explorer) -> None:
    found = explorer.curve(Settings())
    bits = scores_of(explorer).bits
    assert len(found.bits) <= 200
    assert list(found.bits) == sorted(found.bits)
    assert found.share[-1] == 1.0
    for point, share in list(zip(found.bits, found.share, strict=True))[::20]:
        assert share == pytest.approx(np.mean(np.where(bits <= 1e-9, 0, bits) <= point), abs=1e-12)


def test_the_ledger_s_page_has_both_ends_and_the_summary(explorer: Explorer) -> None:
    page = explorer.ledger(Settings())
    summary = scores_of(explorer).summary()
    assert page.summary is not None
    assert page.card.state == "ready"
    assert page.summary.bits_mean == summary.bits_mean
    assert page.summary.line == summary.line()
    # The hardest are those that an informed observer finds hardest; then come the naive bits.
    maximum = [
        (round(row.informed["change"] or 0, 9), round(row.bits or 0, 9)) for row in page.most
    ]
    assert maximum == sorted(maximum, reverse=True)
    informed = coinhaze.informed(scores_of(explorer)).informed["change"].bits
    assert maximum[0][0] == pytest.approx(np.nanmax(informed), abs=1e-9)
    assert next(row.bits for row in page.fewest) == pytest.approx(0.0, abs=1e-9)
    assert json.loads(page.model_dump_json())["card"]["policies"][0] == "haircut"


@given(strategies.transfers(), st.sampled_from(["-bits", "name", "-amount", "steps"]))
@profile(20)
def test_small_ledgers_of_accounts_have_every_page(
    rows: list[strategies.Transfer], sort: str
) -> None:
    explorer = explorer_of(coinhaze.AccountLedger.from_transfers(rows))
    page = explorer.table(TableQuery(sort=sort, limit=1000))
    truth = {
        r["node"]: r for r in explorer.views.scores(explorer.views.default).to_arrow().to_pylist()
    }
    assert {row.name for row in page.rows} == truth.keys()
    for row in page.rows:
        assert row.bits == truth[row.name]["bits"]
        assert row.amount is not None
        assert row.amount.smallest == truth[row.name]["balance"]
    for answer in (
        explorer.ledger(Settings()),
        explorer.density(Settings()),
        explorer.curve(Settings()),
    ):
        assert_no_nan(answer.model_dump())


@given(strategies.ring_transactions())
@profile(10)
def test_ledgers_that_hide_amounts_have_every_page(rows: list[strategies.Transaction]) -> None:
    explorer = explorer_of(coinhaze.CoinLedger.from_transactions(rows))
    page = explorer.table(TableQuery(sort="-amount"))
    assert all(row.amount is None for row in page.rows)
    assert explorer.settings(Settings()).policy == "uniform"
    assert_no_nan(explorer.ledger(Settings()).model_dump())
    assert sum(b.num_rows for b in explorer.table_batches(TableQuery())) == page.total


def test_a_table_by_another_rule_is_scored_by_it(explorer: Explorer) -> None:
    rows = explorer.table(TableQuery(policy="fifo", limit=1000)).rows
    truth = coinhaze.score(explorer.views.chain.graph, policy="fifo")
    names = truth.chain.graph.names.of(truth.nodes).to_pylist()
    expected = dict(zip(names, truth.bits.tolist(), strict=True))
    assert all(row.bits == expected[row.name] and row.steps is None for row in rows)
    by_address = explorer.table(TableQuery(view="address", sort="name")).rows
    assert {row.kind for row in by_address} == {"address"}
    assert not math.isnan(by_address[0].bits or 0)
