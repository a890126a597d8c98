"""Which of a few transactions look like CoinJoins, without a look at the whole ledger."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from coinhaze.amounts import Ints
from coinhaze.graph.clusters.coinjoins import coinjoin_kinds
from coinhaze.graph.graph import Kind
from coinhaze.ledger import CoinLedger
from coinhaze.web.desk_book import Book
from coinhaze.web.desk_nodes import Nodes

MOST_COINS = 20_000  # that a transaction may have to be looked at


def coinjoins(nodes: Nodes, some: Sequence[int]) -> set[int]:
    """Find those of some nodes that are transactions shaped like CoinJoins."""
    asked = {int(n): nodes.tx(int(n)) for n in some if nodes.graph.kinds[n] == Kind.transaction}
    if not asked or nodes.book.hides_amounts:
        return set()
    txs = sorted(set(asked.values()))
    kinds = dict(zip(txs, coinjoin_kinds(only(nodes.book, txs))[1:].tolist(), strict=True))
    return {node for node, tx in asked.items() if kinds[tx]}


def only(book: Book, txs: Sequence[int]) -> CoinLedger:
    """Cut a ledger down to some transactions and their coins; row 0 made what they spend."""
    ledger = book.coins
    made, spent = [book.made(tx) for tx in txs], [book.spent(tx) for tx in txs]
    for k in range(len(txs)):
        if len(made[k]) + len(spent[k]) > MOST_COINS:
            made[k], spent[k] = made[k][:0], spent[k][:0]
    coins = np.concatenate([*spent, *made])
    n_spent = sum(map(len, spent))
    assert ledger.output_value is not None
    inside = np.arange(len(txs) + 1) > 0
    nothing = np.zeros(0, dtype=np.int64)
    return replace(
        ledger,
        txids=pa.array([str(k) for k in range(len(txs) + 1)], pa.string()),
        inside=inside,
        coinbase=np.zeros(len(inside), dtype=np.bool_),
        heights=pa.nulls(len(inside), pa.int64()),
        times=pa.nulls(len(inside), pa.int64()),
        output_tx=np.concatenate([np.zeros(n_spent, dtype=np.int64), _numbers(made)]),
        output_vout=ledger.output_vout[coins],
        output_value=ledger.output_value.take(coins),
        output_owner=ledger.output_owner[coins],
        output_spendable=ledger.output_spendable[coins],
        input_tx=_numbers(spent),
        input_output=np.arange(n_spent),
        flow_tx=nothing,
        flow_pool=nothing,
        flow_into=ledger.flow_into.take(nothing),
        ring_tx=nothing,
        ring_vin=nothing,
        ring_output=nothing,
        ring_probability=None,
    )


def _numbers(parts: Sequence[Ints]) -> Ints:
    """Number the rows of each part by the transaction it belongs to, from 1."""
    return np.repeat(np.arange(1, len(parts) + 1), [len(part) for part in parts])
