"""The library's graphs, chains and scores held against the twin's."""

import math
import os
from collections.abc import Collection, Mapping
from fractions import Fraction

import numpy as np
from hypothesis import settings

import coinhaze
import twin

Answers = Mapping[str, twin.Answer | None]

ORDERS = (0.0, 0.5, 1.0, 2.0, math.inf)
TIGHT = 1e-12


def profile(examples: int) -> settings:
    """Search the same few examples every time, or COINHAZE_SEARCH times as many at random."""
    times = int(os.environ.get("COINHAZE_SEARCH", "0"))
    return settings(max_examples=examples * max(times, 1), deadline=None, derandomize=times == 0)


def node_names(graph: coinhaze.TransactionGraph, expected: twin.Graph) -> list[str]:
    """Name the library's nodes as the twin does, in the library's order."""
    return [expected.node(name) for name in graph.names.of(np.arange(len(graph))).to_pylist()]


def assert_same_graph(graph: coinhaze.TransactionGraph, expected: twin.Graph) -> None:
    """Check nodes, edges, balances and sinks, all exactly."""
    names = node_names(graph, expected)
    assert len(set(names)) == len(names)
    assert set(names) == expected.nodes
    assert {name for name, sink in zip(names, graph.sinks, strict=True) if sink} == expected.sinks
    ends = [(names[t], names[h]) for t, h in zip(graph.tail, graph.head, strict=True)]
    assert len(set(ends)) == len(ends)
    if graph.amounts is None or graph.opening is None or graph.closing is None:
        assert set(ends) == set(expected.edges)
        return
    assert dict(zip(ends, graph.amounts.ints(), strict=True)) == expected.edges
    opening = dict(zip(names, graph.opening.ints(), strict=True))
    assert opening == {name: expected.opening.get(name, 0) for name in names}
    assert dict(zip(names, graph.closing.ints(), strict=True)) == twin.closing(expected)


def assert_same_answers(
    chain: coinhaze.AbsorbingChain,
    names: list[str],
    answers: Answers,
    *,
    asked: Collection[str] | None = None,
) -> coinhaze.Scores:
    """Check every node's score against the twin's, and the distribution of a few."""
    scores = coinhaze.score(chain, nodes="all", renyi=ORDERS, threads=1)
    assert scores.width <= 1e-9
    assert set(names) == set(answers)
    for row, name in enumerate(names):
        assert_same_row(scores, row, answers[name], name)
    for name in list(names)[-3:] if asked is None else asked:
        answer = answers[name]
        if answer is not None:
            assert_same_origins(chain, names.index(name), answer)
    assert_same_sinks(chain, scores)
    return scores


def assert_same_row(
    scores: coinhaze.Scores, row: int, answer: twin.Answer | None, name: str
) -> None:
    """Check one row of scores."""
    if answer is None:
        for values in (
            scores.bits,
            scores.bits_low,
            scores.bits_high,
            scores.steps,
            scores.sources,
        ):
            assert math.isnan(values[row]), name
        assert math.isnan(scores.top_probability[row]), name
        assert all(math.isnan(values[row]) for values in scores.renyi.values()), name
        return
    assert abs(scores.bits[row] - answer.bits) <= TIGHT, name
    assert scores.bits_low[row] <= answer.bits <= scores.bits_high[row], name
    assert scores.bits_low[row] <= scores.bits[row] <= scores.bits_high[row], name
    assert abs(Fraction(scores.steps[row]) / answer.steps - 1) <= TIGHT, name
    assert abs(scores.mass[row] - 1) <= TIGHT, name
    possible = [share for share in answer.distribution.values() if share > 0]
    assert scores.sources[row] == len(possible), name
    assert abs(scores.top_probability[row] - max(possible)) <= TIGHT, name
    for order, values in scores.renyi.items():
        assert abs(values[row] - twin.renyi(answer.distribution, order)) <= TIGHT, (name, order)


def assert_same_origins(chain: coinhaze.AbsorbingChain, node: int, answer: twin.Answer) -> None:
    """Check one node's distribution over its sources."""
    found = coinhaze.origins(chain, node)
    table = found.sources().to_pylist()
    shares = {row["source"]: row["probability"] for row in table}
    possible = {name: share for name, share in answer.distribution.items() if share > 0}
    assert len(shares) == len(table)
    assert shares.keys() == possible.keys()
    for source, share in possible.items():
        assert abs(shares[source] - share) <= TIGHT, source
    assert [row["probability"] for row in table] == sorted(shares.values(), reverse=True)
    assert abs(found.steps / answer.steps - 1) <= TIGHT


def assert_same_sinks(chain: coinhaze.AbsorbingChain, scores: coinhaze.Scores) -> None:
    """Check that scoring the sinks alone gives the rows that scoring everything gives them."""
    alone = coinhaze.score(chain, threads=1)
    rows = np.flatnonzero(chain.graph.sinks)
    assert alone.nodes.tolist() == rows.tolist()
    np.testing.assert_array_equal(np.isnan(alone.bits), np.isnan(scores.bits[rows]))
    np.testing.assert_allclose(alone.bits, scores.bits[rows], rtol=0, atol=TIGHT)
    np.testing.assert_allclose(alone.steps, scores.steps[rows], rtol=TIGHT)
    np.testing.assert_array_equal(alone.sources, scores.sources[rows])
