"""Random ledgers of any size for solver tests."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from coinhaze import AccountLedger


def random_transfers(accounts: int, transfers: int, seed: int) -> AccountLedger:
    """Make transfers among accounts of very uneven popularity."""
    rng = np.random.default_rng(seed)
    weight = 1 / np.arange(1, accounts + 1) ** 0.9
    weight /= weight.sum()
    names = pa.array([f"a{k}" for k in range(accounts)])
    sender = rng.choice(accounts, transfers, p=weight)
    receiver = rng.choice(accounts, transfers, p=weight)
    amount = rng.lognormal(8, 2, transfers).astype(np.int64) + 1
    return AccountLedger.from_columns(
        names.take(pa.array(sender)), names.take(pa.array(receiver)), pa.array(amount)
    )


def hub_economy(users: int, seed: int, *, transfers: float = 1.6) -> AccountLedger:
    """Make an economy of hubs: users pay into exchanges and are paid out, and pay each other."""
    rng = np.random.default_rng(seed)
    hubs = max(5, users // 500)
    names = pa.array([f"u{k}" for k in range(users)] + [f"hub{k}" for k in range(hubs)])
    n = int(transfers * users)
    payer = rng.integers(0, users, n)
    payee = rng.integers(0, users, n)
    weight = 1 / np.arange(1, hubs + 1)
    hub_in = users + rng.choice(hubs, n, p=weight / weight.sum())
    hub_out = users + rng.choice(hubs, n, p=weight / weight.sum())
    kind = rng.random(n)
    sender = np.where(kind < 0.4, payer, np.where(kind < 0.85, hub_out, payer))
    receiver = np.where(kind < 0.4, hub_in, payee)
    amount = rng.lognormal(10, 2, n).astype(np.int64) + 1
    return AccountLedger.from_columns(
        names.take(pa.array(sender)), names.take(pa.array(receiver)), pa.array(amount)
    )
