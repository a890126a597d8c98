"""A comparator from outside the package: how many outputs the transaction of a coin has."""

from __future__ import annotations

import coinhaze
from coinhaze.amounts import Floats


@coinhaze.register_comparator(
    "outputs",
    words="outputs of the transaction that made the coin",
    unit="outputs",
    about="transaction",
)
def outputs(compared: coinhaze.ComparedScores) -> Floats:
    ledger = compared.ledger
    return compared.by_coin(lambda coin: len(compared.parts.made(int(ledger.output_tx[coin]))))
