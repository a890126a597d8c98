"""The law of the sketch's draws, and what its Chernoff bounds promise."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest
from scipy import integrate

from coinhaze.errors import UsageError
from coinhaze.measures.confidence import (
    LARGEST_DRAW,
    Drawn,
    draws_for,
    mean_ends,
    missing_bits,
    rounding_slack,
    row_ends,
)
from vectors import load

Floats = npt.NDArray[np.float64]
TABLE = load("sketch_law")["table"]


def drawn(shape: int | tuple[int, ...], seed: int) -> Floats:
    """Draw X by the formula of the law, with a generator of its own."""
    rng = np.random.default_rng(seed)
    z = math.pi * rng.random(shape)
    return z / np.tan(z) + np.log(rng.exponential(size=shape) * np.sin(z) / z)


@pytest.mark.parametrize("row", TABLE, ids=lambda r: f"{r['draws']}-{r['error']}")
def test_ends_are_those_of_the_table_never_inside(row: dict[str, float]) -> None:
    ends = row_ends(int(row["draws"]), row["error"])
    assert ends.below == pytest.approx(-row["ln_x_low"], rel=1e-9)
    assert ends.above == pytest.approx(row["ln_x_high"], rel=1e-9)
    assert ends.bits == pytest.approx(row["width_bits"], rel=1e-9)
    # The table is rounded to nearest, these outward.
    assert ends.below >= -row["ln_x_low"] * (1 - 1e-15)
    assert ends.above >= row["ln_x_high"] * (1 - 1e-15)


def rate(t: Fraction) -> float:
    """Give I with rational arithmetic but for the logarithm."""
    return float(t / (1 - t) ** 2) + math.log1p(-float(t))


@pytest.mark.parametrize("miss", [0.5, 1e-3, 1e-30, 1e-300])
@pytest.mark.parametrize("draws", [64, 4096, 1 << 20])
def test_tails_at_the_ends_are_at_most_half_of_what_may_be_missed(draws: int, miss: float) -> None:
    ends = row_ends(draws, miss)
    goal = math.log(2 / miss) / draws

    def parameter(nats: float, low: float, high: float) -> float:
        # ln x = T - 2 ln(1 - T) grows with T.
        for _ in range(300):
            middle = (low + high) / 2
            inside = middle - 2 * math.log1p(-middle) < nats
            low, high = (middle, high) if inside else (low, middle)
        return low

    above = parameter(ends.above, 0.0, 1.0)
    below = parameter(-ends.below, -1e6, 0.0)
    for t in (above, below):
        assert rate(Fraction(t)) == pytest.approx(goal, rel=1e-6)


def test_the_transform_of_the_draws_is_the_one_the_bound_uses() -> None:
    """E exp(l exp(X)) = 1 / (1 - T), T exp(-T) = l: by integrating over both uniforms."""

    def expected(rate_of: float) -> float:
        # W = E A with A = exp(z cot z) sin z / z, and E exp(-s E) = 1 / (1 + s).
        def inner(v: float) -> float:
            z = math.pi * v
            factor = math.exp(z / math.tan(z)) * math.sin(z) / z
            return 1.0 / (1.0 - rate_of * factor)

        return float(integrate.quad(inner, 0.0, 1.0, epsabs=1e-12, epsrel=1e-12)[0])

    for t in (-20.0, -3.0, -0.5, 0.1, 0.5, 0.8):
        assert expected(t * math.exp(-t)) == pytest.approx(1 / (1 - t), rel=1e-8)


def test_sums_of_draws_have_the_law_of_one_whatever_the_row() -> None:
    for p in (np.ones(5) / 5, 0.5 ** np.arange(1, 9) / (1 - 0.5**8)):
        nats = -(p * np.log(p)).sum()
        pivot = p @ drawn((len(p), 200_000), 1) + nats
        for t in (0.5, 1.0):
            w = np.exp(t * pivot)
            assert w.mean() == pytest.approx(t**t, abs=5 * w.std() / 447)


def test_no_draw_is_above_the_largest() -> None:
    assert drawn(1_000_000, 2).max() < LARGEST_DRAW
    minimum = 2.0**-53  # the smallest uniform number draws are made of
    assert 1 + math.log(-math.log(minimum)) <= LARGEST_DRAW <= 4.61


@pytest.mark.parametrize("miss", [0.05, 1e-3, 1e-9, 1e-100])
@pytest.mark.parametrize("draws", [64, 1024])
def test_the_lower_end_of_a_mean_is_the_best_stop_loss_bound(draws: int, miss: float) -> None:
    ends, single = mean_ends(draws, miss), row_ends(draws, miss)
    assert ends.above == single.above
    goal = math.log(2 / miss) / draws

    def transform(c: float) -> float:
        """Give (2 / miss) times the integral of exp(-k I) above the u of c."""

        def over_u(u: float) -> float:
            i = math.log1p(u) - u / (1 + u) ** 2
            return math.exp(min(-draws * (i - goal), 600)) * (u + 3) / (1 + u)

        cut = c + 3.0 / (draws * c / (1 + c) ** 2)
        first = integrate.quad(over_u, c, cut, epsrel=1e-10, limit=500)[0]
        return float(first + integrate.quad(over_u, cut, 50 * (1 + c), epsrel=1e-8, limit=500)[0])

    def end(c: float) -> float:
        return c + 2 * math.log1p(c) + transform(c)

    low, high = 0.0, 1e4
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (
            (middle, high) if middle + 2 * math.log1p(middle) < single.below else (low, middle)
        )
    assert end(low) <= ends.below <= end(low) * 1.002
    for other in (0.9 * low, 1.1 * low):
        assert end(other) >= end(low)


def rows_of(pivots: Floats) -> Drawn:
    """Make rows of one source's worth of entropy, 0 nats, of draws given as y + H."""
    nats = -np.log(np.exp(pivots).mean(axis=-1))
    none = np.zeros(len(nats))
    return Drawn(nats + 3.0, none, none, none > 0, none, none, math.log(1e9))


