"""An economy of hubs: people pay into exchanges, are paid by them, and pay each other."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from coinhaze.ledger import AccountLedger


def simulate_hubs(*, people: int, transfers: float = 1.6, seed: int = 1) -> AccountLedger:
    """Simulate `transfers` payments for each of the people, identical for the same seed.

    Two in five go into a hub, nine in twenty come out of one, the rest are between people. Hubs
    differ greatly in size: the k-th is 1/k as busy as the first. There is one for every 500 people.

    >>> len(simulate_hubs(people=100, transfers=2))
    200
    """
    rng = np.random.default_rng(seed)
    hubs = max(5, people // 500)
    names = pa.array([f"u{k}" for k in range(people)] + [f"hub{k}" for k in range(hubs)])
    n = int(transfers * people)
    payer, payee = rng.integers(0, people, n), rng.integers(0, people, n)
    size = 1 / np.arange(1, hubs + 1)
    into = people + rng.choice(hubs, n, p=size / size.sum())
    out_of = people + rng.choice(hubs, n, p=size / size.sum())
    kind = rng.random(n)
    sender = np.where(kind < 0.4, payer, np.where(kind < 0.85, out_of, payer))
    receiver = np.where(kind < 0.4, into, payee)
    amount = rng.lognormal(10, 2, n).astype(np.int64) + 1
    return AccountLedger.from_columns(
        names.take(pa.array(sender)), names.take(pa.array(receiver)), pa.array(amount)
    )
