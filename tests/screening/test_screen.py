"""Screening: shares and amounts by every rule, adding up, for whatever a name stands for."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coinhaze
from coinhaze.errors import InputError, UnknownName, UsageError
from coinhaze.screening.report import screening_sections
from coinhaze.screening.screen import Screening, screen
from coinhaze.screening.statement import ListFile, Statement, screening_json
from properties import strategies

ALL = ("haircut", "poison", "fifo", "lifo", "tiho")


def theft() -> coinhaze.CoinLedger:
    """A theft of 6 meets 10 clean; bob gets 3 and, at one address, 11; he spends the 3."""
    old = [
        {"txid": "theft", "vout": 0, "value": 6, "address": "thief"},
        {"txid": "pay", "vout": 0, "value": 10, "address": "shop"},
    ]
    return coinhaze.CoinLedger.from_transactions([
        {"txid": "t", "inputs": old, "outputs": [
            {"value": 3, "address": "bob"}, {"value": 11, "address": "bob"}]},
        {"txid": "u", "inputs": [{"txid": "t", "vout": 0}],
         "outputs": [{"value": 3, "address": "carol"}]},
    ])  # fmt: skip


def check_totals(found: Screening) -> None:
    for row in found.totals():
        if row["listed"] is not None:
            parts = ("screened", "other_sinks", "fees", "unspendable", "relisted")
            assert row["listed"] == sum(row[part] for part in parts), row
            assert min(row[part] for part in parts) >= 0


def test_every_rule_side_by_side() -> None:
    found = screen(theft(), ["thief", "nobody"])
    assert found.policies == ALL
    assert found.found == ("thief",)
    assert found.missing == ("nobody",)
    rows = {row["node"]: row for row in found.to_arrow().to_pylist()}
    assert rows["t:1"]["haircut_share"] == pytest.approx(0.375)
    assert rows["t:1"]["haircut_share_low"] <= 0.375 <= rows["t:1"]["haircut_share_high"]
    assert rows["t:1"]["haircut_amount"] == pytest.approx(11 * 0.375)
    assert [rows["t:1"][f"{p}_amount"] for p in ALL[1:]] == ["11", "3", "4", "6"]
    assert [rows["u:0"][f"{p}_amount"] for p in ALL[1:]] == ["3", "3", "0", "0"]
    assert rows["t:1"]["tiho_share"] == 6 / 11
    check_totals(found)
    assert found.order().tolist() == [list(rows).index("t:1"), list(rows).index("u:0")]
    assert [(r.node, r.names) for r in found.routes] == [
        ("t:1", ("theft:0", "tx:t", "t:1")),
        ("u:0", ("theft:0", "tx:t", "t:0", "tx:u", "u:0")),
    ]
    assert [r.share for r in found.routes] == pytest.approx([0.375, 0.375])
    assert [r.source for r in found.routes] == ["thief", "thief"]


def test_an_address_stands_for_its_unspent_coins() -> None:
    found = screen(theft(), ["thief"], nodes=["bob"])
    assert found.to_arrow()["node"].to_pylist() == ["t:1"]
    check_totals(found)
    assert {row["policy"]: row["other_sinks"] for row in found.totals()} == {
        "haircut": None, "poison": None, "fifo": 3, "lifo": 0, "tiho": 0,
    }  # fmt: skip


def test_a_spent_coin_is_reported_by_what_it_held() -> None:
    row = screen(theft(), ["thief"], nodes=["t:0"]).to_arrow().to_pylist()[0]
    assert row["balance"] == "0"
    assert row["haircut_share"] == pytest.approx(0.375)
    assert (row["poison_share"], row["fifo_share"], row["lifo_share"]) == (1.0, 1.0, 0.0)
    assert row["tiho_share"] is None
    assert row["fifo_amount"] == "0"


def test_accounts_have_no_tiho_and_say_why_once() -> None:
    ledger = coinhaze.AccountLedger.from_transfers([("a", "b", 2), ("b", "c", 1)])
    found = screen(ledger, ["a"])
    assert found.policies == ALL[:-1]
    assert found.requested == ALL
    assert list(found.undefined) == ["tiho"]
    assert "accounts have no outputs" in found.undefined["tiho"]
    assert found.to_arrow()["tiho_share"].null_count == 2
    with pytest.raises(UsageError, match="accounts have no outputs"):
        screen(ledger, ["a"], policies=["tiho"])


def test_without_the_order_of_payments_two_rules_are_left() -> None:
    ledger = coinhaze.AccountLedger.from_transfers([("a", "b", 2), ("b", "c", 1)])
    found = screen(ledger, ["a"], time="stationary")
    assert found.policies == ("haircut", "poison")
    assert sorted(found.undefined) == ["fifo", "lifo", "tiho"]
    addresses = screen(theft(), ["thief"], view="address")
    assert addresses.policies == ("haircut", "poison")


def test_requested_nodes_are_reported_whatever_they_hold() -> None:
    ledger = coinhaze.AccountLedger.from_transfers([("a", "b", 2), ("x", "c", 1)])
    found = screen(ledger, ["a"], nodes=["c", "b"])
    assert [found.to_arrow()["node"][k].as_py() for k in found.order().tolist()] == ["b", "c"]
    assert found.reached().tolist() == [False, True]
    assert {route.node for route in found.routes} == {"b"}


def test_a_past_that_never_ends_has_no_share() -> None:
    rows = [("a", "b", 1), ("x", "y", 1), ("y", "x", 1)]
    ledger = coinhaze.AccountLedger.from_transfers(rows)
    found = screen(ledger, ["a"], nodes=["x", "b"], time="stationary")
    told = {row["node"]: row for row in found.to_arrow().to_pylist()}
    assert told["x"]["haircut_share"] is None
    assert told["x"]["poison_share"] == 0
    assert found.order().tolist() == [1, 0]
    assert 0 <= found.half_width() < 1e-12


def test_paths_through_the_same_accounts_at_other_times_are_one() -> None:
    rows = [("a", "b", 1), ("b", "c", 1), ("a", "b", 1), ("x", "b", 1), ("b", "c", 2)]
    found = screen(coinhaze.AccountLedger.from_transfers(rows), ["a"], nodes=["c"])
    assert [r.names for r in found.routes] == [("a", "b", "c")]
    assert found.routes[0].share == pytest.approx(2 / 3)
    assert found.routes[0].listed == pytest.approx(2 / 3)


def test_a_listed_account_is_marked_and_has_no_path() -> None:
    ledger = coinhaze.AccountLedger.from_transfers([("x", "a", 4), ("a", "b", 1)])
    found = screen(ledger, ["a"])
    rows = {row["node"]: row for row in found.to_arrow().to_pylist()}
    assert rows["a"]["listed"]
    assert rows["a"]["haircut_share"] == 1
    assert {route.node for route in found.routes} == {"b"}


def test_names_of_ethereum_are_found_in_any_case() -> None:
    name = "0x" + "ab" * 20
    ledger = coinhaze.AccountLedger.from_transfers([(name, "b", 1)])
    found = screen(ledger, ["0x" + "AB" * 20])
    assert found.found == (name,)


@given(strategies.transfers(dropped=False), st.data())
@settings(max_examples=40, deadline=None)
def test_no_unit_is_lost_whatever_is_screened(
    rows: list[tuple[str, str, int]], data: st.DataObject
) -> None:
    ledger = coinhaze.AccountLedger.from_transfers(rows)
    graph = coinhaze.transaction_graph(ledger, time="temporal")
    accounts = [a for a in ledger.accounts.to_pylist() if len(graph.names.nodes(a))]
    if not accounts:
        return
    listed = data.draw(st.lists(st.sampled_from(accounts), min_size=1, max_size=3, unique=True))
    requested = data.draw(st.lists(st.sampled_from(accounts), min_size=1, max_size=3, unique=True))
    for nodes in (None, requested):
        found = screen(graph, listed, nodes=nodes)
        check_totals(found)
        for policy in found.policies:
            share = found.shares[policy]
            known = share[~np.isnan(share)]
            assert np.all((known >= 0) & (known <= 1))
        # Poison is the most that any rule can call listed.
        for policy in ("fifo", "lifo"):
            pairs = zip(found.shares[policy], found.shares["poison"], strict=True)
            assert all(math.isnan(a) or a <= b for a, b in pairs)


@pytest.mark.parametrize(
    ("listed", "settings", "error", "words"),
    [
        pytest.param([], {}, InputError, "names nothing", id="empty list"),
        pytest.param("thief", {}, UsageError, "not one", id="one name as text"),
        pytest.param(
            ["0x" + "ab" * 20], {}, InputError, "none of the 1 listed names can be", id="network"
        ),
        pytest.param(["thief"], {"nodes": ["zoe"]}, UnknownName, "no node 'zoe'", id="no node"),
        pytest.param(["thief"], {"policies": ["fefo"]}, UsageError, "some of haircut", id="policy"),
        pytest.param(["thief"], {"policies": []}, UsageError, "some of haircut", id="no policy"),
    ],
)
def test_what_cannot_be_answered_is_refused(
    listed: list[str], settings: dict[str, object], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        screen(bitcoin() if words.endswith("can be") else theft(), listed, **settings)  # type: ignore[arg-type]


def test_hidden_amounts_are_refused() -> None:
    ledger = coinhaze.CoinLedger.from_transactions(
        [{"txid": "a", "rings": [["w:0", "x:0"]], "outputs": 1}]
    )
    with pytest.raises(UsageError, match="hides amounts"):
        screen(ledger, ["w:0"])


def bitcoin() -> coinhaze.CoinLedger:
    """One coin at an address that only Bitcoin has."""
    address = "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4"
    return coinhaze.CoinLedger.from_transactions(
        [{"txid": "a", "outputs": [{"value": 5, "address": address}]}]
    )


@pytest.mark.parametrize("nodes", [None, ["bob"]], ids=["all", "one"])
def test_a_list_that_matches_nothing_is_a_result(nodes: list[str] | None) -> None:
    found = screen(theft(), ["zoe", "yan"], nodes=nodes)
    assert not found.is_match
    assert found.policies == ALL
    assert (found.found, found.missing) == ((), ("zoe", "yan"))
    rows = found.to_arrow().to_pylist()
    # The nodes are those of a screening that does match.
    other = screen(theft(), ["thief"], nodes=nodes).to_arrow().to_pylist()
    assert [row["node"] for row in rows] == [row["node"] for row in other]
    assert [row["balance"] for row in rows] == [row["balance"] for row in other]
    for policy in ALL:
        assert {row[f"{policy}_share"] for row in rows} == {0.0}
        assert {float(row[f"{policy}_amount"]) for row in rows} == {0.0}
    check_totals(found)
    assert len(found.above(0.0)) == 0
    about = Statement("2026-01-01", case="17")
    lines = screening_sections(found, ListFile("l.txt", "ab"), {}, about)[0].lines
    assert lines[0].startswith("No match: none of the 2 listed names is in this ledger")
    one = screen(theft(), ["zoe"], nodes=nodes)
    lines = screening_sections(one, ListFile("l.txt", "ab"), {}, about)[0].lines
    assert lines[0].startswith("No match: the listed name is not in this ledger")
    document = json.loads(screening_json(found, ListFile("l.txt", "ab"), {}, about))
    assert document["match"] is False
    assert document["provenance"]["date"] == "2026-01-01"
    assert document["provenance"]["list"]["sha256"] == "ab"
    assert document["provenance"]["completeness"] is not None
    assert document["above_limit"] is None


def test_above_a_limit_by_the_upper_end_of_the_interval() -> None:
    found = screen(theft(), ["thief"])
    names = found.graph.names.of(found.taint.nodes).to_pylist()
    assert [names[k] for k in found.above(0.37).tolist()] == ["t:1", "u:0"]
    assert len(found.above(0.376)) == 0
    # Without haircut the largest share of the rules requested decides: 6 of 11 by tiho.
    tiho = screen(theft(), ["thief"], policies=["tiho", "lifo"])
    assert [names[k] for k in tiho.above(0.5).tolist()] == ["t:1"]
    assert len(tiho.above(0.55)) == 0


def test_dust_and_burned_money_are_apart() -> None:
    zero, dead = "0x" + "0" * 40, "0x" + "0" * 36 + "dEaD"
    rows = [("a", "b", 100), ("x", "b", 900), ("b", "c", 20), ("a", "d", 50), ("a", zero, 7)]
    ledger = coinhaze.AccountLedger.from_transfers([*rows, ("a", dead, 3)])
    found = screen(ledger, ["a"], dust=5)
    names = found.graph.names.of(found.taint.nodes).to_pylist()
    # c holds 2 of listed money by haircut, but 20 by fifo: no dust, for a rule finds more.
    assert [names[k] for k in np.flatnonzero(found.is_dust() & ~found.burned)] == []
    assert sorted(names[k] for k in np.flatnonzero(found.burned)) == [dead, "burn:4"]
    assert [names[k] for k in found.above(0.0).tolist()] == ["b", "c", "d"]
    mixed = screen(ledger, ["a"], policies=["haircut", "poison"], dust=5)
    at = mixed.graph.names.of(mixed.taint.nodes).to_pylist()
    assert "c" in [at[k] for k in np.flatnonzero(mixed.is_dust())]
    assert [at[k] for k in mixed.above(0.0).tolist()] == ["b", "d"]
    lines = screening_sections(mixed, ListFile("l", ""), {}, Statement("now"))[2].lines
    assert any("2 nodes, burned, so nobody holds it" in line for line in lines)
    assert any("1 node, dust, below 5 each" in line for line in lines)


def test_a_match_by_mixing_alone_is_named_with_the_rules_that_find_it() -> None:
    rows = [("x", "b", 5), ("a", "b", 5), ("b", "c", 5), ("b", "d", 5)]
    found = screen(coinhaze.AccountLedger.from_transfers(rows), ["a"], policies=["poison", "fifo"])
    names = found.graph.names.of(found.taint.nodes[found.only_mixed()]).to_pylist()
    lines = screening_sections(found, ListFile("l", ""), {}, Statement("now"))[0].lines
    words = (
        "only poison finds listed money there; the rules that follow single units (fifo) find none."
    )
    assert [line for line in lines if words in line] == [
        f"{names[0]}: {words} Such a match may be a false positive."
    ]
    assert screen(coinhaze.AccountLedger.from_transfers(rows), ["a"]).only_mixed().tolist() == []


def test_a_deposit_is_found_by_its_transaction() -> None:
    coins = screen(theft(), ["thief"], nodes=["t"])
    assert coins.to_arrow()["node"].to_pylist() == ["t:0", "t:1"]
    assert coins.shares["haircut"].tolist() == pytest.approx([0.375, 0.375])
    by_address = screen(theft(), ["thief"], nodes=["t"], view="address")
    assert by_address.shares["haircut"].tolist() == pytest.approx([0.375])
    hashed = "0x" + "a1" * 32
    ids = ["p:0", "q:0", f"{hashed}:3", "r:0"]
    ledger = coinhaze.AccountLedger.from_columns(
        ["thief", "bob", "shop", "thief"], ["shop", "shop", "carol", "shop"], [1, 3, 2, 90], ids=ids
    )
    # As shop's money was when it paid, before the last theft.
    found = screen(ledger, ["thief"], nodes=["0x" + "A1" * 32])
    assert found.shares["haircut"].tolist() == pytest.approx([0.25])
    assert found.shares["poison"].tolist() == [1.0]
    lines = screening_sections(found, ListFile("l", ""), {}, Statement("now"))[2].lines
    assert any("the balance its transfer was paid from, as it was then" in line for line in lines)
    with pytest.raises(UnknownName):
        screen(ledger, ["thief"], nodes=["0x" + "a2" * 32])


def test_entities_and_programmes_are_those_of_the_list() -> None:
    found = screen(theft(), ["thief"])
    listing = ListFile("l.csv", "", {"thief": "A Group"}, {"thief": "CYBER2"})
    parts = {p.title: p for p in screening_sections(found, listing, {}, Statement("now"))}
    assert parts["Listed names in the ledger"].rows == (("thief", "A Group", "CYBER2"),)
    assert parts["Which way it came"].rows[0][1].startswith("A Group (CYBER2): theft:0")
    assert [p.title for p in parts.values() if not p.annex] == [
        "In short", "Statement", "What was found",
    ]  # fmt: skip
