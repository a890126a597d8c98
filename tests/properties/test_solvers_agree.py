"""Every solver against the twin, each within the interval it proves itself."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

import coinhaze
import twin
from coinhaze.errors import AccuracyError, UsageError
from properties import strategies as random
from properties.comparison import TIGHT, Answers, assert_same_row, node_names, profile

Floats = npt.NDArray[np.float64]
Transfers = list[random.Transfer]
Transactions = list[random.Transaction]

few = profile(15)
some = profile(20)
# Row weights add up to 2^52, so that every probability is exact and every row sums to exactly 1.
WHOLE = 2**52
MINIMUM = 4  # 4 / 2^52 = 8.9e-16


def assert_within(scores: coinhaze.Scores, names: list[str], answers: Answers) -> None:
    """Check nulls, intervals and numbers of sources."""
    for row, name in enumerate(names):
        answer = answers[name]
        if answer is None:
            assert math.isnan(scores.bits[row]), name
            assert math.isnan(scores.bits_low[row]), name
            assert math.isnan(scores.bits_high[row]), name
            continue
        assert scores.bits_low[row] <= answer.bits <= scores.bits_high[row], name
        assert scores.mass[row] <= 1 + TIGHT, name
        assert scores.sources[row] == sum(p > 0 for p in answer.distribution.values()), name


def assert_solvers_agree(
    chain: coinhaze.AbsorbingChain, names: list[str], answers: Answers, *, max_steps: int = 2000
) -> None:
    rows = np.arange(len(chain))
    exact = coinhaze.score(chain, nodes="all", method="eliminate", threads=1, renyi=(0.5, 2))
    for row, name in enumerate(names):
        assert_same_row(exact, row, answers[name], name)
    assert exact.width <= 1e-9
    try:
        swept = coinhaze.score(chain, nodes="all", method="sweep", threads=1)
    except UsageError:
        assert has_cycle(chain, answers, names)
    else:
        assert swept.method == "sweep"
        for row, name in enumerate(names):
            assert_same_row(swept, row, answers[name], name)
    published = coinhaze.series(chain, rows, rule="published", max_steps=max_steps)
    assert_within(published, names, answers)
    for columns in (1, 3):
        sliced = coinhaze.series(
            chain, rows, rule="published", columns=columns, max_steps=max_steps
        )
        assert_within(sliced, names, answers)
    try:
        summed = coinhaze.series(chain, rows, rule="mass", max_steps=max_steps)
    except AccuracyError:
        worst = max(answer.steps for answer in answers.values() if answer is not None)
        assert worst > max_steps / 100
    else:
        assert_within(summed, names, answers)
        assert summed.width <= 1e-9


def has_cycle(chain: coinhaze.AbsorbingChain, answers: Answers, names: list[str]) -> bool:
    """Tell whether a walk among nodes with an answer can come back to where it was."""
    known = np.array([answers[name] is not None for name in names])
    q = (chain.Q.toarray() > 0) & known[:, None] & known[None, :]
    reach = q.astype(np.int64)
    for _ in range(len(q).bit_length()):
        reach = ((reach + reach @ reach) > 0).astype(np.int64)
    return bool(np.diag(reach).any())


# ---------------------------------------------------------------- ledgers


@pytest.mark.parametrize("time", ["stationary", "temporal"])
@given(transfers=random.transfers())
@some
def test_solvers_agree_on_accounts(time: Any, transfers: Transfers) -> None:
    ledger = coinhaze.AccountLedger.from_transfers(transfers)
    graph = coinhaze.transaction_graph(ledger, time=time)
    expected = twin.account_graph(transfers, time=time)
    answers = twin.solve(twin.proportional(expected))
    assert_solvers_agree(coinhaze.absorbing_chain(graph), node_names(graph, expected), answers)


@given(transactions=random.transactions(pools=True))
@few
def test_solvers_agree_on_coins_and_the_sweep_takes_them(transactions: Transactions) -> None:
    graph = coinhaze.transaction_graph(coinhaze.CoinLedger.from_transactions(transactions))
    expected = twin.coin_graph(transactions)
    names = node_names(graph, expected)
    answers = twin.solve(twin.proportional(expected))
    chain = coinhaze.absorbing_chain(graph)
    assert coinhaze.score(chain, method="sweep", threads=1).method == "sweep"
    assert coinhaze.score(chain, method="auto", threads=1).method == "sweep"
    assert_solvers_agree(chain, names, answers)
    assert_within(coinhaze.score(chain, nodes="all", method="series"), names, answers)
    assert_within(coinhaze.score(chain, nodes="all", method="published"), names, answers)


@given(transfers=random.transfers(), data=st.data())
@few
def test_solvers_agree_on_listed_sources(transfers: Transfers, data: st.DataObject) -> None:
    ledger = coinhaze.AccountLedger.from_transfers(transfers)
    graph = coinhaze.transaction_graph(ledger)
    expected = twin.account_graph(transfers)
    listed = data.draw(random.listed(sorted(expected.nodes)))
    names = node_names(graph, expected)
    rows = twin.with_sources(expected, twin.proportional(expected), listed)
    chain = coinhaze.absorbing_chain(graph, listed=listed)
    assert_solvers_agree(chain, names, twin.solve(rows))
    poisoned = coinhaze.absorbing_chain(graph, policy="poison", listed=listed)
    assert_solvers_agree(poisoned, names, twin.solve(twin.poison(expected, listed)))


# ---------------------------------------------------------------- any matrix


@st.composite
def weight_rows(draw: st.DrawFn, maximum: int = 9) -> list[list[int]]:
    """Draw a dense cyclic chain: rows of weights that add up to 2^52, down to 1e-15 of it."""
    n = draw(st.integers(2, maximum))
    rows = []
    for _ in range(n):
        exponents = draw(st.lists(st.integers(-20, 46), min_size=n + 1, max_size=n + 1))
        row = [MINIMUM << exponent if exponent >= 0 else 0 for exponent in exponents]
        rest = draw(st.integers(0, n))
        row[rest] = 0
        row[rest] = WHOLE - sum(row)
        rows.append(row)
    return rows


def chain_of(rows: list[list[int]], *, sparse: bool) -> tuple[coinhaze.AbsorbingChain, list[str]]:
    """Build the chain of a matrix of weights on a graph of as many accounts."""
    n = len(rows)
    ledger = coinhaze.AccountLedger.from_transfers(
        [(f"n{k}", f"n{k + 1}", 1) for k in range(n - 1)]
    )
    graph = coinhaze.transaction_graph(ledger)
    matrix = np.array(rows, dtype=np.float64) / WHOLE
    policy = scipy.sparse.coo_array(matrix) if sparse else matrix
    chain = coinhaze.absorbing_chain(graph, policy=policy)
    return chain, graph.names.of(np.arange(n)).to_pylist()


def answers_of(rows: list[list[int]], names: list[str]) -> Answers:
    walks: twin.Rows = {}
    for name, row in zip(names, rows, strict=True):
        targets: list[twin.Target] = [*names, ("source", name)]
        shares = zip(targets, row, strict=True)
        walks[name] = {target: Fraction(weight, WHOLE) for target, weight in shares if weight}
    return twin.solve(walks)


@pytest.mark.parametrize("sparse", [False, True])
@given(rows=weight_rows())
@some
def test_solvers_agree_on_any_matrix(sparse: bool, rows: list[list[int]]) -> None:
    chain, names = chain_of(rows, sparse=sparse)
    assert_solvers_agree(chain, names, answers_of(rows, names))


@given(rows=weight_rows())
@some
def test_origins_agree_on_any_matrix(rows: list[list[int]]) -> None:
    chain, names = chain_of(rows, sparse=False)
    for name, answer in answers_of(rows, names).items():
        if answer is None:
            with pytest.raises(coinhaze.CoinhazeError, match="no answer"):
                coinhaze.origins(chain, name)
            continue
        found = coinhaze.origins(chain, name)
        shares = {row["source"]: row["probability"] for row in found.sources().to_pylist()}
        assert shares.keys() == answer.distribution.keys()
        for source, share in answer.distribution.items():
            assert abs(Fraction(shares[source]) / share - 1) <= TIGHT, (name, source)
        assert found.bits_low <= answer.bits <= found.bits_high
        assert abs(Fraction(found.steps) / answer.steps - 1) <= TIGHT


# ---------------------------------------------------------------- threads


def large_chain(seed: int) -> coinhaze.AbsorbingChain:
    """Build a cyclic chain with more sources than one tile of columns holds."""
    rng = np.random.default_rng(seed)
    tails, heads = rng.integers(0, 300, 900), rng.integers(0, 300, 900)
    amounts = np.exp(rng.normal(0, 6, 900)).astype(np.int64) + 1
    transfers = [(f"n{t}", f"n{h}", int(a)) for t, h, a in zip(tails, heads, amounts, strict=True)]
    ledger = coinhaze.AccountLedger.from_transfers(transfers)
    return coinhaze.absorbing_chain(coinhaze.transaction_graph(ledger))


def arrays_of(scores: coinhaze.Scores) -> dict[str, bytes]:
    fields = {name: value for name, value in vars(scores).items() if isinstance(value, np.ndarray)}
    fields |= {f"renyi {order}": values for order, values in scores.renyi.items()}
    return {name: values.tobytes() for name, values in fields.items()}


@pytest.mark.parametrize("seed", [0, *(pytest.param(k, marks=pytest.mark.long) for k in (1, 2))])
@pytest.mark.parametrize("listed", [False, True])
def test_the_number_of_threads_changes_no_bit(seed: int, listed: bool) -> None:
    chain = large_chain(seed)
    if listed:
        names = chain.graph.names.of(np.arange(0, len(chain), 2)).to_pylist()
        chain = coinhaze.absorbing_chain(chain.graph, listed=names)
    assert len(chain.outcomes) > 2 * 64
    scores = [
        coinhaze.score(chain, nodes="all", renyi=(0.5, 2, math.inf), threads=threads)
        for threads in (1, 2, 4)
    ]
    first = arrays_of(scores[0])
    assert len(first) >= 10
    for other in scores[1:]:
        assert arrays_of(other) == first
        assert other.conservation == scores[0].conservation


@given(transfers=random.transfers())
@few
def test_the_number_of_threads_changes_no_bit_of_small_chains(transfers: Transfers) -> None:
    ledger = coinhaze.AccountLedger.from_transfers(transfers)
    chain = coinhaze.absorbing_chain(coinhaze.transaction_graph(ledger))
    scores = [coinhaze.score(chain, nodes="all", renyi=(2,), threads=k) for k in (1, 2, 4)]
    assert arrays_of(scores[1]) == arrays_of(scores[0])
    assert arrays_of(scores[2]) == arrays_of(scores[0])
