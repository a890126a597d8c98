"""Store -> ledger of coins: the transactions of a window, in order, with the coins they refer to.

Within a block the order is the source's where it tells positions; else transactions that spend
coins of the same block come after those that make them, and by id otherwise.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coinhaze.errors import InputError, first_few
from coinhaze.ledger.amounts import Bools, Ints
from coinhaze.ledger.coins import DUPLICATE_COINBASES, CoinLedger
from coinhaze.ledger.store import Store
from coinhaze.ledger.window import Window

SHOWN = 3


def coin_ledger(store: Store, window: Window) -> CoinLedger:
    """Give the ledger of a window."""
    _order_transactions(store, window)
    # A coin spent in the window is one of its own, or an earlier one told of by the spending
    # itself or by an older row.
    store.ask(
        "CREATE OR REPLACE TEMP TABLE made AS SELECT row_number() OVER (ORDER BY n, vout) - 1 AS k,"
        " n, vout, value, owner, spendable AND NOT lost AS spendable, name "
        "FROM outputs JOIN tx USING (height, txid)"
    )
    store.ask(
        "CREATE OR REPLACE TEMP TABLE spent AS SELECT tx.n, vin, spent_txid, spent_vout, made.k, "
        "inputs.value, inputs.owner FROM inputs JOIN tx USING (height, txid) LEFT JOIN made ON "
        "made.name = spent_txid AND made.vout = spent_vout"
    )
    _tell_of_earlier(store, window)
    earlier = store.table(
        "SELECT DISTINCT spent_txid AS txid, spent_vout AS vout, value, owner FROM spent "
        "WHERE k IS NULL ORDER BY ALL"
    )
    made = store.table("SELECT n, vout, value, owner, spendable, name FROM made ORDER BY k")
    spent = store.table("SELECT n, k, spent_txid, spent_vout FROM spent ORDER BY n, vin")
    inside = store.table("SELECT name, coinbase, height, time FROM tx ORDER BY n")
    tables = _coin_tables(inside, made, spent, earlier)
    tables["pool_flows"] = store.table(
        f"SELECT n + {_earlier_count(tables)} AS tx, pool, into_pool FROM pool_flows "
        "JOIN tx USING (height, txid) ORDER BY n, pool"
    )
    tables["rings"] = _rings(store, tables)
    return CoinLedger.from_columns(tables)


def _order_transactions(store: Store, window: Window) -> None:
    """Number the window's transactions in ledger order, in the table tx."""
    lost = " OR ".join(
        f"(txid = '{txid}' AND height = {heights[0]})"
        for txid, heights in DUPLICATE_COINBASES.items()
    )
    store.ask(
        "CREATE OR REPLACE TEMP TABLE tx AS SELECT *, CASE WHEN lost THEN txid || '@' || height "
        "ELSE txid END AS name FROM (SELECT row_number() OVER (ORDER BY height, position, txid) "
        f"- 1 AS n, height, txid, coinbase, position, time, {lost} AS lost FROM transactions "
        f"WHERE {window.inside()})"
    )
    if not store.ask("SELECT 1 FROM tx WHERE position IS NULL LIMIT 1"):
        return
    moves = store.table(
        "SELECT maker.n AS maker, spender.n AS spender FROM inputs JOIN tx AS spender USING "
        "(height, txid) JOIN tx AS maker ON maker.name = spent_txid AND maker.height = "
        "inputs.height WHERE spender.position IS NULL OR maker.position IS NULL"
    )
    heights = _ints(store.table("SELECT height FROM tx ORDER BY n")["height"])
    order = _after_makers(heights, _ints(moves["maker"]), _ints(moves["spender"]), store)
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    store.connection.register("places", pa.table({"n": np.arange(len(order)), "place": place}))
    store.ask(
        "CREATE OR REPLACE TEMP TABLE tx AS SELECT place AS n, tx.* EXCLUDE (n) FROM tx JOIN "
        "places USING (n)"
    )
    store.connection.unregister("places")


def _after_makers(heights: Ints, maker: Ints, spender: Ints, store: Store) -> Ints:
    """Order transactions of one block so that makers of coins come before their spenders."""
    level = np.zeros(len(heights), dtype=np.int64)
    for _ in range(len(maker) + 1):
        before = level.copy()
        np.maximum.at(level, spender, level[maker] + 1)
        if np.array_equal(before, level):
            return np.lexsort((np.arange(len(level)), level, heights))
    raise InputError(f"{store.path}: transactions of one block spend each other's coins in a ring")


def _tell_of_earlier(store: Store, window: Window) -> None:
    """Fill in values and owners of earlier coins from older rows; refuse what nobody tells."""
    unknown = "SELECT spent_txid, spent_vout FROM spent WHERE k IS NULL AND value IS NULL"
    if not store.ask(f"{unknown} LIMIT 1"):
        return
    store.ask(
        "UPDATE spent SET value = outputs.value, owner = coalesce(spent.owner, outputs.owner) "
        "FROM outputs WHERE spent.k IS NULL AND spent.value IS NULL AND "
        "outputs.txid = spent_txid AND outputs.vout = spent_vout"
    )
    left = store.ask(f"{unknown} ORDER BY ALL LIMIT {SHOWN + 1}")
    hidden = not store.ask("SELECT 1 FROM outputs WHERE value IS NOT NULL LIMIT 1")
    if left and not hidden:
        ((count,),) = store.ask(f"SELECT count(*) FROM ({unknown})")
        shown = first_few([f"{txid}:{vout}" for txid, vout in left], SHOWN)
        raise InputError(
            f"{store.path}: the values of {count} coins spent in the window are not known "
            f"({shown}): ingest the blocks that made them, undo data (rev*.dat), or from a node "
            "that tells them"
        )


