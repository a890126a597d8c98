"""What is known of a cached ledger before it is opened."""

from __future__ import annotations

from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from coinhaze.formats.bitcoin_raw.networks import LOOKED_AT, networks_of
from coinhaze.ledger import CoinLedger, Ledger
from coinhaze.measures import Scores


def facts_of(scores: Scores) -> dict[str, Any]:
    """Say of scores, and of the ledger they are about, what fits on a card; plain JSON."""
    summary = scores.summary()
    return ledger_facts(scores.chain.graph.ledger) | {
        "scored": summary.scored,
        "bits_median": None if summary.scored == 0 else summary.bits_median,
        "mean_interval": summary.mean_interval,
        "estimate": summary.standard_error is not None,
        "method": summary.method,
    }


def ledger_facts(ledger: Ledger) -> dict[str, Any]:
    """Say what a ledger is and what stretch of its chain it holds.

    >>> from coinhaze.ledger import AccountLedger
    >>> ledger_facts(AccountLedger.from_transfers([("a", "b", 1)]))["kind"]
    'accounts'
    """
    coins = isinstance(ledger, CoinLedger)
    heights = _ends(ledger.heights) if isinstance(ledger, CoinLedger) else (None, None)
    times = _ends(_seconds(ledger.times))
    owners = ledger.owners if isinstance(ledger, CoinLedger) else ledger.accounts
    return {
        "kind": "coins" if coins else "accounts",
        "hides_amounts": isinstance(ledger, CoinLedger) and ledger.output_value is None,
        "has_unknown": isinstance(ledger, CoinLedger) and ledger.has_unknown,
        "network": _network(owners),
        "heights": list(heights),
        "times": list(times),
    }


def _network(owners: pa.StringArray) -> str | None:
    """Name the one network that all addresses looked at can be of."""
    names = (networks_of(str(name)) for name in owners.slice(0, LOOKED_AT).to_pylist())
    known = [networks for networks in names if networks]
    common = reduce(frozenset.__and__, known) if known else frozenset()
    return next(iter(common)) if len(common) == 1 else None


def _seconds(times: pa.Array | None) -> pa.Array | None:
    if times is None or not pa.types.is_timestamp(times.type):
        return times
    return times.cast(pa.timestamp("s", times.type.tz), safe=False).cast(pa.int64())


def _ends(column: pa.Array | None) -> tuple[int | None, int | None]:
    if column is None:
        return None, None
    ends = pc.min_max(column)
    return ends["min"].as_py(), ends["max"].as_py()
