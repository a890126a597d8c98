"""Values and owners of coins that blocks spend, out of a UTXO snapshot.

A coin that was unspent at some height is worth the same for ever, so a snapshot of any height gives
right values. What it cannot give are coins spent before its block, or made after it outside of the
store: those stay unknown, and are counted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from coinhaze.errors import InputError, LedgerError
from coinhaze.formats.bitcoin_raw.networks import LOOKED_AT, common_networks
from coinhaze.formats.bitcoin_raw.snapshot import (
    MAKE,
    Snapshot,
    alone,
    coins_of,
    prefix_of,
    read_header,
)
from coinhaze.store.store import Source, Store


@dataclass(frozen=True)
class Filled:
    """What a snapshot gave: inputs whose coins have a value now, and what users should know."""

    inputs: int
    note: str


def fill_values(
    store: Store,
    path: Path,
    digest: str,
    name: str,
    progress: Callable[[int], None] = lambda read: None,
) -> Filled:
    """Fill in what a snapshot says of the coins that rows of a store spend."""
    snapshot = read_header(path)
    if store.kind != "coins":
        raise alone(snapshot)
    _refuse_other_network(store, snapshot)
    _list_unknown(store)
    _look_up(store, snapshot, progress)
    ((unknown, found),) = store.ask(
        "SELECT (SELECT count(*) FROM unknown_coins), (SELECT count(*) FROM coins_found)"
    )
    note = f"values of {found:,} of {unknown:,} coins come from the UTXO snapshot"
    if unknown and not found:
        raise InputError(
            f"{path}: none of the {unknown:,} coins of unknown value that the blocks spend is in "
            f"it: {_why(store, snapshot)}"
        )
    if found < unknown:
        note += f"; {unknown - found:,} are not in it: {_why(store, snapshot)}"
    with store.transaction():
        ((inputs,),) = store.ask(
            "UPDATE inputs SET value = coins_found.value, owner = coalesce(inputs.owner, "
            "coins_found.owner) FROM coins_found WHERE inputs.value IS NULL AND "
            "inputs.spent_txid = coins_found.txid AND inputs.spent_vout = coins_found.vout"
        )
        store.note_source(Source(digest, name, "utxo-snapshot", inputs, done=True))
    return Filled(int(inputs), note)


def _refuse_other_network(store: Store, snapshot: Snapshot) -> None:
    """Refuse a snapshot of another network than the addresses of the blocks are of."""
    owners = store.table(
        f"SELECT DISTINCT owner FROM outputs WHERE owner IS NOT NULL LIMIT {LOOKED_AT}"
    )["owner"]
    networks = common_networks(owners)
    if networks and snapshot.network.name not in networks:
        raise LedgerError(
            str(snapshot.path),
            f"a UTXO snapshot of another network than the blocks, which are of "
            f"{' or '.join(sorted(networks))}",
            value=snapshot.network.name,
            fix="take it from the node that the blocks are of",
        )


def _list_unknown(store: Store) -> None:
    """Put coins into table unknown_coins that are spent, and whose value no row gives."""
    store.ask(
        "CREATE OR REPLACE TEMP TABLE unknown_coins AS SELECT spent_txid AS txid, spent_vout AS "
        "vout, min(height) AS spent_at FROM inputs WHERE value IS NULL AND "
        "regexp_full_match(spent_txid, '[0-9a-f]{64}') GROUP BY ALL"
    )
    store.ask(
        "DELETE FROM unknown_coins USING outputs WHERE outputs.txid = unknown_coins.txid AND "
        "outputs.vout = unknown_coins.vout"
    )


def _look_up(store: Store, snapshot: Snapshot, progress: Callable[[int], None]) -> None:
    """Put what the snapshot says of them into table coins_found; refuse what cannot be."""
    store.ask(
        "CREATE OR REPLACE TEMP TABLE coins_found (txid VARCHAR, vout BIGINT, height BIGINT, "
        "value BIGINT, owner VARCHAR)"
    )
    ids = store.table("SELECT DISTINCT txid FROM unknown_coins")["txid"].to_pylist()
    prefixes = np.fromiter(map(prefix_of, ids), np.uint64, len(ids))
    for coins in coins_of(snapshot, prefixes, progress):
        if not len(coins):
            continue
        store.connection.register("coins_read", coins)
        store.ask(
            "INSERT INTO coins_found SELECT * FROM coins_read SEMI JOIN unknown_coins "
            "USING (txid, vout)"
        )
        store.connection.unregister("coins_read")
    for condition, what, fix in (
        (
            "height >= spent_at",
            "a coin that is younger than the block which spends it",
            "the blocks are of another chain, or the file is damaged: take the snapshot from the "
            "node that the blocks are of",
        ),
        (
            "true GROUP BY txid, vout HAVING count(*) > 1",
            "the same coin twice",
            "the file is damaged: copy it again, or let the node write it again",
        ),
    ):
        wrong = store.ask(
            "SELECT txid, vout FROM coins_found JOIN unknown_coins USING (txid, vout) "
            f"WHERE {condition} ORDER BY ALL LIMIT 1"
        )
        if wrong:
            txid, vout = wrong[0]
            raise LedgerError(str(snapshot.path), what, value=f"{txid}:{vout}", fix=fix)


def _why(store: Store, snapshot: Snapshot) -> str:
    """Say why coins are not in a snapshot, and what to do."""
    ((first,),) = store.ask("SELECT min(height) FROM transactions")
    at = store.ask(
        "SELECT height FROM blocks WHERE hash = ? UNION ALL "
        "SELECT height - 1 FROM blocks WHERE previous = ? LIMIT 1",
        [snapshot.block, snapshot.block],
    )
    take = f"take one after block {first - 1}: {MAKE.format(height=first - 1)}"
    if at and at[0][0] >= first:
        return (
            f"it is of block {at[0][0]}, when they were spent already; score only the blocks after "
            f"it (--from {at[0][0] + 1}), or {take}"
        )
    if at:
        return "some are in neither the blocks nor the snapshot: blocks are missing in between"
    return f"its block hash {snapshot.block} is not among the blocks; {take}"
