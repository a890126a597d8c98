"""CoinJoins recognised by shape: transactions many people made together, and with which wallet.

The rules use amounts, counts and order alone, never the addresses of a coordinator:

- `whirlpool`: 5 to 10 inputs and as many outputs, all of one of the pools' amounts; every input is
  that amount or a little more, for the fee.
- `wasabi2`: inputs and outputs each in falling order, and nearly all outputs of the amounts that
  wallet splits money into: powers of 2 and 3, twice those of 3, and 1, 2 or 5 times those of 10.
- `wasabi1`: at least 10 equal outputs of about 0.1 bitcoin, no more of them than inputs.
- `joinmarket`: n equal outputs and n or n - 1 others for change, paid by n owners at least, and no
  data; after the rule of BlockSci (isCoinjoin), for three people or more.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from coinhaze.amounts import Bools, Ints
from coinhaze.errors import UsageError
from coinhaze.ledger import CoinLedger

BITCOIN = 100_000_000
WHIRLPOOLS = (100_000, 1_000_000, 5_000_000, 50_000_000)  # satoshi; 0.001 to 0.5 bitcoin
MAX_FEE = 100_000  # satoshi an input may add to the pool's amount, and at most half of it
DUST = 2_730
MIN_OUTPUTS = 5  # of three people, one of whom needs no change; no rule is for fewer


class CoinJoin(IntEnum):
    """The kind of wallet that made a transaction."""

    none = 0
    whirlpool = 1
    wasabi2 = 2
    wasabi1 = 3
    joinmarket = 4


@dataclass(frozen=True, eq=False)
class _Shapes:
    """The features of each transaction that the rules use; only spendable outputs are counted.

    Those with too few outputs for any rule, which most payments are, have no features: all zero.
    """

    inputs: Ints
    outputs: Ints
    common: Ints  # the most frequent output value, the highest of several
    equals: Ints  # the number of outputs that have it
    payers: Ints  # distinct owners of the inputs
    lowest: Ints
    highest: Ints  # values of the inputs
    falling: Bools
    split: Ints  # outputs of the amounts into which Wasabi 2 splits money
    has_data: Bools  # whether an output holds data


CoinJoinKinds: TypeAlias = npt.NDArray[np.int8]


def coinjoin_kinds(ledger: CoinLedger) -> CoinJoinKinds:
    """Return the kind of CoinJoin that each transaction of the ledger looks like.

    >>> from coinhaze.ledger import CoinLedger
    >>> spent = [{"txid": c, "vout": 0, "value": 100_000, "address": c} for c in "vwxy"]
    >>> spent += [{"txid": "z", "vout": 0, "value": 100_300, "address": "z"}]
    >>> mix = {"txid": "t", "inputs": spent, "outputs": [{"value": 100_000}] * 5}
    >>> ledger = CoinLedger.from_transactions([mix])
    >>> CoinJoin(coinjoin_kinds(ledger)[-1]).name
    'whirlpool'
    """
    if ledger.output_value is None:
        raise UsageError("CoinJoins are recognised by amounts, which this ledger hides")
    s = _shapes(ledger)
    pool = np.isin(s.common, WHIRLPOOLS) & (s.outputs == s.equals) & (s.inputs == s.outputs)
    pool &= (s.outputs >= 5) & (s.outputs <= 10)
    fee = np.minimum(MAX_FEE, s.common // 2)
    whirlpool = pool & (s.lowest >= s.common) & (s.highest - s.common <= fee)
    crowd = (s.inputs >= 10) & (s.outputs >= 10) & s.falling
    wasabi2 = crowd & (s.split >= 0.8 * s.outputs) & (s.equals >= 2)
    tenth = np.abs(s.common - BITCOIN / 10) <= BITCOIN / 50
    wasabi1 = tenth & (s.equals >= 10) & (s.inputs >= s.equals)
    people = (s.outputs + 1) // 2
    join = (people >= 3) & (s.equals == people) & (s.payers >= people)
    join &= (s.common > DUST) & ~s.has_data
    kinds = np.zeros(len(ledger.txids), dtype=np.int8)
    for kind, found in (  # the most certain last, so that it prevails
        (CoinJoin.joinmarket, join),
        (CoinJoin.wasabi1, wasabi1),
        (CoinJoin.wasabi2, wasabi2),
        (CoinJoin.whirlpool, whirlpool),
    ):
        kinds[found & ledger.inside] = kind
    return kinds


def split_amounts() -> Ints:
    """Return the amounts into which Wasabi 2 splits money, up to the total supply."""
    bases = ((1, 2), (1, 3), (2, 3), (1, 10), (2, 10), (5, 10))
    highest = 21_000_000 * BITCOIN
    found = {a * b**k for a, b in bases for k in range(52) if a * b**k <= highest}
    return np.array(sorted(found), dtype=np.int64)


def _shapes(ledger: CoinLedger) -> _Shapes:
    """Compute the features of all transactions."""
    n = len(ledger.txids)
    value = satoshi(ledger)
    made = np.flatnonzero(ledger.inside[ledger.output_tx] & ledger.output_spendable)
    large = np.bincount(ledger.output_tx[made], minlength=n) >= MIN_OUTPUTS
    made = made[large[ledger.output_tx[made]]]
    tx, paid = ledger.output_tx[made], value[made]
    common, equals = _commonest(tx, paid, n)
    given = np.flatnonzero(large[ledger.input_tx])
    spender, coin = ledger.input_tx[given], ledger.input_output[given]
    spent = value[coin]
    lowest, highest = np.full(n, np.iinfo(np.int64).max), np.zeros(n, dtype=np.int64)
    np.minimum.at(lowest, spender, spent)
    np.maximum.at(highest, spender, spent)
    owners = np.int64(max(len(ledger.owners), 1))
    payers = np.sort(spender * owners + ledger.output_owner[coin])
    payers = payers[np.diff(payers, prepend=-1) > 0]
    return _Shapes(
        inputs=np.bincount(spender, minlength=n),
        outputs=np.bincount(tx, minlength=n),
        common=common,
        equals=equals,
        payers=np.bincount(payers // owners, minlength=n),
        lowest=lowest,
        highest=highest,
        falling=~(_rises(tx, paid, n) | _rises(spender, spent, n)),
        split=np.bincount(tx[_is_one_of(paid, split_amounts())], minlength=n),
        has_data=np.bincount(ledger.output_tx[~ledger.output_spendable], minlength=n) > 0,
    )


def _is_one_of(values: Ints, amounts: Ints) -> Bools:
    """Tell which values are among some sorted amounts."""
    at = np.minimum(np.searchsorted(amounts, values), len(amounts) - 1)
    found: Bools = amounts[at] == values
    return found


def satoshi(ledger: CoinLedger) -> Ints:
    """Return the values of coins as plain integers; -1 for values impossible in Bitcoin."""
    assert ledger.output_value is not None
    column = ledger.output_value.to_arrow()
    if pa.types.is_integer(column.type):
        return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.int64)
    return np.array([v if v < 2**63 else -1 for v in ledger.output_value.ints()], dtype=np.int64)


def _commonest(tx: Ints, value: Ints, n: int) -> tuple[Ints, Ints]:
    """Find each transaction's most frequent output value, and how many outputs have it."""
    order = np.lexsort((value, tx))
    tx, value = tx[order], value[order]
    begins = np.flatnonzero(
        np.diff(tx, prepend=-1).astype(bool) | np.diff(value, prepend=-1).astype(bool)
    )
    lengths = np.diff(np.append(begins, len(tx)))
    owner, amount = tx[begins], value[begins]
    # Sorted by count and then by value, the last run of a transaction is the one wanted.
    by_count = np.lexsort((amount, lengths, owner))
    common, equals = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    common[owner[by_count]] = amount[by_count]
    equals[owner[by_count]] = lengths[by_count]
    return common, equals


def _rises(tx: Ints, value: Ints, n: int) -> Bools:
    """Return which transactions have a value above the preceding one; rows are in order."""
    rises = np.zeros(n, dtype=np.bool_)
    later = (tx[1:] == tx[:-1]) & (value[1:] > value[:-1])
    rises[tx[1:][later]] = True
    return rises
