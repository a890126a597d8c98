"""Write your own policy: an observer who thinks that people spend their newest money first.

A policy is a function of the graph that gives a matrix: row i holds the chances to walk back from
node i to each node and, last, to stop at its own opening. Here every predecessor weighs what it
paid, times a factor that falls with its age: a rule between proportional and last in first out.
"""

from __future__ import annotations

import argparse

import numpy as np
import scipy.sparse

import coinhaze
from coinhaze.simulate import simulate_town


def newest_first(half_life: float) -> object:
    """Give a policy under which money counts half after so many transactions."""

    def policy(graph: coinhaze.TransactionGraph) -> scipy.sparse.csr_array:
        assert graph.born is not None
        age = graph.born[graph.head] - graph.born[graph.tail]
        weight = graph.amounts.floats() * np.exp2(-np.maximum(age, 0) / half_life)
        n = len(graph)
        own = graph.opening.floats()
        total = np.bincount(graph.head, weight, n) + own
        rows = np.append(graph.head, np.arange(n))
        columns = np.append(graph.tail, np.full(n, n))
        values = np.append(weight / total[graph.head], own / np.where(total > 0, total, 1))
        return scipy.sparse.csr_array((values, (rows, columns)), shape=(n, n + 1))

    return policy


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--half-lives", type=float, nargs="+", default=[10.0, 100.0, 1e9])
    options = parser.parse_args()
    graph = coinhaze.transaction_graph(simulate_town(transactions=600, people=60))
    for policy, name in [("proportional", "proportional")] + [
        (newest_first(life), f"half after {life:g}") for life in options.half_lives
    ]:
        scores = coinhaze.score(coinhaze.absorbing_chain(graph, policy=policy))
        print(f"{name}: {scores.bits.mean():.4f} bits on average")


if __name__ == "__main__":
    main()
