"""Money followed forward: against fractions, and its laws."""

from fractions import Fraction
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coinhaze
from coinhaze import AccountLedger, CoinLedger, TransactionGraph
from coinhaze.graph.reverse import reversed_graph
from coinhaze.observer.owners import ladder

NAMES = "abcdef"
TRANSFERS = st.lists(
    st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES), st.integers(1, 9)), min_size=1
)


def forward_twin(graph: TransactionGraph, start: str) -> dict[str, Fraction] | None:
    """Follow money hop by hop in fractions, solving the loops by elimination."""
    table = graph.tables()
    nodes = table["nodes"]["node"].to_pylist()
    place = {name: k for k, name in enumerate(nodes)}
    n = len(nodes)
    out: list[dict[int, int]] = [{} for _ in nodes]
    held = [int(v) for v in table["nodes"]["opening"].to_pylist()]
    for row in table["edges"].to_pylist():
        tail, head = place[row["from"]], place[row["to"]]
        out[tail][head] = out[tail].get(head, 0) + int(row["amount"])
        held[head] += int(row["amount"])
    # x = e_start + x Q: the money that ever came to each node; what stays is x times its rest.
    system = [[Fraction(int(i == j)) for j in range(n)] for i in range(n)]
    for tail in range(n):
        for head, amount in out[tail].items():
            system[head][tail] -= Fraction(amount, held[tail])
    right = [Fraction(int(nodes[k] == start)) for k in range(n)]
    for k in range(n):
        pivot = next((i for i in range(k, n) if system[i][k]), None)
        if pivot is None:
            return None
        system[k], system[pivot] = system[pivot], system[k]
        right[k], right[pivot] = right[pivot], right[k]
        for i in range(n):
            if i != k and system[i][k]:
                ratio = system[i][k] / system[k][k]
                system[i] = [a - ratio * b for a, b in zip(system[i], system[k], strict=True)]
                right[i] -= ratio * right[k]
    passed = [right[k] / system[k][k] for k in range(n)]
    rest = {
        nodes[k]: passed[k] * (1 - Fraction(sum(out[k].values()), held[k]))
        for k in range(n)
        if held[k]
    }
    return {name: share for name, share in rest.items() if share}


def chain_of_coins(value: int, fees: list[int]) -> CoinLedger:
    """Spend a coin through several payments, each of which splits what it spends and pays a fee."""
    made = [{"txid": "t0", "inputs": [], "outputs": [{"value": value, "address": "m"}]}]
    for k, fee in enumerate(fees, 1):
        aside = (value - fee) // 3
        value -= fee + aside
        made.append(payment(f"t{k}", [(f"t{k - 1}", 0)], [(value, f"p{k}"), (aside, f"q{k % 2}")]))
    return CoinLedger.from_transactions(made)


@settings(max_examples=60, deadline=None)
@given(TRANSFERS, st.sampled_from(NAMES), st.sampled_from(["stationary", "temporal"]))
def test_money_forward_is_that_of_fractions(
    transfers: list[tuple[str, str, int]], name: str, time: Literal["stationary", "temporal"]
) -> None:
    if not any(a != b for a, b, _ in transfers):
        return
    transfers = [(a, b, 10**6 * amount) for a, b, amount in transfers]
    graph = coinhaze.transaction_graph(AccountLedger.from_transfers(transfers), time=time)
    if not len(graph.names.nodes(name)):
        return
    try:
        found = coinhaze.destinations(graph, name)
    except coinhaze.InputError:
        return  # money that goes round for ever
    twin = forward_twin(graph, found.name)
    if twin is None:
        return
    table = found.to_arrow()
    shares = dict(zip(table["destination"].to_pylist(), found.share.tolist(), strict=True))
    assert shares.keys() == twin.keys()
    assert all(abs(shares[k] - float(v)) < 1e-12 for k, v in twin.items())
    assert abs(found.share.sum() - 1) < 1e-12
    # However often money came back: nowhere is more of it than there is.
    nodes = graph.tables()["nodes"].to_pylist()
    stays = {row["node"]: int(row["balance"]) for row in nodes}
    for row in table.to_pylist():
        assert row["amount"] <= stays[row["destination"]] + 1e-4
    if found.name in shares:  # all that a node still has was once its own
        assert shares[found.name] * found.received / found.visits == pytest.approx(
            stays[found.name]
        )


