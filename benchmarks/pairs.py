"""Do shared origins tell which coins have one owner? ROC on labelled sets, beside plain baselines.

`python -m benchmarks.pairs DATA` reads the folder of real ledgers and prints the table in
docs/pairs.md: for each set the area under the ROC curve (AUC, 0.5 is a coin toss) of every figure
that `coinhaze shared` gives, and of what needs no origins: how near in time and in value two coins
are, and whether one transaction made both.

Who owns what is known in one set, the emulation of ten wallets; pairs are of coins one wallet held,
or two. In the others coins that a later payment spent together had one owner, except in CoinJoins,
which the lists name; pairs of coins that two payments spent, by payers nothing links, stand for
different owners. A coin's origins are those before it was spent, so that payment does not give the
answer away; the naive observer is taken, since informed ones learn from such payments.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import coinhaze
from benchmarks.observers import listed_coinjoins
from benchmarks.wasabi_truth import read_truth
from coinhaze import CoinLedger, absorbing_chain, transaction_graph
from coinhaze.amounts import Floats, Ints
from coinhaze.graph.clusters.coinjoins import CoinJoin, coinjoin_kinds
from coinhaze.graph.clusters.merge import cluster_labels, common_inputs
from coinhaze.measures.pairs import FIGURES, SourceRow, compare_rows
from coinhaze.solve.local.past import past_of
from coinhaze.solve.structure.structure import Structure

PAIRS = 400  # of either kind, at most
BASELINES = ("near in time", "near in value", "one transaction")


@dataclass(frozen=True)
class LabelledPairs:
    """Pairs of outputs of a ledger, by number, and whether one owner held both."""

    name: str
    ledger: CoinLedger
    first: Ints
    second: Ints
    same: Ints


def auc(positive: Floats, negative: Floats) -> float:
    """Give the probability that a pair of one owner ranks above one of two, ties counting half."""
    below = np.searchsorted(np.sort(negative), positive, side="left")
    not_above = np.searchsorted(np.sort(negative), positive, side="right")
    return float((below + not_above).mean() / (2 * len(negative)))


def standard_error(area: float, positive: int, negative: int) -> float:
    """Give the standard error of an AUC (Hanley and McNeil 1982)."""
    q1, q2 = area / (2 - area), 2 * area**2 / (1 + area)
    spread = area * (1 - area) + (positive - 1) * (q1 - area**2) + (negative - 1) * (q2 - area**2)
    return float(np.sqrt(max(spread, 0.0) / (positive * negative)))


def hits_at(positive: Floats, negative: Floats, false: float = 0.05) -> float:
    """Give the share of one owner's pairs found where at most 5 in 100 of the others are."""
    limit = np.sort(negative)[::-1][int(false * len(negative))]
    return float((positive > limit).mean())


def evaluate(pairs: LabelledPairs) -> dict[str, tuple[float, float, float]]:
    """Give AUC, its error and hits at 5 % false positives for each figure and baseline."""
    ledger = pairs.ledger
    chain = absorbing_chain(transaction_graph(ledger))
    structure = Structure(chain)
    newest = chain.graph.names.newest
    opening = chain.graph.opening
    assert opening is not None
    nodes = chain.outcomes.nodes.astype(np.int64)
    prior = opening.take(nodes).floats() / opening.floats().sum()
    rows: dict[int, SourceRow] = {}
    for coin in np.unique(np.concatenate([pairs.first, pairs.second])).tolist():
        found, share = past_of(structure, int(newest[coin])).outcomes()
        order = np.argsort(found)
        rows[coin] = SourceRow(found[order], share[order], max(1.0 - float(share.sum()), 0.0))
    table: dict[str, list[float]] = {name: [] for name in (*FIGURES, *BASELINES)}
    height = np.array(ledger.heights.fill_null(0).to_pylist(), dtype=np.float64)
    assert ledger.output_value is not None
    worth = np.log2(np.maximum(ledger.output_value.floats(), 1.0))
    for one, other in zip(pairs.first.tolist(), pairs.second.tolist(), strict=True):
        figures = compare_rows(rows[one], rows[other], prior)
        for name in FIGURES:
            value = getattr(figures, name).value
            value = -np.inf if value is None else value
            table[name].append(-value if name == "divergence" else value)
        made = ledger.output_tx[one], ledger.output_tx[other]
        table["near in time"].append(-abs(float(height[made[0]] - height[made[1]])))
        table["near in value"].append(-abs(float(worth[one] - worth[other])))
        table["one transaction"].append(float(made[0] == made[1]))
    same = pairs.same.astype(bool)
    result = {}
    for name, values in table.items():
        score = np.array(values)
        area = auc(score[same], score[~same])
        error = standard_error(area, int(same.sum()), int((~same).sum()))
        result[name] = (area, error, hits_at(score[same], score[~same]))
    return result


