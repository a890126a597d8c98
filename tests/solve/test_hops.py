"""Money hop by hop: against a walk of fractions and dictionaries, and what is never lost."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import coinhaze
from coinhaze.errors import UsageError
from coinhaze.observer import AbsorbingChain
from coinhaze.solve.local.hops import hops_of
from properties import strategies
from solve.economies import random_transfers

Layer = dict[int, float]


def slow_hops(chain: AbsorbingChain, start: int, maximum: int) -> list[tuple[Layer, Layer]]:
    """Give shares and what ended by party, hop by hop: one step of one node at a time."""
    party, snapshot = chain.graph.names.party, chain.graph.names.snapshot
    q = chain.Q.toarray()
    arrived: Layer = {start: 1.0}
    found = []
    for _ in range(maximum + 1):
        share: Layer = {}
        for node, mass in arrived.items():
            share[int(party[node])] = share.get(int(party[node]), 0.0) + mass
        ended: Layer = dict.fromkeys(share, 0.0)
        waiting, leaving = dict(arrived), dict[int, float]()
        while waiting:
            node = max(waiting, key=lambda n: snapshot[n])
            mass = waiting.pop(node)
            ended[int(party[node])] += mass * float(chain.walk.own[node])
            for before in np.flatnonzero(q[node]).tolist():
                stays = party[before] == party[node] and before != node
                goes = waiting if stays else leaving
                goes[before] = goes.get(before, 0.0) + mass * float(q[node, before])
        found.append((share, ended))
        if not leaving:
            break
        arrived = leaving
    return found


def check(chain: AbsorbingChain, start: int, maximum: int) -> None:
    hops = hops_of(chain, start, limit=maximum)
    slow = slow_hops(chain, start, maximum)
    assert len(hops) == len(slow)
    for hop, (share, ended) in zip(hops.hops, slow, strict=True):
        assert hop.parties.tolist() == sorted(share)
        assert hop.share == pytest.approx([share[p] for p in sorted(share)], abs=1e-12)
        assert hop.ended == pytest.approx([ended[p] for p in sorted(share)], abs=1e-12)
    absorbed = 0.0
    for k, hop in enumerate(hops.hops):
        # What is at a hop is what has not ended before it.
        assert hop.reached == pytest.approx(1 - absorbed, abs=1e-12)
        absorbed += hop.ends
        if k + 1 < len(hops):
            following = hops[k + 1]
            left = np.bincount(hop.at, hop.flow, len(hop.parties))
            came = np.bincount(hop.to, hop.flow, len(following.parties))
            assert left == pytest.approx(hop.share - hop.ended, abs=1e-12)
            assert came == pytest.approx(following.share, abs=1e-12)
    assert hops.earlier == pytest.approx(1 - absorbed, abs=1e-12)


def certain(chain: AbsorbingChain) -> list[int]:
    """Give the nodes whose past ends; those worth nothing have none."""
    found: list[int] = np.flatnonzero(~np.isnan(coinhaze.score(chain, nodes="all").bits)).tolist()
    assume(found)
    return found


@given(strategies.transfers(dropped=False), st.data())
@pytest.mark.parametrize("time", ["stationary", "temporal"])
@settings(max_examples=50, deadline=None)
def test_hops_of_accounts(
    time: Literal["stationary", "temporal"], rows: list[tuple[str, str, int]], data: st.DataObject
) -> None:
    graph = coinhaze.transaction_graph(coinhaze.AccountLedger.from_transfers(rows), time=time)
    chain = coinhaze.absorbing_chain(graph)
    check(chain, data.draw(st.sampled_from(certain(chain))), data.draw(st.integers(1, 5)))


@given(strategies.transactions(pools=True), st.data())
@settings(max_examples=50, deadline=None)
def test_hops_of_coins(rows: list[dict[str, object]], data: st.DataObject) -> None:
    graph = coinhaze.transaction_graph(coinhaze.CoinLedger.from_transactions(rows))
    chain = coinhaze.absorbing_chain(graph)
    check(chain, data.draw(st.sampled_from(certain(chain))), data.draw(st.integers(1, 5)))


def test_money_that_stays_makes_no_hop() -> None:
    rows = [("a", "shop", 1), ("b", "shop", 1), ("c", "shop", 2), ("shop", "d", 2)]
    graph = coinhaze.transaction_graph(coinhaze.AccountLedger.from_transfers(rows), time="temporal")
    hops = hops_of(coinhaze.absorbing_chain(graph), "d")
    assert [graph.names.parties.take(hop.parties).to_pylist() for hop in hops.hops] == [
        ["d"], ["shop"], ["a", "b", "c"],
    ]  # fmt: skip
    assert hops[2].share.tolist() == [float(Fraction(1, 4)), 0.25, 0.5]
    assert hops.earlier == 0


def test_a_long_past_is_cut_and_says_so() -> None:
    graph = coinhaze.transaction_graph(random_transfers(100, 2000, 3), time="temporal")
    chain = coinhaze.absorbing_chain(graph)
    hops = hops_of(chain, int(np.flatnonzero(graph.sinks)[0]), limit=2)
    assert len(hops) == 3
    assert 0 < hops.earlier < 1
    assert len(hops[2].at) == 0
    with pytest.raises(UsageError, match="1 or more"):
        hops_of(chain, 0, limit=0)
