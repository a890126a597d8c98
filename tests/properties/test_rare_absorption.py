"""Absorption so rare that an LU factorisation of I - Q loses it, and ours does not."""

from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest
import scipy.sparse
import scipy.sparse.linalg

import coinhaze
import twin

Floats = npt.NDArray[np.float64]

SIZE = 60


def ring_of(name: str, rng: np.random.Generator) -> list[twin.Transfer]:
    """Circulate much money among the accounts of one cluster, so that none gains or loses any."""
    large = [int(amount) for amount in rng.integers(10**15, 4 * 10**15, SIZE // 3 + 1)]
    transfers = [(f"{name}{k}", f"{name}{(k + 1) % SIZE}", large[0]) for k in range(SIZE)]
    for k, amount in enumerate(large[1:]):
        here, there = 3 * k, (3 * k + 2) % SIZE
        transfers.append((f"{name}{here}", f"{name}{there}", amount))
        transfers.append((f"{name}{there}", f"{name}{here}", amount))
    return transfers


def near_closed_clusters(seed: int) -> list[twin.Transfer]:
    """Build two clusters that take in and exchange single units among money of 10^15 and more."""
    rng = np.random.default_rng(seed)
    return [
        *ring_of("a", rng),
        *ring_of("b", rng),
        ("left", "a0", 3),
        ("right", "b0", 2),
        ("a20", "b20", 1),
        ("b40", "a40", 2),
        ("a50", "end", 2),
        ("b50", "end", 1),
    ]


def distributions_by_lu(chain: coinhaze.AbsorbingChain) -> Floats:
    """Solve (I - Q) B = R as a user of scipy would."""
    matrix = scipy.sparse.eye_array(len(chain)) - chain.Q
    lu = scipy.sparse.linalg.splu(scipy.sparse.csc_array(matrix))
    result: Floats = lu.solve(chain.R.toarray())
    return result


def worst_error(found: Floats, exact: list[list[Fraction]]) -> float:
    """Give the largest relative error of any probability that is not zero."""
    return max(
        float(abs(Fraction(value) / share - 1))
        for values, shares in zip(found.tolist(), exact, strict=True)
        for value, share in zip(values, shares, strict=True)
        if share > 0
    )


@pytest.mark.parametrize("seed", [3, 6])
def test_rare_absorption_is_exact_where_lu_is_wrong(seed: int) -> None:
    transfers = near_closed_clusters(seed)
    expected = twin.account_graph(transfers)
    rows = twin.proportional(expected)
    answers = twin.solve(rows)
    ledger = coinhaze.AccountLedger.from_transfers(transfers)
    chain = coinhaze.absorbing_chain(coinhaze.transaction_graph(ledger))
    names = chain.graph.names.of(np.arange(len(chain))).to_pylist()
    outcomes = chain.outcomes.to_pylist()
    assert len(chain) >= 100
    leaving = [chance for row in rows.values() for t, chance in row.items() if isinstance(t, tuple)]
    assert 0 < min(leaving) <= Fraction(1, 10**15)

    exact, bits, steps = [], [], []
    for name in names:
        answer = answers[name]
        assert answer is not None
        exact.append([answer.distribution.get(source, Fraction(0)) for source in outcomes])
        bits.append(answer.bits)
        steps.append(float(answer.steps))

    ours = np.zeros((len(chain), len(outcomes)))
    for node in range(len(chain)):
        found = coinhaze.origins(chain, node)
        ours[node, found.outcomes] = found.probability
    scores = coinhaze.score(chain, nodes="all", threads=1)
    assert worst_error(ours, exact) <= 1e-12
    np.testing.assert_allclose(scores.bits, bits, rtol=0, atol=1e-12)
    np.testing.assert_allclose(scores.steps, steps, rtol=1e-12)
    assert np.all((scores.bits_low <= bits) & (bits <= scores.bits_high))
    assert scores.width <= 1e-9

    assert worst_error(distributions_by_lu(chain), exact) > 0.01
