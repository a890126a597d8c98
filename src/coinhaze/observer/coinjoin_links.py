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
