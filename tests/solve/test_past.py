"""A node's past: against whole chains in dense arithmetic, and what is never overstated."""

from __future__ import annotations

from collections import deque

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import coinhaze
from coinhaze.observer import AbsorbingChain
from coinhaze.observer.chain import NO_COLUMN
from coinhaze.solve.local.past import Past, past_of
from coinhaze.solve.planner import thresholds
from coinhaze.solve.structure.reduce import certain_nodes
from properties import strategies
from properties.comparison import profile
from solve.dense import absorption, reach


def chain_of(ledger: coinhaze.AccountLedger | coinhaze.CoinLedger, **graph: str) -> AbsorbingChain:
    return coinhaze.absorbing_chain(coinhaze.transaction_graph(ledger, **graph))  # type: ignore[arg-type]


def slow_nearest(chain: AbsorbingChain, node: int, ends: np.ndarray) -> int | None:
    q = chain.Q.toarray()
    waiting, steps = deque([node]), {node: 1}
    while waiting:
        at = waiting.popleft()
        if ends[at]:
            return steps[at]
        for before in np.flatnonzero(q[at]).tolist():
            if before not in steps:
                steps[before] = steps[at] + 1
                waiting.append(before)
    return None


def check(chain: AbsorbingChain) -> None:
    sure = certain_nodes(chain)
    b, steps = absorption(chain, sure)
    row = np.cumsum(sure) - 1
    for node in np.flatnonzero(sure).tolist():
        past = past_of(chain, node)
        assert past.whole
        outcomes, share = past.outcomes()
        dense = np.zeros(len(chain.outcomes))
        dense[outcomes] = share
        assert dense == pytest.approx(b[row[node]], abs=1e-11)
        assert past.missing == pytest.approx(0.0, abs=1e-11)
        assert past.steps == pytest.approx(steps[row[node]], rel=1e-9)
        assert past.nodes.tolist() == np.flatnonzero(reach(chain.Q.toarray())[node]).tolist()
        ends = (chain.column != NO_COLUMN) & (chain.walk.own > 0)
        assert past.nearest_end() == slow_nearest(chain, node, ends)


@given(strategies.transfers(), st.sampled_from(["stationary", "temporal"]))
@profile(40)
def test_the_past_of_an_account_is_its_row_of_b(rows: list[strategies.Transfer], time: str) -> None:
    check(chain_of(coinhaze.AccountLedger.from_transfers(rows), time=time))


@given(strategies.transactions(pools=True))
@profile(40)
def test_the_past_of_a_coin_is_its_row_of_b(rows: list[strategies.Transaction]) -> None:
    check(chain_of(coinhaze.CoinLedger.from_transactions(rows)))


@given(strategies.ring_transactions())
@profile(20)
def test_the_past_of_a_hidden_coin_is_its_row_of_b(rows: list[strategies.Transaction]) -> None:
    check(chain_of(coinhaze.CoinLedger.from_transactions(rows)))


@given(strategies.transactions(), st.data())
@profile(30)
def test_what_meets_a_list_is_the_exposure_of_the_listed_chain(
    rows: list[strategies.Transaction], data: st.DataObject
) -> None:
    chain = chain_of(coinhaze.CoinLedger.from_transactions(rows))
    names = chain.graph.names.of(np.arange(len(chain))).to_pylist()
    listed = coinhaze.absorbing_chain(chain.graph, listed=data.draw(strategies.listed(names)))
    exposure = coinhaze.score(listed, nodes="all").exposure
    assert exposure is not None
    on_list = (listed.column != listed.elsewhere) & (listed.column != NO_COLUMN)
    for node in np.flatnonzero(~np.isnan(exposure)).tolist():
        past = past_of(chain, node)
        meets, apart = past.passing(on_list)[past.start]
        assert meets == pytest.approx(exposure[node], abs=1e-12)
        assert meets + apart == pytest.approx(1.0, abs=1e-12)


def week() -> AbsorbingChain:
    from coinhaze.simulate import simulate_town

    return chain_of(simulate_town(transactions=2000, people=60))


def test_a_past_that_is_cut_says_how_much_it_misses_and_overstates_nothing() -> None:
    chain = week()
    cut = 0
    for node in np.flatnonzero(chain.graph.sinks)[-40:].tolist():
        whole, part = past_of(chain, node), _traced(chain, node)
        cut += not part.whole
        outcomes, share = whole.outcomes()
        found, minimum = part.outcomes()
        true = dict(zip(outcomes.tolist(), share.tolist(), strict=True))
        assert all(
            p <= true[o] + 1e-12 for o, p in zip(found.tolist(), minimum.tolist(), strict=True)
        )
        assert minimum.sum() + part.missing == pytest.approx(1.0, abs=1e-9)
    assert cut > 10


def _traced(chain: AbsorbingChain, node: int) -> Past:
    return past_of(chain, node, whole=100)


def test_two_questions_at_once_do_not_meet() -> None:
    from concurrent.futures import ThreadPoolExecutor

    chain = week()
    nodes = np.flatnonzero(chain.graph.sinks)[-30:].tolist()
    alone = [past_of(chain, node).nodes.tolist() for node in nodes]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda n: past_of(chain, n).nodes.tolist(), nodes))
    assert together == alone


def chain_of_transfers(rows: list[tuple[str, str, int]]) -> AbsorbingChain:
    return coinhaze.absorbing_chain(
        coinhaze.transaction_graph(coinhaze.AccountLedger.from_transfers(rows))
    )


@pytest.mark.parametrize("length", [2, 5, 300])
def test_a_past_that_goes_round_for_ever_is_not_walked_round(length: int) -> None:
    """It was, some ten million times, which took most of a minute in plain Python."""
    rows = [(f"a{k}", f"a{(k + 1) % length}", 10) for k in range(length)]
    past = past_of(chain_of_transfers([*rows, ("x", "y", 1)]), 0)
    assert past.missing == 1
    assert past.visits.sum() <= length
    assert not past.shares().sum()


def test_a_walk_in_parts_is_the_walk_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [("a", "b", 1000), ("b", "a", 1000), ("x", "a", 1), ("b", "y", 1), ("z", "b", 2)]
    chain = chain_of_transfers([*rows, ("b", "z", 2)])
    at_once = [past_of(chain, node).visits for node in range(4)]
    monkeypatch.setattr(thresholds, "MOVES_AT_ONCE", 7)
    in_parts = [past_of(chain, node).visits for node in range(4)]
    for one, other in zip(at_once, in_parts, strict=True):
        assert one == pytest.approx(other, rel=1e-9)
