"""Arithmetic with numbers of 106 bits: the unevaluated sum of two floats, the second far smaller.

Each operation on numbers that are not negative errs by less than 2^-100 of its result. Also sums
of floats that round once. Slow twins in the tests: fractions (tests/solve/test_fine.py), math.fsum.
"""

from __future__ import annotations

from coinhaze.kernels import kernel

_SPLIT = 134217729.0  # 2^27 + 1


@kernel(inline="always", error_model="numpy")
def two_sum(a, b):
    """Give a + b rounded, and what rounding lost: exact together."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


@kernel(inline="always", error_model="numpy")
def two_product(a, b):
    """Give a * b rounded, and what rounding lost: exact together within the range of floats."""
    product = a * b
    big = _SPLIT * a
    a_high = big - (big - a)
    a_low = a - a_high
    big = _SPLIT * b
    b_high = big - (big - b)
    b_low = b - b_high
    lost = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    return product, lost


@kernel(inline="always", error_model="numpy")
def add_pairs(a, a_low, b, b_low):
    """Add two pairs."""
    total, lost = two_sum(a, b)
    return two_sum(total, lost + (a_low + b_low))


@kernel(inline="always", error_model="numpy")
def multiply_pairs(a, a_low, b, b_low):
    """Multiply two pairs."""
    product, lost = two_product(a, b)
    return two_sum(product, lost + (a * b_low + a_low * b))


@kernel(inline="always", error_model="numpy")
def divide_pairs(a, a_low, b, b_low):
    """Divide two pairs."""
    first = a / b
    product, lost = two_product(first, b)
    rest = (((a - product) - lost) + a_low) - first * b_low
    return two_sum(first, rest / b)


@kernel(inline="always")
def add_exactly(total, lost, value):
    """Add a number that is not negative; `lost` takes what the sum cannot hold (Neumaier)."""
    new = total + value
    if total >= value:
        return new, lost + ((total - new) + value)
    return new, lost + ((value - new) + total)


@kernel(_nrt=False)
def exact_sum(values):
    """Add up numbers that are not negative with a relative error of about 2^-53."""
    total = 0.0
    lost = 0.0
    for value in values:
        total, lost = add_exactly(total, lost, value)
    return total + lost
