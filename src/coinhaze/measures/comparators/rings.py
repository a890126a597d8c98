"""How large rings are in effect: 2^H members that would be equally likely."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coinhaze.errors import UsageError
from coinhaze.ledger import CoinLedger
from coinhaze.measures.entropy import effective_number
from coinhaze.measures.intervals import surprise
from coinhaze.observer.decoys import ring_starts


def ring_sizes(ledger: CoinLedger) -> pa.Table:
    """Give every ring's members, bits, effective size 2^bits and its likeliest member's chance.

    >>> ledger = CoinLedger.from_transactions(
    ...     [{"txid": "t", "rings": [["a:0", "b:0", "c:0", "d:0"]], "outputs": 1}]
    ... )
    >>> ring_sizes(ledger).to_pylist()
    [{'ring': 'ring:t:0', 'members': 4, 'bits': 2.0, 'effective': 4.0, 'top_probability': 0.25}]
    """
    if not ledger.has_rings:
        raise UsageError("this ledger has no rings, so they have no size")
    start = ring_starts(ledger)
    members = np.diff(np.append(start, len(ledger.ring_tx)))
    chance = ledger.ring_probability
    if chance is None:
        chance = np.repeat(1 / members, members)
    bits = np.add.reduceat(surprise(chance), start)
    txids = ledger.txids.take(pa.array(ledger.ring_tx[start]))
    vins = pc.cast(pa.array(ledger.ring_vin[start]), txids.type)
    return pa.table(
        {
            "ring": pc.binary_join_element_wise(pa.scalar("ring", txids.type), txids, vins, ":"),
            "members": members,
            "bits": bits,
            "effective": effective_number(bits),
            "top_probability": np.maximum.reduceat(chance, start),
        }
    )
