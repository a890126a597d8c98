"""Where money went on the page: the same shares as `destinations`, in a flow that conserves."""

from __future__ import annotations

import pytest

import coinhaze
from coinhaze.errors import InputError, UsageError
from coinhaze.explore.explorer import Explorer
from coinhaze.explore.query import CoinQuery, SharedQuery
from coinhaze.web.pages.coin import flow_table
from web.explorers import assert_conserves, explorer_of, town

LOOP = [("alice", "mix", 100), ("bob", "mix", 100), ("mix", "carol", 150), ("carol", "mix", 30)]
LOOP += [("mix", "dave", 30), ("carol", "erin", 50)]


def names_of_town(ledger: coinhaze.CoinLedger) -> list[str]:
    inside = [str(t) for t, own in zip(ledger.txids.to_pylist(), ledger.inside, strict=True) if own]
    return [name for tx in inside[5::60] for name in (tx, f"{tx}:0")]


@pytest.mark.parametrize("policy", ["haircut", "uniform", "fifo", "lifo"])
def test_shares_are_those_of_destinations(policy: str) -> None:
    ledger = town()
    explorer = explorer_of(ledger)
    for name in names_of_town(ledger):
        found = explorer.destinations(name, CoinQuery(policy=policy, top=100))
        exact = coinhaze.destinations(ledger, name, policy=policy)
        count = min(len(exact), 100)
        assert [to.share for to in found.destinations] == pytest.approx(
            exact.share[:count].tolist(), abs=1e-9
        )
        assert int(found.held.smallest) == exact.held
        for kind, share in found.totals.items():
            assert share == pytest.approx(exact.total(kind), abs=1e-9)
        total = sum(to.share for to in found.destinations) + found.other.share
        assert total == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("opened", [(), ("d", "h2x", "ox")])
def test_the_flow_conserves_and_leads_on(opened: tuple[str, ...]) -> None:
    ledger = town()
    explorer = explorer_of(ledger)
    for name in names_of_town(ledger):
        flow = explorer.destinations(name, CoinQuery(open=opened)).flow
        assert flow.direction == "forward"
        column = {node.id: node.column for node in flow.nodes}
        assert all(column[band.before] < column[band.after] for band in flow.bands)
        assert_conserves(flow.turned())
        assert flow.turned().turned() == flow


def test_an_account_in_a_loop_by_hand() -> None:
    found = Explorer(coinhaze.AccountLedger.from_transfers(LOOP)).destinations("alice")
    exact = coinhaze.destinations(coinhaze.AccountLedger.from_transfers(LOOP), "alice")
    assert {to.name: to.share for to in found.destinations} == pytest.approx(
        dict(zip(exact.names.to_pylist(), exact.share.tolist(), strict=True)), abs=1e-9
    )
    assert found.sentence.startswith("Of 100 that it had, 100 % is in ")


def test_money_that_came_back_is_counted_once() -> None:
    transfers = [("x", "a", 30), ("a", "b", 100), ("b", "a", 90), ("a", "c", 60)]
    ledger = coinhaze.AccountLedger.from_transfers(transfers)
    rows = coinhaze.destinations(ledger, "a").to_arrow().to_pylist()
    # 160 came in, 90 of it back from b; 60 is with c, 10 with b.
    assert [(row["destination"], round(row["amount"], 9)) for row in rows] == [("c", 60), ("b", 10)]
    found = Explorer(ledger).destinations("a")
    assert found.held.smallest == "70"
    assert found.sentence.startswith("Of 70 that it had, ")


def test_what_passed_a_list_is_the_thread() -> None:
    ledger = coinhaze.AccountLedger.from_transfers(
        [("a", "shop", 6), ("a", "b", 4), ("shop", "c", 6), ("b", "c", 4)]
    )
    explorer = explorer_of(ledger, lists={"known": ["shop"], "none": ["zoe"]})
    found = explorer.destinations("a", CoinQuery(list="known"))
    assert found.reached == pytest.approx(0.6)
    assert found.flow.nodes[0].listed == pytest.approx(0.6)
    threads = {(b.before, b.after): b.listed for b in found.flow.bands}
    assert sum(part for (before, _), part in threads.items() if before == "c") == pytest.approx(0.6)
    assert explorer.destinations("a").reached is None
    nobody = explorer.destinations("a", CoinQuery(list="none"))
    assert (nobody.reached, nobody.reached_high) == (0.0, 0.0)


