"""Windows that spend coins whose value no source gives: what can be scored all the same.

Raw blocks without undo data name the coins they spend, not what these are worth. By default that is
an error. If what hangs on it is to be left out, this remains:

- A transaction that spends such coins alone: all it pays comes from them, whatever each was worth.
  They stand in the ledger as one earlier coin, `unknown@TXID:0`, worth what the transaction pays.
  Each of them is spent once, so this lumps sources together: where the bits would be H with all
  values known, they are at most H here, and at least H less log2 of the coins lumped.
- Everything that descends from known coins and such transactions alone.

A transaction that spends coins of both kinds is left out, since the shares are unknown, and so is
all that descends from it. Coins it spends are there still, but unspent no more.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import pyarrow as pa

from coinhaze.errors import InputError, first_few
from coinhaze.ledger.batches import SCHEMAS, Batch
from coinhaze.ledger.coins import UNKNOWN, CoinLedger
from coinhaze.ledger.window import LedgerWindow
from coinhaze.store.checks import coin_completeness
from coinhaze.store.coins import coin_ledger
from coinhaze.store.store import Store


class _Counts(NamedTuple):
    """Transactions of a window, by what is known of the coins they spend."""

    whole: int
    lumped: int
    mixed: int
    left_out: int

    def note(self) -> str:
        return (
            f"unknown values: {self.lumped:,} of {self.whole:,} transactions spend only coins of "
            "unknown value, each taken as one origin: bits are lower bounds; "
            f"{self.left_out:,} are left out: {self.mixed:,} that spend coins of known and of "
            f"unknown value, {self.left_out - self.mixed:,} that spend what those paid"
        )


def ledger_without_unknown(
    store: Store, window: LedgerWindow, *, complete: bool = False
) -> CoinLedger:
    """Give the part of a window that hangs on no unknown share, with a note of what is left out."""
    _look_up_values(store, window)
    if store.hides_values or not store.ask("SELECT 1 FROM seen WHERE value IS NULL LIMIT 1"):
        return coin_ledger(store, window, complete=complete)
    counts = _sort_out(store)
    _refuse_pools(store)
    with Store(None) as retained:
        with retained.transaction():
            retained.append(Batch(_retained_tables(store)))
        ledger = coin_ledger(retained, LedgerWindow(), complete=complete)
    # Of the store, not of what is left of it.
    completeness = coin_completeness(store, window)
    return replace(ledger, notes=(counts.note(),), completeness=completeness)


def _look_up_values(store: Store, window: LedgerWindow) -> None:
    """Put the window's inputs, with all that is known of the coins they spend, into table seen."""
    store.ask(
        "CREATE OR REPLACE TEMP TABLE in_window AS SELECT * FROM transactions "
        f"WHERE {window.inside()}"
    )
    store.ask(
        "CREATE OR REPLACE TEMP TABLE seen AS SELECT inputs.* EXCLUDE (value, owner), "
        "coalesce(inputs.value, made.value) AS value, coalesce(inputs.owner, made.owner) AS owner "
        "FROM inputs SEMI JOIN in_window USING (height, txid) LEFT JOIN "
        # Of a duplicate coinbase (BIP30) both rows say the same.
        "(SELECT txid, vout, max(value) AS value, max(owner) AS owner FROM outputs GROUP BY ALL) "
        "AS made ON made.txid = spent_txid AND made.vout = spent_vout"
    )


def _sort_out(store: Store) -> _Counts:
    """Put transactions of lumped coins into table lumped, those left out into table left_out."""
    store.ask(
        "CREATE OR REPLACE TEMP TABLE spending AS SELECT height, txid, count(value) = count(*) AS "
        "known, count(value) > 0 OR bool_or(EXISTS (SELECT 1 FROM pool_flows p WHERE p.height = "
        "seen.height AND p.txid = seen.txid AND into_pool < 0)) AS some_known "
        "FROM seen GROUP BY height, txid"
    )
    store.ask(
        "CREATE OR REPLACE TEMP TABLE lumped AS SELECT height, txid FROM spending "
        "WHERE NOT known AND NOT some_known"
    )
    store.ask(
        "CREATE OR REPLACE TEMP TABLE left_out AS WITH RECURSIVE descends AS ("
        "SELECT height, txid FROM spending WHERE NOT known AND some_known UNION "
        "SELECT seen.height, seen.txid FROM seen JOIN descends ON seen.spent_txid = descends.txid"
        ") SELECT * FROM descends"
    )
    (row,) = store.ask(
        "SELECT (SELECT count(*) FROM in_window), (SELECT count(*) FROM lumped), (SELECT count(*) "
        "FROM spending WHERE NOT known AND some_known), (SELECT count(*) FROM left_out)"
    )
    return _Counts(*row)


def _refuse_pools(store: Store) -> None:
    """Refuse where a transaction left out meets a pool: what that holds afterwards is not known."""
    met = store.ask(
        "SELECT height, txid, pool FROM pool_flows SEMI JOIN left_out USING (height, txid) "
        "ORDER BY ALL LIMIT 4"
    )
    if met:
        height, txid, pool = met[0]
        others = first_few([txid for _, txid, _ in met[1:]])
        raise InputError(
            f"{store.name}: transaction {txid} of block {height} has to be left out, but it moves "
            f"money into or out of pool {pool}, so that what is in the pool from there on cannot "
            f"be known: end the window before it (--to {height - 1})"
            + (f"; likewise {others}" if others else "")
        )


def _retained_tables(store: Store) -> dict[str, pa.Table]:
    keep = "ANTI JOIN left_out USING (height, txid)"
    queries = {
        "transactions": f"SELECT * FROM in_window {keep}",
        "outputs": "SELECT outputs.* REPLACE (spendable AND (txid, vout) NOT IN (SELECT "
        "(spent_txid, spent_vout) FROM seen SEMI JOIN left_out USING (height, txid)) AS spendable) "
        f"FROM outputs SEMI JOIN in_window USING (height, txid) {keep}",
        "inputs": f"SELECT * FROM seen {keep} ANTI JOIN lumped USING (height, txid) UNION ALL "
        f"SELECT height, txid, 0, '{UNKNOWN}' || txid, 0, {_PAID}, NULL FROM lumped",
        "pool_flows": f"SELECT * FROM pool_flows SEMI JOIN in_window USING (height, txid) {keep}",
    }
    found = {}
    for name, query in queries.items():
        columns = store.table(query)
        schema = SCHEMAS[name]
        found[name] = pa.table(
            [columns[i].cast(field.type) for i, field in enumerate(schema)], schema=schema
        )
    return {name: table for name, table in found.items() if len(table)}


# What a transaction pays to coins and into pools; taking from one, it would not be lumped.
_PAID = (
    "(SELECT coalesce(sum(value), 0) FROM outputs o WHERE o.height = lumped.height AND o.txid = "
    "lumped.txid) + (SELECT coalesce(sum(into_pool), 0) FROM pool_flows p WHERE p.height = "
    "lumped.height AND p.txid = lumped.txid)"
)