@pytest.mark.parametrize("kind", ["identical", "two groups", "apart", "one heavy"])
def test_means_of_rows_that_share_draws_are_missed_at_most_as_often_as_stated(kind: str) -> None:
    k, seeds, miss = 64, 2000, 0.05
    ends = mean_ends(k, miss)
    missed = 0
    all_draws = drawn((seeds, 8, k), 7)
    groups = {
        "identical": [0] * 8,
        "two groups": [0, 0, 0, 1, 1, 1, 1, 1],
        "apart": list(range(8)),
        "one heavy": list(range(8)),
    }[kind]
    weights = np.array([50.0, *[1.0] * 7]) if kind == "one heavy" else np.ones(8)
    for one in all_draws:
        low, high = rows_of(one[groups]).mean(weights, ends)
        missed += not low <= 3.0 / math.log(2) <= high
    assert missed / seeds <= miss


def test_rows_that_are_known_add_nothing_to_the_width_of_a_mean() -> None:
    rows = rows_of(drawn((4, 64), 3))
    half = rows._replace(alone=np.array([True, True, False, False]), known=np.full(4, 2.0))
    ends = mean_ends(64, 1e-9)
    all_low, all_high = rows.mean(np.ones(4), ends)
    low, high = half.mean(np.ones(4), ends)
    assert high - low == pytest.approx((all_high - all_low) / 2)
    low, high = half.mean(np.array([1.0, 1.0, 0.0, 0.0]), ends)
    assert low == pytest.approx(2.0 / math.log(2), abs=1e-9)
    assert high - low < 1e-9


def test_a_row_that_rounding_leaves_open_has_the_proven_interval() -> None:
    rows = rows_of(drawn((2, 64), 3))._replace(slack=np.array([0.0, math.inf]))
    low, high = rows.rows(row_ends(64, 1e-9))
    assert (low[1], high[1]) == (0.0, pytest.approx(math.log2(1e9)))
    assert 0 < high[0] - low[0] < 5
    ends = mean_ends(64, 1e-9)
    alone = rows.mean(np.array([1.0, 0.0]), ends)
    both = rows.mean(np.ones(2), ends)
    assert both == pytest.approx((alone[0] / 2, (alone[1] + math.log2(1e9)) / 2))
    assert alone[1] < 10


@pytest.mark.parametrize("error", [1e-6, 1e-3, 0.1, 0.3])
def test_slack_covers_any_relative_error_of_the_probabilities(error: float) -> None:
    rng = np.random.default_rng(5)
    for trial in range(200):
        n = int(rng.integers(1, 30))
        p = rng.dirichlet(np.full(n, 0.3))
        x = drawn((n, 16), 100 + trial)
        # The worst signs are those of the draws: each draw pushed up, or each down.
        for push in (np.sign(x), -np.sign(x), rng.choice([-1.0, 1.0], x.shape)):
            y = p @ x
            wrong = p @ (x * (1 + error * push))
            true, computed = (-np.log(np.exp(v).mean()) for v in (y, wrong))
            slack = rounding_slack(np.array([computed]), np.array([error]))[0]
            assert abs(true - computed) <= slack


def test_missing_mass_adds_what_it_can() -> None:
    rng = np.random.default_rng(6)
    for _ in range(200):
        n, m = int(rng.integers(2, 20)), float(rng.random() ** 4)
        found, rest = rng.dirichlet(np.ones(n)), rng.dirichlet(np.full(n, 0.2))
        whole = (1 - m) * found + m * rest
        entropy = [float(-(q[q > 0] * np.log2(q[q > 0])).sum()) for q in (found, whole)]
        maximum = entropy[0] * (1 - m) + missing_bits(np.array([m]), math.log(n))[0]
        assert (1 - m) * entropy[0] - 1e-12 <= entropy[1] <= maximum + 1e-12


@pytest.mark.parametrize("of_mean", [False, True])
@pytest.mark.parametrize("width", [3.0, 0.5, 0.05])
def test_draws_are_the_fewest_that_are_enough(width: float, of_mean: bool) -> None:
    draws = draws_for(width, 1e-6, of_mean=of_mean, tile=64)
    ends = mean_ends if of_mean else row_ends
    assert draws is not None
    assert draws % 64 == 0
    assert ends(draws, 1e-6).bits <= width
    assert draws == 64 or ends(draws - 64, 1e-6).bits > width
    assert draws_for(1e-3, 1e-6, tile=64, maximum=1 << 20) is None


@pytest.mark.parametrize("miss", [0.0, 1.0, -1e-9, 2.0, math.nan])
def test_no_other_number_is_a_probability_to_miss(miss: float) -> None:
    with pytest.raises(UsageError, match="miss is a probability above 0 and below 1"):
        row_ends(64, miss)
