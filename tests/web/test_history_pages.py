"""Pages of a whole history: the same as of a window, with its months, and they follow its chain."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coinhaze import History
from coinhaze.history.follow import Follower
from coinhaze.simulate.history import bitcoin_history
from coinhaze.web.registry import LedgerRegistry
from coinhaze.web.security.guard import Guard
from history.branches import Branch
from web.asking import ask, made_app
from web.test_pages import Tags


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> History:
    path = tmp_path_factory.mktemp("served") / "chain.history"
    made = History.index_blocks(path, bitcoin_history(40), unit="BTC", piece_rows=3000)
    made.score(draws=256, seed=3, over_time=True)
    return History.open(path)


@pytest.fixture(scope="module")
def app(history: History) -> Guard:
    return made_app(LedgerRegistry([history.path]))


def data(app: Guard, path: str) -> Any:
    reply = ask(app, f"/api/v1/ledgers/chain{path}")
    assert reply.status_code == 200, reply.text
    return reply.json()


def test_every_page_is_well_made(app: Guard, history: History) -> None:
    name = history.scores().to_arrow(0, 1)["node"][0].as_py()
    txid = name.rpartition(":")[0]
    pages = ["/", "/l/chain", "/l/chain/table", f"/l/chain/coin/{name}", f"/l/chain/tx/{txid}",
             "/l/chain/block/3", f"/search?q={txid[:10]}&l=chain", "/compare?l=chain"]  # fmt: skip
    for path in pages:
        reply = ask(app, path)
        assert reply.status_code in (200, 303), (path, reply.text[:2000])
        tags = Tags()
        tags.feed(reply.text)
        assert not tags.bad, path
        assert not tags.open, path
        assert len(tags.ids) == len(set(tags.ids)), path
    assert "At block 39" in ask(app, "/l/chain").text
    assert "Mean bits of what was unspent, from 20" in ask(app, "/l/chain").text


def test_months_are_those_of_the_history(app: Guard, history: History) -> None:
    page, months = data(app, ""), history.over_time().to_pylist()
    assert len(page["months"]) == len(months) > 20
    for shown, month in zip(page["months"], months, strict=True):
        assert shown["month"] == month["month"]
        assert int(shown["amount"]["smallest"]) == month["value"]
        assert shown["bits_by_value"] == pytest.approx(month["bits_by_value"])
    assert page["card"]["standing"]["at"] == 39
    assert page["summary"]["scored"] == len(history.scores())


def test_types_of_scripts_are_those_of_the_history(app: Guard, history: History) -> None:
    shown, rows = data(app, "")["script_types"], history.table("script-type").to_pylist()
    assert [row["script_type"] for row in shown] == [row["group"] for row in rows]
    assert {"p2pk", "p2pkh", "p2sh"} <= {row["group"] for row in rows}
    for ours, row in zip(shown, rows, strict=True):
        assert int(ours["amount"]["smallest"]) == row["value"]
        for name, figure in (("coins", "coins"), ("bits_mean", "bits_mean"),
                             ("bits_median", "bits_median"), ("one_origin", "certain"),
                             ("bits_by_value", "bits_by_value")):  # fmt: skip
            assert ours[name] == pytest.approx(row[figure])
    page = ask(app, "/l/chain").text
    assert "By type of script" in page
    assert '<td data-head="Type">p2sh</td>' in page


def test_a_pool_is_on_the_page(tmp_path: Path) -> None:
    path = tmp_path / "pools.history"
    blocks = [b.content for b in Branch(3).grow(30).blocks]
    made = History.index_blocks(path, blocks)
    made.score(draws=64, seed=1)
    pools = [n for n in made.scores().to_arrow()["node"].to_pylist() if n.startswith("pool:")]
    app = made_app(LedgerRegistry([path]))
    assert pools
    for name in pools:
        page = ask(app, f"/api/v1/ledgers/pools/coins/{name}").json()
        assert page["kind"] == "pool"
        assert page["bits"] == pytest.approx(made.origins(name).bits, abs=1e-9)
        assert page["made_by"] is None
        assert ask(app, f"/l/pools/coin/{name}").status_code == 200
        hits = ask(app, f"/api/v1/ledgers/pools/search?q={name}").json()["hits"]
        assert [hit["name"] for hit in hits] == [name]
    table = ask(app, "/api/v1/ledgers/pools/table?limit=1000").json()["rows"]
    assert {row["name"] for row in table if row["kind"] == "pool"} == set(pools)
    last = made.manifest.last_height
    inside = ask(app, f"/api/v1/ledgers/pools/blocks/{last}?limit=1000").json()["rows"]
    assert not {row["name"] for row in inside} & set(pools)


def test_the_table_sorts_filters_and_pages(app: Guard, history: History) -> None:
    scores = history.scores()
    names = np.array(scores.to_arrow()["node"].to_pylist())
    for sort, key in (("-bits", -np.round(scores.bits, 9)), ("amount", scores.coins.value),
                      ("-steps", -scores.steps)):  # fmt: skip
        order, after = np.argsort(key, kind="stable"), ""
        seen: list[str] = []
        while len(seen) < 250:
            page = data(app, f"/table?sort={sort}&limit=100{after}")
            assert page["total"] == len(scores)
            seen += [row["name"] for row in page["rows"]]
            after = f"&after={page['after']}"
        assert seen == names[order[:300]].tolist()
    low, high = np.quantile(scores.bits, [0.4, 0.6])
    page = data(app, f"/table?bits_low={low}&bits_high={high}&limit=10")
    assert page["total"] == int(((scores.bits >= low) & (scores.bits <= high)).sum())
    by_name = data(app, "/table?sort=name&limit=50")
    assert [row["name"] for row in by_name["rows"]] == sorted(names.tolist())[:50]
    csv = ask(app, "/api/v1/ledgers/chain/table.csv").text.splitlines()
    assert len(csv) == len(scores) + 1
    assert ask(app, "/api/v1/ledgers/chain/table?sort=top_share").status_code == 422


def test_a_coin_shows_its_walk_back(app: Guard, history: History) -> None:
    scores = history.scores()
    names = scores.to_arrow()["node"].to_pylist()
    for k in np.linspace(0, len(names) - 1, 5).astype(int).tolist():
        found, page = history.origins(names[k]), data(app, f"/coins/{names[k]}")
        assert page["bits"] == pytest.approx(found.bits, abs=1e-9)
        assert scores.bits_low[k] - 1e-9 <= page["bits"] <= scores.bits_high[k] + 1e-9
        assert page["sources"] == len(found.origins)
        assert page["place"]["coins"] == len(scores)
        shares = [o["share"] for o in page["origins"]]
        assert sum(shares) + page["other"]["share"] == pytest.approx(1)
        rest = data(app, f"/coins/{names[k]}/origins?limit=1000")
        assert [o["name"] for o in rest["rows"]] == [o.source for o in found.origins[:1000]]
    spent = next(o.source for o in history.origins(names[-1]).origins).removeprefix("tx:")
    page = data(app, f"/coins/{spent}:0")
    assert page["spent"]
    assert page["amount"] is None
    assert "unspent in this ledger" not in ask(app, f"/l/chain/coin/{spent}:0").text


def test_search_finds_whole_names_and_beginnings(app: Guard, history: History) -> None:
    name = history.scores().to_arrow(5, 6)["node"][0].as_py()
    txid = name.rpartition(":")[0]
    for query, kind in ((name, "coin"), (txid, "transaction"), (txid[:9], "transaction"),
                        (txid[:12], "transaction"), ("17", "block")):  # fmt: skip
        hits = data(app, f"/search?q={query}")["hits"]
        assert [hit["kind"] for hit in hits] == [kind], query
        assert hits[0]["name"] in (name, txid, "17")
    every = [history.tape.transactions(np.arange(len(history)))[0].to_pylist()][0]
    beginning = every[7][:1]
    wanted = [each for each in every if each.startswith(beginning)]
    assert history.tape.beginning(beginning, 10**6) == wanted
    assert not data(app, f"/search?q={'z' * 9}")["hits"]
    assert data(app, "/search?q=abc")["hits"] == []


def test_a_transaction_and_a_block_have_their_unspent_coins(app: Guard, history: History) -> None:
    table = history.scores().to_arrow()
    name = table["node"][-1].as_py()
    txid = name.rpartition(":")[0]
    expected = [n for n in table["node"].to_pylist() if n.startswith(txid)]
    page = data(app, f"/transactions/{txid}")
    assert [row["name"] for row in page["rows"]] == expected
    page = data(app, "/blocks/20?limit=1000")
    inside = table.filter(np.array(table["height"].to_pylist()) == 20)
    assert page["coins"] == len(inside)
    assert int(page["total"]["smallest"]) == sum(inside["balance"].to_pylist())
    assert ask(app, "/api/v1/ledgers/chain/blocks/99").status_code == 404
    assert ask(app, "/api/v1/ledgers/chain/addresses/x").status_code == 404


def test_what_it_cannot_answer_is_refused_by_name(app: Guard, history: History) -> None:
    name = history.scores().to_arrow(0, 1)["node"][0].as_py()
    for path in (f"/coins/{name}/comparators", f"/coins/{name}?policy=fifo", "?view=address"):
        reply = ask(app, f"/api/v1/ledgers/chain{path}")
        assert reply.status_code == 422, path
        assert "whole history" in reply.json()["error"]["message"]


def test_a_page_follows_the_chain_and_says_where_it_stands(tmp_path: Path) -> None:
    branch = Branch(3).grow(40)
    path = tmp_path / "grown.history"
    made = History.index_blocks(path, [b.content for b in branch.blocks[:20]])
    registry = LedgerRegistry([path])
    app = made_app(registry)
    assert registry.card("grown").state == "not scored"
    made.score(draws=128, seed=7, over_time=True)
    entry = registry._entry("grown")

    def page() -> tuple[str, str]:
        entry._seen = None  # a second has gone by
        text = ask(app, "/l/grown").text
        return text, re.search('data-standing="([^"]+)"', text)[1]  # type: ignore[index]

    text, first = page()
    assert "At block 19" in text
    assert '<meta http-equiv="refresh" content="30">' in text
    with Follower(path, draws=128, seed=7, retained=5, commit_after=5) as follower:
        for block in branch.blocks[20:24]:
            follower.add(block)
        text, second = page()
        assert "At block 23" in text
        assert "figures are of block 19" in text
        assert second != first
        cards = json.loads(ask(app, "/api/v1/ledgers").text)["ledgers"]
        assert cards[0]["digest"] == second
        follower.back_to(21)
        assert "At block 21" in page()[0]
        for block in branch.blocks[22:]:
            follower.add(block)
            follower.commit_old()
    text, third = page()
    assert third != second
    committed = History.open(path).manifest.last_height
    assert committed > 19
    assert f"figures are of block {committed}" in text
    names = History.open(path).scores().to_arrow()["node"].to_pylist()
    assert ask(app, f"/l/grown/coin/{names[-1]}").status_code == 200
