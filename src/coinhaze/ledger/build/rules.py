"""What the columns of a coin ledger must hold together, checked a column at a time.

However a ledger is built, from transactions, tables or a store, these are the rules; the tests
compare them with a twin that takes transactions one at a time.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coinhaze.amounts import Amounts, Bools, Ints
from coinhaze.errors import LedgerError
from coinhaze.ledger.checks import TablePlace
from coinhaze.ledger.coins import DUPLICATE_COINBASES, CoinLedger
from coinhaze.threads import each


def check_rules(ledger: CoinLedger, place: TablePlace) -> None:
    """Raise the error that names the first row found to break a rule."""
    rules = (
        _check_order,
        _check_numbers,
        _check_owners,
        _check_spends,
        _check_rings,
        _check_earlier,
        _check_coinbases,
        _check_amounts,
        _check_lost_coinbases,
    )
    each(len(ledger.output_tx), *(partial(rule, ledger, place) for rule in rules))


def _first(wrong: Bools) -> int:
    """Give the first row that is wrong, -1 if none is."""
    return int(wrong.argmax()) if wrong.any() else -1


def _txid(ledger: CoinLedger, tx: int) -> str:
    return str(ledger.txids[tx].as_py())


def _coin(ledger: CoinLedger, output: int) -> str:
    return f"{_txid(ledger, int(ledger.output_tx[output]))}:{ledger.output_vout[output]}"


def _check_order(ledger: CoinLedger, place: TablePlace) -> None:
    """Earlier transactions come first; all that is made or spent here, in ledger order."""
    row = _first(ledger.inside[:-1] & ~ledger.inside[1:])
    if row >= 0:
        raise LedgerError(
            place("transactions", row + 1),
            "an earlier transaction after one of the window",
            value=_txid(ledger, row + 1),
            fix="those with `inside` false come first",
        )
    made = np.flatnonzero(ledger.inside[ledger.output_tx])
    rising = {
        "outputs": (made, ledger.output_tx[made]),
        "inputs": (None, ledger.input_tx),
        "pool_flows": (None, ledger.flow_tx),
        "rings": (None, ledger.ring_tx),
    }
    for table, (rows, tx) in rising.items():
        at = _first(tx[1:] < tx[:-1]) + 1
        if at > 0:
            row = at if rows is None else int(rows[at])
            raise LedgerError(
                place(table, row),
                "out of order: its transaction comes before that of the row above",
                value=_txid(ledger, int(tx[at])),
                fix="sort by transaction",
            )
    for table, tx in (
        ("inputs", ledger.input_tx),
        ("pool_flows", ledger.flow_tx),
        ("rings", ledger.ring_tx),
    ):
        row = _first(~ledger.inside[tx])
        if row >= 0:
            raise LedgerError(
                place(table, row),
                "belongs to a transaction before the window",
                value=_txid(ledger, int(tx[row])),
            )


def _check_numbers(ledger: CoinLedger, place: TablePlace) -> None:
    """No two outputs of one transaction have one number."""
    key = ledger.output_tx.astype(np.uint64) << np.uint64(32) | ledger.output_vout.astype(np.uint64)
    inside = ledger.inside[ledger.output_tx]
    # Most ledgers list a transaction's outputs by number: then there is nothing to sort.
    listed = key[inside]
    if bool(np.all(listed[1:] > listed[:-1])):
        key = key[~inside]
        rows = np.flatnonzero(~inside)
    else:
        rows = np.arange(len(key))
    order = np.argsort(key, kind="stable")
    twice = np.flatnonzero(key[order[1:]] == key[order[:-1]])
    if len(twice):
        row = int(rows[order[twice + 1]].min())
        raise LedgerError(
            place("outputs", row),
            "two outputs with one number",
            value=_coin(ledger, row),
        )


def _check_owners(ledger: CoinLedger, place: TablePlace) -> None:
    """An owner marked as a coin has the name of one of its outputs."""
    outputs = np.flatnonzero(ledger.owner_is_coin[ledger.output_owner])
    owner = ledger.output_owner[outputs]
    same = pc.equal(ledger.output_names(outputs), ledger.owners.take(pa.array(owner)))
    is_own = np.zeros(len(ledger.owners), dtype=np.bool_)
    is_own[owner[same.to_numpy(zero_copy_only=False)]] = True
    row = _first(ledger.owner_is_coin & ~is_own)
    if row >= 0:
        raise LedgerError(
            place("owners", row),
            "marked as a coin, but owns no output of its name",
            value=ledger.owners[row].as_py(),
        )


def _check_made_before(
    ledger: CoinLedger, tx: Ints, output: Ints, table: str, place: TablePlace
) -> None:
    made = ledger.output_tx[output]
    row = _first(made >= tx)
    if row < 0:
        return
    if made[row] == tx[row]:
        what, fix = "a transaction that spends its own output", ""
    else:
        what, fix = "a coin spent before it is made", "check the order"
    raise LedgerError(place(table, row), what, value=_coin(ledger, int(output[row])), fix=fix)


def _check_spends(ledger: CoinLedger, place: TablePlace) -> None:
    """A coin is spent once at most, after it is made, and only if it can be."""
    _check_made_before(ledger, ledger.input_tx, ledger.input_output, "inputs", place)
    spent = ledger.input_output
    times = np.bincount(spent, minlength=len(ledger.output_tx))
    if times.max(initial=0) > 1:
        row = int(np.flatnonzero(times[spent] > 1)[-1])
        first = int(np.flatnonzero(spent == spent[row])[0])
        raise LedgerError(
            place("inputs", row),
            "a coin spent twice",
            value=_coin(ledger, int(spent[row])),
            fix=f"also in row {first} by {_txid(ledger, int(ledger.input_tx[first]))}",
        )
    row = _first(~ledger.output_spendable[spent])
    if row >= 0:
        raise LedgerError(
            place("inputs", row),
            "spends a coin that can never be spent",
            value=_coin(ledger, int(spent[row])),
        )


def _check_rings(ledger: CoinLedger, place: TablePlace) -> None:
    """Rings of a transaction come in order, and each ring's chances add up to 1."""
    tx, vin = ledger.ring_tx, ledger.ring_vin
    _check_made_before(ledger, tx, ledger.ring_output, "rings", place)
    row = _first((tx[1:] == tx[:-1]) & (vin[1:] < vin[:-1])) + 1
    if row > 0:
        raise LedgerError(place("rings", row), "out of order: sort by vin", value=int(vin[row]))
    if ledger.ring_probability is None or not len(tx):
        return
    starts = np.append(0, 1 + np.flatnonzero((tx[1:] != tx[:-1]) | (vin[1:] != vin[:-1])))
    total = np.add.reduceat(ledger.ring_probability, starts)
    ring = _first(np.abs(total - 1) > 1e-9)
    if ring >= 0:
        raise LedgerError(
            place("rings", int(starts[ring])),
            "a posterior that is no distribution",
            value=float(total[ring]),
            fix="the chances of a ring's members add up to 1",
        )


