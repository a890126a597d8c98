"""Folding: states that lead to one column are one, and that changes no answer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from built_late import BuiltLate
from coinhaze import AbsorbingChain, AccountLedger, absorbing_chain, transaction_graph
from coinhaze.simulate import simulate_hubs, simulate_town, simulate_week
from coinhaze.simulate.weeks.zcash import zcash_history
from coinhaze.solve.exact.engines import score_exactly
from coinhaze.solve.query import Query
from coinhaze.solve.structure.lump import LumpedChain, lump
from solve.dense import absorption
from solve.economies import random_transfers

NONE = np.zeros(0)


def folded_of(chain: AbsorbingChain, **settings: Any) -> LumpedChain:
    return lump(Query.of(chain, np.flatnonzero(chain.graph.sinks)), NONE, **settings)


def zcash(**settings: Any) -> AbsorbingChain:
    ledger = simulate_week("zcash-week", size=0.002)
    entered = zcash_history(size=0.002, seed=1)
    history = {p: v for p, v in entered.items() if p in ledger.facts()["pools"]}  # type: ignore[operator]
    return absorbing_chain(transaction_graph(ledger, **settings), history=history)


CHAINS = BuiltLate[AbsorbingChain](
    {
        "town": lambda: absorbing_chain(
            transaction_graph(simulate_town(transactions=300, people=40))
        ),
        "hubs": lambda: absorbing_chain(transaction_graph(simulate_hubs(people=300, seed=2))),
        "hubs, temporal": lambda: absorbing_chain(
            transaction_graph(simulate_hubs(people=300, seed=2), time="temporal")
        ),
        "sparse": lambda: absorbing_chain(transaction_graph(random_transfers(300, 350, 4))),
        "zcash": lambda: zcash(),
        "zcash, address": lambda: zcash(view="address"),
    }
)


def test_coins_spent_together_are_one_state() -> None:
    rows = [("a", "x", 1), ("b", "x", 1), ("c", "x", 2)]
    rows += [("x", "y", 3), ("d", "y", 1), ("x", "z", 1), ("e", "z", 1)]
    chain = absorbing_chain(transaction_graph(AccountLedger.from_transfers(rows)))
    nodes = np.array([chain.graph.names.node(n) for n in "yz"])
    query = Query.of(chain, nodes)
    lumped = lump(query, NONE)
    assert len(query.reduced) == 8
    assert len(lumped.query.reduced) == 5  # what x gathers, d, y, e and z
    assert len(lumped.columns) == 3
    scores = score_exactly(chain, nodes, lumped=lumped)
    np.testing.assert_allclose(scores.bits, [0.811278 + 0.75 * 1.5, 1 + 0.5 * 1.5], atol=1e-6)
    np.testing.assert_allclose(scores.steps, [2.75, 2.5])


@pytest.mark.parametrize("name", CHAINS)
def test_lumping_changes_no_answer(name: str) -> None:
    chain = CHAINS[name]
    small, whole = folded_of(chain), folded_of(chain, merge=False)
    assert len(small.query.reduced) < len(whole.query.reduced)
    one, other = (score_exactly(chain, f.query.rows, lumped=f) for f in (small, whole))
    for field in ("bits", "steps", "mass", "sources", "top_probability"):
        np.testing.assert_allclose(getattr(one, field), getattr(other, field), atol=1e-11)
    answered = ~np.isnan(one.bits)
    assert np.all((one.bits_low <= other.bits_high)[answered])
    assert np.all((one.bits_high >= other.bits_low)[answered])


@pytest.mark.parametrize("name", ["town", "hubs", "hubs, temporal", "sparse"])
def test_rows_over_columns_are_those_of_a_dense_solve(name: str) -> None:
    chain = CHAINS[name]
    lumped = folded_of(chain)
    reduced, columns = lumped.query.reduced, lumped.columns
    answered = lumped.query.rows[lumped.query.answered]
    dense, _ = absorption(chain, reduced.retained)
    dense = dense[(np.cumsum(reduced.retained) - 1)[answered]]
    # What the columns of outcomes add up to, against the chain that was cut down.
    source = reduced.retained & (chain.column >= 0)
    expected = np.zeros((len(dense), len(columns)))
    for node in np.flatnonzero(source):
        expected[:, columns.of_state[reduced.state[node]]] += dense[:, chain.column[node]]
    n = len(reduced)
    q, r = np.zeros((n, n)), np.zeros((n, len(columns)))
    q[np.repeat(np.arange(n), np.diff(reduced.indptr)), reduced.indices] = reduced.data
    ends = np.flatnonzero(columns.of_state >= 0)
    r[ends, columns.of_state[ends]] = reduced.own[ends]
    found = np.linalg.solve(np.eye(n) - q, r)[reduced.state[answered]]
    np.testing.assert_allclose(found, expected, atol=1e-12)
