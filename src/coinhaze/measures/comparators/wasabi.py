"""Wasabi's anonymity score: what a wallet that knows its own coins says of each of them.

The score of an output is inherited + min(foreign equal outputs / own equal outputs, foreign
inputs). Inherited is the mean of the own inputs' scores by value if a foreign output has the same
value, else the least of them. It asks how well an output hides among others of one transaction; it
is no probability, and says nothing of where money came from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from coinhaze.amounts import Floats
from coinhaze.coinjoin.parts import Parts
from coinhaze.ledger import CoinLedger
from coinhaze.measures.comparators.side_by_side import ComparedScores

RECEIVED = 1.0  # the score of a coin its owner did not make: somebody knows whose it is


def wasabi_score(
    own_inputs: Sequence[tuple[float, float]],
    own_outputs: Sequence[float],
    *,
    foreign_outputs: Sequence[float],
    foreign_inputs: int | None = None,
) -> list[float]:
    """Score the outputs a wallet owns in one transaction; inputs are (value, score).

    `foreign_inputs` None means no cap.

    >>> wasabi_score([(620, 1)], [100, 500], foreign_outputs=[100] * 9, foreign_inputs=9)
    [10.0, 1.0]
    """
    foreign, own = Counter(foreign_outputs), Counter(own_outputs)
    if own_inputs:
        worth = sum(value for value, _ in own_inputs)
        mean = sum(value * score for value, score in own_inputs) / worth
        minimum = min(score for _, score in own_inputs)
    else:
        mean = minimum = RECEIVED
    scores = []
    for value in own_outputs:
        hidden = foreign[value] / own[value]
        if foreign_inputs is not None:
            hidden = min(hidden, foreign_inputs)
        scores.append((mean if foreign[value] else minimum) + hidden)
    return scores


def wasabi_scores(
    ledger: CoinLedger, owners: Mapping[str, str], *, parts: Parts | None = None
) -> Floats:
    """Score every coin of a ledger for its owner; NaN for coins of owners not in the table.

    `owners` maps addresses to wallets. A coin from before the window, or from a transaction its
    owner put nothing into, scores 1; all others by the one formula, from the first on.

    >>> ledger = CoinLedger.from_transactions([{"txid": "t", "inputs": [
    ...     {"txid": "x", "vout": 0, "value": 5, "address": "a"},
    ...     {"txid": "y", "vout": 0, "value": 5, "address": "b"}],
    ...     "outputs": [{"value": 5, "address": "c"}, {"value": 5, "address": "d"}]}])
    >>> wasabi_scores(ledger, {"a": "one", "b": "two", "c": "two", "d": "one"}).tolist()
    [1.0, 1.0, 2.0, 2.0]
    """
    parts = parts or Parts(ledger)
    wallet_of = [owners.get(address) for address in ledger.owners.to_pylist()]
    wallet = [wallet_of[k] for k in ledger.output_owner.tolist()]
    known = np.array([w is not None for w in wallet], dtype=np.bool_)
    score = np.where(known, RECEIVED, np.nan)
    for tx in np.flatnonzero(ledger.inside).tolist():
        spent, made = parts.spent(tx).tolist(), parts.made(tx).tolist()
        if not spent:
            continue
        value = dict(zip(spent + made, parts.values(np.array(spent + made)), strict=True))
        for who in {wallet[c] for c in made} & {wallet[c] for c in spent} - {None}:
            mine = [c for c in made if wallet[c] == who]
            score[mine] = wasabi_score(
                [(value[c], score[c]) for c in spent if wallet[c] == who],
                [value[c] for c in mine],
                foreign_outputs=[value[c] for c in made if wallet[c] != who],
                foreign_inputs=sum(wallet[c] != who for c in spent),
            )
    return score


def own_scores(compared: ComparedScores) -> Floats:
    """Give each row's coin the score its own wallet would give it."""
    assert compared.owners is not None
    score = wasabi_scores(compared.ledger, compared.owners, parts=compared.parts)
    return compared.by_coin(lambda coin: float(score[coin]))
