from __future__ import annotations

import io
import itertools
import math
import re
import weakref
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

import coinhaze
import twin
from built_late import BuiltLate
from coinhaze import AbsorbingChain, absorbing_chain, transaction_graph
from coinhaze.errors import AccuracyError, InputError
from coinhaze.report.origins import explain
from coinhaze.report.tables import origins_report
from coinhaze.simulate import simulate_hubs, simulate_town
from coinhaze.solve.local.origins import local_row
from coinhaze.solve.local.past import trace
from coinhaze.solve.local.row_kernels import ALIAS, LOST, TREE_STATE
from coinhaze.solve.planner import thresholds
from coinhaze.solve.structure.structure import Structure
from properties import strategies as random
from properties.comparison import node_names, profile
from solve.dense import absorption
from solve.economies import random_transfers
from vectors import coins

WIDTHS = (3.0, 0.5, 0.05, 1e-3, 1e-6)


def chain_of(source: Any, **settings: Any) -> AbsorbingChain:
    return absorbing_chain(transaction_graph(source, **settings))


CHAINS = BuiltLate[AbsorbingChain](
    {
        "town, coins": lambda: chain_of(simulate_town(transactions=400)),
        "town, addresses": lambda: chain_of(
            simulate_town(transactions=100, people=30), view="address"
        ),
        "hubs": lambda: chain_of(simulate_hubs(people=150, transfers=3)),
        "hubs, temporal": lambda: chain_of(simulate_hubs(people=300, transfers=3), time="temporal"),
        "uneven": lambda: chain_of(random_transfers(40, 200, seed=3)),
        "uneven, temporal": lambda: chain_of(random_transfers(60, 400, seed=1), time="temporal"),
        "uniform": lambda: absorbing_chain(
            transaction_graph(random_transfers(50, 120, seed=2)), policy="uniform"
        ),
        "pools": lambda: absorbing_chain(
            transaction_graph(coins("pools")), history={"sapling": list(range(1, 50))}
        ),
        "listed": lambda: absorbing_chain(
            transaction_graph(random_transfers(60, 300, seed=5)), listed=["a3", "a7", "a30"]
        ),
        "listed, temporal": lambda: absorbing_chain(
            transaction_graph(random_transfers(60, 300, seed=5), time="temporal"),
            listed=["a3", "a7", "a30"],
        ),
        "poison": lambda: absorbing_chain(
            transaction_graph(random_transfers(60, 150, seed=6), time="temporal"),
            policy="poison",
            listed=["a1", "a9"],
        ),
    }
)


@cache
def exact_of(name: str) -> coinhaze.Scores:
    """Score all nodes of a chain: once, for all tests of it."""
    return coinhaze.score(CHAINS[name], nodes="all")


