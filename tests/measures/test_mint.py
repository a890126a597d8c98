"""Mint centrality against a plain walk back."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest

import coinhaze
from coinhaze.graph.graph import Kind
from coinhaze.measures.comparators.sources import mint_centrality
from coinhaze.simulate import simulate_town


def walked_back(graph: coinhaze.TransactionGraph, node: int) -> set[int]:
    before: dict[int, set[int]] = {}
    for tail, head in zip(graph.tail.tolist(), graph.head.tolist(), strict=True):
        before.setdefault(head, set()).add(tail)
    seen, todo = {node}, [node]
    while todo:
        for tail in before.get(todo.pop(), set()) - seen:
            seen.add(tail)
            todo.append(tail)
    return seen


@pytest.mark.parametrize("view", ["coin", "address"])
def test_mint_centrality_is_what_walking_back_finds(view: Literal["coin", "address"]) -> None:
    graph = coinhaze.transaction_graph(simulate_town(transactions=1000), view=view)
    made = np.flatnonzero(graph.sources & np.isin(graph.kinds, (Kind.transaction, Kind.mint)))
    assert len(made) > 64  # more than share one pass
    count = mint_centrality(graph)
    assert count.max() > 2
    for node in range(0, len(graph), len(graph) // 40):
        assert count[node] == len(walked_back(graph, node).intersection(made.tolist()))
