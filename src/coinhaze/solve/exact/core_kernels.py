"""Hot loops of cores. Sparse ones: clusters of heavy moves, their inverses, Gauss-Seidel sweeps.

Dense ones: elimination with error bounds, the inverse, its product with a tile.
Slow twin in the tests: tests/solve/test_core.py, dense inverses of numpy.
"""

from __future__ import annotations

import numpy as np

from coinhaze.kernels import kernel
from coinhaze.solve.exact.factor_kernels import FAINT, PRODUCT, SUM
from coinhaze.solve.exact.pairs_kernels import exact_sum
from coinhaze.solve.exact.stream_kernels import WIDTH, fma

# So many rows of a tile stay in the second-level cache while all rows of the result pass.
DEPTH = 256


@kernel()
def heavy_components(indptr, indices, data, threshold):
    """Number the sets of states that moves of at least `threshold` hold together."""
    n = len(indptr) - 1
    parent = np.arange(n)
    for i in range(n):
        for e in range(indptr[i], indptr[i + 1]):
            if data[e] >= threshold:
                a = i
                while parent[a] != a:
                    parent[a] = parent[parent[a]]
                    a = parent[a]
                b = indices[e]
                while parent[b] != b:
                    parent[b] = parent[parent[b]]
                    b = parent[b]
                # The lower number stays the root, whatever the order of the moves.
                if a < b:
                    parent[b] = a
                else:
                    parent[a] = b
    for i in range(n):
        parent[i] = parent[parent[i]]
    return parent


@kernel()
def invert(dense, out):
    """Give (S - A)^-1 for moves A inside a cluster and ways `out` of it, S their sums.

    Elimination as in factor_kernels: the pivot is the sum of the ways out, nothing is subtracted.
    """
    c = len(out)
    a = dense.copy()
    out = out.copy()
    right = np.eye(c)
    for k in range(c):
        s = exact_sum(np.append(a[k, k + 1 :], out[k]))
        if s <= 0.0:
            return right * np.nan
        for j in range(k + 1):
            right[k, j] /= s
        for j in range(k + 1, c):
            a[k, j] /= s
        share = out[k] / s
        for i in range(k + 1, c):
            w = a[i, k]
            if w == 0.0:
                continue
            out[i] += w * share
            for j in range(k + 1):
                right[i, j] += w * right[k, j]
            for j in range(k + 1, c):
                if j != i:
                    a[i, j] += w * a[k, j]
    for k in range(c - 2, -1, -1):
        for j in range(k + 1, c):
            w = a[k, j]
            if w > 0.0:
                for t in range(c):
                    right[k, t] += w * right[j, t]
    return right


@kernel()
def solve_clusters(start, members, indptr, indices, data, out, max_growth):
    """Replace the rows of each cluster by those without moves inside it.

    Gives which clusters were done and their inverses, the new rows of their members, and the new
    ways out. A cluster whose new rows would hold `max_growth` times the old moves is left alone.
    """
    n = len(indptr) - 1
    local = np.full(n, -1, np.int64)
    column = np.full(n, -1, np.int64)
    done = np.zeros(len(start) - 1, np.bool_)
    inverses = [np.zeros((1, 1)) for _ in range(0)]
    row = [np.int64(0) for _ in range(0)]
    to = [np.int64(0) for _ in range(0)]
    value = [0.0 for _ in range(0)]
    new_out = out.copy()
    for q in range(len(start) - 1):
        group = members[start[q] : start[q + 1]]
        c = len(group)
        for k in range(c):
            local[group[k]] = k
        outer = [np.int64(0) for _ in range(0)]
        dense = np.zeros((c, c))
        leave = out[group]
        old = 0
        for k in range(c):
            for e in range(indptr[group[k]], indptr[group[k] + 1]):
                old += 1
                j = indices[e]
                if local[j] >= 0:
                    dense[k, local[j]] = data[e]
                else:
                    leave[k] += data[e]
                    if column[j] < 0:
                        column[j] = len(outer)
                        outer.append(j)
        if len(outer) * c <= max_growth * old:
            inverse = invert(dense, leave)
            wide = np.zeros((c, len(outer)))
            for k in range(c):
                for e in range(indptr[group[k]], indptr[group[k] + 1]):
                    if local[indices[e]] < 0:
                        wide[k, column[indices[e]]] = data[e]
            mixed = np.zeros((c, len(outer)))
            ends = np.zeros(c)
            for k in range(c):
                for t in range(c):
                    w = inverse[k, t]
                    if w > 0.0:
                        ends[k] += w * out[group[t]]
                        for o in range(len(outer)):
                            mixed[k, o] += w * wide[t, o]
            if np.isfinite(ends.sum()):
                done[q] = True
                inverses.append(inverse)
                for k in range(c):
                    new_out[group[k]] = ends[k]
                    for o in range(len(outer)):
                        if mixed[k, o] > 0.0:
                            row.append(group[k])
                            to.append(outer[o])
                            value.append(mixed[k, o])
        for k in range(c):
            local[group[k]] = -1
        for o in range(len(outer)):
            column[outer[o]] = -1
    return done, inverses, np.array(row, np.int64), np.array(to, np.int64), np.array(value), new_out