def _coin_tables(
    inside: pa.Table, made: pa.Table, spent: pa.Table, earlier: pa.Table
) -> dict[str, pa.Table]:
    """Number rows: earlier transactions and coins first, then the window's own."""
    older = earlier["txid"].combine_chunks().dictionary_encode()
    old_txids, old_tx = older.dictionary, older.indices.to_numpy(zero_copy_only=False)
    n_old, n_coins = len(old_txids), len(earlier)
    transactions = pa.table(
        {
            "txid": pa.concat_arrays([_text(old_txids), _text(inside["name"])]),
            "inside": np.arange(n_old + len(inside)) >= n_old,
            "coinbase": np.concatenate([np.zeros(n_old, np.bool_), _flags(inside["coinbase"])]),
            "height": pa.concat_arrays([pa.nulls(n_old, pa.int64()), _one(inside["height"])]),
            "time": pa.concat_arrays([pa.nulls(n_old, pa.int64()), _one(inside["time"])]),
        }
    )
    txids = pa.concat_arrays([_text(earlier["txid"]), _text(made["name"])])
    vouts = np.concatenate([_ints(earlier["vout"]), _ints(made["vout"])])
    owner, owners = _owners(
        pa.concat_arrays([_text(earlier["owner"]), _text(made["owner"])]), txids, vouts
    )
    outputs = pa.table(
        {
            "tx": np.concatenate([old_tx.astype(np.int64), n_old + _ints(made["n"])]),
            "vout": vouts,
            "value": pa.concat_arrays([_one(earlier["value"]), _one(made["value"])]),
            "owner": owner,
            "spendable": np.concatenate([np.ones(n_coins, np.bool_), _flags(made["spendable"])]),
        }
    )
    inputs = pa.table({"tx": n_old + _ints(spent["n"]), "output": _coins_spent(spent, earlier)})
    return {"transactions": transactions, "owners": owners, "outputs": outputs, "inputs": inputs}


def _coins_spent(spent: pa.Table, earlier: pa.Table) -> Ints:
    """Give the row of each coin spent: the window's own come after the earlier ones."""
    own = spent["k"].combine_chunks()
    rows = np.asarray(pc.fill_null(own, -1).to_numpy(zero_copy_only=False), dtype=np.int64)
    rows = np.where(rows >= 0, rows + len(earlier), rows)
    missing = np.flatnonzero(rows < 0)
    if len(missing):
        rows[missing] = pc.index_in(
            _coin_names(spent.take(pa.array(missing)), "spent_txid", "spent_vout"),
            value_set=_coin_names(earlier, "txid", "vout"),
        ).to_numpy(zero_copy_only=False)
    return rows


def _coin_names(table: pa.Table, txid: str, vout: str) -> pa.Array:
    number = pc.cast(table[vout].combine_chunks(), pa.string())
    return pc.binary_join_element_wise(_text(table[txid]), number, ":")


def _owners(owner: pa.Array, txids: pa.Array, vouts: Ints) -> tuple[Ints, pa.Table]:
    """Number the owners of coins; a coin without one owns itself."""
    alone = owner.is_null()
    own = pc.binary_join_element_wise(txids, pc.cast(pa.array(vouts), pa.string()), ":")
    encoded = pc.if_else(alone, own, owner).dictionary_encode()
    number = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    is_coin = np.zeros(len(encoded.dictionary), dtype=np.bool_)
    is_coin[number[_flags(alone)]] = True
    return number, pa.table({"name": encoded.dictionary, "is_coin": is_coin})


def _rings(store: Store, tables: dict[str, pa.Table]) -> pa.Table:
    """Give the rings of the window; members must be coins that the store tells of."""
    found = store.table(
        "SELECT tx.n, vin, made.k, member_txid, member_vout FROM rings JOIN tx USING (height, txid)"
        " LEFT JOIN made ON made.name = member_txid AND made.vout = member_vout ORDER BY n, vin, k"
    )
    if found["k"].null_count:
        row = pc.index(found["k"].is_null(), True).as_py()
        name = f"{found['member_txid'][row].as_py()}:{found['member_vout'][row].as_py()}"
        raise InputError(
            f"{store.path}: {found['k'].null_count} ring members lie outside the window, such as "
            f"{name}: widen it"
        )
    shift = len(tables["outputs"]) - _made_count(store)
    return pa.table(
        {
            "tx": _earlier_count(tables) + _ints(found["n"]),
            "vin": _ints(found["vin"]),
            "output": shift + _ints(found["k"]),
        }
    )


def _made_count(store: Store) -> int:
    return int(store.ask("SELECT count(*) FROM made")[0][0])


def _earlier_count(tables: dict[str, pa.Table]) -> int:
    return int(pc.sum(pc.invert(tables["transactions"]["inside"])).as_py() or 0)


def _one(column: pa.ChunkedArray) -> pa.Array:
    whole = column.combine_chunks()
    return whole.combine_chunks() if isinstance(whole, pa.ChunkedArray) else whole


def _text(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    return (column if isinstance(column, pa.Array) else _one(column)).cast(pa.string())


def _ints(column: pa.ChunkedArray) -> Ints:
    return np.asarray(_one(column).to_numpy(zero_copy_only=False), dtype=np.int64)


def _flags(column: pa.ChunkedArray | pa.Array) -> Bools:
    array = column if isinstance(column, pa.Array) else _one(column)
    return np.asarray(array.to_numpy(zero_copy_only=False), dtype=np.bool_)
