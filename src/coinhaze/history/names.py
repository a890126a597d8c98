"""Names of transactions and coins as people write them, also in errors."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from coinhaze.errors import LedgerError
from coinhaze.history.index.index_kernels import FAULTS, POOL_SHORT, TWICE, UNKNOWN, VALUES
from coinhaze.ledger.coin_blocks import CoinBlocks
from coinhaze.ledger.coins import DUPLICATE_COINBASES, POOLS


def id_of(octets: bytes) -> str:
    """Write an id as people do: backwards, in hex."""
    return octets[::-1].hex()


def octets_of_id(txid: str) -> bytes | None:
    """Give the bytes of an id that is a hash, marked or not by a height."""
    base = txid.split("@")[0]
    try:
        return bytes.fromhex(base)[::-1] if len(base) == 64 else None
    except ValueError:
        return None


def transaction_name(octets: bytes, height: int) -> str:
    """Name a transaction by its hash; the lost one of a duplicate id also by its height."""
    txid = id_of(octets)
    lost = DUPLICATE_COINBASES.get(txid, (None, None))[0]
    return f"{txid}@{height}" if lost == height else txid


def names_of(blocks: CoinBlocks) -> pa.Array:
    """Give the names of transactions as text."""
    if blocks.names is not None:
        return blocks.names.cast(pa.large_string())
    heights = np.repeat(blocks.heights, blocks.sizes).tolist()
    pairs = zip(blocks.ids, heights, strict=True)
    return pa.array([transaction_name(i.tobytes(), h) for i, h in pairs], pa.large_string())


def fault_of(blocks: CoinBlocks, where: str, fault: int, t: int, at: int) -> LedgerError:
    """Say which transaction breaks a rule, and at what height."""
    height = int(np.repeat(blocks.heights, blocks.sizes)[t])
    place = f"{where}: block {height}" if height >= 0 else where
    name = id_of(blocks.ids[t].tobytes()) if blocks.names is None else blocks.names[t].as_py()
    value: object = name
    if fault in (UNKNOWN, VALUES):
        maker = (
            id_of(blocks.spent_ids[at].tobytes())
            if blocks.spent_names is None
            else blocks.spent_names[at].as_py()
        )
        value = f"{maker}:{blocks.spent_vouts[at]}"
    if fault == POOL_SHORT and blocks.pools is not None:
        value = f"pool:{POOLS[int(blocks.pools.pool[at])]}"
    if fault == TWICE:
        value = f"{name}:{blocks.made_vouts[at]}"
    what = f"transaction {name}: {FAULTS[fault]}"
    return LedgerError(place, what, value=value, fix="the history is as it was at its last commit")