@settings(max_examples=30, deadline=None)
@given(st.integers(10**4, 10**9), st.lists(st.integers(0, 9), max_size=6))
def test_coins_forward_are_those_of_fractions_with_fees_together(
    value: int, fees_paid: list[int]
) -> None:
    ledger = chain_of_coins(value, fees_paid)
    found = coinhaze.destinations(ledger, "t0:0")
    twin = forward_twin(coinhaze.transaction_graph(ledger), "t0:0")
    assert twin is not None
    fees = sum((v for k, v in twin.items() if k.startswith("tx:")), Fraction(0))
    coins = {k: v for k, v in twin.items() if not k.startswith("tx:")}
    table = found.to_arrow().to_pylist()
    assert {r["destination"] for r in table if r["kind"] == "unspent"} == coins.keys()
    for row in table:
        exact = fees if row["kind"] == "fee" else coins[row["destination"]]
        assert abs(row["share"] - float(exact)) < 1e-12
    assert found.held == value


def test_forward_and_backward_agree_on_every_pair() -> None:
    """What reached a sink from a source is the same money in both directions: x^T B = b."""
    transfers = [("a", "b", 5), ("c", "b", 3), ("b", "d", 4), ("d", "a", 1), ("b", "e", 2)]
    graph = coinhaze.transaction_graph(AccountLedger.from_transfers(transfers))
    assert graph.amounts is not None
    assert graph.opening is not None
    assert graph.closing is not None
    names = graph.names.of(np.arange(len(graph))).to_pylist()
    for k in np.flatnonzero(graph.sources).tolist():
        went = coinhaze.destinations(graph, names[k]).to_arrow().to_pylist()
        forward = {row["destination"]: row["share"] for row in went}
        # An opening may be only a part of what a node had: its own share of every visit counts.
        if graph.amounts.take(np.flatnonzero(graph.head == k)).positive().any():
            continue
        for s in np.flatnonzero(graph.sinks).tolist():
            back = coinhaze.origins(graph, names[s]).sources().to_pylist()
            share = {r["source"]: r["probability"] for r in back}.get(names[k], 0.0)
            assert share * graph.closing[s] == pytest.approx(
                forward.get(names[s], 0.0) * graph.opening[k], abs=1e-12
            )


def payment(
    txid: str, spends: list[tuple[str, int]], outputs: list[tuple[int, str]]
) -> dict[str, Any]:
    return {
        "txid": txid,
        "inputs": [{"txid": t, "vout": v} for t, v in spends],
        "outputs": [{"value": v, "address": a} for v, a in outputs],
    }


MINED = {
    "txid": "m",
    "inputs": [],
    "outputs": [{"value": 10, "address": "m"}, {"value": 10, "address": "n"}],
}


def test_ordered_policies_move_whole_units_forward() -> None:
    ledger = CoinLedger.from_transactions(
        [MINED, payment("t", [("m", 0), ("m", 1)], [(12, "x"), (7, "y")])]
    )
    fifo = coinhaze.destinations(ledger, "m:0", policy="fifo").to_arrow().to_pylist()
    assert [(r["destination"], r["share"]) for r in fifo] == [("t:0", 1.0)]
    second = coinhaze.destinations(ledger, "m:1", policy="fifo").to_arrow().to_pylist()
    assert [(r["destination"], r["amount"]) for r in second] == [
        ("t:1", 7),
        ("t:0", 2),
        ("fees", 1),
    ]
    half = coinhaze.destinations(ledger, "m:0").to_arrow().to_pylist()
    assert [(r["destination"], r["kind"], r["amount"]) for r in half] == [
        ("t:0", "unspent", 6.0),
        ("t:1", "unspent", 3.5),
        ("fees", "fee", 0.5),
    ]


