"""Edman's degree of anonymity, taken of each transaction as a system of its own."""

from __future__ import annotations

import math

import numpy as np

from coinhaze.amounts import Floats
from coinhaze.measures.comparators.permanent import staircase_anonymity
from coinhaze.measures.comparators.registry import COMPARATORS, Comparator
from coinhaze.measures.comparators.side_by_side import ComparedScores


def transaction_anonymity(compared: ComparedScores) -> Floats:
    """Take Edman's measure of each transaction: an input can have become what is worth no more.

    Readings in blocks would link everything, since one block is always possible; Edman matches one
    to one. Sorted by worth, the matrix of what is feasible is a staircase, so that its permanent is
    a product: the k-th poorest of the inputs has its outputs less the k that poorer ones took.
    """
    ledger, parts = compared.ledger, compared.parts
    value: dict[int, float] = {}
    for tx in np.unique(ledger.output_tx[compared.coins[compared.coins >= 0]]).tolist():
        spent, made = (parts.values(some(tx)) for some in (parts.spent, parts.made))
        value[tx] = math.nan
        if len(spent) == len(made) > 1 and parts.can_be_taken_apart(tx):
            value[tx] = staircase_anonymity(spent, made)
    return compared.by_coin(lambda coin: value[int(ledger.output_tx[coin])])


SYSTEM_ANONYMITY = COMPARATORS.add(
    Comparator(
        "system-anonymity",
        "of matching a transaction's inputs and outputs one to one, how much is left open",
        transaction_anonymity,
        unit="of 1",
        about="transaction",
        no_answer="its transaction has not as many inputs as outputs, or too many",
    )
)
