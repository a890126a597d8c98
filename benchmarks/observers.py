"""Informed observers: how often each is wrong on labelled sets, and what the ladder costs.

`python -m benchmarks.observers DATA` prints the tables in docs/observers.md. Wrong inferences are
counted where the truth is known: in the emulation of ten Wasabi 2 wallets every address has an
owner; in the lists of Whirlpool's and Wasabi 1's CoinJoins every CoinJoin that is taken for an
ordinary payment would join strangers. Costs are CPU seconds of one thread, the
best of three runs.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

import coinhaze
from benchmarks.wasabi_truth import read_truth
from coinhaze import CoinLedger
from coinhaze.amounts import Ints
from coinhaze.graph.clusters.change import change_outputs
from coinhaze.graph.clusters.coinjoins import CoinJoin, coinjoin_kinds
from coinhaze.observer.owners import ladder
from coinhaze.simulate.weeks import simulate_week


def wrong_pairs(person: Ints, truth: list[str]) -> tuple[int, int, int]:
    """Count pairs of owned addresses taken for one person's, those wrongly, and all true pairs."""
    _, owner = np.unique(truth, return_inverse=True)
    same_owner = person[:, None] == person[None, :]
    same = owner[:, None] == owner[None, :]
    upper = np.triu(np.ones(same_owner.shape, dtype=np.bool_), 1)
    joined, true = same_owner & upper, same & upper
    return int(joined.sum()), int((joined & ~same).sum()), int(true.sum())


def emulation(data: Path) -> list[str]:
    """Count what observers get wrong about ten wallets."""
    truth = read_truth(next((data / "btc_wasabi2_emulation_truth").glob("*.tar.xz")))
    ledger = truth.ledger
    owners = [truth.owners.get(name, "the funder") for name in ledger.owners.to_pylist()]
    shown = []
    for observer in ladder(ledger):
        joined, wrong, true = wrong_pairs(observer.persons.of_owner, owners)
        shown.append(
            f"Wasabi 2 emulation  {observer.name:<27}{wrong:>5} of {joined:>5} pairs of addresses "
            f"joined wrongly; {joined - wrong} of {true} true pairs found"
        )
    payer = dict(
        zip(
            ledger.input_tx.tolist(), ledger.output_owner[ledger.input_output].tolist(), strict=True
        )
    )
    changes = change_outputs(ledger).tolist()
    wrong = sum(
        owners[payer[int(ledger.output_tx[c])]] != owners[int(ledger.output_owner[c])]
        for c in changes
    )
    shown.append(f"Wasabi 2 emulation  change outputs recognised: {len(changes)}, wrongly {wrong}")
    return shown


def listed_coinjoins(data: Path) -> Iterator[tuple[str, CoinLedger, set[str]]]:
    """Give the sets whose CoinJoins are listed: name, ledger, ids of the CoinJoins."""
    for name, pattern, table in (
        ("Whirlpool 03/2024", "*sw*.zip", "SamouraiCoinJoins.txt"),
        ("Wasabi 1 08/2021", "*ww1*.zip", "WasabiCoinJoins.txt"),
    ):
        with tempfile.TemporaryDirectory() as folder:
            with zipfile.ZipFile(next((data / "btc_coinjoin_dumplings").glob(pattern))) as packed:
                packed.extractall(folder)
            ledger = coinhaze.read(sorted(Path(folder).rglob("*.txt")))
            lines = next(Path(folder).rglob(table)).read_text().splitlines()
        assert isinstance(ledger, CoinLedger)
        yield name, ledger, {line.split(":::")[0] for line in lines}


def listed(data: Path) -> list[str]:
    """Count listed CoinJoins that are taken for payments of one owner."""
    shown = []
    for name, ledger, mixes in listed_coinjoins(data):
        kinds = coinjoin_kinds(ledger)
        missed = sum(
            txid in mixes and kinds[k] == CoinJoin.none
            for k, txid in enumerate(ledger.txids.to_pylist())
        )
        scores = coinhaze.informed(coinhaze.score(ledger))
        bits = [scores.bits, *(found.bits for found in scores.informed.values())]
        means = ", ".join(f"{np.nanmean(b):.4f}" for b in bits)
        shown.append(
            f"{name:<20}{missed} of {len(mixes)} listed CoinJoins taken for payments; mean bits "
            f"naive, common inputs, change: {means}"
        )
    return shown


def seconds(work: Callable[[], object]) -> float:
    """Give the CPU seconds of the better of three runs."""
    best = np.inf
    for _ in range(3):
        begin = time.process_time()
        work()
        best = min(best, time.process_time() - begin)
    return float(best)


def cost(name: str, ledger: CoinLedger) -> str:
    """Compare the ladder with the naive score of a ledger: from the graph on, and solves alone."""
    scores = coinhaze.score(ledger, threads=1)
    coinhaze.informed(scores, threads=1)  # compiled now
    whole = seconds(lambda: coinhaze.score(ledger, threads=1))
    solve = seconds(lambda: coinhaze.score(scores.chain, threads=1))
    more = seconds(lambda: coinhaze.informed(scores, threads=1))
    infer = seconds(lambda: ladder(ledger))
    return (
        f"{name:<28}graph and solve {whole:7.3f} s, solve {solve:7.3f} s; informed {more:7.3f} s, "
        f"of which inference {infer:7.3f} s: {(whole + more) / whole:.2f} times, solves alone "
        f"{(solve + more - infer) / solve:.2f} times"
    )


def main(data: Path, size: float) -> list[str]:
    """Print the tables."""
    shown = [*emulation(data), *listed(data)]
    early = coinhaze.read(sorted((data / "btc_utxo_100000_104000").glob("[ve]*.csv.gz")))
    assert isinstance(early, CoinLedger)
    shown.append(cost("Bitcoin 100000-104000", early))
    week = simulate_week("bitcoin-week", size=size, seed=1)
    assert isinstance(week, CoinLedger)
    shown.append(cost(f"simulated week, size {size:g}", week))
    print("\n".join(shown))
    return shown


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--size", type=float, default=0.05)
    given = parser.parse_args()
    main(given.data, given.size)
