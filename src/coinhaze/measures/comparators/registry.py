"""Other people's measures of the same coins, by name, as columns beside the bits.

Each is a function of a question: the scores, the ledger under them, and what the asker knows. It
gives a number for every row of the scores, NaN (null in tables) where the measure has no answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from coinhaze.amounts import Floats, Ints
from coinhaze.coinjoin.link_matrix import LinkMatrix
from coinhaze.coinjoin.parts import Parts
from coinhaze.errors import ResourceError, UsageError
from coinhaze.graph.graph import Kind
from coinhaze.ledger import CoinLedger
from coinhaze.measures.comparators.matching import admissible_edges
from coinhaze.measures.comparators.mint import mint_centrality
from coinhaze.measures.comparators.permanent import staircase_anonymity
from coinhaze.measures.comparators.wasabi import wasabi_scores
from coinhaze.measures.entropy import shannon
from coinhaze.measures.scores import Scores

# A ledger has many transactions: each may take about a second, more is no answer.
MOST_STEPS = 10_000_000


@dataclass(frozen=True, eq=False)
class Question:
    """What measures are asked about: rows of scores, and what is known beside them."""

    scores: Scores
    owners: Mapping[str, str] | None = None
    ratio: float = 0.0
    steps: int = MOST_STEPS

    @cached_property
    def ledger(self) -> CoinLedger:
        """The ledger of coins; measures of single transactions have no other."""
        graph = self.scores.chain.graph
        if not isinstance(graph.ledger, CoinLedger) or graph.settings.get("view") != "coin":
            raise UsageError("that measure is of single coins: it needs a coin ledger, view=coin")
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


@dataclass(frozen=True)
class Comparator:
    """A measure: its name, what it says in one line, and how it is taken."""

    name: str
    says: str
    measure: Callable[[Question], Floats]


def compare_measures(
    scores: Scores,
    with_: Sequence[str],
    *,
    owners: Mapping[str, str] | None = None,
    ratio: float = 0.0,
    steps: int = MOST_STEPS,
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
    question = Question(scores, owners, ratio, steps)
    columns = {name: COMPARATORS[name].measure(question) for name in dict.fromkeys(with_)}
    return replace(scores, comparators={**scores.comparators, **columns})


def check_measures(names: Sequence[str], *, owners: bool) -> None:
    """Refuse, before any work is done, measures that are not known or lack what they need."""
    for name in names:
        if name not in COMPARATORS:
            raise UsageError(f"no measure {name!r}: one of {', '.join(COMPARATORS)}")
    if "wasabi" in names and not owners:
        raise UsageError(
            "Wasabi's score is what a wallet knows of itself: name a table of owners, address to "
            "wallet"
        )


def _equal_outputs(question: Question) -> Floats:
    ledger, parts = question.ledger, question.parts
    alike: dict[int, int] = {}
    for tx in np.unique(ledger.output_tx[question.coins[question.coins >= 0]]).tolist():
        coins = parts.made(tx)
        values = np.array(parts.values(coins), dtype=object)
        _, group, count = np.unique(values, return_inverse=True, return_counts=True)
        alike.update(zip(coins.tolist(), count[group].tolist(), strict=True))
    return question.by_coin(lambda coin: alike.get(coin, math.nan))


def _link_bits(question: Question) -> Floats:
    bits: dict[int, float] = {}
    for tx, matrix in question.matrices.items():
        if matrix is not None:
            rows = [shannon(row) for row in matrix.shares.tolist()]
            bits.update(zip(question.parts.made(tx).tolist(), rows, strict=True))
    return question.by_coin(lambda coin: bits.get(coin, math.nan))


def _system(question: Question) -> Floats:
    """Take Edman's measure of each transaction: an input can have become what is worth no more.

    Readings in blocks would link everything, since one block is always possible; Edman matches one
    to one. Sorted by worth, the matrix of what is feasible is a staircase, so that its permanent is
    a product: the k-th poorest of the inputs has its outputs less the k that poorer ones took.
    """
    ledger, parts = question.ledger, question.parts
    value: dict[int, float] = {}
    for tx in np.unique(ledger.output_tx[question.coins[question.coins >= 0]]).tolist():
        spent, made = (parts.values(some(tx)) for some in (parts.spent, parts.made))
        value[tx] = math.nan
        if len(spent) == len(made) > 1 and parts.can_be_taken_apart(tx):
            value[tx] = staircase_anonymity(spent, made)
    return question.by_coin(lambda coin: value[int(ledger.output_tx[coin])])


def _admissible(question: Question) -> Floats:
    """Count the coins that the rings of a coin's transaction can have spent between them."""
    ledger = question.ledger
    if not ledger.has_rings:
        return np.full(len(question.scores), math.nan)
    key = ledger.ring_tx * (int(ledger.ring_vin.max()) + 1) + ledger.ring_vin
    _, ring = np.unique(key, return_inverse=True)
    coins, coin = np.unique(ledger.ring_output, return_inverse=True)
    kept = admissible_edges(ring, coin, int(ring.max()) + 1, len(coins))
    pairs = np.unique(np.stack([ledger.ring_tx[kept], coin[kept]]), axis=1)
    count = np.bincount(pairs[0], minlength=len(ledger.txids)).astype(np.float64)
    count[count == 0] = math.nan
    return question.by_coin(lambda made: float(count[ledger.output_tx[made]]))


def _wasabi(question: Question) -> Floats:
    assert question.owners is not None
    score = wasabi_scores(question.ledger, question.owners, parts=question.parts)
    return question.by_coin(lambda coin: float(score[coin]))


COMPARATORS: Mapping[str, Comparator] = {
    c.name: c
    for c in (
        Comparator(
            "boltzmann",
            "log2 of the interpretations of the transaction that made the coin",
            lambda q: q.by_transaction(lambda m: m.bits),
        ),
        Comparator(
            "degree",
            "bits as a share of what as many equally likely sources would have",
            lambda q: q.scores.degree,
        ),
        Comparator(
            "effective-sources",
            "equally likely sources that would be as uncertain: 2^bits",
            lambda q: q.scores.effective_sources,
        ),
        Comparator(
            "efficiency",
            "interpretations of the transaction as a share of the closest perfect CoinJoin's",
            lambda q: q.by_transaction(lambda m: m.efficiency),
        ),
        Comparator(
            "k-anonymity",
            "outputs of the transaction with the coin's value, itself among them",
            _equal_outputs,
        ),
        Comparator(
            "link-bits",
            "bits of the coin's shares over the inputs of its transaction",
            _link_bits,
        ),
        Comparator(
            "matching",
            "coins that the transaction's rings can have spent, every coin spent once",
            _admissible,
        ),
        Comparator(
            "mint-centrality",
            "coinbases the coin can be traced back to",
            lambda q: mint_centrality(q.scores.chain.graph)[q.scores.nodes],
        ),
        Comparator(
            "possible-sources",
            "sources the coin can come from: k-anonymity over the whole graph",
            lambda q: q.scores.sources,
        ),
        Comparator(
            "system-anonymity",
            "of matching a transaction's inputs and outputs one to one, how much is left open",
            _system,
        ),
        Comparator("wasabi", "the score the coin's own wallet would give it", _wasabi),
    )
}
