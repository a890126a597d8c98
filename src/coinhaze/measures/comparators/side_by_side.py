"""Other people's measures of the same coins: as columns beside the bits, and how they correlate."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

import numpy as np
import pyarrow as pa

from coinhaze.amounts import Floats, Ints
from coinhaze.coinjoin.link_matrix import LinkMatrix
from coinhaze.coinjoin.parts import Parts
from coinhaze.errors import ResourceError, UsageError
from coinhaze.graph.graph import Kind
from coinhaze.ledger import CoinLedger
from coinhaze.measures.comparators.registry import COMPARATORS, check_measures
from coinhaze.measures.scores import Scores

# A ledger has many transactions: each may take about a second, more is no answer.
MAX_STEPS = 10_000_000
OF_COINS = "a measure of single coins: it needs a coin ledger, view=coin"


@dataclass(frozen=True, eq=False)
class ComparedScores:
    """What a comparator is computed from: scores, the ledger under them, and what is known.

    >>> import coinhaze
    >>> ledger = coinhaze.CoinLedger.from_transactions([
    ...     {"txid": "t", "inputs": [{"txid": "x", "vout": 0, "value": 5}],
    ...      "outputs": [{"value": 5}]},
    ... ])
    >>> ComparedScores(coinhaze.score(ledger)).ledger is ledger
    True
    """

    scores: Scores
    owners: Mapping[str, str] | None = None
    ratio: float = 0.0
    steps: int = MAX_STEPS

    @cached_property
    def ledger(self) -> CoinLedger:
        """The ledger of coins; measures of single transactions have no other."""
        graph = self.scores.chain.graph
        if not isinstance(graph.ledger, CoinLedger) or graph.settings.get("view") != "coin":
            raise UsageError(OF_COINS)
        return graph.ledger

    @cached_property
    def parts(self) -> Parts:
        """What each transaction spends and makes."""
        return Parts(self.ledger)

    @cached_property
    def coins(self) -> Ints:
        """For each row its coin's number in the ledger, -1 if it is no coin made there."""
        graph, ledger = self.scores.chain.graph, self.ledger
        coin = graph.names.party[self.scores.nodes]
        is_coin = graph.kinds[self.scores.nodes] == Kind.coin
        coin = np.where(is_coin, coin, -1)
        coin[is_coin] = np.where(ledger.inside[ledger.output_tx[coin[is_coin]]], coin[is_coin], -1)
        return coin

    @cached_property
    def matrices(self) -> dict[int, LinkMatrix | None]:
        """The link matrices of the transactions that made the rows' coins; None if refused."""
        found: dict[int, LinkMatrix | None] = {}
        for tx in np.unique(self.ledger.output_tx[self.coins[self.coins >= 0]]).tolist():
            found[tx] = None
            if self.parts.can_be_taken_apart(tx):
                try:
                    found[tx] = self.parts.matrix(tx, ratio=self.ratio, steps=self.steps)
                except ResourceError:
                    continue  # no answer: null, as the table says
        return found

    def by_transaction(self, measure: Callable[[LinkMatrix], float]) -> Floats:
        """Give each row what a measure says of the transaction that made its coin."""
        value = {tx: math.nan if m is None else measure(m) for tx, m in self.matrices.items()}
        return self.by_coin(lambda coin: value[int(self.ledger.output_tx[coin])])

    def by_coin(self, measure: Callable[[int], float]) -> Floats:
        """Give each row what a measure says of its coin, NaN where it has none."""
        return np.array([float(measure(c)) if c >= 0 else math.nan for c in self.coins.tolist()])


def _measure(name: str, compared: ComparedScores) -> Floats:
    try:
        return COMPARATORS[name].measure(compared)
    except UsageError as error:
        if str(error) != OF_COINS:
            raise
        raise UsageError(f"{name}: {OF_COINS}") from None


def compare_measures(
    scores: Scores,
    with_: Sequence[str],
    *,
    owners: Mapping[str, str] | None = None,
    ratio: float = 0.0,
    steps: int = MAX_STEPS,
) -> Scores:
    """Put other measures of the same nodes beside the bits; NaN where one has no answer.

    `owners` (address -> wallet) is what Wasabi's score needs; `ratio` lets Boltzmann's blocks pay
    makers (see `intra_fees`); `steps` bounds the work on each transaction.

    >>> import coinhaze
    >>> ledger = coinhaze.CoinLedger.from_transactions([{"txid": "t", "inputs": [
    ...     {"txid": "x", "vout": 0, "value": 5}, {"txid": "y", "vout": 0, "value": 5}],
    ...     "outputs": [{"value": 5}, {"value": 5}]}])
    >>> compared = compare_measures(coinhaze.score(ledger), ["k-anonymity", "boltzmann"])
    >>> compared.comparators["k-anonymity"]
    array([2., 2.])
    """
    check_measures(with_, owners=owners is not None)
    compared = ComparedScores(scores, owners, ratio, steps)
    columns = {name: _measure(name, compared) for name in dict.fromkeys(with_)}
    return replace(scores, comparators={**scores.comparators, **columns})


def correlations(scores: Scores) -> pa.Table:
    """Compare bits and the measures beside them, pair by pair, on rows where both have an answer.

    `n` rows have both, `nulls` lack one. Null where fewer than two rows are left or one of the
    measures is the same everywhere.

    >>> import coinhaze
    >>> from coinhaze.measures.comparators.side_by_side import compare_measures
    >>> ledger = coinhaze.AccountLedger.from_transfers(
    ...     [("a", "c", 1), ("b", "c", 1), ("a", "d", 1)])
    >>> compared = compare_measures(coinhaze.score(ledger), ["possible-sources"])
    >>> correlations(compared).to_pylist()[0]["spearman"]
    1.0
    """
    columns: dict[str, Floats] = {"bits": scores.bits, **scores.comparators}
    rows = []
    for one, other in combinations(columns, 2):
        x, y = columns[one], columns[other]
        both = ~(np.isnan(x) | np.isnan(y))
        rows.append(
            {
                "measure": one,
                "with": other,
                "n": int(both.sum()),
                "nulls": int((~both).sum()),
                "pearson": pearson(x[both], y[both]),
                "spearman": spearman(x[both], y[both]),
            }
        )
    return pa.Table.from_pylist(rows)


def pearson(x: Floats, y: Floats) -> float | None:
    """Give the linear correlation of two columns; None where one does not vary.

    >>> pearson(np.array([1.0, 2.0, 3.0]), np.array([2.0, 4.0, 6.0]))
    1.0
    """
    if len(x) < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return None
    # Scaled before squares are taken: counts may differ by many powers of ten.
    dx, dy = (x - x.mean()) / np.ptp(x), (y - y.mean()) / np.ptp(y)
    found = float(dx @ dy) / math.sqrt(float(dx @ dx) * float(dy @ dy))
    return min(1.0, max(-1.0, found))


def spearman(x: Floats, y: Floats) -> float | None:
    """Give the correlation of ranks, ties sharing their mean rank.

    Values that differ by less than a billionth of the largest are one rank: solvers round.
    """
    return pearson(_ranks(x), _ranks(y))


def _ranks(x: Floats) -> Floats:
    if len(x) == 0:
        return x
    scale = float(np.abs(x).max()) or 1.0
    _, group, count = np.unique(np.round(x / scale, 9), return_inverse=True, return_counts=True)
    ranks: Floats = (np.cumsum(count) - (count - 1) / 2)[group]
    return ranks
