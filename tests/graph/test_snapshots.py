"""The replay kernels against plain Python integers."""

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from coinhaze.graph.temporal_kernels import carries, replay
from coinhaze.ledger import Amounts

PARTIES = 5
FLOWS = st.lists(
    st.tuples(
        st.integers(0, 12),
        st.integers(0, PARTIES - 1),
        st.integers(0, PARTIES - 1),
        st.one_of(st.integers(1, 9), st.integers(1, 2**256 - 1)),
    ),
    max_size=40,
)


def slow(flows: list[Any], holds: list[bool], opening: list[int]) -> dict[str, Any]:
    balance, lowest, receipts = list(opening), [0] * PARTIES, [0] * PARTIES
    leaves, meets, kept = [0] * len(flows), [0] * len(flows), []
    for step in sorted({f[0] for f in flows}):
        now = [k for k, f in enumerate(flows) if f[0] == step]
        for k in now:
            _, tail, _, amount = flows[k]
            if holds[tail]:
                leaves[k] = receipts[tail]
                balance[tail] -= amount
                lowest[tail] = min(lowest[tail], balance[tail])
        for party in dict.fromkeys(flows[k][2] for k in now):
            if holds[party]:
                if balance[party] > 0:
                    kept.append((party, receipts[party], balance[party]))
                receipts[party] += 1
        for k in now:
            _, _, head, amount = flows[k]
            if holds[head]:
                meets[k] = receipts[head]
                balance[head] += amount
    return {"lowest": lowest, "receipts": receipts, "flows": (leaves, meets), "kept": kept}


@settings(deadline=None)
@given(FLOWS, st.lists(st.booleans(), min_size=PARTIES, max_size=PARTIES))
def test_the_replay_is_that_of_plain_integers(flows: list[Any], holds: list[bool]) -> None:
    step, tail, head = (np.array([f[k] for f in flows], dtype=np.int64) for k in range(3))
    amounts = Amounts.of([f[3] for f in flows])
    order = np.argsort(step, kind="stable")
    holders = np.flatnonzero(holds)
    number = np.where(holds, np.cumsum(holds) - 1, -1)
    lowest, receipts, leaves, meets = replay(
        order, step, tail, head, number, amounts.digits, len(holders)
    )
    expected = slow(flows, holds, [0] * PARTIES)
    assert Amounts(lowest).ints() == [expected["lowest"][h] for h in holders]
    assert receipts.tolist() == [expected["receipts"][h] for h in holders]
    # Where nobody holds, every party has one snapshot, and there is nothing to tell.
    assert (leaves.tolist(), meets.tolist()) == (expected["flows"] if len(holders) else ([], []))

    # With what was lacked as the opening, no balance falls below zero.
    opening = [-low for low in expected["lowest"]]
    money = Amounts.of([opening[h] for h in holders])
    width = max(money.digits.shape[1], amounts.digits.shape[1])
    balance = np.array(money.widened(width), order="C")
    digits = amounts.widened(width)
    party, snapshot, kept = carries(
        order, step, tail, head, number, digits, balance, int(receipts.sum())
    )
    found = zip(party.tolist(), snapshot.tolist(), Amounts(kept.T).carried().ints(), strict=True)
    again = slow(flows, holds, opening)
    assert list(found) == again["kept"]
    assert min([0, *again["lowest"]]) == 0
