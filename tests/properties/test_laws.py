"""The laws of the model, on random ledgers."""

import ast
import math
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import coinhaze
import twin
from properties import strategies as random
from properties.comparison import TIGHT, profile

Floats = npt.NDArray[np.float64]
Transfers = list[random.Transfer]
Transactions = list[random.Transaction]

few = profile(15)
some = profile(20)
ORDERS = (0.5, 1.0, 2.0, math.inf)


def account_chain(
    transfers: Transfers, chain: Mapping[str, Any] | None = None, **settings: Any
) -> coinhaze.AbsorbingChain:
    ledger = coinhaze.AccountLedger.from_transfers(transfers)
    graph = coinhaze.transaction_graph(ledger, **settings)
    return coinhaze.absorbing_chain(graph, **(chain or {}))


def coin_chain(
    transactions: Transactions, chain: Mapping[str, Any] | None = None, **settings: Any
) -> coinhaze.AbsorbingChain:
    ledger = coinhaze.CoinLedger.from_transactions(transactions)
    graph = coinhaze.transaction_graph(ledger, **settings)
    return coinhaze.absorbing_chain(graph, **(chain or {}))


def names_of(chain: coinhaze.AbsorbingChain) -> list[str]:
    names: list[str] = chain.graph.names.of(np.arange(len(chain))).to_pylist()
    return names


def bits_by_name(chain: coinhaze.AbsorbingChain) -> dict[str, float]:
    scores = coinhaze.score(chain, nodes="all", threads=1)
    return dict(zip(names_of(chain), scores.bits.tolist(), strict=True))


def assert_same_bits(found: Mapping[str, float], expected: Mapping[str, float]) -> None:
    """Check that two tables hold the same names, nulls and bits."""
    assert found.keys() == expected.keys()
    for name, bits in expected.items():
        if math.isnan(bits):
            assert math.isnan(found[name]), name
        else:
            assert abs(found[name] - bits) <= TIGHT, name


# ---------------------------------------------------------------- rows, openings and nulls


def assert_conserves(chain: coinhaze.AbsorbingChain) -> None:
    """Check that rows of B sum to 1, x^T B = b, and that every sink has an answer."""
    graph = chain.graph
    for nodes in ("all", "sinks"):
        scores = coinhaze.score(chain, nodes=nodes, threads=1)
        known = ~np.isnan(scores.bits)
        assert np.all(np.abs(scores.mass[known] - 1) <= TIGHT)
        assert np.all(np.isnan(scores.mass[~known]))
        if known.any():
            assert scores.conservation is not None
            assert scores.conservation <= TIGHT
    assert not np.isnan(coinhaze.score(chain, threads=1).bits).any()

    # The second law once more, from whole distributions: x over all nodes with an answer.
    assert graph.amounts is not None
    assert graph.opening is not None
    every = coinhaze.score(chain, nodes="all", threads=1)
    kept = ~np.isnan(every.bits)
    x = graph.opening.ints()
    for tail, head, amount in zip(graph.tail, graph.head, graph.amounts.ints(), strict=True):
        x[head] += amount
        if kept[head]:
            x[tail] -= amount
    total = np.zeros(len(chain.outcomes))
    for node in np.flatnonzero(kept):
        found = coinhaze.origins(chain, int(node))
        assert abs(math.fsum(found.probability) - 1) <= TIGHT
        total[found.outcomes] += x[node] * found.probability
    b = [amount for amount in graph.opening.ints() if amount > 0]
    np.testing.assert_allclose(total, np.array(b, dtype=np.float64), rtol=TIGHT)


@pytest.mark.parametrize("time", ["stationary", "temporal"])
@given(transfers=random.transfers())
@few
def test_money_of_accounts_is_conserved(
    time: Literal["stationary", "temporal"], transfers: Transfers
) -> None:
    assert_conserves(account_chain(transfers, time=time))


