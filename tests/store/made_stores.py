"""Small stores made by hand, row by row."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from coinhaze.ledger.batches import Batch, Rows, gather
from coinhaze.store.store import Store

Made = Sequence[tuple[str, int]]  # coins: owner and value
Spent = Sequence[tuple[str, int, int | None]]  # coins: maker, number, value if told


class Chain:
    """Transactions of coins, a block each unless told otherwise, put into a store at the end."""

    def __init__(self, *, first: int = 0) -> None:
        names = ("blocks", "transactions", "outputs", "inputs", "pool_flows")
        self.rows = {name: Rows(name) for name in names}
        self.height = first - 1
        self.position = 0

    def block(self) -> None:
        """Begin a block."""
        self.height += 1
        self.position = 0
        before = f"block {self.height - 1}" if self.height else None
        self.rows["blocks"].add(height=self.height, hash=f"block {self.height}", previous=before)

    def pay(self, txid: str, spent: Spent = (), made: Made = (), **pools: int) -> None:
        """Add a transaction to the block; without spending anything it is a coinbase."""
        of = {"height": self.height, "txid": txid}
        coinbase = not spent and all(into >= 0 for into in pools.values())
        self.rows["transactions"].add(**of, coinbase=coinbase, position=self.position)
        self.position += 1
        for vin, (maker, vout, value) in enumerate(spent):
            self.rows["inputs"].add(**of, vin=vin, spent_txid=maker, spent_vout=vout, value=value)
        for vout, (owner, value) in enumerate(made):
            self.rows["outputs"].add(**of, vout=vout, spendable=True, value=value, owner=owner)
        for pool, into in pools.items():
            self.rows["pool_flows"].add(**of, pool=pool, into_pool=into)

    def store(self, path: Path | None = None) -> Store:
        """Give a store that holds them."""
        return stored(gather(list(self.rows.values())), path)


def transfers(rows: Sequence[tuple[str, str, int]], path: Path | None = None) -> Store:
    """Give a store of transfers (sender, recipient, amount) of one token, one a block."""
    table = Rows("transfers")
    for height, (sender, recipient, amount) in enumerate(rows):
        table.add(
            height=height, position=0, step=0, txid=f"t{height}", token="coin", sender=sender,
            recipient=recipient, amount=str(amount), kind="token",
        )  # fmt: skip
    return stored(gather([table]), path)


def stored(tables: dict[str, Any], path: Path | None = None) -> Store:
    store = Store(path)
    with store.transaction():
        store.append(Batch(tables))
    return store
