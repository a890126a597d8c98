"""Coin ledgers -> flows: coins or their owners, transactions, shielded pools, rings."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coinhaze.graph.clusters import Clusters, merge_owners
from coinhaze.graph.flows import Flows
from coinhaze.graph.graph import Kind
from coinhaze.ledger import Amounts, CoinLedger
from coinhaze.ledger.amounts import Bools, Ints
from coinhaze.ledger.coins import POOLS

# A transaction is three steps: members enter rings, inputs enter the transaction, it pays out.
RING, ENTER, PAY = 0, 1, 2


def coin_flows(
    ledger: CoinLedger, *, by_owner: bool, pools: str, clusters: Clusters | None = None
) -> Flows:
    """Take coins, or their owners if `by_owner`, as the parties that transactions link."""
    merged = merge_owners(ledger.owners, clusters)
    owner = merged.number[ledger.output_owner]
    holders = len(merged.names) if by_owner else len(ledger.output_tx)
    holder = owner if by_owner else np.arange(holders)
    n_tx = len(ledger.txids)
    pool_tx, pool, into, pool_names = _pool_flows(ledger, merged=pools == "merged")
    ring_tx, ring, ring_names = _rings(ledger)
    first_pool = holders + n_tx
    first_ring = first_pool + len(pool_names)
    parties = first_ring + len(ring_names)

    made = np.flatnonzero(ledger.inside[ledger.output_tx])
    pays_in = into.positive()
    parts = [
        (3 * ledger.ring_tx + RING, holder[ledger.ring_output], first_ring + ring),
        (3 * ring_tx + ENTER, first_ring + np.arange(len(ring_tx)), holders + ring_tx),
        (
            3 * ledger.input_tx + ENTER,
            holder[ledger.input_output],
            holders + ledger.input_tx,
        ),
        (
            (3 * pool_tx + ENTER)[~pays_in],
            (first_pool + pool)[~pays_in],
            (holders + pool_tx)[~pays_in],
        ),
        (3 * ledger.output_tx[made] + PAY, holders + ledger.output_tx[made], holder[made]),
        (
            (3 * pool_tx + PAY)[pays_in],
            (holders + pool_tx)[pays_in],
            (first_pool + pool)[pays_in],
        ),
    ]
    step, tail, head = (np.concatenate(column) for column in zip(*parts, strict=True))
    lengths = [len(p[0]) for p in parts]
    payment_flow = np.full(len(ledger.output_tx), -1)
    payment_flow[made] = sum(lengths[:4]) + np.arange(len(made))

    value = ledger.output_value
    amounts = None
    lost = Amounts.zeros(parties)
    observed = None
    if value is not None:
        amounts = Amounts.concat(
            [
                Amounts.zeros(lengths[0] + lengths[1]),
                value.take(ledger.input_output),
                (-into).take(~pays_in),
                value.take(made),
                into.take(pays_in),
            ]
        )
        if by_owner:
            never = made[~ledger.output_spendable[made]]
            lost = value.take(never).total_by(holder[never], parties)
        earlier = np.flatnonzero(~ledger.inside[ledger.output_tx])
        observed = value.take(earlier).total_by(holder[earlier], parties)
    kinds = np.repeat(
        np.array(
            [Kind.address if by_owner else Kind.coin, Kind.transaction, Kind.pool, Kind.ring],
            dtype=np.int8,
        ),
        (holders, n_tx, len(pool_names), len(ring_names)),
    )
    if by_owner:
        # An output without an address owns itself: a coin, which has no snapshots.
        kinds[np.flatnonzero(_lone_coins(ledger, merged.number, holders))] = Kind.coin
    lone = np.zeros(parties, dtype=np.bool_)
    lone[holders : holders + n_tx] = ledger.inside
    can_sink = (kinds != Kind.transaction) & (kinds != Kind.ring)
    if not by_owner:
        made_here = ledger.inside[ledger.output_tx] | (value is not None)
        can_sink[:holders] = ledger.output_spendable & made_here
    return Flows(
        names=pa.concat_arrays(
            [
                merged.names if by_owner else ledger.output_names(),
                pc.binary_join_element_wise("tx", ledger.txids, ":"),
                pa.array(pool_names, pa.string()),
                ring_names,
            ]
        ),
        kinds=kinds,
        holds=(kinds == Kind.address) | (kinds == Kind.pool),
        can_sink=can_sink,
        step=step,
        tail=tail,
        head=head,
        amounts=amounts,
        payment_flow=payment_flow,
        ledger=ledger,
        lone=lone,
        lost=lost,
        observed=observed,
        weights=_ring_weights(ledger, len(step)),
        others=merged.others if by_owner else ledger.owners.take(pa.array(owner)),
        other_party=merged.other_party if by_owner else np.arange(holders),
    )


def _lone_coins(ledger: CoinLedger, number: Ints, parties: int) -> Bools:
    """Tell which parties are a single output without an address."""
    members = np.bincount(number, minlength=parties)
    unowned = np.bincount(number, weights=ledger.owner_is_coin, minlength=parties)
    lone: Bools = (members == 1) & (unowned == 1)
    return lone


def _pool_flows(ledger: CoinLedger, *, merged: bool) -> tuple[Ints, Ints, Amounts, list[str]]:
    """Net each transaction's flow with each pool, or with all of them as one."""
    if not len(ledger.flow_tx):
        nothing = np.zeros(0, dtype=np.int64)
        return nothing, nothing, Amounts.zeros(0), []
    pool = np.full(len(ledger.flow_tx), POOLS.index("shielded")) if merged else ledger.flow_pool
    key, group = np.unique(ledger.flow_tx * len(POOLS) + pool, return_inverse=True)
    into = ledger.flow_into.total_by(group, len(key))
    used, number = np.unique(key % len(POOLS), return_inverse=True)
    return key // len(POOLS), number, into, [f"pool:{POOLS[p]}" for p in used]


def _rings(ledger: CoinLedger) -> tuple[Ints, Ints, pa.StringArray]:
    """Number the rings: each ring's transaction, each member's ring, and their names."""
    span = int(ledger.ring_vin.max(initial=0)) + 1
    key, ring = np.unique(ledger.ring_tx * span + ledger.ring_vin, return_inverse=True)
    txids = ledger.txids.take(pa.array(key // span))
    vins = pc.cast(pa.array(key % span), pa.string())
    return key // span, ring, pc.binary_join_element_wise("ring", txids, vins, ":")


def _ring_weights(ledger: CoinLedger, n_flows: int) -> np.typing.NDArray[np.float64] | None:
    if ledger.ring_probability is None:
        return None
    weights = np.ones(n_flows)
    weights[: len(ledger.ring_tx)] = ledger.ring_probability
    return weights