@given(transactions=random.transactions(pools=True))
@few
def test_money_of_coins_is_conserved(transactions: Transactions) -> None:
    assert_conserves(coin_chain(transactions))


@pytest.mark.parametrize("time", ["stationary", "temporal"])
@given(transactions=random.transactions(pools=True))
@few
def test_money_of_addresses_is_conserved(
    time: Literal["stationary", "temporal"], transactions: Transactions
) -> None:
    assert_conserves(coin_chain(transactions, view="address", time=time))


@given(transfers=random.transfers(zero=False, dropped=False))
@few
def test_the_law_of_openings_is_not_claimed_for_other_walks(transfers: Transfers) -> None:
    graph = account_chain(transfers).graph
    row = next(k for k, (tail, head, _) in enumerate(transfers) if tail != head)
    listed = [transfers[row][0]]
    for settings in (
        {"policy": "uniform"},
        {"policy": "poison", "listed": listed},
        {"listed": listed},
        {"links": {str(row): {transfers[row][1]: 0.5, transfers[row][0]: 0.5}}},
        {"policy": lambda g: np.eye(len(g), len(g) + 1, k=len(g)) + last_column(len(g))},
    ):
        chain = coinhaze.absorbing_chain(graph, **settings)
        scores = coinhaze.score(chain, nodes="all", threads=1)
        assert scores.conservation is None
        known = ~np.isnan(scores.bits)
        assert np.all(np.abs(scores.mass[known] - 1) <= TIGHT)


def last_column(n: int) -> Floats:
    """Give the rest of a policy in which every node but the first is its own origin."""
    matrix = np.zeros((n, n + 1))
    matrix[1:, n] = 1.0
    return matrix


# ---------------------------------------------------------------- mixing


@given(count=st.integers(1, 40), value=random.amounts().flatmap(lambda amounts: amounts))
@few
def test_mixing_k_equal_coins_of_distinct_sources_gives_log2_k(count: int, value: int) -> None:
    inputs = [
        {"txid": f"old{k}", "vout": 0, "value": value, "address": f"p{k}"} for k in range(count)
    ]
    outputs = [{"value": value, "address": f"q{k}"} for k in range(count)]
    transactions: Transactions = [{"txid": "mix", "inputs": inputs, "outputs": outputs}]
    views: list[dict[str, Any]] = [{}, {"view": "address"}]
    for settings in (*views, {"view": "address", "time": "temporal"}):
        scores = coinhaze.score(coin_chain(transactions, **settings), threads=1)
        assert len(scores) == count
        assert np.all(np.abs(scores.bits - math.log2(count)) <= TIGHT)
    transfers = [(f"p{k}", "mixer", value) for k in range(count)]
    scores = coinhaze.score(account_chain(transfers), threads=1)
    assert np.all(np.abs(scores.bits - math.log2(count)) <= TIGHT)


@st.composite
def detours(draw: st.DrawFn, money: int) -> list[tuple[int, int, int]]:
    """Draw payments among stations 0, 1, ... that start at 0 with `money`, never overdrawn."""
    stations = draw(st.integers(2, 5))
    held = [money] + [0] * (stations - 1)
    moves = []
    for _ in range(draw(st.integers(1, 8))):
        tail = draw(st.sampled_from([k for k in range(stations) if held[k] > 0]))
        head = draw(st.sampled_from([k for k in range(stations) if k != tail]))
        amount = draw(st.integers(1, held[tail]))
        held[tail] -= amount
        held[head] += amount
        moves.append((tail, head, amount))
    return moves