@kernel()
def apply_inverses(start, members, at, inverses, x):
    """Multiply the rows of each cluster by its inverse."""
    for q in range(len(start) - 1):
        c = start[q + 1] - start[q]
        old = np.empty((c, x.shape[1]), x.dtype)
        for k in range(c):
            old[k] = x[members[start[q] + k]]
        for k in range(c):
            row = x[members[start[q] + k]]
            row[:] = 0.0
            for t in range(c):
                w = inverses[at[q] + k * c + t]
                if w > 0.0:
                    for j in range(x.shape[1]):
                        row[j] += w * old[t, j]


@kernel()
def sweep_vector(indptr, indices, data, right, x, forward):
    """Go over all states once: x_i = right_i + sum of q_ij x_j, each with the newest values."""
    n = len(right)
    for k in range(n):
        i = k if forward else n - 1 - k
        total = right[i]
        for e in range(indptr[i], indptr[i + 1]):
            total += data[e] * x[indices[e]]
        x[i] = total


@kernel(error_model="numpy")
def sweep_tile(indptr, indices, data, right, x, forward):
    """Go over all states once for a tile of columns."""
    n = len(right)
    for k in range(n):
        i = k if forward else n - 1 - k
        row = x[i]
        for c in range(WIDTH):
            row[c] = right[i, c]
        for e in range(indptr[i], indptr[i + 1]):
            v = data[e]
            other = x[indices[e]]
            for c in range(WIDTH):
                row[c] += v * other[c]


@kernel(error_model="numpy", fastmath={"nnan"})
def _add_row(ratio, ratio_error, above, row, row_errors):
    """Add a multiple of the row above; every entry's error grows by a rounding."""
    for j in range(len(row)):
        row[j] = fma(ratio, above[j], row[j])
        worse = row_errors[j] if row_errors[j] > ratio_error else ratio_error
        row_errors[j] = worse + np.float32(SUM)


@kernel()
def _minimum(row):
    """Give the least entry above 0, or 1."""
    minimum = 1.0
    for value in row:
        if 0.0 < value < minimum:
            minimum = value
    return minimum


@kernel()
def eliminate_core(moves, errors, out, out_error):
    """Eliminate the states of a core in the order given, in place.

    `moves` holds the probabilities between them, 0 on the diagonal, and `out` those to leave.
    Afterwards the lower triangle holds multipliers and the upper one the moves at elimination.
    Gives pivots and a bound on each row's relative error, in units of 2^-53; pivots of 0 if a
    number is too small for floats.
    """
    c = len(out)
    pivot = np.empty(c)
    row_error = np.empty(c)
    faint = 1.0
    for k in range(c):
        above = moves[k, k + 1 :]
        row_error[k] = out_error[k]
        for j in range(k + 1, c):
            if moves[k, j] > 0.0:
                row_error[k] = max(row_error[k], errors[k, j])
        s = exact_sum(np.append(above, out[k]))
        pivot[k] = s
        minimum = _minimum(above)
        if out[k] > 0.0:
            minimum = min(minimum, out[k])
        for i in range(k + 1, c):
            if moves[i, k] == 0.0:
                continue
            ratio = moves[i, k] / s
            ratio_error = errors[i, k] + PRODUCT
            moves[i, k] = ratio
            faint = min(faint, ratio * minimum)
            if out[k] > 0.0:
                out_error[i] = max(out_error[i], ratio_error) + SUM
                out[i] += ratio * out[k]
            _add_row(ratio, np.float32(ratio_error), above, moves[i, k + 1 :], errors[i, k + 1 :])
            moves[i, i] = 0.0
    if faint < FAINT:
        pivot[:] = 0.0
    return pivot, row_error


