"""Logarithms and powers of arrays against decimal arithmetic with 60 digits."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coinhaze.measures.elementary import exp2, expm1_at_most, log, log2

POSITIVE = st.floats(min_value=5e-324, max_value=1.7e308, allow_nan=False)


def true_log2(x: float) -> Decimal:
    with localcontext() as context:
        context.prec = 60
        return Decimal(x).ln() / Decimal(2).ln()


@given(POSITIVE)
def test_logarithms_are_right_to_a_few_last_places(x: float) -> None:
    true = true_log2(x)
    found = float(log2(np.array([x]))[0])
    assert abs(Decimal(found) - true) <= abs(true) * Decimal(4 * 2.0**-52)
    natural = float(log(np.array([x]))[0])
    with localcontext() as context:
        context.prec = 60
        assert abs(Decimal(natural) - Decimal(x).ln()) <= abs(Decimal(x).ln()) * Decimal(2.0**-49)


@given(st.floats(-1020, 1020))
def test_powers_are_right_to_a_few_last_places(x: float) -> None:
    with localcontext() as context:
        context.prec = 60
        true = (Decimal(x) * Decimal(2).ln()).exp()
    found = float(exp2(np.array([x]))[0])
    assert abs(Decimal(found) - true) <= true * Decimal(4 * 2.0**-52)


def test_powers_of_two_and_the_ends_are_exact() -> None:
    exponents = np.arange(-1074.0, 1024.0)
    powers = np.ldexp(1.0, exponents.astype(int))
    assert np.array_equal(log2(powers), exponents)
    assert np.array_equal(exp2(exponents), powers)
    assert log2(np.array([0.0, np.inf])).tolist() == [-np.inf, np.inf]
    assert np.isnan(log2(np.array([-1.0, np.nan]))).all()
    assert exp2(np.array([1e9, -1e9, np.inf, -np.inf])).tolist() == [np.inf, 0.0, np.inf, 0.0]
    assert np.isnan(exp2(np.array([np.nan]))).all()
    assert log2(np.zeros(0)).shape == (0,)


@pytest.mark.parametrize("x", [0.0, 1e-40, 1e-16, 1e-7, 1e-3, 0.5, 1.0, 1.5, 800.0])
def test_a_power_less_one_is_bounded_closely(x: float) -> None:
    with localcontext() as context:
        context.prec = 60
        true = Decimal(x).exp() - 1
    bound = float(expm1_at_most(np.array([x]))[0])
    assert Decimal(bound) >= true * (1 - Decimal(2.0**-52))
    if x < 1e-3:
        assert Decimal(bound) <= true * Decimal(1 + 1.1e-3)