def spent_together(name: str, ledger: CoinLedger, mixes: set[str], seed: int = 1) -> LabelledPairs:
    """Pair coins that one payment spent, and coins that two did whose payers nothing links."""
    chance = random.Random(seed)
    kinds = coinjoin_kinds(ledger) != CoinJoin.none
    listed = np.array([txid in mixes for txid in ledger.txids.to_pylist()])
    cluster = cluster_labels(ledger, *common_inputs(ledger, coinjoins=False))
    spent: dict[int, list[int]] = {}
    for tx, coin in zip(ledger.input_tx.tolist(), ledger.input_output.tolist(), strict=True):
        inside = ledger.inside[ledger.output_tx[coin]]
        if (
            inside
            and not kinds[tx]
            and not listed[tx]
            and not ledger.coinbase[ledger.output_tx[coin]]
        ):
            spent.setdefault(tx, []).append(coin)
    together = [tx for tx, coins in spent.items() if len(coins) > 1]
    chance.shuffle(together)
    same = [tuple(chance.sample(spent[tx], 2)) for tx in together[:PAIRS]]
    payers = sorted(spent)
    apart: list[tuple[int, ...]] = []
    while len(apart) < len(same):
        one, other = (chance.choice(spent[tx]) for tx in chance.sample(payers, 2))
        owners = ledger.output_owner[[one, other]]
        if cluster[owners[0]] != cluster[owners[1]]:
            apart.append((one, other))
    pairs = np.array(same + apart)
    truth = np.repeat([1, 0], len(same))
    return LabelledPairs(name, ledger, pairs[:, 0], pairs[:, 1], truth)


def held_together(name: str, ledger: CoinLedger, wallet: Mapping[str, str]) -> LabelledPairs:
    """Pair outputs of CoinJoins by the wallet that really held them."""
    chance = random.Random(1)
    kinds = coinjoin_kinds(ledger) != CoinJoin.none
    names = ledger.output_names().to_pylist()
    coins = [
        (k, wallet[coin])
        for k, coin in enumerate(names)
        if coin in wallet and kinds[ledger.output_tx[k]]
    ]
    found: dict[bool, list[tuple[int, int]]] = {True: [], False: []}
    while min(map(len, found.values())) < PAIRS:
        (one, mine), (other, yours) = chance.sample(coins, 2)
        if len(found[mine == yours]) < PAIRS:
            found[mine == yours].append((one, other))
    pairs = np.array(found[True] + found[False])
    return LabelledPairs(name, ledger, pairs[:, 0], pairs[:, 1], np.repeat([1, 0], PAIRS))


def labelled(data: Path) -> list[LabelledPairs]:
    """Read the sets."""
    truth = read_truth(next((data / "btc_wasabi2_emulation_truth").glob("*.tar.xz")))
    found = [held_together("Wasabi 2 emulation", truth.ledger, truth.wallet)]
    found += [spent_together(*one) for one in listed_coinjoins(data)]
    early = coinhaze.read(sorted((data / "btc_utxo_100000_104000").glob("[ve]*.csv.gz")))
    assert isinstance(early, CoinLedger)
    return [*found, spent_together("wallets of 01/2011", early, set())]


def lines(sets: Sequence[LabelledPairs]) -> list[str]:
    """Show all sets."""
    results = [evaluate(pairs) for pairs in sets]
    shown = []
    for pairs, result in zip(sets, results, strict=True):
        shown.append(f"{pairs.name}: {int(pairs.same.sum())} pairs of one owner, as many of two")
        for name, (area, error, hits) in result.items():
            shown.append(f"  {name:<16} AUC {area:.3f} ± {error:.3f}   found at 5 % {hits:6.1%}")
    return shown


def main(data: Path) -> list[str]:
    """Print the table."""
    shown = lines(labelled(data))
    print("\n".join(shown))
    return shown


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    main(parser.parse_args().data)