@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("every", [11, pytest.param(1, marks=pytest.mark.long)])
def test_every_interval_holds_the_truth_and_is_as_narrow_as_requested(
    name: str, width: float, every: int
) -> None:
    chain = CHAINS[name]
    exact = exact_of(name)
    for node in range(0, len(chain), every if every == 1 else max(every, len(chain) // 20)):
        if math.isnan(exact.bits[node]):
            with pytest.raises(InputError, match="has no answer"):
                local_row(chain, node, width=width)
            continue
        row = local_row(chain, node, width=width)
        assert row.width <= width
        assert row.bits_low <= exact.bits_high[node]
        assert row.bits_high >= exact.bits_low[node]
        assert row.bits_low <= row.bits <= row.bits_high
        assert math.isnan(row.steps) or row.steps == pytest.approx(exact.steps[node], rel=1e-12)


@pytest.mark.parametrize("name", CHAINS)
def test_bounds_known_beforehand_hold_the_truth(name: str) -> None:
    chain = CHAINS[name]
    exact = exact_of(name)
    bounded = Structure(chain).bounded
    sure = ~np.isnan(exact.bits)
    assert np.array_equal(bounded.kind == LOST, ~sure)
    assert np.all(bounded.node_low[sure] <= exact.bits_high[sure])
    assert np.all(bounded.node_high[sure] >= exact.bits_low[sure])
    token = bounded.kind == TREE_STATE
    assert np.all((bounded.node_high - bounded.node_low)[token] < 1e-12)
    if bounded.ordered:
        np.testing.assert_allclose(bounded.steps[sure], exact.steps[sure], rtol=1e-12)


def past(chain: AbsorbingChain, start: int, closed: int = -1) -> set[int]:
    """Give the nodes a walk from the start can reach if it never goes on from `closed`."""
    q, found, stack = chain.Q, {start}, [start]
    while stack:
        node = stack.pop()
        if node != closed:
            new = set(q.indices[q.indptr[node] : q.indptr[node + 1]].tolist()) - found
            found |= new
            stack += new
    return found


@pytest.mark.parametrize("name", CHAINS)
def test_every_way_to_what_lies_behind_a_token_passes_it(name: str) -> None:
    chain = CHAINS[name]
    kind = Structure(chain).bounded.kind
    rng = np.random.default_rng(1)
    for start in rng.permutation(len(chain))[:30].tolist():
        whole = past(chain, start)
        tokens = [
            j for j in whole if kind[j] == TREE_STATE and chain.Q.indptr[j] < chain.Q.indptr[j + 1]
        ]
        for j in tokens[:20]:
            behind = past(chain, j) - {j}
            assert start in behind or not behind & past(chain, start, closed=j)


def test_coins_of_one_owner_only_pass_on_and_tokens_are_many() -> None:
    bounded = Structure(CHAINS["town, coins"]).bounded
    assert bounded.ordered
    assert np.count_nonzero(bounded.kind == ALIAS) > 500
    assert len(bounded) < len(bounded.kind) / 5


def test_questions_leave_no_trace() -> None:
    for chain in CHAINS.values():
        solver = Structure(chain).local
        nodes = np.flatnonzero(solver.bounded.kind != LOST)[::7].tolist()
        first = [solver.row(node, width=0.01) for node in nodes]
        again = [solver.row(node, width=0.01) for node in nodes[::-1]][::-1]
        for a, b in zip(first, again, strict=True):
            assert (a.bits_low, a.bits_high, a.moves) == (b.bits_low, b.bits_high, b.moves)
        walk = solver._walk
        assert not any(np.any(values) for values in walk.room[:3])
        assert not any(np.any(words != 0) for words in walk._waiting[1:])


def test_a_question_that_falls_short_leaves_no_trace_either() -> None:
    chain = CHAINS["hubs"]
    solver = Structure(chain).local
    node = int(np.argmax(solver.bounded.node_high * (solver.bounded.number >= 0)))
    short = solver.row(node, width=1e-3, moves=3)
    assert short.shortfall is not None
    assert re.match("after .* moves the proven interval is .* bits wide", short.shortfall)
    assert short.bits_low <= solver.row(node, width=1e-3).bits <= short.bits_high
    assert not any(np.any(values) for values in solver._walk.room[:3])
    assert solver.row(node, width=1e-3).width <= 1e-3


def test_a_solver_is_held_by_its_structure_and_no_longer() -> None:
    structure = Structure(chain_of(random_transfers(10, 30, seed=1)))
    assert structure.local is structure.local
    held = weakref.ref(structure.local)
    del structure
    assert held() is None


def test_a_question_touches_only_what_it_needs() -> None:
    chain = chain_of(random_transfers(2000, 20_000, seed=4), time="temporal")
    solver = Structure(chain).local
    sinks = np.flatnonzero(chain.graph.sinks)
    moves = [solver.row(int(node), width=0.5).moves for node in sinks[:200]]
    assert np.median(moves) < len(solver.bounded.to) / 20


def rare(n: int) -> AbsorbingChain:
    """A ring that is left with probability about 1e-9 at each of n nodes."""
    ring = [f"r{k}" for k in range(n)]
    around = [(a, b, 10**9) for a, b in itertools.pairwise([*ring, ring[0]])]
    into = [(f"s{k}", ring[k], 1 + k) for k in range(n)]
    out = [(ring[k], f"o{k}", 1 + k) for k in range(n)]
    return chain_of(coinhaze.AccountLedger.from_transfers([*around, *into, *out]))


def test_rare_absorption_is_refused_or_right() -> None:
    chain = rare(5)
    node = chain.graph.names.node("o3")
    assert "ask for accuracy=" in str(local_row(chain, node, width=0.05, moves=10_000).shortfall)
    exact = coinhaze.origins(chain, node)
    # A small chain is then solved whole.
    found = coinhaze.origins(chain, node, accuracy=0.05)
    assert found.bits == pytest.approx(exact.bits, abs=1e-9)
    assert found.missing == 0


def test_origins_of_a_large_chain_that_fall_short_are_carried_by_the_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chain = rare(5)
    node = chain.graph.names.node("o3")
    exact = coinhaze.origins(chain, node)
    monkeypatch.setattr(thresholds, "MAX_SOLVED_NODES", 0)
    monkeypatch.setattr(thresholds, "MAX_LOCAL_MOVES", 1000)
    with pytest.raises(AccuracyError, match=r"after .* moves .* ask for accuracy=") as refused:
        coinhaze.origins(chain, node, accuracy=0.05)
    found = refused.value.origins
    assert found is not None
    assert found.notes == (str(refused.value),)
    assert found.bits_low <= exact.bits <= found.bits_high
    assert found.bits_high - found.bits_low > 0.05
    shares = dict(zip(exact.outcomes.tolist(), exact.probability.tolist(), strict=True))
    for outcome, share in zip(found.outcomes.tolist(), found.probability.tolist(), strict=True):
        assert share <= shares[outcome] + 1e-12
    assert found.probability.sum() + found.missing == pytest.approx(1, abs=1e-9)
    assert found.missing > 0
    assert explain(chain, "o3", accuracy=0.05).origins.shortfall == found.shortfall


def test_a_way_straight_back_is_gone_round_at_once() -> None:
    # x goes back to itself all but once in 10^12; all its chances are exact as floats.
    ledger = coinhaze.AccountLedger.from_transfers([("a", "x", 3), ("b", "x", 1)])
    graph = transaction_graph(ledger)
    a, b, x = (graph.names.node(name) for name in ("a", "b", "x"))
    matrix = np.zeros((3, 4))
    matrix[a, 3] = matrix[b, 3] = 1.0
    matrix[x, [a, b, x]] = 3 * 2.0**-42, 2.0**-42, 1 - 2.0**-40
    row = local_row(absorbing_chain(graph, policy=matrix), x, width=1e-9)
    truth = twin.entropy({"a": Fraction(3, 4), "b": Fraction(1, 4)})
    assert row.bits_low <= truth <= row.bits_high
    assert row.moves < 10


def test_a_part_without_a_source_is_refused() -> None:
    transfers = [("a", "b", 1), ("b", "c", 1), ("c", "a", 1)]
    chain = chain_of(coinhaze.AccountLedger.from_transfers(transfers))
    for node in range(len(chain)):
        with pytest.raises(InputError, match="its past never ends"):
            local_row(chain, node, width=5.0)
        with pytest.raises(InputError, match="its past never ends"):
            coinhaze.origins(chain, node, accuracy=0.5)


some = profile(30)


def assert_holds(chain: AbsorbingChain, names: list[str], answers: Any) -> None:
    solver = Structure(chain).local
    for node, name in enumerate(names):
        answer = answers[name]
        assert solver.lost(node) == (answer is None), name
        if answer is None:
            continue
        for width in (1.0, 0.1, 1e-3):
            row = solver.row(node, width=width, moves=100_000)
            assert row.width <= width or (row.shortfall and answer.steps > 100), name
            assert row.bits_low <= answer.bits <= row.bits_high, name
            assert math.isnan(row.steps) or row.steps == pytest.approx(float(answer.steps))


@some
@given(random.transfers(), st.sampled_from(["stationary", "temporal"]))
def test_accounts_against_rational_arithmetic(transfers: Any, time: Any) -> None:
    expected = twin.account_graph(transfers, time=time)
    chain = chain_of(coinhaze.AccountLedger.from_transfers(transfers), time=time)
    assert_holds(chain, node_names(chain.graph, expected), twin.solve(twin.proportional(expected)))


@some
@given(random.transactions(pools=True))
def test_coins_against_rational_arithmetic(transactions: Any) -> None:
    expected = twin.coin_graph(transactions)
    chain = chain_of(coinhaze.CoinLedger.from_transactions(transactions))
    assert_holds(chain, node_names(chain.graph, expected), twin.solve(twin.proportional(expected)))


@pytest.mark.parametrize("name", CHAINS)
def test_followed_flows_are_parts_of_the_true_ones(name: str) -> None:
    chain = CHAINS[name]
    structure = Structure(chain)
    sure = structure.bounded.kind != LOST
    b, _ = absorption(chain, sure)
    rows = np.flatnonzero(sure)
    place = {int(node): k for k, node in enumerate(rows)}
    for node in rows[::11].tolist():
        for finest in (0.05, 1e-3):
            found = trace(structure, node, finest=finest)
            own = np.where(chain.column >= 0, chain.walk.own, 0.0)[found.nodes]
            ends = own > 0
            got = np.bincount(
                chain.column[found.nodes[ends]],
                (found.visits * own)[ends],
                minlength=len(chain.outcomes),
            )
            truth = b[place[node]]
            assert np.all(got <= truth + 1e-12)
            assert np.all(truth <= got + found.missing + 1e-12)
            assert got.sum() + found.missing == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("name", [n for n in CHAINS if n != "poison"])
def test_origins_to_a_width_agree_with_exact_ones(name: str) -> None:
    chain = CHAINS[name]
    for node in np.flatnonzero(chain.graph.sinks)[::9].tolist():
        exact = coinhaze.origins(chain, node)
        near = coinhaze.origins(chain, node, accuracy=0.05)
        assert near.bits_high - near.bits_low <= 0.05
        assert near.bits_low <= exact.bits_high
        assert near.bits_high >= exact.bits_low
        shares = dict(zip(exact.outcomes.tolist(), exact.probability.tolist(), strict=True))
        for outcome, least in zip(near.outcomes.tolist(), near.probability.tolist(), strict=True):
            assert least - 1e-12 <= shares[outcome] <= least + near.missing + 1e-12
        for rank in range(min(3, len(near.outcomes))):
            assert near.way(rank)[-1] == near.name
            assert chain.column[near.way_end[rank]] == near.outcomes[rank]
        assert set(zip(near.flow_from.tolist(), near.flow_to.tolist(), strict=True)) <= set(
            zip(exact.flow_from.tolist(), exact.flow_to.tolist(), strict=True)
        )


def test_a_report_says_what_was_not_followed() -> None:
    chain = CHAINS["town, coins"]
    node = int(np.argmax(Structure(chain).bounded.node_low))
    near = replace(coinhaze.origins(chain, node, accuracy=0.05), missing=0.0123)
    console = Console(record=True, width=120, file=io.StringIO())
    console.print(origins_report(near, limit=3))
    shown = console.export_text()
    assert "not followed to its end" in shown
    assert "1.23%" in shown
    assert ("proven between" in shown) == (near.bits_high - near.bits_low > 2e-6)
    assert "not followed to its end: 1.2300%" in near._repr_html_()
    assert near.as_dict(limit=3)["missing"] == 0.0123


def test_steps_are_left_out_where_loops_leave_them_open() -> None:
    chain = CHAINS["hubs"]
    near = coinhaze.origins(chain, int(np.flatnonzero(chain.graph.sinks)[5]), accuracy=0.5)
    console = Console(record=True, width=120, file=io.StringIO())
    console.print(origins_report(near))
    assert math.isnan(near.steps) == ("steps back" not in console.export_text())
    assert (near.as_dict()["steps"] is None) == math.isnan(near.steps)
