"""Coins put together nearly: the exact mix always lies in the interval."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import coinhaze
from coinhaze.errors import UsageError
from coinhaze.observer import AbsorbingChain
from coinhaze.simulate import simulate_town
from coinhaze.solve.local.mixing import mix, mix_nearly
from properties import strategies
from properties.comparison import profile


def chain_of(ledger: coinhaze.CoinLedger) -> AbsorbingChain:
    return coinhaze.absorbing_chain(coinhaze.transaction_graph(ledger))


@given(strategies.transactions(), st.data())
@profile(30)
def test_whole_pasts_mix_as_the_exact_way(
    rows: list[strategies.Transaction], data: st.DataObject
) -> None:
    chain = chain_of(coinhaze.CoinLedger.from_transactions(rows))
    sinks = np.flatnonzero(chain.graph.sinks).tolist()
    if not sinks:
        return
    nodes = data.draw(st.lists(st.sampled_from(sinks), min_size=1, max_size=3, unique=True))
    found, exact = mix_nearly(chain, nodes), mix(chain, nodes)
    assert found.bits_low <= exact.bits <= found.bits_high
    assert found.width <= 1e-8


def test_the_interval_of_cut_pasts_holds_the_exact_mix() -> None:
    chain = chain_of(simulate_town(transactions=1500, people=50))
    sinks = np.flatnonzero(chain.graph.sinks)
    wide = 0
    for some in np.random.default_rng(3).choice(sinks, (12, 3)):
        nodes = np.unique(some).tolist()
        found = mix_nearly(chain, nodes, whole=50)
        exact = mix(chain, nodes)
        assert found.bits_low <= exact.bits <= found.bits_high
        wide += found.width > 1e-6
    assert wide > 1


def test_what_has_no_plain_rows_is_refused() -> None:
    ledger = simulate_town(transactions=50, people=10)
    graph = coinhaze.transaction_graph(ledger)
    poison = coinhaze.absorbing_chain(graph, policy="poison", listed=["person1"])
    with pytest.raises(UsageError, match="no poison"):
        mix_nearly(poison, [0])