def test_holders_are_addresses_or_persons() -> None:
    ledger = CoinLedger.from_transactions(
        [
            MINED,
            payment("t", [("m", 0)], [(4, "x"), (4, "y"), (2, "z")]),
            payment("u", [("t", 0), ("t", 1)], [(5, "x"), (3, "y")]),
        ]
    )
    found = coinhaze.destinations(ledger, "m:0")
    by_address = {r["holder"]: r["share"] for r in found.holders().to_pylist()}
    assert by_address == pytest.approx({"x": 0.5, "y": 0.3, "z": 0.2})
    persons = ladder(ledger)[0].persons
    by_person = {r["holder"]: r["share"] for r in found.holders(persons).to_pylist()}
    assert by_person == pytest.approx({"x": 0.8, "z": 0.2})
    assert found.way(0)[0] == "m:0"
    assert found.way(0)[-1] == found.to_arrow()["destination"][0].as_py()


def test_a_transaction_s_id_stands_for_its_money_and_lists_end_it() -> None:
    ledger = CoinLedger.from_transactions(
        [
            MINED,
            payment("t", [("m", 0)], [(6, "x"), (4, "y")]),
            payment("u", [("t", 0)], [(6, "z")]),
        ]
    )
    assert coinhaze.destinations(ledger, "t").total("unspent") == 1
    listed = coinhaze.destinations(ledger, "m:0", listed=["x"]).to_arrow().to_pylist()
    assert [(r["destination"], r["kind"], r["share"]) for r in listed] == [
        ("x", "listed", 0.6),
        ("elsewhere", "elsewhere", 0.4),
    ]


def test_what_has_no_meaning_forward_is_refused() -> None:
    ledger = AccountLedger.from_transfers([("a", "b", 1)])
    with pytest.raises(coinhaze.UsageError, match="links tell where money came from"):
        coinhaze.destinations(ledger, "a", links={"0": {"a": 1.0}})
    with pytest.raises(coinhaze.UsageError, match="poison marks all"):
        coinhaze.destinations(ledger, "a", policy="poison", listed=["a"])
    with pytest.raises(coinhaze.UsageError, match="leave the list out"):
        coinhaze.destinations(ledger, "a", policy="fifo", listed=["b"])
    hidden = CoinLedger.from_transactions([{"txid": "r", "outputs": 1}])
    with pytest.raises(coinhaze.UsageError, match="hides"):
        coinhaze.destinations(hidden, "r:0")


def test_what_is_said_of_snapshots_and_loops_is_so() -> None:
    ledger = AccountLedger.from_transfers([("a", "b", 5), ("b", "a", 3), ("a", "c", 2)])
    found = coinhaze.destinations(ledger, "a", time="temporal")
    assert found.name == "a:0"
    assert "name a later one, a:1, or" in found.notes[0]
    assert coinhaze.destinations(ledger, "a:1", time="temporal").held == 3
    with pytest.raises(coinhaze.UnknownName, match="'a' has snapshots from a:0 to a:1"):
        coinhaze.destinations(ledger, "a:2", time="temporal")
    with pytest.raises(coinhaze.UnknownName, match="snapshots need time=temporal"):
        coinhaze.destinations(ledger, "a:1")
    loop = AccountLedger.from_transfers([("a", "b", 5), ("b", "a", 5), ("c", "d", 0)])
    with pytest.raises(coinhaze.InputError, match="a has no answer: its money goes round"):
        coinhaze.destinations(loop, "a")
    with pytest.raises(coinhaze.UnknownName, match="'c' in the graph: the ledger has it with"):
        coinhaze.destinations(loop, "c")


