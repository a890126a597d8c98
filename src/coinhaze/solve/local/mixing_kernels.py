"""Hot loop of mixtures: mass pushed back from several coins to where it ends.

Slow twin in the tests: tests/solve/test_mixing.py, rows of B in dense arithmetic.
"""

from __future__ import annotations

from numba import njit

from coinhaze.solve.local.row_kernels import _queue, _take


@njit(cache=True, nogil=True, error_model="numpy")
def push_to_ends(
    indptr, indices, data, own, column, nodes, weights, mass, ended, bits, groups, fields
):
    """Push all mass of a chain in order, highest node first; `ended` gets it by outcome.

    Gives the expected steps and a bound on all roundings in units of 2^-53: eight for each row
    pushed (its shares and products), one for each partial sum.
    """
    field = -1
    steps = error = 0.0
    for t in range(len(nodes)):
        k = nodes[t]
        mass[k] += weights[t]
        error += 4.0 * mass[k]
        _queue(k, bits, groups, fields)
        field = max(field, k >> 18)
    while field >= 0:
        if fields[field] == 0:
            field -= 1
            continue
        j = _take(field, bits, groups, fields)
        m = mass[j]
        mass[j] = 0.0
        steps += m
        error += 8.0 * m
        c = column[j]
        if c >= 0 and own[j] > 0.0:
            ended[c] += m * own[j]
            error += ended[c]
        for e in range(indptr[j], indptr[j + 1]):
            k = indices[e]
            mass[k] += m * data[e]
            error += mass[k]
            _queue(k, bits, groups, fields)
    return steps, error
