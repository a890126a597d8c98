"""CoinJoins taken apart, as links: outputs of one transaction no longer share one past."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coinhaze.amounts import Ints
from coinhaze.coinjoin.link_matrix import MAX_STEPS, LinkMatrix
from coinhaze.coinjoin.parts import Parts
from coinhaze.errors import ResourceError, UnknownName, UsageError
from coinhaze.graph.clusters.coinjoins import CoinJoin, coinjoin_kinds
from coinhaze.ledger import CoinLedger
from coinhaze.observer.owners import Persons


@dataclass(frozen=True)
class CoinJoinLinks:
    """Links to give a chain, and the transactions that were too large to take apart, with why."""

    links: dict[str, dict[str, float]] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)


def coinjoin_links(
    ledger: CoinLedger,
    txids: Iterable[str] | None = None,
    *,
    view: Literal["coin", "address"] = "coin",
    ratio: float = 0.0,
    steps: int = MAX_STEPS,
) -> CoinJoinLinks:
    """Say where each output of some transactions comes from, by their interpretations.

    `txids` are those that look like CoinJoins unless given. Every interpretation is as likely as
    any other, and inside a block money is split by value, so an output's shares sum to 1; a
    transaction with one interpretation is left as it was. `view` says whether origins are coins or
    their addresses. What is too large keeps its outputs as they were, and is listed as refused.

    >>> ledger = CoinLedger.from_transactions([{"txid": "t", "inputs": [
    ...     {"txid": "x", "vout": 0, "value": 49}, {"txid": "y", "vout": 0, "value": 1}],
    ...     "outputs": [{"value": 49}, {"value": 1}]}])
    >>> coinjoin_links(ledger, ["t"]).links["t:1"]
    {'x:0': 0.49, 'y:0': 0.51}
    """
    parts = Parts(ledger)
    found = CoinJoinLinks()
    for tx in _numbers(ledger, txids):
        name = ledger.txids[tx].as_py()
        if not parts.can_be_taken_apart(tx):
            raise UsageError(
                f"transaction {name} cannot be taken apart: it has no inputs or no outputs of "
                "known value, or money crossed a pool"
            )
        try:
            matrix = parts.matrix(tx, ratio=ratio, steps=steps)
        except ResourceError as error:
            found.refused[name] = str(error)
            continue
        if matrix.interpretations > 1:
            found.links.update(_links(ledger, parts.made(tx), parts.spent(tx), matrix, view))
    return found


def owner_links(
    ledger: CoinLedger, known: Persons, txids: Iterable[int]
) -> dict[str, dict[str, float]]:
    """Say where outputs of CoinJoins come from, for an observer who knows some of their owners.

    An output whose owner also paid an input comes from what that owner paid in, by value. The
    other outputs come from the rest: from every payer what is left of what was paid in, less what
    is known to have gone back. CoinJoins of which no output's owner is a payer are left as they
    were. `txids` are rows of the ledger.

    >>> ledger = CoinLedger.from_transactions([{"txid": "t", "inputs": [
    ...     {"txid": a, "vout": 0, "value": 5, "address": a} for a in "abc"],
    ...     "outputs": [{"value": 5, "address": a} for a in "axy"]}])
    >>> from coinhaze.observer.owners import persons
    >>> owner_links(ledger, persons(ledger), [3])["t:1"]
    {'b:0': 0.5, 'c:0': 0.5}
    """
    parts = Parts(ledger)
    links: dict[str, dict[str, float]] = {}
    for tx in txids:
        spent, made = parts.spent(tx), parts.made(tx)
        payer, payee = (known.of_owner[ledger.output_owner[c]].tolist() for c in (spent, made))
        if set(payer).isdisjoint(payee):
            continue
        paid = dict.fromkeys(payer, 0)
        for person, value in zip(payer, values := parts.values(spent), strict=True):
            paid[person] += value
        left = dict(paid)
        for person, value in zip(payee, parts.values(made), strict=True):
            if person in left:
                left[person] = max(left[person] - value, 0)
        origins = ledger.output_names(spent).to_pylist()
        rest = sum(left.values())
        inputs = list(zip(origins, payer, values, strict=True))
        for output, person in zip(ledger.output_names(made).to_pylist(), payee, strict=True):
            if person in paid:
                links[output] = {o: v / paid[p] for o, p, v in inputs if p == person}
            elif rest:
                shares = {o: left[p] / rest * (v / paid[p]) for o, p, v in inputs}
                links[output] = {o: share for o, share in shares.items() if share > 0}
    return links


def _links(
    ledger: CoinLedger, made: Ints, spent: Ints, matrix: LinkMatrix, view: str
) -> dict[str, dict[str, float]]:
    outputs = ledger.output_names(made).to_pylist()
    if view == "coin":
        origins = ledger.output_names(spent).to_pylist()
    else:
        origins = ledger.owners.take(pa.array(ledger.output_owner[spent])).to_pylist()
    links: dict[str, dict[str, float]] = {}
    for output, shares in zip(outputs, matrix.shares.tolist(), strict=True):
        row = links[output] = {}
        for origin, share in zip(origins, shares, strict=True):
            if share > 0:
                row[origin] = row.get(origin, 0.0) + share
    return links


def _numbers(ledger: CoinLedger, txids: Iterable[str] | None) -> list[int]:
    if txids is None:
        recognised: list[int] = np.flatnonzero(coinjoin_kinds(ledger) != CoinJoin.none).tolist()
        return recognised
    names = list(dict.fromkeys(txids))
    rows = pc.index_in(pa.array(names, pa.string()), value_set=ledger.txids).to_pylist()
    for name, row in zip(names, rows, strict=True):
        if row is None or not ledger.inside[row]:
            raise UnknownName(f"no transaction {name!r} in the ledger")
    return [int(row) for row in rows]
