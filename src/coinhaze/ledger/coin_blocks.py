"""Whole blocks of coins as plain columns, in the order of the chain: what histories are made of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from itertools import accumulate

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from coinhaze.amounts import Amounts, Bools, Ints
from coinhaze.errors import LedgerError
from coinhaze.ledger.coins import POOLS, UNKNOWN, CoinLedger
from coinhaze.ledger.script_types import types_of_owners
from coinhaze.ledger.text import text_buffers

Octets = npt.NDArray[np.uint8]
HASH = 32
_LETTERS = 2 * HASH
NOT_KNOWN = -1  # a height, a time or a value


@dataclass(frozen=True, eq=False)
class PoolFlows:
    """What transactions put into shielded pools or take out, net, in the order of transactions."""

    tx: Ints  # its place among the transactions
    pool: Ints  # its place in POOLS
    into: Ints  # negative: out of it
    openings: Ints  # what each of POOLS held before the first block

    def part(self, transactions: slice) -> PoolFlows:
        """Give those of some transactions."""
        rows = slice(*np.searchsorted(self.tx, [transactions.start, transactions.stop]))
        tx = self.tx[rows] - transactions.start
        return PoolFlows(tx, self.pool[rows], self.into[rows], self.openings)


@dataclass(frozen=True, eq=False)
class CoinBlocks:
    """Transactions of whole blocks, with the coins they spend and make.

    Ids are rows of 32 bytes, backwards as Bitcoin writes them. Where they are hashes of names that
    are no hashes, `names` and `spent_names` have the names.
    """

    heights: Ints  # of each block
    times: Ints
    sizes: Ints  # transactions of each block
    ids: Octets  # of each transaction
    coinbase: Bools
    inputs: Ints  # how many each has
    outputs: Ints
    spent_ids: Octets  # of each input: the transaction that made the coin, ...
    spent_vouts: Ints
    spent_values: Ints  # ... and its value, where the source says so
    made_vouts: Ints  # of each output
    made_values: Ints
    made_spendable: Bools
    names: pa.StringArray | None = None
    spent_names: pa.StringArray | None = None
    made_scripts: Octets | None = None  # types of scripts, by SCRIPT_TYPES; None: not known
    pools: PoolFlows | None = None  # None: no money enters or leaves any
    accounts: bool = False  # whether coins are what accounts hold (coinhaze.history.index.accounts)

    def __len__(self) -> int:
        return len(self.ids)

    def parts(self, transactions: int) -> Iterator[CoinBlocks]:
        """Cut into stretches of whole blocks with so many transactions, or one block more."""
        after = np.cumsum(self.sizes)
        first = 0
        while first < len(self.sizes):
            before = int(after[first - 1]) if first else 0
            last = int(np.searchsorted(after, before + transactions)) + 1
            last = min(max(last, first + 1), len(self.sizes))
            yield self._blocks(first, last)
            first = last

    def without(self, transactions: int) -> CoinBlocks:
        """Leave out the first blocks, which have so many transactions."""
        first = int(np.searchsorted(np.cumsum(self.sizes), transactions, side="right"))
        return self._blocks(first, len(self.sizes))

    @property
    def _before(self) -> tuple[Ints, Ints, Ints]:
        """How many transactions are before each block, and inputs and outputs before each."""
        counts = self.sizes, self.inputs, self.outputs
        sizes, ins, outs = (np.concatenate([[0], np.cumsum(column)]) for column in counts)
        return sizes, ins, outs

    def _blocks(self, first: int, last: int) -> CoinBlocks:
        sizes, ins, outs = self._before
        t = slice(int(sizes[first]), int(sizes[last]))
        i, o = (
            slice(int(ins[t.start]), int(ins[t.stop])),
            slice(int(outs[t.start]), int(outs[t.stop])),
        )
        return CoinBlocks(
            heights=self.heights[first:last],
            times=self.times[first:last],
            sizes=self.sizes[first:last],
            ids=self.ids[t],
            coinbase=self.coinbase[t],
            inputs=self.inputs[t],
            outputs=self.outputs[t],
            spent_ids=self.spent_ids[i],
            spent_vouts=self.spent_vouts[i],
            spent_values=self.spent_values[i],
            made_vouts=self.made_vouts[o],
            made_values=self.made_values[o],
            made_spendable=self.made_spendable[o],
            names=None if self.names is None else self.names[t],
            spent_names=None if self.spent_names is None else self.spent_names[i],
            made_scripts=None if self.made_scripts is None else self.made_scripts[o],
            pools=None if self.pools is None else self.pools.part(t),
            accounts=self.accounts,
        )


def months_of(times: Ints) -> npt.NDArray[np.int16]:
    """Give the months of times, counted from 1970.

    >>> months_of(np.array([0, 1356998400, NOT_KNOWN])).tolist()
    [0, 516, -1]
    """
    months = times.astype("datetime64[s]").astype("datetime64[M]").astype(np.int64)
    return np.where(times == NOT_KNOWN, NOT_KNOWN, months).astype(np.int16)


def blocks_of(ledger: CoinLedger, where: str = "ledger") -> CoinBlocks:
    """Give a ledger of coins as blocks; a stretch of equal heights and times is one.

    Coins made before the ledger are spent by name, with their value. `where` is for errors.
    """
    _refuse(ledger, where)
    assert ledger.output_value is not None
    inside = np.flatnonzero(ledger.inside)
    first = len(ledger.inside) - len(inside)
    n = len(inside)
    value = _int64(ledger.output_value, "a coin", where)
    made = np.flatnonzero(ledger.inside[ledger.output_tx])
    spent = ledger.input_output
    maker = ledger.output_tx[spent]
    ids, hashed = ids_of(ledger.txids)
    height = _filled(ledger.heights)[first:]
    time = _filled(ledger.times)[first:]
    begins = np.flatnonzero(
        np.concatenate([[True], (height[1:] != height[:-1]) | (time[1:] != time[:-1])])
    )[: n and None]
    return CoinBlocks(
        heights=height[begins],
        times=time[begins],
        sizes=np.diff(np.append(begins, n)),
        ids=ids[first:],
        coinbase=ledger.coinbase[first:],
        inputs=np.bincount(ledger.input_tx - first, minlength=n)[:n],
        outputs=np.bincount(ledger.output_tx[made] - first, minlength=n)[:n],
        spent_ids=ids[maker],
        spent_vouts=ledger.output_vout[spent].astype(np.int64),
        spent_values=value[spent],
        made_vouts=ledger.output_vout[made].astype(np.int64),
        made_values=value[made],
        made_spendable=ledger.output_spendable[made],
        names=None if hashed else ledger.txids[first:],
        spent_names=None if hashed else ledger.txids.take(pa.array(maker)),
        pools=_pool_flows(ledger, first, where) if len(ledger.flow_tx) else None,
        made_scripts=types_of_owners(ledger.owners)[ledger.output_owner[made]],
    )


def ids_of(names: pa.StringArray) -> tuple[Octets, bool]:
    """Give names of transactions as 32 bytes each, and whether they are hashes themselves.

    The lost one of a duplicate id, `hash@height`, has the id.
    """
    at, letters = text_buffers(names)
    sizes = np.diff(at)
    whole = sizes >= _LETTERS
    rows = letters[np.minimum(at[:-1, None] + np.arange(_LETTERS), max(len(letters) - 1, 0))]
    digits = _DIGIT[rows]
    marked = np.zeros(len(sizes), dtype=np.bool_)
    longer = np.flatnonzero(sizes > _LETTERS)
    marked[longer] = letters[at[longer] + _LETTERS] == ord("@")
    if bool(np.all(whole & ((sizes == _LETTERS) | marked))) and bool(np.all(digits < 16)):
        octets = (digits[:, ::2] << 4 | digits[:, 1::2])[:, ::-1]
        return np.ascontiguousarray(octets), True
    hashes = b"".join(sha256(str(name).encode()).digest() for name in names.to_pylist())
    return np.frombuffer(hashes, np.uint8).reshape(-1, HASH), False


_DIGIT = np.full(256, 16, dtype=np.uint8)
for _k, _letter in enumerate(b"0123456789abcdef"):
    _DIGIT[_letter] = _k


def _refuse(ledger: CoinLedger, where: str) -> None:
    """Raise an error for what a history does not hold."""
    if ledger.has_rings or ledger.output_value is None:
        what = "amounts are hidden, or inputs are rings: a history is of coins of known value"
        raise LedgerError(where, what, fix="use `coinhaze score`")
    if ledger.has_unknown:
        what = f"spends earlier coins of unknown value, joined as {UNKNOWN}..."
        raise LedgerError(where, what, fix="give a source that has their values")


def _pool_flows(ledger: CoinLedger, first: int, where: str) -> PoolFlows:
    """Give what each transaction puts into each pool, net.

    In a ledger that does not begin with its chain a pool opens with the least that allows what was
    taken out of it.
    """
    tx = ledger.flow_tx.astype(np.int64) - first
    key, group = np.unique(tx * len(POOLS) + ledger.flow_pool, return_inverse=True)
    into = _int64(ledger.flow_into.total_by(group, len(key)), "a flow of a pool", where)
    key, into = key[into != 0], into[into != 0]
    pool = key % len(POOLS)
    openings = np.zeros(len(POOLS), dtype=np.int64)
    for number in [] if ledger.complete else np.unique(pool).tolist():
        held = list(accumulate(into[pool == number].tolist(), initial=0))
        if max(held) - min(held) >= 2**63:
            what = f"{POOLS[number]} holds more than 2^63 - 1, which no history holds"
            raise LedgerError(where, what, fix="use `coinhaze score`")
        openings[number] = -min(held)
    return PoolFlows(key // len(POOLS), pool, into, openings)


def _int64(amounts: Amounts, what: str, where: str) -> Ints:
    values = amounts.to_arrow()
    if not pa.types.is_int64(values.type):
        raise LedgerError(where, f"{what} worth more than 2^63 - 1, which no history holds")
    return np.asarray(values.to_numpy(zero_copy_only=False), dtype=np.int64)


def _filled(column: pa.Array) -> Ints:
    return np.asarray(column.fill_null(NOT_KNOWN).to_numpy(zero_copy_only=False), dtype=np.int64)
