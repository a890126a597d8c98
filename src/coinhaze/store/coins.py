"""Store -> ledger of coins: the transactions of a window, in order, with the coins they refer to.

Within a block the order is the source's where it gives positions; else transactions that spend
coins of the same block come after those that make them, and by id otherwise. Coins made before the
window come first, by id and number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from coinhaze.amounts import Bools, Ints
from coinhaze.errors import InputError, first_few
from coinhaze.ledger.checks import TablePlace, default_place
from coinhaze.ledger.coins import CoinLedger
from coinhaze.ledger.text import MAX_TEXT, Names, Numbers
from coinhaze.ledger.window import LedgerWindow
from coinhaze.store.checks import coin_completeness, compare_transactions
from coinhaze.store.rows import (
    Mentions,
    Outputs,
    StatedTransactions,
    Transactions,
    Wholes,
    read_flows,
    read_inputs,
    read_outputs,
    read_rings,
    read_stated,
    read_transactions,
)
from coinhaze.store.store import Store

SHOWN = 3
Keys = npt.NDArray[np.uint64]
_HALF, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)


def coin_ledger(store: Store, window: LedgerWindow, *, complete: bool = False) -> CoinLedger:
    """Give the ledger of a window; in a `complete` one an earlier coin is an error."""
    with store.scanning():
        tables, order, stated = _coin_tables(store, window)
    # What streaming took is given back before the checks take theirs.
    pa.default_memory_pool().release_unused()
    ledger = CoinLedger.from_columns(tables, complete=complete, place=_places(store, tables))
    checks = None if stated is None else compare_transactions(ledger, stated)
    ids = ledger.txids.take(pa.array(order))
    return replace(ledger, completeness=coin_completeness(store, window, checks, ids))


def _places(store: Store, tables: Mapping[str, pa.Table]) -> TablePlace:
    """Say where rows stand by their transactions; one before the window by what first spends it."""

    def place(table: str, row: int | None) -> str:
        if row is None or table == "owners":
            return f"{store.name}: {default_place(table, row)}"
        tx, what = row, ""
        if table != "transactions":
            of_table = np.asarray(tables[table]["tx"])
            tx = int(of_table[row])
            if table == "inputs":
                what = f", input {row - int(np.searchsorted(of_table, tx))}"
        fields = {name: tables["transactions"][name][tx].as_py() for name in ("txid", "height")}
        if tables["transactions"]["inside"][tx].as_py():
            return store.place_of(fields["height"], fields["txid"]) + what
        makers = np.asarray(tables["outputs"]["tx"])[np.asarray(tables["inputs"]["output"])]
        spends = np.flatnonzero(makers == tx)
        earlier = f"earlier transaction {fields['txid']}"
        return place("inputs", int(spends[0])) if len(spends) else f"{store.name}: {earlier}"

    return place


def _coin_tables(
    store: Store, window: LedgerWindow
) -> tuple[dict[str, pa.Table], Ints, StatedTransactions | None]:
    """Number rows: earlier transactions and coins first, then the window's own.

    Also give the numbers of the window's transactions as sources order them, and what these say of
    them, by these numbers.
    """
    made, owners = read_transactions(store, window), Names()
    stated = read_stated(store, made)
    spent = _spent(store, made, owners)
    outputs = read_outputs(store, made, owners).in_order(spent.place)
    earlier, n_old, n_coins = spent.earlier, len(spent.earlier.txids), len(spent.earlier.tx)
    flows = _flows(store, made, spent.place, n_old)
    rings = _rings(store, made, outputs, spent.place, (n_old, n_coins))
    order = n_old + spent.place
    if stated is not None:
        stated = replace(stated, tx=order[stated.tx])
    inputs = pa.table(
        {"tx": n_old + spent.inputs.tx, "output": _rows_spent(store, made, spent, outputs)}
    )
    transactions = _transactions(made, spent)
    tx = np.concatenate([earlier.tx, n_old + outputs.tx])
    vout = np.concatenate([earlier.vout, outputs.vout])
    txids = transactions["txid"].chunk(0)
    owner = np.concatenate([earlier.owner, outputs.owner])
    number, owner_table = _number_owners(owner, owners, (txids, tx, vout))
    coins = {
        "tx": tx,
        "vout": vout,
        "value": pa.concat_arrays([earlier.value, outputs.value]),
        "owner": number,
        "spendable": np.concatenate([np.ones(n_coins, np.bool_), outputs.spendable]),
    }
    tables = {
        "transactions": transactions,
        "owners": owner_table,
        "outputs": pa.table(coins),
        "inputs": inputs,
        "pool_flows": flows,
        "rings": rings,
    }
    return tables, order, stated


@dataclass(frozen=True, eq=False)
class _Earlier:
    """Transactions before the window and their coins that it spends, by id and number."""

    txids: pa.Array
    tx: Numbers
    vout: Wholes
    value: pa.Int64Array
    owner: Numbers


@dataclass(frozen=True, eq=False)
class _Spent:
    """What the window spends, and the places of its transactions that follow from that."""

    place: Ints
    inputs: Mentions
    earlier: _Earlier
    of_earlier: Ints  # for each input with an earlier coin, its row


def _spent(store: Store, made: Transactions, owners: Names) -> _Spent:
    inputs, values, owner = read_inputs(store, made, owners)
    order = _ledger_order(store, made, inputs)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    inputs, came = inputs.in_order(place)
    # Values and owners of earlier coins came in the order of the store's rows: count them there.
    rows = came[inputs.maker < 0]
    counted = np.zeros(len(came), dtype=np.int32)
    counted[rows] = 1
    at = counted.cumsum(dtype=np.int32)[rows] - 1
    earlier, of_earlier = _earlier_coins(inputs, values.take(pa.array(at)), owner[at])
    if earlier.value.null_count:
        earlier = _looked_up(store, earlier, owners, int(made.heights[0]))
    return _Spent(place, inputs, earlier, of_earlier)


def _ledger_order(store: Store, made: Transactions, inputs: Mentions) -> Ints:
    """Order transactions so that in every block makers of coins come before their spenders."""
    untold = made.position < 0
    if not untold.any():
        return np.arange(len(untold))
    own = inputs.maker >= 0
    maker, spender = inputs.maker[own], inputs.tx[own]
    near = made.heights[maker] == made.heights[spender]
    near &= untold[maker] | untold[spender]
    maker, spender = maker[near], spender[near]
    level = np.zeros(len(untold), dtype=np.int64)
    for _ in range(len(maker) + 1):
        before = level.copy()
        np.maximum.at(level, spender, level[maker] + 1)
        if np.array_equal(before, level):
            return np.lexsort((level, made.heights))
    raise InputError(f"{store.name}: transactions of one block spend each other's coins in a ring")


def _earlier_coins(
    inputs: Mentions, values: pa.Int64Array, owner: Numbers
) -> tuple[_Earlier, Ints]:
    """Gather the earlier coins, and give the row of each that is spent, in order of inputs."""
    rows = inputs.maker < 0
    order = pc.sort_indices(inputs.older.texts())
    rank = np.empty(len(order), dtype=np.int32)
    rank[np.asarray(order)] = np.arange(len(order))
    key = rank[-1 - inputs.maker[rows]].astype(np.uint64) << _HALF | inputs.vout[rows]
    # A coin spent twice stands here once, and the ledger refuses it.
    coins, first, of_input = np.unique(key, return_index=True, return_inverse=True)
    earlier = _Earlier(
        inputs.older.release(order),
        (coins >> _HALF).astype(np.int32),
        (coins & _LOW).astype(np.uint32),
        values.take(pa.array(first)),
        owner[first],
    )
    return earlier, of_input


def _looked_up(store: Store, earlier: _Earlier, owners: Names, first: int) -> _Earlier:
    """Fill in values and owners of earlier coins from older rows; refuse what no row gives."""
    rows = np.flatnonzero(earlier.value.is_null())
    names = earlier.txids.take(pa.array(earlier.tx[rows]))
    unknown = pa.table({"k": rows, "txid": names, "vout": earlier.vout[rows].astype(np.int64)})
    store.connection.register("unknown", unknown)
    found = store.table(
        "SELECT k, value, owner FROM outputs JOIN unknown USING (txid, vout) ORDER BY k, height"
    )
    store.connection.unregister("unknown")
    k = np.asarray(found["k"])
    value, known = (
        np.asarray(earlier.value.fill_null(0)).copy(),
        np.asarray(earlier.value.is_valid()),
    )
    known = known.copy()
    value[k], known[k] = found["value"].fill_null(0), found["value"].is_valid()
    if not known.all() and not store.hides_values:
        from coinhaze.formats.bitcoin_raw.snapshot import MAKE

        left = np.flatnonzero(~known)
        shown = [
            f"{earlier.txids[earlier.tx[row]].as_py()}:{earlier.vout[row]}"
            for row in left[: SHOWN + 1]
        ]
        raise InputError(
            f"{store.name}: the values of {len(left)} coins spent in the window are not known "
            f"({first_few(shown, SHOWN)}). Any of these gives them: (1) rev*.dat in the folder of "
            "blk*.dat, (2) the blocks that made the coins, (3) a UTXO snapshot of the block before "
            f"({MAKE.format(height=first - 1)}), (4) ingesting from a node. Or leave out what "
            "depends on them: --unknown leave-out"
        )
    owner = earlier.owner.copy()
    number = owners.add(_one(found["owner"]))
    owner[k] = np.where(owner[k] >= 0, owner[k], number)
    return replace(earlier, value=pa.array(value, mask=~known), owner=owner)


def _coins_of(mentions: Mentions, outputs: Outputs) -> Ints:
    """Find the rows of the coins mentioned that the window made; -1 where there is none."""
    rows = np.full(len(mentions.maker), -1, dtype=np.int64)
    own = np.flatnonzero(mentions.maker >= 0)
    maker, vout = mentions.maker[own], mentions.vout[own]
    key = outputs.tx.astype(np.uint64) << _HALF | outputs.vout
    wanted = maker.astype(np.uint64) << _HALF | vout
    # Mostly output k of a transaction is row k of its rows; the others are searched for.
    starts = np.searchsorted(outputs.tx, np.arange(maker.max(initial=-1) + 1))
    found = starts[maker] + vout
    other = np.flatnonzero(~_is_at(key, found, wanted))
    found[other] = np.searchsorted(key, wanted[other])
    there = _is_at(key, found, wanted)
    rows[own[there]] = found[there]
    return rows


def _is_at(keys: Keys, rows: Ints, wanted: Keys) -> Bools:
    """Tell where the row found has the key that was looked up."""
    there: Bools = rows < len(keys)
    there[there] = keys[rows[there]] == wanted[there]
    return there


def _rows_spent(store: Store, made: Transactions, spent: _Spent, outputs: Outputs) -> Ints:
    """Give the row of the coin that each input spends, earlier ones first."""
    inputs = spent.inputs
    rows = _coins_of(inputs, outputs)
    lost = np.flatnonzero((rows < 0) & (inputs.maker >= 0))
    if len(lost):
        name = _name_of(inputs, int(lost[0]), made, spent.place)
        raise InputError(
            f"{store.name}: {len(lost)} inputs spend coins that are not there, though their "
            f"transactions are, such as {name}: ingest the outputs too"
        )
    rows += len(spent.earlier.tx)
    rows[inputs.maker < 0] = spent.of_earlier
    return rows


def _name_of(mentions: Mentions, row: int, made: Transactions, place: Ints) -> str:
    """Name the coin that a row mentions."""
    maker = int(mentions.maker[row])
    names, number = mentions.older, -1 - maker
    if maker >= 0:
        names, number = made.names, int(np.flatnonzero(place == maker)[0])
    return f"{names.texts()[number]}:{mentions.vout[row]}"


def _transactions(made: Transactions, spent: _Spent) -> pa.Table:
    old, order = spent.earlier.txids, np.argsort(spent.place)
    nothing = pa.nulls(len(old), pa.int64())
    return pa.table(
        {
            "txid": _one_text([old, made.names.release(pa.array(order))]),
            "inside": np.arange(len(old) + len(order)) >= len(old),
            "coinbase": np.concatenate([np.zeros(len(old), np.bool_), made.coinbase[order]]),
            "height": pa.concat_arrays([nothing, pa.array(made.heights[order])]),
            "time": pa.concat_arrays([nothing, made.times.take(pa.array(order))]),
        }
    )


def _number_owners(
    owner: Numbers, owners: Names, coins: tuple[pa.Array, Numbers, Wholes]
) -> tuple[Numbers, pa.Table]:
    """Number owners in the order of their coins; a coin without one owns itself."""
    alone = owner < 0
    txids, tx, vout = coins
    named = txids.take(pa.array(tx[alone]))
    owner[alone] = owners.add(
        pc.binary_join_element_wise(named, pc.cast(pa.array(vout[alone]), named.type), ":")
    )
    # Of repeated places numpy keeps the last value: backwards, that is an owner's first coin.
    first = np.full(len(owners), -1, dtype=np.int64)
    first[owner[::-1]] = np.arange(len(owner))[::-1]
    begins = np.zeros(len(owner), dtype=np.bool_)
    begins[first[first >= 0]] = True
    met = owner[begins]
    place = np.full(len(owners), -1, dtype=np.int32)
    place[met] = np.arange(len(met))
    number = place[owner]
    is_coin = np.zeros(len(met), dtype=np.bool_)
    is_coin[number[alone]] = True
    return number, pa.table({"name": owners.release(pa.array(met)), "is_coin": is_coin})


def _flows(store: Store, made: Transactions, place: Ints, n_old: int) -> pa.Table:
    flows = read_flows(store, made)
    tx = n_old + place[np.asarray(flows["tx"])]
    return flows.set_column(0, "tx", pa.array(tx)).sort_by(
        [("tx", "ascending"), ("pool", "ascending")]
    )


def _rings(
    store: Store, made: Transactions, outputs: Outputs, place: Ints, shift: tuple[int, int]
) -> pa.Table:
    """Give the rings of the window; members must be coins that it made."""
    rings, _ = read_rings(store, made).in_order(place)
    coin = _coins_of(rings, outputs)
    outside = np.flatnonzero(coin < 0)
    if len(outside):
        name = _name_of(rings, int(outside[0]), made, place)
        raise InputError(
            f"{store.name}: {len(outside)} ring members lie outside the window, such as "
            f"{name}: widen it"
        )
    order = np.lexsort((coin, rings.vin, rings.tx))
    return pa.table(
        {
            "tx": shift[0] + rings.tx[order],
            "vin": rings.vin[order],
            "output": shift[1] + coin[order],
        }
    )


def _one_text(parts: list[pa.Array]) -> pa.Array:
    wide = sum(part.nbytes for part in parts) > MAX_TEXT
    return pa.concat_arrays([part.cast(pa.large_string()) if wide else part for part in parts])


def _one(column: pa.ChunkedArray) -> pa.Array:
    whole = column.combine_chunks()
    return whole.combine_chunks() if isinstance(whole, pa.ChunkedArray) else whole
