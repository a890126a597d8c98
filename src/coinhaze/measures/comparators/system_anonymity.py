"""The system's anonymity: in how many ways can all senders and receivers be matched at once.

Edman, Sivrikaya and Yener, "A Combinatorial Approach to Measuring Anonymity" (ISI 2007). Each
transaction is taken as a system of its own.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from coinhaze.amounts import Floats
from coinhaze.errors import InputError, ResourceError
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


MAX_ROWS = 20
Number = TypeVar("Number", int, float)


def permanent(matrix: Sequence[Sequence[Number]]) -> Number:
    """Add up, over all ways to give each row a column of its own, the products of the entries.

    Column by column sets, not Ryser's alternating sum: nothing cancels, so floats stay accurate
    and integers exact. A matrix may have more columns than rows. More than 20 rows are refused.

    >>> permanent([[1, 1, 0], [1, 1, 1], [0, 1, 1]])
    3
    """
    if len(matrix) > MAX_ROWS:
        raise ResourceError(
            f"a permanent of {len(matrix)} rows takes about 2^{len(matrix)} steps, more than "
            f"2^{MAX_ROWS}"
        )
    ways: dict[int, Number] = {0: 1}  # sets of columns that the rows so far may have taken
    for row in matrix:
        taken: dict[int, Number] = {}
        for columns, sofar in ways.items():
            for k, entry in enumerate(row):
                if entry and not columns >> k & 1:
                    more = columns | 1 << k
                    taken[more] = taken.get(more, 0) + sofar * entry
        ways = taken
    return sum(ways.values())


def system_anonymity(matrix: Sequence[Sequence[Number]]) -> float:
    """Give the degree of anonymity of a whole system of n senders and n receivers, 0 to 1.

    Of a 0/1 matrix of what is feasible log per(A) / log n!; of a doubly stochastic matrix of
    probabilities log per(P) / log(n! / n^n). NaN for n = 1, where nothing can be hidden.

    >>> system_anonymity([[1, 1], [1, 1]])
    1.0
    """
    n = len(matrix)
    if n == 0 or any(len(row) != n for row in matrix):
        raise InputError("the matrix of a system has as many rows as columns, at least one")
    if n == 1:
        return math.nan
    feasible = all(entry in (0, 1) for row in matrix for entry in row)
    if not feasible:
        _check_doubly_stochastic(matrix)
    ways = permanent(matrix)
    if ways == 0:
        raise InputError("no matching of senders and receivers is possible")
    maximum = math.log(math.factorial(n)) - (0 if feasible else n * math.log(n))
    return abs(math.log(ways) / maximum)


def staircase_anonymity(senders: Sequence[int], receivers: Sequence[int]) -> float:
    """Give `system_anonymity` where a sender can have paid any receiver of no more than it had.

    Of any size: from the poorest sender on, each has the receivers it can pay less those that the
    ones before took, whichever these were. NaN where n is 1, or no matching is possible.

    >>> round(staircase_anonymity([5, 5, 9], [5, 5, 9]), 12)
    0.386852807235
    """
    sorted_receivers = sorted(receivers)
    ways = [
        bisect_right(sorted_receivers, sender) - before
        for before, sender in enumerate(sorted(senders))
    ]
    n = len(ways)
    if n < 2 or min(ways) < 1:
        return math.nan
    return math.fsum(map(math.log, ways)) / math.lgamma(n + 1)


def _check_doubly_stochastic(matrix: Sequence[Sequence[float]]) -> None:
    for what, lines in (("row", matrix), ("column", list(zip(*matrix, strict=True)))):
        for k, line in enumerate(lines):
            if min(line) < 0 or abs(math.fsum(line) - 1) > 1e-9:
                raise InputError(
                    f"{what} {k} of the matrix sums to {math.fsum(line)}: entries are 0 or 1, or "
                    "probabilities whose rows and columns sum to 1"
                )
