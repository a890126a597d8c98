"""What batches say of a chain, in plain Python, to be held against what a node says."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from coinhaze.ledger.batches import SCHEMAS, Batch

Row = dict[str, Any]
Coin = tuple[str, int]


@dataclass
class Told:
    """All rows of all tables."""

    tables: dict[str, list[Row]] = field(default_factory=lambda: {name: [] for name in SCHEMAS})

    @classmethod
    def by(cls, batches: Iterable[Batch]) -> Told:
        told = cls()
        for batch in batches:
            for name, table in batch.tables.items():
                table.validate(full=True)
                told.tables[name] += table.to_pylist()
        return told

    def __getitem__(self, table: str) -> list[Row]:
        return self.tables[table]

    def coins_of(self, txid: str) -> dict[str, int]:
        """Give values of a transaction's outputs by owner."""
        return {o["owner"]: o["value"] for o in self["outputs"] if o["txid"] == txid}

    def unspent(self) -> dict[Coin, int]:
        """Follow coins by hand: made, less spent, less those nobody can spend."""
        coins = {(o["txid"], o["vout"]): o["value"] for o in self["outputs"] if o["spendable"]}
        for spent in self["inputs"]:
            del coins[spent["spent_txid"], spent["spent_vout"]]
        return coins

    def without_spent(self) -> dict[str, list[Row]]:
        """Give the tables as a source tells them that does not know coins spent."""
        blank = {"value": None, "owner": None}
        return self.tables | {"inputs": [row | blank for row in self["inputs"]]}

    def headers(self) -> dict[int, str]:
        """Give hashes by height."""
        return {b["height"]: b["hash"] for b in self["blocks"]}