def test_fees_are_one_place_and_boxes_of_the_table_are_bands() -> None:
    ledger = coinhaze.CoinLedger.from_transactions(
        [
            {"txid": "t", "inputs": [{"txid": "x", "vout": 0, "value": 100}],
             "outputs": [{"value": 60}, {"value": 30}]},
            {"txid": "u", "inputs": [{"txid": "t", "vout": 0}], "outputs": [{"value": 50}]},
        ]
    )  # fmt: skip
    found = Explorer(ledger).destinations("x:0")
    assert {to.name: to.share for to in found.destinations} == pytest.approx(
        {"u:0": 0.5, "t:1": 0.3, "fees": 0.2}
    )
    assert found.totals == pytest.approx({"unspent": 0.8, "fee": 0.2})
    table = flow_table(found.flow)
    assert table.count("<tr>") == 1 + len(found.flow.bands)
    assert "oldest first" in table


def test_what_has_no_meaning_forward_is_refused() -> None:
    explorer = explorer_of(town(100, 10), lists={"known": ["person1"]})
    with pytest.raises(UsageError, match="marks all that money touched"):
        explorer.destinations("t50", CoinQuery(policy="poison", list="known"))


def test_an_account_in_order_of_time_is_followed_from_its_oldest_snapshot() -> None:
    ledger = coinhaze.AccountLedger.from_transfers([("a", "b", 5), ("b", "a", 3), ("a", "c", 2)])
    found = Explorer(ledger).destinations("a", CoinQuery(time="temporal"))
    exact = coinhaze.destinations(ledger, "a", time="temporal")
    assert found.notes == exact.notes
    assert "name a later one, a:1, or" in found.notes[0]
    assert Explorer(ledger).destinations("a:1", CoinQuery(time="temporal")).held.smallest == "3"


@pytest.mark.parametrize("policy", ["haircut", "fifo"])
def test_fees_that_accounts_paid_are_a_place_of_the_flow(policy: str) -> None:
    ledger = coinhaze.AccountLedger.from_columns(
        ["a", "b", "c"], ["b", "c", "d"], [100, 60, 50], fees=[0, 10, 10]
    )
    found = Explorer(ledger).destinations("a", CoinQuery(policy=policy, time="temporal"))
    exact = coinhaze.destinations(ledger, "a", policy=policy, time="temporal")
    assert {to.name: int(to.amount.smallest) for to in found.destinations if to.amount} == {
        "d": 50, "b": 30, "fees": 20
    }  # fmt: skip
    assert dict(zip(exact.names.to_pylist(), exact.whole_amounts, strict=True)) == {
        "d": 50, "b": 30, "fees": 20
    }  # fmt: skip
    assert_conserves(found.flow.turned())
    assert found.totals == pytest.approx({"balance": 0.8, "fee": 0.2})


@pytest.mark.parametrize("more", [[], [("x", "y", 1)]])
def test_money_that_never_rests_has_no_answer(more: list[tuple[str, str, int]]) -> None:
    """It was said to have been 0, all of it not followed, and comparing it failed."""
    ledger = coinhaze.AccountLedger.from_transfers([("a", "b", 10), ("b", "a", 10), *more])
    explorer = Explorer(ledger)
    with pytest.raises(InputError, match="a has no answer: its money goes round for ever"):
        explorer.destinations("a")
    for first, second in (("a", "b"), ("a", "y"), ("y", "a"))[: 1 + 2 * len(more)]:
        with pytest.raises(InputError, match="has no answer: its past never ends"):
            explorer.shared(first, SharedQuery(other=second))
        with pytest.raises(InputError, match="has no answer: its past never ends"):
            coinhaze.shared(ledger, [first, second])