@kernel(error_model="numpy")
def _mix(row, weight, other):
    for j in range(len(row)):
        row[j] = fma(weight, other[j], row[j])


@kernel()
def invert_core(moves, pivot):
    """Give the inverse from what elimination left: the solve of every unit vector."""
    c = len(pivot)
    inverse = np.zeros((c, c))
    for i in range(c):
        inverse[i, i] = 1.0
        for k in range(i):
            if moves[i, k] > 0.0:
                _mix(inverse[i, : k + 1], moves[i, k], inverse[k, : k + 1])
    for i in range(c - 1, -1, -1):
        for j in range(i + 1, c):
            if moves[i, j] > 0.0:
                _mix(inverse[i], moves[i, j], inverse[j])
        for t in range(c):
            inverse[i, t] /= pivot[i]
    return inverse


@kernel(error_model="numpy")
def multiply_tile(inverse, right, x):
    """Put inverse times right into x, both tiles of columns."""
    n = len(x)
    x[:] = 0.0
    for first in range(0, n, DEPTH):
        last = min(first + DEPTH, n)
        for i in range(n):
            row = x[i]
            weights = inverse[i]
            k = first
            while k + 4 <= last:
                a, b, c, d = right[k], right[k + 1], right[k + 2], right[k + 3]
                v0, v1, v2, v3 = weights[k], weights[k + 1], weights[k + 2], weights[k + 3]
                for t in range(WIDTH):
                    row[t] += fma(v0, a[t], fma(v1, b[t], fma(v2, c[t], v3 * d[t])))
                k += 4
            while k < last:
                a = right[k]
                v0 = weights[k]
                for t in range(WIDTH):
                    row[t] = fma(v0, a[t], row[t])
                k += 1


# Products of whole cores. Not by a library: its order of adding follows the kind of CPU, and its
# threads go on spinning while the next tiles are solved.
LANES = 8


@kernel(error_model="numpy")
def multiply(left, right, block):
    """Give left times right: terms added up by blocks of so many, and blocks in their order."""
    n, depth = left.shape
    width = right.shape[1]
    product = np.zeros((n, width))
    part = np.empty(width)
    for first in range(0, depth, block):
        last = min(first + block, depth)
        for i in range(n):
            weights = left[i]
            part[:] = 0.0
            k = first
            while k + 4 <= last:
                v0, v1, v2, v3 = weights[k], weights[k + 1], weights[k + 2], weights[k + 3]
                a, b, c, d = right[k], right[k + 1], right[k + 2], right[k + 3]
                for t in range(width):
                    part[t] += fma(v0, a[t], fma(v1, b[t], fma(v2, c[t], v3 * d[t])))
                k += 4
            while k < last:
                _mix(part, weights[k], right[k])
                k += 1
            row = product[i]
            for t in range(width):
                row[t] += part[t]
    return product


@kernel(error_model="numpy")
def multiply_vector(matrix, x):
    """Give a matrix times x: eight sums side by side for each row, added up at the end."""
    n, depth = matrix.shape
    product = np.empty(n)
    lanes = np.empty(LANES)
    for i in range(n):
        row = matrix[i]
        lanes[:] = 0.0
        k = 0
        while k + LANES <= depth:
            for t in range(LANES):
                lanes[t] = fma(row[k + t], x[k + t], lanes[t])
            k += LANES
        for t in range(depth - k):
            lanes[t] = fma(row[k + t], x[k + t], lanes[t])
        product[i] = ((lanes[0] + lanes[4]) + (lanes[1] + lanes[5])) + (
            (lanes[2] + lanes[6]) + (lanes[3] + lanes[7])
        )
    return product
