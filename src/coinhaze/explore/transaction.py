"""A transaction by itself: which inputs paid which outputs, and what heuristics say of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from coinhaze.amounts import Ints
from coinhaze.coinjoin.link_matrix import LinkMatrix, link_matrix
from coinhaze.errors import InputError, ResourceError, count_words
from coinhaze.explore.ledger_index import LedgerIndex
from coinhaze.explore.models import EqualCoins, HeuristicFinding, TransactionFacts, TransactionLinks
from coinhaze.explore.nodes import MAX_COINS, only
from coinhaze.explore.views import Views
from coinhaze.graph.clusters.coinjoins import CoinJoin, coinjoin_kinds
from coinhaze.graph.clusters.heuristics import heuristic

STEPS = 2_000_000  # of the count of interpretations: about a fifth of a second
MAX_AMOUNTS = 40  # different amounts of inputs, or of outputs, that a matrix shows
KINDS = {
    CoinJoin.whirlpool: "Whirlpool",
    CoinJoin.wasabi1: "Wasabi 1",
    CoinJoin.wasabi2: "Wasabi 2",
    CoinJoin.joinmarket: "JoinMarket",
}
POOLED = "money crossed a pool, so inputs and outputs are not all there is"
TOO_LARGE = "too many ways to read its amounts to count them in a short time"
NO_INPUTS = "it spends nothing: its coins were made here"
TOO_MANY = f"more than {MAX_AMOUNTS} different amounts on one side: too many to draw"


def transaction_facts(views: Views, index: LedgerIndex, tx: int) -> TransactionFacts | None:
    """Describe a transaction; None where amounts are hidden, or what it did is not known."""
    ledger = index.coins
    spent, made = index.spent(tx), index.made(tx)
    if index.hides_amounts or not ledger.inside[tx] or len(spent) + len(made) > MAX_COINS:
        return None
    kind = CoinJoin.none
    if len(spent):
        kind = CoinJoin(int(coinjoin_kinds(only(index, [tx]))[1]))
    pooled = bool(np.any(ledger.flow_tx == tx)) or bool(np.any(ledger.ring_tx == tx))
    links = _links(index, spent, made, pooled=pooled)
    payers = len(np.unique(ledger.output_owner[spent]))
    left = sum(_values(index, spent)) - sum(_values(index, made))
    return TransactionFacts(
        inputs=len(spent),
        outputs=len(made),
        fee=index.amount(left) if len(spent) and left >= 0 and not pooled else None,
        coinjoin=KINDS.get(kind),
        sentence=_sentence(len(spent), len(made), payers, kind, links),
        findings=_findings(views, index, spent, made, kind, payers),
        links=links,
    )


def _values(index: LedgerIndex, coins: Ints) -> list[int]:
    return [index.value(coin) or 0 for coin in coins.tolist()]


def _sentence(
    inputs: int, outputs: int, payers: int, kind: CoinJoin, links: TransactionLinks
) -> str:
    """Say first what a reader came for: who paid, and what the amounts give away."""
    made = count_words(outputs, "output")
    if not inputs:
        return f"{made} made here: it spends no coin."
    begin = f"{count_words(inputs, 'input')} of {count_words(payers, 'address', 'addresses')} paid "
    begin += f"{made}. "
    if kind != CoinJoin.none:
        who = f"It looks like a CoinJoin of {KINDS[kind]}: several people paid together."
    elif payers > 1:
        who = "There is no sign of a CoinJoin: to most observers one person paid it."
    else:
        who = "One address paid it."
    if links.refused is not None or links.bits is None:
        return begin + who
    if links.interpretations == "1":
        return f"{begin}{who} Amounts can be read in one way: all inputs paid all outputs."
    ways = f"{int(links.interpretations):,}" if len(links.interpretations) < 10 else "very many"
    return f"{begin}{who} Amounts can be read in {ways} ways ({links.bits:.2f} bits)."


def _findings(
    views: Views, index: LedgerIndex, spent: Ints, made: Ints, kind: CoinJoin, payers: int
) -> tuple[HeuristicFinding, ...]:
    """List the heuristics that say something of a transaction."""
    found = []
    if kind != CoinJoin.none:
        found.append(_finding(kind.name, f"a CoinJoin of {KINDS[kind]}: its inputs are not joined"))
    elif payers > 1:
        says = f"its {payers:,} input addresses probably belong to one person"
        found.append(_finding("common-input-no-coinjoins", says))
    if views.tells_observers and len(spent):
        names = index.coins.output_names(made).to_pylist()
        for coin, name in zip(made.tolist(), names, strict=True):
            if coin in views.change:
                which = f"output {name.rpartition(':')[2]} is probably change"
                found.append(_finding("change", f"{which}: it went back to the payer"))
    return tuple(found)


def _finding(name: str, says: str) -> HeuristicFinding:
    rule = heuristic(name)
    return HeuristicFinding(
        name=name, says=says, confidence=rule.confidence, confidence_origin=rule.origin
    )


def _links(index: LedgerIndex, spent: Ints, made: Ints, *, pooled: bool) -> TransactionLinks:
    """Count the ways to read the amounts, and how many of them link an input to an output."""
    ins = [coin for coin in spent.tolist() if index.value(coin)]
    outs = [coin for coin in made.tolist() if index.value(coin)]
    if pooled or not ins or not outs:
        return TransactionLinks(refused=POOLED if pooled else NO_INPUTS)
    values = [[index.value(coin) or 0 for coin in side] for side in (ins, outs)]
    try:
        matrix = link_matrix(*values, steps=STEPS)
    except ResourceError:
        return TransactionLinks(refused=TOO_LARGE)
    except InputError as error:
        return TransactionLinks(refused=str(error))
    inputs, outputs = (_equal(index, np.array(side)) for side in (ins, outs))
    few = max(len(inputs), len(outputs)) <= MAX_AMOUNTS
    rows, columns = (_first(side) for side in (values[1], values[0]))
    return TransactionLinks(
        interpretations=str(matrix.interpretations),
        bits=matrix.bits,
        efficiency=min(matrix.efficiency, 1.0),
        inputs=inputs if few else (),
        outputs=outputs if few else (),
        probabilities=_cells(matrix, rows, columns) if few else (),
        refused=None if few else TOO_MANY,
    )


def _first(values: Sequence[int]) -> list[int]:
    """Give the first place of each different value, in order.

    >>> _first([5, 3, 5])
    [0, 1]
    """
    places: dict[int, int] = {}
    for k, value in enumerate(values):
        places.setdefault(value, k)
    return list(places.values())


def _equal(index: LedgerIndex, coins: Ints) -> tuple[EqualCoins, ...]:
    """Put coins of one amount together, in order of the first of each."""
    values = [index.value(coin) or 0 for coin in coins.tolist()]
    names, count = index.coins.output_names(coins).to_pylist(), Counter(values)
    return tuple(
        EqualCoins(amount=index.amount(values[k]), count=count[values[k]], first=names[k])
        for k in _first(values)
    )


def _cells(
    matrix: LinkMatrix, rows: Sequence[int], columns: Sequence[int]
) -> tuple[tuple[float, ...], ...]:
    picked = matrix.probabilities[np.ix_(rows, columns)]
    return tuple(tuple(row) for row in picked.tolist())
