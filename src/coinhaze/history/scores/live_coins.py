"""The unspent coins of a history and its pools, as they are scored, with their names."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coinhaze.amounts import Floats, Ints
from coinhaze.history import files
from coinhaze.history.tape import Tape
from coinhaze.ledger.coins import POOLS

POOL_VOUT = -1  # less its place in POOLS: stands for a pool where a coin has its number
POOL_SCRIPT = -1  # in the place of a type of script


@dataclass(frozen=True, eq=False)
class LiveCoins:
    """The unspent coins of a history that are worth something, in the order they were made.

    Shielded pools that hold something are among them.
    """

    transaction: Ints
    vout: Ints
    value: Ints
    steps: Floats
    row: Ints
    script: Ints  # the type of each one's script, by SCRIPT_TYPES

    @property
    def pools(self) -> int:
        """How many of them are pools."""
        return int(np.count_nonzero(self.vout < 0))

    @classmethod
    def of(cls, tape: Tape) -> LiveCoins:
        """Read them."""
        coins = tape.live_table("coins")
        value = files.column(coins, "value")
        held = value > 0
        transaction = files.column(coins, "transaction")[held].astype(np.int64)
        makers, which = np.unique(transaction, return_inverse=True)
        _, row, steps = tape.makers(makers)
        found = cls(
            transaction=transaction,
            vout=files.column(coins, "vout")[held].astype(np.int64),
            value=value[held],
            steps=steps[which] + tape.to_coin,
            row=row[which].astype(np.int64),
            script=files.column(coins, "script")[held].astype(np.int64),
        )
        return found._with_pools(tape)

    def _with_pools(self, tape: Tape) -> LiveCoins:
        """Add the pools that hold something, each behind the last transaction that changed it."""
        table = tape.live_table("pools")
        rich = files.column(table, "value") > 0
        if not rich.any():
            return self
        pools = {name: files.column(table, name)[rich] for name in table.column_names}
        pools |= {"vout": POOL_VOUT - pools.pop("pool").astype(np.int64)}
        pools |= {"script": np.full(len(pools["vout"]), POOL_SCRIPT)}
        columns = {name: np.append(column, pools[name]) for name, column in vars(self).items()}
        order = np.argsort(columns["transaction"], kind="stable")
        return LiveCoins(**{name: column[order] for name, column in columns.items()})

    def __len__(self) -> int:
        return len(self.value)


def coin_names(txids: pa.Array, vouts: Ints) -> pa.Array:
    """Name coins by their transactions and numbers: `txid:vout`, pools `pool:NAME`.

    >>> coin_names(pa.array(["a", "b"]), np.array([7, POOL_VOUT])).to_pylist()
    ['a:7', 'pool:sprout']
    """
    numbers = pc.cast(pa.array(vouts), pa.string())
    names = pc.binary_join_element_wise(txids, numbers, ":")
    pools = np.flatnonzero(vouts < 0)
    if not len(pools):
        return names
    found = pa.array([f"pool:{POOLS[POOL_VOUT - v]}" for v in vouts[pools].tolist()])
    return pc.replace_with_mask(names, pa.array(vouts < 0), found)