@pytest.mark.parametrize("time", ["stationary", "temporal"])
@given(transfers=random.transfers(zero=False), data=st.data())
@some
def test_passing_money_through_accounts_without_openings_changes_nothing(
    time: Literal["stationary", "temporal"], transfers: Transfers, data: st.DataObject
) -> None:
    before = account_chain(transfers, time=time)
    graph = before.graph
    assert graph.closing is not None
    money = dict(zip(names_of(before), graph.closing.ints(), strict=True))
    rich = sorted(name for name, left in money.items() if left > 0 and ":" not in name)
    assume(rich)
    payer = data.draw(st.sampled_from(rich))
    paid = data.draw(st.integers(1, money[payer]))
    # Only the payer pays into the stations, and none of their money comes back.
    inside = [(payer, "s0", paid)]
    inside += [(f"s{t}", f"s{h}", amount) for t, h, amount in data.draw(detours(paid))]
    after = account_chain([*transfers, *inside], time=time)
    bits, expected = bits_by_name(after), bits_by_name(before)
    assert_same_bits({name: bits[name] for name in expected}, expected)
    stations = [name for name in bits if name.startswith("s")]
    assert stations
    for name in stations:
        assert abs(bits[name] - expected[payer]) <= TIGHT, name
        assert_same_sources(after, name, payer)


@pytest.mark.parametrize("time", ["stationary", "temporal"])
@given(transfers=random.transfers(zero=False), data=st.data())
@some
def test_a_payment_sent_through_a_detour_of_its_own_changes_nothing(
    time: Literal["stationary", "temporal"], transfers: Transfers, data: st.DataObject
) -> None:
    moving = [k for k, (tail, head, amount) in enumerate(transfers) if tail != head and amount > 0]
    row = data.draw(st.sampled_from(moving))
    payer, receiver, paid = transfers[row]
    moves = data.draw(detours(paid))
    held = {0: paid}
    for tail, head, amount in moves:
        held[tail] -= amount
        held[head] = held.get(head, 0) + amount
    inside = [(payer, "s0", paid)]
    inside += [(f"s{tail}", f"s{head}", amount) for tail, head, amount in moves]
    inside += [(f"s{station}", receiver, left) for station, left in held.items() if left > 0]
    before = account_chain(transfers, time=time)
    after = account_chain([*transfers[:row], *inside, *transfers[row + 1 :]], time=time)
    bits, expected = bits_by_name(after), bits_by_name(before)
    # Snapshots in between are numbered anew; an account's own name means its newest.
    plain = {name: value for name, value in expected.items() if ":" not in name}
    assert_same_bits({name: bits[name] for name in plain}, plain)


def assert_same_sources(chain: coinhaze.AbsorbingChain, name: str, other: str) -> None:
    """Check that two nodes have the same distribution."""
    tables = [coinhaze.origins(chain, node).sources().to_pylist() for node in (name, other)]
    shares, expected = ({row["source"]: row["probability"] for row in table} for table in tables)
    assert shares.keys() == expected.keys()
    assert all(abs(shares[source] - expected[source]) <= TIGHT for source in expected)


