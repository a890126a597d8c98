"""What relayers of a real pool of deposits took, which simulated pools are measured by."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import coinhaze
from coinhaze.ledger import AccountLedger
from coinhaze.ledger.accounts import RELAYERS


def test_half_of_relayed_withdrawals_of_100_ether_cost_an_eighth_of_a_percent(data: Path) -> None:
    ledger = coinhaze.read(data / "tornado_events" / "withdrawals_1_eth_100.json.gz")
    assert isinstance(ledger, AccountLedger)
    takes = [name.startswith(RELAYERS) for name in ledger.accounts.to_pylist()]
    relayed = np.flatnonzero(np.array(takes)[ledger.receiver])
    shares = [fee / (100 * 10**18) for fee in ledger.amounts.take(relayed).ints()]
    assert len(shares) == 24_467
    assert round(float(np.median(shares)), 5) == 0.00125
