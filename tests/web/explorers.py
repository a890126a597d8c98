"""Explorers of small ledgers of every kind, and what must hold of every answer."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import coinhaze
from coinhaze.errors import UnknownName
from coinhaze.explore.explorer import Explorer
from coinhaze.explore.models import CoinAnswer, Flow
from coinhaze.ledger import Ledger
from coinhaze.observer import AbsorbingChain
from coinhaze.simulate import simulate_town

Lists = Mapping[str, Sequence[str]]


def explorer_of(
    ledger: Ledger,
    *,
    lists: Lists | None = None,
    labels: Mapping[str, str] | None = None,
    scored: bool = True,
    **graph: str,
) -> Explorer:
    """Open a ledger in memory, scored unless told."""
    chain = coinhaze.absorbing_chain(coinhaze.transaction_graph(ledger, **graph))  # type: ignore[arg-type]
    return explorer_on(chain, lists=lists, labels=labels, scored=scored)


def explorer_on(
    chain: AbsorbingChain,
    *,
    lists: Lists | None = None,
    labels: Mapping[str, str] | None = None,
    scored: bool = True,
) -> Explorer:
    """Open a chain."""

    def names_of(name: str) -> Sequence[str]:
        if name not in (lists or {}):
            raise UnknownName(f"no list {name}")
        return (lists or {})[name]

    scores = coinhaze.score(chain) if scored else None
    return Explorer(chain, scores, id="made", digest="d1", names_of=names_of, labels=labels)


def town(transactions: int = 400, people: int = 40) -> coinhaze.CoinLedger:
    """Make a small town."""
    return simulate_town(transactions=transactions, people=people)


def assert_sums(answer: CoinAnswer) -> None:
    """Check that shares make 1 with the others, and that every column keeps all the money."""
    assert_no_nan(answer.model_dump())
    if not answer.origins:
        assert answer.other.share == 0
        return
    total = sum(origin.share for origin in answer.origins) + answer.other.share
    assert math.isclose(total, 1.0, abs_tol=1e-9)
    shares = [origin.share for origin in answer.origins]
    assert [o.rank for o in answer.origins] == sorted(o.rank for o in answer.origins)
    assert shares == sorted(shares, reverse=True)
    assert_conserves(answer.flow)


def assert_conserves(flow: Flow) -> None:
    """Check that what comes to every box leaves it, and that lanes and boxes of a column make 1."""
    column = {node.id: node.column for node in flow.nodes}
    assert len(column) == len(flow.nodes) <= 300
    last = len(flow.columns) - 1
    for node in flow.nodes:
        into = sum(band.share for band in flow.bands if band.after == node.id)
        out = sum(band.share for band in flow.bands if band.before == node.id)
        if node.column < last:
            assert math.isclose(into, node.share, abs_tol=1e-9), node
        if node.column > 0:
            assert math.isclose(out, node.share, abs_tol=1e-9), node
        assert 0 <= node.listed <= node.share + 1e-12
    for band in flow.bands:
        assert column[band.before] > column[band.after]
        assert 0 <= band.listed <= band.share
    for k, told in enumerate(flow.columns):
        here = [node for node in flow.nodes if node.column == k]
        lanes = [b for b in flow.bands if column[b.after] < k < column[b.before]]
        held = sum(node.share for node in here)
        assert math.isclose(held, told.reached, abs_tol=1e-9)
        assert math.isclose(held + sum(band.share for band in lanes), 1.0, abs_tol=1e-9)
        assert [node.folded for node in here] == sorted(node.folded for node in here)


def assert_no_nan(value: object) -> None:
    """Check that nothing in an answer is not a number."""
    if isinstance(value, dict):
        for part in value.values():
            assert_no_nan(part)
    elif isinstance(value, list | tuple):
        for part in value:
            assert_no_nan(part)
    elif isinstance(value, float):
        assert math.isfinite(value)