@given(transactions=random.transactions(), data=st.data())
@some
def test_splitting_a_coin_and_joining_its_parts_changes_nothing(
    transactions: Transactions, data: st.DataObject
) -> None:
    before = coin_chain(transactions)
    expected = bits_by_name(before)
    names = names_of(before)
    graph = before.graph
    assert graph.closing is not None
    coins = {names[k]: graph.closing[int(k)] for k in np.flatnonzero(graph.sinks)}
    if not coins:
        return
    coin = data.draw(st.sampled_from(sorted(coins)))
    held = {coin: coins[coin]}
    more: Transactions = []
    for number in range(data.draw(st.integers(1, 4))):
        spent = data.draw(
            st.lists(st.sampled_from(sorted(held)), min_size=1, max_size=3, unique=True)
        )
        total = sum(held.pop(name) for name in spent)
        parts = data.draw(st.integers(1, min(total, 4)))
        values = [total // parts] * (parts - 1) + [total - total // parts * (parts - 1)]
        inputs = []
        for name in spent:
            txid, _, vout = name.rpartition(":")
            inputs.append({"txid": txid, "vout": int(vout)})
        outputs = [{"value": value, "address": None} for value in values]
        more.append({"txid": f"split{number}", "inputs": inputs, "outputs": outputs})
        held |= {f"split{number}:{vout}": value for vout, value in enumerate(values)}
    after = coin_chain([*transactions, *more])
    bits = bits_by_name(after)
    assert_same_bits({name: bits[name] for name in expected}, expected)
    for name in held:
        assert abs(bits[name] - expected[coin]) <= TIGHT, name
        assert_same_sources(after, name, coin)


# ---------------------------------------------------------------- decay


def assert_decays(chain: coinhaze.AbsorbingChain) -> None:
    """Check U(v) >= the least U over what v walks to, the own opening counting as 0 bits."""
    scores = coinhaze.score(chain, nodes="all", renyi=ORDERS, threads=1)
    for order in ORDERS:
        values = scores.renyi[order]
        for node in np.flatnonzero(~np.isnan(scores.bits)):
            row = chain.Q[[node]].tocoo()
            before = [values[j] for j, p in zip(row.coords[1], row.data, strict=True) if p > 0]
            if chain.walk.own[node] > 0:
                before.append(0.0)
            assert values[node] >= min(before) - TIGHT, (order, node)


def walks(graph: coinhaze.TransactionGraph, data: st.DataObject) -> list[coinhaze.AbsorbingChain]:
    """Give the chains of every walk policy on a graph."""
    every = graph.names.of(np.arange(len(graph))).to_pylist()
    listed = data.draw(random.listed(every))
    seed = data.draw(st.integers(0, 2**32 - 1))

    def custom(graph: coinhaze.TransactionGraph) -> Floats:
        n = len(graph)
        weight = np.random.default_rng(seed).exponential(size=(n, n + 1)) ** 8
        weight[:, :n] *= np.random.default_rng(seed + 1).random((n, n)) < 0.4
        result: Floats = weight / weight.sum(axis=1, keepdims=True)
        return result

    chains = [coinhaze.absorbing_chain(graph, policy="poison", listed=listed)]
    for policy in ("uniform", custom, None if graph.amounts is None else "proportional"):
        chains.append(coinhaze.absorbing_chain(graph, policy=policy))
        chains.append(coinhaze.absorbing_chain(graph, policy=policy, listed=listed))
    return chains


@pytest.mark.parametrize("time", ["stationary", "temporal"])
@given(transfers=random.transfers(), data=st.data())
@few
def test_mixing_of_accounts_never_falls_below_the_least_mixed_predecessor(
    time: Literal["stationary", "temporal"], transfers: Transfers, data: st.DataObject
) -> None:
    for chain in walks(account_chain(transfers, time=time).graph, data):
        assert_decays(chain)


@pytest.mark.parametrize("view", ["coin", "address"])
@given(transactions=random.transactions(pools=True), data=st.data())
@few
def test_mixing_of_coins_never_falls_below_the_least_mixed_predecessor(
    view: Literal["coin", "address"], transactions: Transactions, data: st.DataObject
) -> None:
    graph = coin_chain(transactions, view=view).graph
    if len(graph):
        for chain in walks(graph, data):
            assert_decays(chain)


@given(transactions=random.ring_transactions(), data=st.data())
@few
def test_mixing_of_rings_never_falls_below_the_least_mixed_predecessor(
    transactions: Transactions, data: st.DataObject
) -> None:
    for chain in walks(coin_chain(transactions).graph, data):
        assert_decays(chain)


# ---------------------------------------------------------------- time, scale and names


@st.composite
def one_receipt_each(draw: st.DrawFn) -> Transfers:
    """Draw transfers in which every account receives at most once and spends only after."""
    amount = draw(random.amounts())
    spenders = [f"n{k}" for k in range(draw(st.integers(1, 3)))]
    transfers = []
    for number in range(draw(st.integers(1, 10))):
        sender = draw(st.sampled_from(spenders))
        transfers.append((sender, f"m{number}", draw(amount)))
        spenders.append(f"m{number}")
    return transfers


@given(transfers=one_receipt_each())
@some
def test_time_changes_no_bits_where_accounts_receive_once_and_spend_after(
    transfers: Transfers,
) -> None:
    stationary = bits_by_name(account_chain(transfers))
    temporal = bits_by_name(account_chain(transfers, time="temporal"))
    assert_same_bits({name: temporal[name] for name in stationary}, stationary)


def scaled(transactions: Transactions, factor: int) -> Transactions:
    """Multiply every value of a UTXO ledger."""

    def times(entry: Mapping[str, Any]) -> dict[str, Any]:
        value = {"value": entry["value"] * factor} if "value" in entry else {}
        return {**entry, **value}

    return [
        {
            "txid": t["txid"],
            "inputs": [times(entry) for entry in t["inputs"]],
            "outputs": [times(entry) for entry in t["outputs"]],
            "pools": {pool: flow * factor for pool, flow in t.get("pools", {}).items()},
        }
        for t in transactions
    ]


factors = st.one_of(st.integers(2, 63), st.just(10**18), st.just(2**64 + 1))


@pytest.mark.parametrize("time", ["stationary", "temporal"])
@pytest.mark.parametrize("mint", ["each", "one"])
@given(transfers=random.transfers(), factor=factors, data=st.data())
@few
def test_scaling_and_relabelling_accounts_changes_nothing(
    time: Literal["stationary", "temporal"],
    mint: Literal["each", "one"],
    transfers: Transfers,
    factor: int,
    data: st.DataObject,
) -> None:
    factor = min(factor, 2**255 // max(amount for _, _, amount in transfers))
    expected = bits_by_name(account_chain(transfers, time=time, mint=mint))
    grown = [(sender, receiver, amount * factor) for sender, receiver, amount in transfers]
    assert_same_bits(bits_by_name(account_chain(grown, time=time, mint=mint)), expected)
    text = st.text("xyz0 é'\"/;", min_size=1, max_size=9)
    fresh = data.draw(st.lists(text, min_size=5, max_size=5, unique=True))
    label = {twin.ZERO: twin.ZERO, **dict(zip(random.ACCOUNTS, fresh, strict=True))}
    renamed = [(label[sender], label[receiver], amount) for sender, receiver, amount in transfers]
    found = bits_by_name(account_chain(renamed, time=time, mint=mint))
    back = {new: old for old, new in label.items()}

    def old_name(name: str) -> str:
        base, colon, number = name.partition(":")
        return back.get(base, base) + colon + number

    assert_same_bits({old_name(name): bits for name, bits in found.items()}, expected)


@pytest.mark.parametrize("view", ["coin", "address"])
@given(transactions=random.transactions(pools=True), factor=factors)
@few
def test_scaling_coins_changes_nothing(
    view: Literal["coin", "address"], transactions: Transactions, factor: int
) -> None:
    largest = max(
        [1]
        + [abs(flow) for t in transactions for flow in t.get("pools", {}).values()]
        + [e.get("value", 0) for t in transactions for e in (*t["inputs"], *t["outputs"])]
    )
    factor = min(factor, 2**255 // largest)
    expected = bits_by_name(coin_chain(transactions, view=view))
    found = bits_by_name(coin_chain(scaled(transactions, factor), view=view))
    assert_same_bits(found, expected)


@given(transactions=random.transactions(pools=True))
@few
def test_relabelling_coins_changes_nothing(transactions: Transactions) -> None:
    text = repr(transactions)
    for number in range(len(transactions)):
        text = text.replace(f"'t{number}'", f"'zz{9 - number}'")
    renamed: Transactions = ast.literal_eval(text)
    back = {f"zz{9 - number}": f"t{number}" for number in range(len(transactions))}

    def old_name(name: str) -> str:
        return ":".join(back.get(part, part) for part in name.split(":"))

    found = bits_by_name(coin_chain(renamed))
    assert_same_bits(
        {old_name(name): bits for name, bits in found.items()},
        bits_by_name(coin_chain(transactions)),
    )