def _check_earlier(ledger: CoinLedger, place: TablePlace) -> None:
    """Of earlier transactions only what the window spends is known; a complete ledger has none."""
    if ledger.complete and len(ledger.inside) and not ledger.inside[0]:
        raise LedgerError(
            place("transactions", 0),
            "an unknown coin in a complete ledger",
            value=_txid(ledger, 0),
            fix="drop `complete`?",
        )
    known = ledger.inside[ledger.output_tx]
    known[ledger.input_output] = True
    known[ledger.ring_output] = True
    row = _first(~known)
    if row >= 0:
        raise LedgerError(
            place("outputs", row),
            "an earlier coin that the window never spends",
            value=_coin(ledger, row),
            fix="leave it out",
        )


def _check_coinbases(ledger: CoinLedger, place: TablePlace) -> None:
    """A coinbase is a transaction of the window that takes nothing in."""
    takes = ~ledger.inside
    takes[ledger.input_tx] = True
    takes[ledger.ring_tx] = True
    takes[ledger.flow_tx[ledger.flow_into.signs() < 0]] = True
    row = _first(ledger.coinbase == takes)
    if row < 0:
        return
    where, txid = place("transactions", row), _txid(ledger, row)
    if takes[row]:
        raise LedgerError(
            where,
            "a coinbase that spends" if ledger.inside[row] else "a coinbase before the window",
            value=txid,
            fix="a coinbase has no inputs",
        )
    raise LedgerError(
        where, "no inputs, but not marked as a coinbase", value=txid, fix="mark it, or add them"
    )


def _check_amounts(ledger: CoinLedger, place: TablePlace) -> None:
    """What a transaction pays out it took in, coinbases apart; exact, to the last digit."""
    value = ledger.output_value
    if value is None:
        return
    n = len(ledger.inside)
    into, out_of = ledger.flow_into.where_positive(), (-ledger.flow_into).where_positive()
    balance = value.take(ledger.input_output).total_by(ledger.input_tx, n)
    balance = balance - value.total_by(ledger.output_tx, n)
    balance = balance + out_of.total_by(ledger.flow_tx, n) - into.total_by(ledger.flow_tx, n)
    exact = ledger.inside & ~ledger.coinbase
    exact[ledger.ring_tx] = False  # what rings take in is not known
    row = _first((balance.signs() < 0) & exact)
    if row < 0:
        return
    paid = _total(value.take(ledger.output_tx == row)) + _total(into.take(ledger.flow_tx == row))
    raise LedgerError(
        place("transactions", row),
        "outputs above inputs",
        value=f"{_txid(ledger, row)}: {paid} out, {paid + balance[row]} in",
    )


def _total(amounts: Amounts) -> int:
    return sum(amounts.ints())


def _check_lost_coinbases(ledger: CoinLedger, place: TablePlace) -> None:
    """The earlier of two coinbases with one id (BIP30) goes by id and height, never spent."""
    for txid, (lost, later) in DUPLICATE_COINBASES.items():
        tx = pc.index(ledger.txids, txid).as_py()
        again = pc.index(ledger.txids, f"{txid}@{lost}").as_py()
        if tx >= 0 and again >= 0 and ledger.heights[tx].as_py() not in (None, lost, later):
            height = ledger.heights[tx].as_py()
            raise LedgerError(place("transactions", tx), "one id at two heights", value=height)
        if tx >= 0 and ledger.heights[tx].as_py() == lost:
            raise LedgerError(
                place("transactions", tx), "the lost one of a duplicate id", fix=f"{txid}@{lost}"
            )
        row = _first((ledger.output_tx == again) & ledger.output_spendable)
        if row >= 0:
            raise LedgerError(
                place("outputs", row),
                "marked spendable, but its transaction's id was used again",
                value=_coin(ledger, row),
            )
