"""A shorter window of a ledger that is there: its last transactions, what was before unseen."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coinhaze.amounts import Bools, Ints
from coinhaze.errors import UsageError
from coinhaze.ledger.accounts import AccountLedger
from coinhaze.ledger.coins import CoinLedger


def last_part(ledger: CoinLedger | AccountLedger, share: float) -> CoinLedger | AccountLedger:
    """Give the last `share` of a ledger's transactions as an observer would see them alone.

    >>> ledger = AccountLedger.from_transfers([("a", "b", 5), ("b", "c", 3)])
    >>> last_part(ledger, 0.5).tables()["transfers"].to_pylist()[0]["from"]
    'b'
    """
    if not 0 < share <= 1:
        raise UsageError(f"share is a part of the ledger above 0 and up to 1, not {share!r}")
    left_out = len(ledger) - max(1, round(share * len(ledger)))
    if left_out <= 0:
        return ledger
    if isinstance(ledger, AccountLedger):
        return _last_transfers(ledger, left_out)
    return _last_transactions(ledger, left_out)


def _last_transfers(ledger: AccountLedger, left_out: int) -> AccountLedger:
    rows = slice(left_out, None)
    parties, code = np.unique(
        np.concatenate([ledger.sender[rows], ledger.receiver[rows]]), return_inverse=True
    )
    sender, receiver = np.split(code, 2)
    return replace(
        ledger,
        accounts=ledger.accounts.take(pa.array(parties)),
        sender=sender,
        receiver=receiver,
        amounts=ledger.amounts.take(np.arange(left_out, len(ledger))),
        # Without ids of their own, mints go by the number of their row: keep the old one.
        ids=ledger.transfer_ids().slice(left_out),
        times=None if ledger.times is None else ledger.times.slice(left_out),
        fees=None if ledger.fees is None else ledger.fees.take(np.arange(left_out, len(ledger))),
    )


def _last_transactions(ledger: CoinLedger, left_out: int) -> CoinLedger:
    """Cut a ledger of coins: of earlier transactions only the coins still to be used stay."""
    cut = len(ledger.inside) - len(ledger) + left_out  # earlier transactions stand first
    late = np.arange(len(ledger.inside)) >= cut
    inputs, flows, rings = (
        late[rows] for rows in (ledger.input_tx, ledger.flow_tx, ledger.ring_tx)
    )
    coins = late[ledger.output_tx]
    coins[ledger.input_output[inputs]] = True
    coins[ledger.ring_output[rings]] = True
    kept = late.copy()
    kept[ledger.output_tx[coins]] = True
    tx, coin = _numbers(kept), _numbers(coins)
    owned = np.zeros(len(ledger.owners), dtype=np.bool_)
    owned[ledger.output_owner[coins]] = True
    return replace(
        ledger,
        txids=ledger.txids.filter(pa.array(kept)),
        inside=late[kept],
        coinbase=(ledger.coinbase & late)[kept],
        heights=_only(ledger.heights, late).filter(pa.array(kept)),
        times=_only(ledger.times, late).filter(pa.array(kept)),
        owners=ledger.owners.filter(pa.array(owned)),
        owner_is_coin=ledger.owner_is_coin[owned],
        output_tx=tx[ledger.output_tx[coins]],
        output_vout=ledger.output_vout[coins],
        output_value=None
        if ledger.output_value is None
        else ledger.output_value.take(np.flatnonzero(coins)),
        output_owner=_numbers(owned)[ledger.output_owner[coins]],
        output_spendable=ledger.output_spendable[coins],
        input_tx=tx[ledger.input_tx[inputs]],
        input_output=coin[ledger.input_output[inputs]],
        flow_tx=tx[ledger.flow_tx[flows]],
        flow_pool=ledger.flow_pool[flows],
        flow_into=ledger.flow_into.take(np.flatnonzero(flows)),
        ring_tx=tx[ledger.ring_tx[rings]],
        ring_vin=ledger.ring_vin[rings],
        ring_output=coin[ledger.ring_output[rings]],
        ring_probability=None
        if ledger.ring_probability is None
        else ledger.ring_probability[rings],
        complete=False,
        pool_values={},
    )


def _numbers(kept: Bools) -> Ints:
    """Give for each row that is kept its new number."""
    found: Ints = np.cumsum(kept) - 1
    return found


def _only(values: pa.Array, where: Bools) -> pa.Array:
    return pc.if_else(pa.array(where), values, pa.scalar(None, values.type))