def test_a_graph_turned_round_twice_is_itself() -> None:
    ledger = AccountLedger.from_transfers([("a", "b", 5), ("b", "c", 3), ("c", "a", 1)])
    graph = coinhaze.transaction_graph(ledger)
    again = reversed_graph(reversed_graph(graph))
    assert again.to_arrow() == graph.to_arrow()
    assert again.opening is not None
    assert graph.opening is not None
    assert again.opening.ints() == graph.opening.ints()


def with_fees(transfers: list[tuple[str, str, int]], fees: list[int]) -> AccountLedger:
    senders, receivers, amounts = zip(*transfers, strict=True)
    return AccountLedger.from_columns(senders, receivers, amounts, fees=fees)


@pytest.mark.parametrize("time", ["stationary", "temporal"])
def test_fees_that_accounts_paid_are_no_balance(time: Literal["stationary", "temporal"]) -> None:
    """Bob is left with 40 and closes with 30, since his payments cost 10."""
    ledger = with_fees([("a", "b", 100), ("b", "c", 60)], [0, 10])
    found = coinhaze.destinations(ledger, "a", time=time)
    rows = {row["destination"]: row for row in found.to_arrow().to_pylist()}
    assert {name: row["amount"] for name, row in rows.items()} == pytest.approx(
        {"b": 30, "c": 60, "fees": 10}
    )
    assert rows["fees"]["kind"] == "fee"
    balances = coinhaze.score(ledger, time=time, nodes="all").to_arrow().to_pylist()
    for row in balances:
        if row["node"] in rows:
            assert rows[row["node"]]["amount"] == pytest.approx(int(row["balance"]))
    fifo = coinhaze.destinations(ledger, "a", time="temporal", policy="fifo")
    assert fifo.total("fee") == found.total("fee")


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(TRANSFERS.map(lambda rows: rows[0]), st.integers(0, 4)), min_size=1))
def test_amounts_forward_never_exceed_what_accounts_close_with(
    rows: list[tuple[tuple[str, str, int], int]],
) -> None:
    transfers, fees = [row for row, _ in rows], [fee for _, fee in rows]
    graph = coinhaze.transaction_graph(with_fees(transfers, fees))
    closing = {r["node"]: int(r["balance"]) for r in graph.tables()["nodes"].to_pylist()}
    for name in closing:
        try:
            found = coinhaze.destinations(graph, name)
        except coinhaze.InputError:
            continue
        assert abs(found.share.sum() - 1) < 1e-12
        for row in found.to_arrow().to_pylist():
            if row["kind"] != "fee":
                assert row["amount"] <= closing[row["destination"]] + 1e-9


def test_ordered_policies_give_whole_units_of_any_size() -> None:
    """Shares times the sum would be off by a unit in 2^53, and print 27.999999 for 28."""
    huge = 2**200 + 12345
    ledger = AccountLedger.from_transfers([("a", "b", huge), ("b", "c", 7), ("b", "d", 10**60 + 1)])
    found = coinhaze.destinations(ledger, "a", time="temporal", policy="fifo")
    rows = {row["destination"]: row["amount"] for row in found.as_dict()["destinations"]}  # type: ignore[attr-defined]
    assert rows == {"b": huge - 10**60 - 8, "c": 7, "d": 10**60 + 1}
    spent = [payment("t", [("m", 0), ("m", 1)], [(13, "x"), (6, "y")])]
    coins = coinhaze.destinations(
        CoinLedger.from_transactions([MINED, *spent]), "m:1", policy="fifo"
    )
    assert coins.to_arrow()["amount"].to_pylist() == [6.0, 3.0, 1.0]
    for units in range(1, 60):
        mined = {"txid": "m", "outputs": [{"value": 59, "address": "m"}]}
        cut = CoinLedger.from_transactions(
            [mined, payment("t", [("m", 0)], [(units, "x"), (59 - units, "y")])]
        )
        parts = coinhaze.destinations(cut, "m:0", policy="lifo").to_arrow()["amount"].to_pylist()
        assert sorted(p for p in (units, 59 - units) if p) == sorted(parts)
