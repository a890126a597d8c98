"""What churn through rings gains, hop by hop, and how large rings are in effect.

`python -m benchmarks.churn` prints the tables of docs/rings-and-pools.md.
"""

from __future__ import annotations

import argparse

import numpy as np

from coinhaze.amounts import Floats
from coinhaze.lab.lab import churn, churn_apart
from coinhaze.measures.comparators.rings import ring_sizes
from coinhaze.observer.decoys import AgeShare, decoy_posterior
from coinhaze.simulate.rings import ring_economy

HOPS, WAIT = 8, 60


def churn_table(*, blocks: int, ring: int, seeds: int) -> list[tuple[int, float, float, float]]:
    """Give hop, bits if pasts share nothing, and mean and spread of bits over economies."""
    bits = []
    for seed in range(1, seeds + 1):
        economy = ring_economy(
            blocks=blocks, per_block=3, ring=ring, hops=HOPS, wait=WAIT, seed=seed
        )
        bits.append(churn(economy.ledger, economy.churned)["bits"].to_numpy())
    mean, spread = np.mean(bits, axis=0), np.std(bits, axis=0)
    apart = churn_apart(ring, HOPS + 1)[1:]
    return [(hop, apart[hop], float(mean[hop]), float(spread[hop])) for hop in range(HOPS + 1)]


def within(hours: float) -> AgeShare:
    """Give the distribution of spends that come, on the mean, after so many hours."""

    def share(seconds: Floats) -> Floats:
        return -np.expm1(-np.maximum(seconds, 0.0) / (3600 * hours))

    return share


def size_table(*, blocks: int, ring: int) -> list[tuple[str, float, float, float]]:
    """Give, by how soon coins are really spent, sizes of rings and how often a guess is right."""
    rows = []
    for name, hours in (("as the wallet assumes", None), ("a day", 24.0), ("an hour", 1.0)):
        age = None if hours is None else lambda rng, h=hours: float(rng.exponential(3600 * h))
        economy = ring_economy(blocks=blocks, ring=ring, spend_age=age)
        real = None if hours is None else within(hours)
        aged = decoy_posterior(economy.ledger, real=real, heights=economy.heights).ledger
        effective = ring_sizes(aged)["effective"].to_numpy()
        assert aged.ring_probability is not None
        chance = aged.ring_probability.reshape(-1, ring)
        guess = ring * np.arange(len(chance)) + chance.argmax(axis=1)
        right = float(np.mean(guess == economy.real))
        rows.append((name, float(effective.mean()), float(np.median(effective)), right))
    return rows


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--blocks", type=int, default=1500)
    parser.add_argument("--ring", type=int, default=16)
    parser.add_argument("--seeds", type=int, default=5)
    given = parser.parse_args()
    print("| hops | bits, pasts apart | bits in the economy | spread |")
    print("|---|---|---|---|")
    for row in churn_table(blocks=given.blocks, ring=given.ring, seeds=given.seeds):
        print("| {} | {:.3f} | {:.3f} | {:.3f} |".format(*row))
    print("\n| coins are spent after | mean size | median size | likeliest member is right |")
    print("|---|---|---|---|")
    for row_ in size_table(blocks=given.blocks, ring=given.ring):
        print("| {} | {:.2f} | {:.2f} | {:.1%} |".format(*row_))


if __name__ == "__main__":
    main()
