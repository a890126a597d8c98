"""Payments recorded in columns, in any order, and turned into an account ledger."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from coinhaze.amounts import DIGIT_BITS, Bools, Floats, Ints
from coinhaze.ledger import AccountLedger, Amounts
from coinhaze.ledger.accounts import ZERO_ADDRESSES
from coinhaze.simulate.weeks.names import hex_names

START = 1_612_137_600  # 1 February 2021, the first day of the paper's week
WEEK = 7 * 24 * 3600.0
BLOCK = 13  # seconds between blocks then
ZERO = 0  # the number of the zero address in every record


@dataclass
class PaymentRecord:
    """The payments so far; accounts are numbers, opened as needed."""

    accounts: int = 1
    parts: list[tuple[Ints, Ints, Ints, Floats]] = field(default_factory=list)

    def open(self, n: int) -> Ints:
        """Open n new accounts."""
        self.accounts += n
        return np.arange(self.accounts - n, self.accounts)

    def pay(self, sender: Ints, receiver: Ints, amount: Ints, moment: Floats) -> None:
        """Record payments; those of the same moment stay in the order they are recorded."""
        self.parts.append((sender, receiver, amount, moment))

    def pass_on(self, first: Ints, via: Ints, last: Ints, amount: Ints, moment: Floats) -> None:
        """Record payments that pass in full through an account within one transaction."""
        self.pay(first, via, amount, moment)
        self.pay(via, last, amount, moment)

    def surplus(self, n: int) -> Ints:
        """Return how much more than it received each of the first n accounts has paid."""
        net = np.zeros(n, dtype=np.int64)
        for sender, receiver, amount, _ in self.parts:
            out, into = sender < n, receiver < n
            np.add.at(net, sender[out], amount[out])
            np.subtract.at(net, receiver[into], amount[into])
        return net

    def ledger(self, *, unit: int, seed: int) -> AccountLedger:
        """Return the ledger: payments in order of time, amounts times `unit`, accounts named."""
        columns = [np.concatenate(c) for c in zip(*self.parts, strict=True)]
        order = np.argsort(columns[3], kind="stable")
        sender, receiver, amount, moment = (c[order] for c in columns)
        used = np.zeros(self.accounts, dtype=np.bool_)
        used[sender] = used[receiver] = True
        number = np.cumsum(used) - 1
        seconds = START + (moment // BLOCK).astype(np.int64) * BLOCK
        return AccountLedger(
            accounts=_names(used, seed),
            sender=number[sender],
            receiver=number[receiver],
            amounts=_times_unit(amount, unit),
            times=pa.array(seconds, pa.timestamp("s", "UTC")),
        )


def _names(used: Bools, seed: int) -> pa.StringArray:
    names = hex_names(int(used.sum()) - int(used[ZERO]), seed=seed, prefix="0x")
    return pa.concat_arrays([pa.array(ZERO_ADDRESSES[: int(used[ZERO])], names.type), names])


def _times_unit(values: Ints, unit: int) -> Amounts:
    """Multiply exactly beyond 64 bits, by factors small enough for the product of a digit to fit.

    >>> _times_unit(np.array([2**40 + 1]), 10**12).ints() == [(2**40 + 1) * 10**12]
    True
    """
    mask = (1 << DIGIT_BITS) - 1
    digits = [values & mask, values >> DIGIT_BITS]
    while unit > 1:
        factor = min(unit, 10**9)  # below 2^30, so that its product with a digit is below 2^62
        assert unit % factor == 0, "units are powers of ten"
        unit //= factor
        carry = np.zeros_like(values)
        for k, digit in enumerate(digits):
            carry += digit * factor
            digits[k] = carry & mask
            carry >>= DIGIT_BITS
        digits.append(carry)
    while len(digits) > 1 and not digits[-1].any():
        digits.pop()
    return Amounts(np.stack(digits).T)
