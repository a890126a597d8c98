"""Transfers of one token as blocks of coins: accounts in the order of time.

An account is worth one coin. A transfer splits the sender's coin, if something is left of it, and
joins what comes with the receiver's, which gives both the distributions that the temporal graph
gives their snapshots: a part of a coin has the row of the whole, and joined coins mix by value.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from coinhaze.amounts import Ints
from coinhaze.errors import LedgerError
from coinhaze.history.index.account_kernels import (
    MINT,
    OPENING,
    coins_of_transfers,
    min_openings,
)
from coinhaze.ledger import AccountLedger
from coinhaze.ledger.coin_blocks import NOT_KNOWN, CoinBlocks
from coinhaze.ledger.text import text_hashes

_ODD = np.uint64(0x9E3779B97F4A7C15)
_FIX = "use `coinhaze score --time temporal`"


def account_blocks(ledger: AccountLedger, where: str = "ledger") -> CoinBlocks:
    """Give transfers as blocks; those of one time are one. `where` is for errors."""
    if ledger.fees is not None:
        raise LedgerError(where, "transfers with fees, which a history does not hold", fix=_FIX)
    zero = ledger.is_zero_address()
    minted, burnt = zero[ledger.sender], zero[ledger.receiver]
    moves = ledger.amounts.positive() & (ledger.sender != ledger.receiver) & ~(minted & burnt)
    rows = np.flatnonzero(moves)
    amount = _int64(ledger, rows, where)
    sender, receiver = ledger.sender[rows], ledger.receiver[rows]
    minted, burnt = minted[rows], burnt[rows]
    n = len(rows)
    lowest, above = min_openings(sender, receiver, amount, minted, burnt, len(ledger.accounts))
    if above >= 0:
        what = "an account that holds more than 2^63 - 1 of the smallest unit"
        name = ledger.accounts[int(above)].as_py()
        raise LedgerError(where, what, value=name, fix=_FIX)
    transfer, party, snapshot, kind, inputs, outputs = (np.empty(2 * n, np.int64) for _ in range(6))
    spent, vout, value, whose = (np.empty(3 * n, np.int64) for _ in range(4))
    made, spendable = np.empty(3 * n, np.int64), np.empty(3 * n, np.bool_)
    t, i, o = coins_of_transfers(
        sender, receiver, amount, minted, burnt, -lowest, transfer, party, snapshot, kind, inputs,
        outputs, spent, vout, value, whose, made, spendable,
    )  # fmt: skip
    transfer, party, snapshot, kind = transfer[:t], party[:t], snapshot[:t], kind[:t]
    names = _names(ledger, rows[transfer], party, snapshot, kind)
    ids = np.empty((t, 4), np.uint64)
    ids[:, 0] = text_hashes(names) if t else 0
    ids[:, 1] = np.arange(t)
    ids[:, 2] = text_hashes(ledger.transfer_ids().take(pa.array(rows)))[transfer] if t else 0
    totals = np.add.reduceat(made[:o], np.cumsum(outputs[:t]) - outputs[:t]) if t else made[:0]
    ids[:, 3] = _running(*ids[:, :3].T, amount[transfer].view(np.uint64), totals.view(np.uint64))
    spent, whose = spent[:i], whose[:i]
    before = spent == OPENING
    spent_ids = ids[np.where(before, 0, spent)] if t else np.empty((i, 4), np.uint64)
    spent_ids[before, 1] = whose[before].astype(np.uint64) | np.uint64(1 << 63)
    spent_names = (
        pc.if_else(
            pa.array(before),
            ledger.accounts.take(pa.array(whose)),
            names.take(pa.array(np.maximum(spent, 0))),
        )
        if i
        else pa.array([], pa.string())
    )
    times = np.full(n, NOT_KNOWN) if ledger.times is None else _seconds(ledger.times, rows)
    first = np.ones(t, np.bool_)
    first[1:] = transfer[1:] != transfer[:-1]
    if ledger.times is not None and t:
        first[1:] &= times[transfer[1:]] != times[transfer[:-1]]
    begins = np.flatnonzero(first)
    return CoinBlocks(
        heights=np.full(len(begins), NOT_KNOWN),
        times=times[transfer[begins]],
        sizes=np.diff(np.append(begins, t)),
        ids=ids.view(np.uint8),
        coinbase=kind == MINT,
        inputs=inputs[:t],
        outputs=outputs[:t],
        spent_ids=spent_ids.view(np.uint8),
        spent_vouts=vout[:i],
        spent_values=value[:i],
        made_vouts=_vouts(outputs[:t]),
        made_values=made[:o],
        made_spendable=spendable[:o],
        names=names,
        spent_names=spent_names,
        accounts=True,
    )


def _running(*columns: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Hash each row together with all rows before it.

    So the id of a transaction stands for all transfers up to it and for what accounts had at each:
    a longer ledger that changes any of these is seen by the id where the shorter one ends.
    """
    mixed = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        mixed = (mixed ^ column) * _ODD
        mixed ^= mixed >> np.uint64(29)
    return np.cumsum(mixed * _ODD, dtype=np.uint64)


def accounts_of(snapshots: pa.Array) -> pa.Array:
    """Name accounts by the names of their snapshots, `name:i`."""
    return pc.replace_substring_regex(snapshots, ":[0-9]+$", "")


def _names(
    ledger: AccountLedger, rows: Ints, party: Ints, snapshot: Ints, kind: Ints
) -> pa.StringArray:
    """Name transactions: `account:snapshot`, `mint:ID` or `burn:ID`."""
    apart = kind != 0
    before = ledger.accounts.take(pa.array(party))
    after = pc.cast(pa.array(snapshot), pa.string())
    if apart.any():
        words = pa.array(["", "mint", "burn"]).take(pa.array(kind))
        before = pc.if_else(pa.array(apart), words, before)
        after = pc.if_else(pa.array(apart), ledger.transfer_ids().take(pa.array(rows)), after)
    return pc.binary_join_element_wise(before, after, ":")


def _vouts(outputs: Ints) -> Ints:
    """Number the outputs of every transaction from 0."""
    first = np.repeat(np.cumsum(outputs) - outputs, outputs)
    found: Ints = np.arange(len(first)) - first
    return found


def _int64(ledger: AccountLedger, rows: Ints, where: str) -> Ints:
    values = ledger.amounts.take(rows).to_arrow()
    if not pa.types.is_int64(values.type):
        what = "an amount above 2^63 - 1 of the smallest unit, which no history holds"
        raise LedgerError(where, what, fix=_FIX)
    return np.asarray(values.to_numpy(zero_copy_only=False), dtype=np.int64)


def _seconds(times: pa.Array, rows: Ints) -> Ints:
    taken = times.take(pa.array(rows))
    if pa.types.is_timestamp(taken.type):
        taken = taken.cast(pa.timestamp("s", taken.type.tz), safe=False).cast(pa.int64())
    filled = taken.cast(pa.int64()).fill_null(NOT_KNOWN)
    return np.asarray(filled.to_numpy(zero_copy_only=False), dtype=np.int64)
