"""The largest paths: against a list of all paths, where there are few."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coinhaze
from coinhaze.observer import AbsorbingChain
from coinhaze.solve.local.paths import largest_paths
from properties import strategies


def all_paths(chain: AbsorbingChain, start: int) -> list[tuple[float, tuple[int, ...]]]:
    """List every path to a listed end with its share; only for chains without loops."""
    q = chain.Q.toarray()
    found = []
    waiting: list[tuple[float, tuple[int, ...]]] = [(1.0, (start,))]
    while waiting:
        share, nodes = waiting.pop()
        node = nodes[0]
        if chain.walk.own[node] > 0 and chain.column[node] != chain.elsewhere:
            found.append((share * float(chain.walk.own[node]), nodes))
        for before in np.flatnonzero(q[node]).tolist():
            waiting.append((share * float(q[node, before]), (before, *nodes)))
    return sorted(found, key=lambda pair: -pair[0])


@given(strategies.transfers(zero=False, dropped=False, maximum=9), st.booleans(), st.data())
@settings(max_examples=80, deadline=None)
def test_the_largest_come_first_and_none_is_passed_over(
    rows: list[tuple[str, str, int]], listing: bool, data: st.DataObject
) -> None:
    graph = coinhaze.transaction_graph(coinhaze.AccountLedger.from_transfers(rows), time="temporal")
    name = data.draw(st.sampled_from(sorted({r[0] for r in rows if r[0] != r[1]})))
    chain = coinhaze.absorbing_chain(graph, listed=[name] if listing else None)
    start = data.draw(st.sampled_from(np.flatnonzero(graph.sinks).tolist()))
    maximum = data.draw(st.integers(1, 6))
    expected = all_paths(chain, start)
    found = largest_paths(coinhaze.origins(chain, start), limit=maximum)
    assert [p.share for p in found] == pytest.approx([s for s, _ in expected[:maximum]], rel=1e-9)
    assert len({p.nodes for p in found}) == len(found)
    shares = {nodes: share for share, nodes in expected}
    for path in found:
        assert path.share == pytest.approx(shares[path.nodes], rel=1e-12)
        assert path.outcome == chain.column[path.nodes[0]]


def test_loops_are_paths_too_each_turn_one() -> None:
    ledger = coinhaze.AccountLedger.from_transfers([("a", "b", 1), ("b", "c", 2), ("c", "b", 1)])
    chain = coinhaze.absorbing_chain(coinhaze.transaction_graph(ledger), listed=["a"])
    found = coinhaze.origins(chain, "c")
    paths = largest_paths(found, limit=3)
    names = [chain.graph.names.of(np.array(p.nodes)).to_pylist() for p in paths]
    assert names[0] == ["a", "b", "c"]
    assert names[1] == ["a", "b", "c", "b", "c"]
    assert [p.share for p in paths] == pytest.approx([0.5, 0.25, 0.125])


def layered(layers: int, width: int) -> coinhaze.AccountLedger:
    """Let every account of a layer pay every account of the next one the same."""
    each = range(width)
    return coinhaze.AccountLedger.from_transfers(
        [(f"l{k}_{i}", f"l{k + 1}_{j}", 1) for k in range(layers) for i in each for j in each]
    )


@pytest.mark.parametrize(("layers", "width"), [(30, 3), (40, 7), (300, 2)])
def test_paths_are_found_among_more_equal_ones_than_can_be_looked_at(
    layers: int, width: int
) -> None:
    """None were found, so that a statement showed a share from the list and no path for it."""
    graph = coinhaze.transaction_graph(layered(layers, width))
    chain = coinhaze.absorbing_chain(graph, listed=["l0_0"])
    paths = largest_paths(coinhaze.origins(chain, f"l{layers}_0"), limit=3)
    assert len({path.nodes for path in paths}) == 3
    assert all(len(path.nodes) == layers + 1 for path in paths)
    assert [p.share for p in paths] == pytest.approx([width**-layers] * 3, rel=1e-9)


def test_the_shortest_turns_of_a_loop_come_first_that_hardly_any_money_leaves() -> None:
    ledger = coinhaze.AccountLedger.from_transfers(
        [("a", "b", 10**12), ("b", "a", 10**12), ("x", "a", 1), ("b", "y", 1)]
    )
    chain = coinhaze.absorbing_chain(coinhaze.transaction_graph(ledger), listed=["x"])
    paths = largest_paths(coinhaze.origins(chain, "y"), limit=3)
    assert [len(path.nodes) for path in paths] == [4, 6, 8]


def test_a_path_carries_what_began_at_its_source_not_what_passed_it() -> None:
    ledger = coinhaze.AccountLedger.from_transfers([("a", "b", 1), ("b", "c", 4)])
    chain = coinhaze.absorbing_chain(coinhaze.transaction_graph(ledger))
    paths = largest_paths(coinhaze.origins(chain, "c"))
    assert [(p.nodes[0], p.share) for p in paths] == [(1, 0.75), (0, 0.25)]


def test_lots_have_no_paths() -> None:
    ledger = coinhaze.AccountLedger.from_transfers([("a", "b", 1)])
    assert largest_paths(coinhaze.origins(ledger, "b", policy="fifo")) == []
