"""The rules of traces once more, slow and obvious: one transaction at a time, tuples for places."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

IDLE = {"delegatecall", "callcode", "staticcall"}


def moved(rows: Sequence[dict[str, Any]]) -> dict[str, list[tuple[str, str, str]]]:
    """Give sender, recipient and amount of what moved in each transaction, in order."""
    of_transaction = defaultdict(list)
    for row in rows:
        of_transaction[row["transaction_hash"]].append(row)
    found = {}
    for txid, calls in of_transaction.items():
        failed = {c["place"] for c in calls if c["status"] == 0 or c["error"]}
        good = [
            (c["from_address"], c["to_address"], str(c["value"]))
            for c in sorted(calls, key=lambda c: c["place"])
            if c["value"] > 0 and c["call_type"] not in IDLE and not inside(c["place"], failed)
        ]
        if good:
            found[txid] = good
    return found


def inside(place: tuple[int, ...], failed: set[tuple[int, ...]]) -> bool:
    return any(place[:depth] in failed for depth in range(len(place) + 1))
