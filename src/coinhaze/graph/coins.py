"""Coin ledgers -> flows: coins or their owners, transactions, shielded pools, rings."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coinhaze.amounts import Bools, Ints
from coinhaze.graph.clusters.merge import Clusters, merge_owners
from coinhaze.graph.flows import Flows, index_type
from coinhaze.graph.graph import Kind, Kinds
from coinhaze.graph.names import Aliases, CoinBlock, PartyNames, PrefixBlock, TextBlock
from coinhaze.ledger import Amounts, CoinLedger
from coinhaze.ledger.coins import POOLS
from coinhaze.ledger.text import TextIndex
from coinhaze.threads import each

# A transaction has three steps: members enter rings, inputs enter the transaction, it pays out.
RING, ENTER, PAY = 0, 1, 2
# Flows come in parts; this is the position of that of created outputs.
PAYMENTS = 4


class _Parties(NamedTuple):
    """The numbering of parties: holders of coins, transactions, pools, rings."""

    by_owner: bool
    owner: Ints  # the owner of each output
    holders: int
    transactions: int
    pools: list[str]
    rings: pa.StringArray

    def counts(self) -> tuple[int, int, int, int]:
        return self.holders, self.transactions, len(self.pools), len(self.rings)

    def holding(self, outputs: Ints) -> Ints:
        """Return the party that holds each of these outputs: the coin itself, or its owner."""
        return self.owner[outputs] if self.by_owner else outputs

    @property
    def first_pool(self) -> int:
        return self.holders + self.transactions

    @property
    def first_ring(self) -> int:
        return self.first_pool + len(self.pools)


def coin_flows(
    ledger: CoinLedger, *, by_owner: bool, pools: str, clusters: Clusters | None = None
) -> Flows:
    """Return flows between transactions and coins, or the owners of coins if `by_owner`."""
    merged = merge_owners(ledger.owners, clusters)
    owner = merged.number[ledger.output_owner] if clusters else ledger.output_owner
    pool_flows = _pool_flows(ledger, merged=pools == "merged")
    ring_tx, ring, ring_names = _rings(ledger)
    holders = len(merged.names) if by_owner else len(ledger.output_tx)
    parties = _Parties(by_owner, owner, holders, len(ledger.txids), pool_flows.names, ring_names)
    made = np.flatnonzero(ledger.inside[ledger.output_tx])
    value = ledger.output_value
    in_rings = len(ledger.ring_tx) + len(ring_tx)
    (step, tail, head, starts), amounts, kinds = each(
        len(ledger.output_tx),
        partial(_links, ledger, parties, made, pool_flows, (ring_tx, ring)),
        partial(_amounts, ledger, made, pool_flows, in_rings),
        partial(_kinds, ledger, parties, merged.number),
    )
    payment_flow = np.full(len(ledger.output_tx), -1, dtype=step.dtype)
    payment_flow[made] = np.arange(starts[PAYMENTS], starts[PAYMENTS] + len(made))
    lone = np.zeros(len(kinds), dtype=np.bool_)
    lone[holders : parties.first_pool] = ledger.inside
    can_sink = (kinds != Kind.transaction) & (kinds != Kind.ring)
    if not by_owner:
        made_here = ledger.inside[ledger.output_tx] | (value is not None)
        can_sink[:holders] = ledger.output_spendable & made_here
    txids = TextIndex(ledger.txids)
    return Flows(
        names=PartyNames(
            [
                TextBlock(merged.names) if by_owner else CoinBlock(ledger, txids),
                PrefixBlock("tx", txids),
                TextBlock(pa.array(parties.pools, pa.string())),
                TextBlock(ring_names),
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
        payment_amounts=value,
        ledger=ledger,
        lone=lone,
        lost=_never_spent(ledger, parties, made) if by_owner else None,
        observed=None if value is None else partial(_observed, ledger, parties),
        weights=_ring_weights(ledger, len(step)),
        others=merged.others if by_owner else Aliases(ledger.owners, owner),
    )


def _links(
    ledger: CoinLedger,
    parties: _Parties,
    made: Ints,
    pools: _PoolFlows,
    rings: tuple[Ints, Ints],
) -> tuple[Ints, Ints, Ints, list[int]]:
    """Return step, tail and head of every flow, and where each part begins."""
    transaction = parties.holders
    ring_tx, ring = rings
    into, out_of = pools.pays_in, ~pools.pays_in
    made_tx = ledger.output_tx[made]
    # Each part: its transaction and stage, and both ends as a number and an offset to add.
    parts = (
        (ledger.ring_tx, RING, parties.holding(ledger.ring_output), 0, ring, parties.first_ring),
        (ring_tx, ENTER, np.arange(len(ring_tx)), parties.first_ring, ring_tx, transaction),
        (
            ledger.input_tx,
            ENTER,
            parties.holding(ledger.input_output),
            0,
            ledger.input_tx,
            transaction,
        ),
        (
            pools.tx[out_of],
            ENTER,
            pools.pool[out_of],
            parties.first_pool,
            pools.tx[out_of],
            transaction,
        ),
        (made_tx, PAY, made_tx, transaction, parties.holding(made), 0),
        (pools.tx[into], PAY, pools.tx[into], transaction, pools.pool[into], parties.first_pool),
    )
    starts = np.cumsum([0, *(len(part[0]) for part in parts)]).tolist()
    kind = index_type(3 * parties.transactions, sum(parties.counts()), starts[-1])
    step, tail, head = (np.empty(starts[-1], dtype=kind) for _ in range(3))
    for k, (tx, stage, leaves, of_tail, meets, of_head) in enumerate(parts):
        rows = slice(starts[k], starts[k + 1])
        np.multiply(tx, 3, out=step[rows], dtype=kind, casting="same_kind")
        step[rows] += stage
        np.add(leaves, of_tail, out=tail[rows], dtype=kind, casting="same_kind")
        np.add(meets, of_head, out=head[rows], dtype=kind, casting="same_kind")
    return step, tail, head, starts


def _amounts(ledger: CoinLedger, made: Ints, pools: _PoolFlows, in_rings: int) -> Amounts | None:
    value = ledger.output_value
    if value is None:
        return None
    return Amounts.concat(
        [
            Amounts.zeros(in_rings),
            value.take(ledger.input_output),
            (-pools.into).take(~pools.pays_in),
            value.take(made),
            pools.into.take(pools.pays_in),
        ]
    )


def _never_spent(ledger: CoinLedger, parties: _Parties, made: Ints) -> Amounts | None:
    """Add up, for each party, the outputs it was paid that can never be spent."""
    never = made[~ledger.output_spendable[made]]
    if ledger.output_value is None or not len(never):
        return None
    return ledger.output_value.take(never).total_by(parties.holding(never), sum(parties.counts()))


def _observed(ledger: CoinLedger, parties: _Parties) -> Amounts:
    """Add up, for each party, the earlier coins it held."""
    assert ledger.output_value is not None
    earlier = np.flatnonzero(~ledger.inside[ledger.output_tx])
    value = ledger.output_value.take(earlier)
    return value.total_by(parties.holding(earlier), sum(parties.counts()))


def _kinds(ledger: CoinLedger, parties: _Parties, number: Ints) -> Kinds:
    each = [Kind.address if parties.by_owner else Kind.coin, Kind.transaction, Kind.pool, Kind.ring]
    kinds = np.repeat(np.array(each, dtype=np.int8), parties.counts())
    if parties.by_owner:
        # An output without an address is its own owner: a coin, which has no snapshots.
        kinds[np.flatnonzero(_lone_coins(ledger, number, parties.holders))] = Kind.coin
    return kinds


def _lone_coins(ledger: CoinLedger, number: Ints, parties: int) -> Bools:
    """Return which parties are a single output without an address."""
    members = np.bincount(number, minlength=parties)
    unowned = np.bincount(number, weights=ledger.owner_is_coin, minlength=parties)
    lone: Bools = (members == 1) & (unowned == 1)
    return lone


class _PoolFlows(NamedTuple):
    """What each transaction paid into a pool, negative if out of it; one row per pool it met."""

    tx: Ints
    pool: Ints
    into: Amounts
    names: list[str]
    pays_in: Bools


def _pool_flows(ledger: CoinLedger, *, merged: bool) -> _PoolFlows:
    """Compute each transaction's net flow with each pool, or with all of them as one."""
    pool = np.full(len(ledger.flow_tx), POOLS.index("shielded")) if merged else ledger.flow_pool
    key, group = np.unique(ledger.flow_tx.astype(np.int64) * len(POOLS) + pool, return_inverse=True)
    into = ledger.flow_into.total_by(group, len(key))
    used, number = np.unique(key % len(POOLS), return_inverse=True)
    names = [f"pool:{POOLS[p]}" for p in used]
    return _PoolFlows(key // len(POOLS), number, into, names, into.positive())


def _rings(ledger: CoinLedger) -> tuple[Ints, Ints, pa.StringArray]:
    """Number the rings: each ring's transaction, each member's ring, and their names."""
    span = int(ledger.ring_vin.max(initial=0)) + 1
    key, ring = np.unique(
        ledger.ring_tx.astype(np.int64) * span + ledger.ring_vin, return_inverse=True
    )
    txids = ledger.txids.take(pa.array(key // span))
    vins = pc.cast(pa.array(key % span), pa.string())
    return key // span, ring, pc.binary_join_element_wise("ring", txids, vins, ":")


def _ring_weights(ledger: CoinLedger, n_flows: int) -> np.typing.NDArray[np.float64] | None:
    if ledger.ring_probability is None:
        return None
    weights = np.ones(n_flows)
    weights[: len(ledger.ring_tx)] = ledger.ring_probability
    return weights
