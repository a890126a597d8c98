"""The coins that each transaction of a coin ledger spends and creates, by transaction number."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from coinhaze.amounts import Amounts, Bools, Ints
from coinhaze.coinjoin.link_matrix import MAX_STEPS, LinkMatrix, intra_fees, link_matrix
from coinhaze.errors import UsageError
from coinhaze.graph.order_kernels import group_rows
from coinhaze.ledger import CoinLedger


@dataclass(frozen=True, eq=False)
class Parts:
    """The coins every transaction spends and creates, without those of value 0.

    >>> ledger = CoinLedger.from_transactions([{"txid": "t", "inputs": [
    ...     {"txid": "x", "vout": 0, "value": 5}, {"txid": "y", "vout": 0, "value": 5}],
    ...     "outputs": [{"value": 5}, {"value": 5}]}])
    >>> Parts(ledger).matrix(2)
    LinkMatrix(2 inputs, 2 outputs: 3 interpretations, 1.5850 bits)
    """

    ledger: CoinLedger

    def spent(self, tx: int) -> Ints:
        """Return the coins a transaction spends, in its order."""
        start, order = self._inputs
        return self._worth_something(self.ledger.input_output[order[start[tx] : start[tx + 1]]])

    def made(self, tx: int) -> Ints:
        """Return the coins a transaction creates, in its order."""
        start, order = self._outputs
        return self._worth_something(order[start[tx] : start[tx + 1]])

    def values(self, coins: Ints) -> list[int]:
        """Return the values of coins."""
        return self._value.take(coins).ints()

    def can_be_taken_apart(self, tx: int) -> bool:
        """Return whether all inputs and outputs are coins, some of each, and none in rings."""
        if not self.ledger.inside[tx] or self._meets_others[tx]:
            return False
        return len(self.spent(tx)) > 0 and len(self.made(tx)) > 0

    def matrix(self, tx: int, *, ratio: float = 0.0, steps: int = MAX_STEPS) -> LinkMatrix:
        """Compute a transaction's link matrix; `ratio` is the makers' share (see `intra_fees`)."""
        inputs, outputs = self.values(self.spent(tx)), self.values(self.made(tx))
        maker, taker = intra_fees(outputs, ratio) if ratio else (0, 0)
        return link_matrix(inputs, outputs, maker=maker, taker=taker, steps=steps)

    def _worth_something(self, coins: Ints) -> Ints:
        return coins[self._positive[coins]]

    @cached_property
    def _value(self) -> Amounts:
        if self.ledger.output_value is None:
            raise UsageError("this ledger hides amounts: its transactions cannot be taken apart")
        return self.ledger.output_value

    @cached_property
    def _positive(self) -> Bools:
        return self._value.positive()

    @cached_property
    def _meets_others(self) -> Bools:
        found = np.zeros(len(self.ledger.txids), dtype=np.bool_)
        found[self.ledger.flow_tx] = True
        found[self.ledger.ring_tx] = True
        return found

    @cached_property
    def _inputs(self) -> tuple[Ints, Ints]:
        start, order = group_rows(self.ledger.input_tx, len(self.ledger.txids))
        return start, order

    @cached_property
    def _outputs(self) -> tuple[Ints, Ints]:
        start, order = group_rows(self.ledger.output_tx, len(self.ledger.txids))
        return start, order
