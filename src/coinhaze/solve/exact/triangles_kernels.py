"""Hot loops on the two triangles elimination leaves: gathering them, solving with them.

Also a solve with them written down as moves without cycles. Slow twins in the tests:
tests/solve/dense.py, inverses of numpy; tests/solve/test_moves.py, the solve itself.
"""

from __future__ import annotations

import numpy as np

from coinhaze.kernels import kernel


@kernel()
def _sort_by(key, rows, columns, values, n):
    """Sort triples by a key from 0 to n - 1, equal ones as they stand; also where keys start."""
    start = np.zeros(n + 1, np.int64)
    for k in key:
        start[k + 1] += 1
    for i in range(n):
        start[i + 1] += start[i]
    fill = start[:-1].copy()
    new_rows, new_columns = np.empty_like(rows), np.empty_like(columns)
    new_values = np.empty_like(values)
    for e in range(len(key)):
        to = fill[key[e]]
        fill[key[e]] += 1
        new_rows[to], new_columns[to], new_values[to] = rows[e], columns[e], values[e]
    return start, new_rows, new_columns, new_values


@kernel()
def gather_rows(rows, columns, values, n):
    """Gather triples into rows, columns rising inside each."""
    _, rows, columns, values = _sort_by(columns, rows, columns, values, n)
    start, _, columns, values = _sort_by(rows, rows, columns, values, n)
    return start, columns, values


@kernel()
def place_rows(indptr, indices, values, place, back):
    """Put rows into the order of their places, columns rising inside each, as `gather_rows` does.

    No row has a column twice.
    """
    start = np.zeros(len(back) + 1, np.int64)
    at = np.empty(len(indices), np.int64)
    placed = np.empty(len(indices))
    end = 0
    for p in range(len(back)):
        begin = end
        for e in range(indptr[back[p]], indptr[back[p] + 1]):
            at[end] = place[indices[e]]
            placed[end] = values[e]
            end += 1
        if end - begin > 32:
            order = np.argsort(at[begin:end]) + begin
            at[begin:end] = at[order]
            placed[begin:end] = placed[order]
        else:
            for e in range(begin + 1, end):
                to, value = at[e], placed[e]
                k = e
                while k > begin and at[k - 1] > to:
                    at[k], placed[k] = at[k - 1], placed[k - 1]
                    k -= 1
                at[k], placed[k] = to, value
        start[p + 1] = end
    return start, at, placed


@kernel()
def _vector_back(upper, upper_at, upper_v, pivot, first, last, x):
    for i in range(last - 1, first - 1, -1):
        for e in range(upper[i], upper[i + 1]):
            x[i] += upper_v[e] * x[upper_at[e]]
        x[i] /= pivot[i]


@kernel()
def solve_vector(
    lower, lower_at, lower_v, upper, upper_at, upper_v, pivot, block_start, first, last, x
):
    """Go forward and back through the blocks first .. last - 1, and forward through `last`."""
    for b in range(first, min(last + 1, len(block_start) - 1)):
        for i in range(block_start[b], block_start[b + 1]):
            for e in range(lower[i], lower[i + 1]):
                x[i] += lower_v[e] * x[lower_at[e]]
        if b < last:
            _vector_back(upper, upper_at, upper_v, pivot, block_start[b], block_start[b + 1], x)


@kernel()
def solve_vector_back(
    lower, lower_at, lower_v, upper, upper_at, upper_v, pivot, block_start, block, x
):
    """Go back through one block."""
    _vector_back(upper, upper_at, upper_v, pivot, block_start[block], block_start[block + 1], x)


@kernel()
def visits_back(upper, upper_at, upper_v, pivot, start, end, y):
    """The way back of a solve, transposed, for the states start .. end - 1."""
    for i in range(start, end):
        y[i] /= pivot[i]
        for e in range(upper[i], upper[i + 1]):
            y[upper_at[e]] += y[i] * upper_v[e]


@kernel()
def visits_forward(lower, lower_at, lower_v, start, end, y):
    """The way forward of a solve, transposed, for the states start .. end - 1."""
    for i in range(end - 1, start - 1, -1):
        for e in range(lower[i], lower[i + 1]):
            y[lower_at[e]] += y[i] * lower_v[e]


@kernel()
def visits_of(
    lower, lower_at, lower_v, upper, upper_at, upper_v, pivot, block_start, first, last, y
):
    """Replace y by y N through the blocks last - 1 .. first: expected visits to each state."""
    for b in range(last - 1, first - 1, -1):
        start, end = block_start[b], block_start[b + 1]
        visits_back(upper, upper_at, upper_v, pivot, start, end, y)
        visits_forward(lower, lower_at, lower_v, start, end, y)


@kernel()
def mark_needed(lower, lower_at, upper, upper_at, block_start, wanted):
    """Tell which rows a solve must finish: those wanted, and those that they are made of.

    Inside a component the forward pass reads only what it gathered itself, so a row that is
    neither wanted nor moved to by a finished one need not be solved back.
    """
    needed = wanted.copy()
    for b in range(len(block_start) - 2, -1, -1):
        start, end = block_start[b], block_start[b + 1]
        for i in range(start, end):
            if needed[i]:
                for e in range(upper[i], upper[i + 1]):
                    needed[upper_at[e]] = True
            for e in range(lower[i], lower[i + 1]):
                if lower_at[e] < start:
                    needed[lower_at[e]] = True
    return needed


@kernel()
def unroll(
    lower, lower_at, lower_v, upper, upper_at, upper_v, pivot, first, sizes, cores, at, inverses
):
    """Give moves, and for each place of the factors the node of its row and of its absorber.

    Blocks are taken in the order given by `first`, the place where each begins. The last
    `cores[b]` states of block b are a core, whose inverse begins at `at[b]`.
    """
    n = len(pivot)
    row_node = np.empty(n, np.int64)
    own_node = np.empty(n, np.int64)
    room = len(lower_at) + len(upper_at) + n + len(inverses)
    start = np.zeros(2 * n + 1, np.int64)
    to = np.empty(room, np.int64)
    weight = np.empty(room)
    node = 0
    end = 0
    for b in range(len(first)):
        begin, stop = first[b], first[b] + sizes[b]
        single = sizes[b] == 1 and pivot[begin] == 1.0
        for i in range(begin, stop):
            for e in range(lower[i], lower[i + 1]):
                j = lower_at[e]
                to[end] = own_node[j] if begin <= j < stop else row_node[j]
                weight[end] = lower_v[e]
                end += 1
            own_node[i] = node
            node += 1
            start[node] = end
        core = stop - cores[b]
        for i in range(core, stop):
            for j in range(core, stop):
                w = inverses[at[b] + (i - core) * cores[b] + j - core]
                if w > 0.0:
                    to[end] = own_node[j]
                    weight[end] = w
                    end += 1
            row_node[i] = node
            node += 1
            start[node] = end
        for i in range(core - 1, begin - 1, -1):
            if single:
                row_node[i] = own_node[i]
                continue
            to[end] = own_node[i]
            weight[end] = 1.0 / pivot[i]
            end += 1
            for e in range(upper[i], upper[i + 1]):
                to[end] = row_node[upper_at[e]]
                weight[end] = upper_v[e] / pivot[i]
                end += 1
            row_node[i] = node
            node += 1
            start[node] = end
    return start[: node + 1].copy(), to[:end].copy(), weight[:end].copy(), row_node, own_node
