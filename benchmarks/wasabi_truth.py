"""Wasabi 2 with known owners: what bits and other measures say of a guess that can be checked.

`python -m benchmarks.wasabi_truth ARCHIVE` reads an emulation of ten wallets (real Wasabi 2 on a
test chain; blocks and who owns which coin) and prints the table in docs/comparators.md. An observer
who sees the chain alone, and which coins each wallet was funded with, guesses the wallet of every
output of a CoinJoin: the one most of its money came from. The truth tells how often that is right.
"""

from __future__ import annotations

import argparse
import json
import re
import tarfile
import tempfile
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import coinhaze
from coinhaze import CoinLedger, absorbing_chain, transaction_graph
from coinhaze.amounts import Bools, Floats
from coinhaze.graph.clusters.coinjoins import CoinJoin, coinjoin_kinds
from coinhaze.measures.comparators.side_by_side import compare_measures, spearman
from coinhaze.measures.entropy import shannon

WASABI_2 = "Wasabi 2's own"
MEASURES = ("k-anonymity", "wasabi", "boltzmann")


@dataclass(frozen=True)
class Truth:
    """A ledger, the wallet of every coin the wallets own, and Wasabi's own score of it."""

    ledger: CoinLedger
    wallet: Mapping[str, str]
    score: Mapping[str, float]
    owners: Mapping[str, str]  # by address


@dataclass(frozen=True)
class Guesses:
    """One row an output of a CoinJoin: what measures say, the best guess, whether it is right."""

    measures: Mapping[str, Floats]
    claimed: Floats  # the probability of the wallet guessed
    given_truth: Floats  # the probability the true wallet was given
    right: Bools
    value: Floats
    richest: Bools  # whether guessing the wallet with most money would be right

    def lines(self) -> list[str]:
        """Show what was claimed and found, and how often guesses hit by thirds of each measure."""
        surprise = -np.log2(self.given_truth)
        bits = self.measures["bits over wallets"]
        shown = [
            f"{len(self.right)} outputs of CoinJoins {'by coin':>20}{'by value':>12}",
            *(
                f"{what:<31}" + "".join(f"{f:>{w}.3f}" for f, w in zip(both, (14, 12), strict=True))
                for what, both in (
                    ("guesses claimed to be right", self._means(self.claimed)),
                    ("guesses right", self._means(self.right)),
                    ("always the richest wallet", self._means(self.richest)),
                    ("one in Wasabi 2's own score", self._means(1 / self.measures[WASABI_2])),
                    ("bits over wallets", self._means(bits)),
                    ("surprise at the truth, bits", self._means(surprise)),
                )
            ),
            f"{'':<20}{'coins':>6}{'Spearman':>10}   guesses right: lowest, middle, highest third",
        ]
        for name, values in self.measures.items():
            has = ~np.isnan(values)
            if not has.any():
                shown.append(f"{name:<20}{0:>6}{'-':>10}   no answer: too large")
                continue
            with_hits = spearman(values[has], self.right[has].astype(np.float64))
            found = "-" if with_hits is None else f"{round(with_hits, 3) + 0.0:.3f}"
            # Ties stay together, so thirds may be uneven.
            low, high = np.quantile(values[has], (1 / 3, 2 / 3), method="lower")
            thirds = (values <= low, (values > low) & (values <= high), values > high)
            hits = "  ".join(
                f"{self.right[t].mean():6.1%} ({int(t.sum())})" if t.any() else "     - (0)"
                for t in thirds
            )
            shown.append(f"{name:<20}{int(has.sum()):>6}{found:>10}   {hits}")
        return shown

    def _means(self, values: Floats | Bools) -> tuple[float, float]:
        return float(np.mean(values)), float(np.average(values, weights=self.value))


def read_truth(archive: Path) -> Truth:
    """Unpack an emulation's blocks and its table of coins."""
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(archive) as packed:
            packed.extractall(folder, filter="data")
        blocks = {int(re.sub(r"\D", "", p.stem)): p for p in Path(folder).rglob("block_*.json")}
        ledger = coinhaze.read([blocks[height] for height in sorted(blocks)])
        (table,) = Path(folder).rglob("wallets_coins.json")
        wallets = json.loads(table.read_text())
    coins = [(w, c, f"{c['txid']}:{c['index']}") for w, cs in wallets.items() for c in cs]
    assert isinstance(ledger, CoinLedger)
    return Truth(
        ledger,
        wallet={name: w for w, _, name in coins},
        score={name: float(c["anonymityScore"]) for _, c, name in coins},
        owners={c["address"]: w for w, c, _ in coins},
    )


def guess(truth: Truth) -> Guesses:
    """Guess the wallet of every output of a CoinJoin that a wallet owns."""
    ledger = truth.ledger
    joins = coinjoin_kinds(ledger) != CoinJoin.none
    mixed = joins[ledger.output_tx]
    names = ledger.output_names().to_pylist()
    ours = [name in truth.wallet for name in names]
    funds = [n for n, m, own in zip(names, mixed, ours, strict=True) if own and not m]
    options = [n for n, m, own in zip(names, mixed, ours, strict=True) if own and m]
    chain = absorbing_chain(transaction_graph(ledger), listed=funds)
    scores = compare_measures(coinhaze.score(chain, nodes=options), MEASURES, owners=truth.owners)
    rows = [_by_wallet(truth, chain, name) for name in options]
    best = [max(sorted(row), key=lambda w: row[w]) for row in rows]
    assert ledger.output_value is not None
    worth = dict(zip(names, ledger.output_value.ints(), strict=True))
    held: dict[str, int] = defaultdict(int)
    for name in funds:
        held[truth.wallet[name]] += worth[name]
    richest = max(held, key=lambda w: held[w])
    real = [truth.wallet[name] for name in options]
    return Guesses(
        measures={
            "bits": scores.bits,
            "bits over wallets": np.array([shannon(row.values()) for row in rows]),
            WASABI_2: np.array([truth.score[name] for name in options]),
            **scores.comparators,
        },
        claimed=np.array([row[w] for row, w in zip(rows, best, strict=True)]),
        given_truth=np.array([row.get(w, 0.0) for row, w in zip(rows, real, strict=True)]),
        right=np.array([b == r for b, r in zip(best, real, strict=True)]),
        value=np.array([worth[name] for name in options], dtype=np.float64),
        richest=np.array([r == richest for r in real]),
    )


def _by_wallet(truth: Truth, chain: coinhaze.AbsorbingChain, name: str) -> dict[str, float]:
    """Add up where a coin's money came from, by the wallet that was funded."""
    found: dict[str, float] = defaultdict(float)
    for row in coinhaze.origins(chain, name).sources().to_pylist():
        found[truth.wallet.get(row["source"], row["source"])] += row["probability"]
    return found


def main(archive: Path) -> Guesses:
    """Print the table."""
    guesses = guess(read_truth(archive))
    print("\n".join(guesses.lines()))
    return guesses


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("archive", type=Path)
    main(parser.parse_args().archive)
