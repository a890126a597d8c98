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
