"""Hot loops over the tape: a pass of draws, and a pass of source columns.

Rows are mixed in a buffer of doubles and stored in the slots of the tape, in single or double
precision. What is needed next is known ahead, so it is requested ahead.

Slow twin in the tests: tests/history/tape_twin.py.
"""

from __future__ import annotations

import numpy as np

from coinhaze.kernels import kernel
from coinhaze.solve.exact.stream_kernels import QUARTER, WIDTH, add_up, exp, fma, surprise
from coinhaze.solve.prefetch_kernels import prefetch
from coinhaze.solve.sketch.kernels import fill_draws

AHEAD = 12  # terms
HALF = WIDTH // 2


@kernel(error_model="numpy")
def _mix(at, terms, slot, weight, rows, width, buffer):
    """Mix a row from the rows of its terms, four at a time."""
    e = at
    end = at + terms
    j0, j1 = np.int64(slot[e]), np.int64(slot[e + 1])
    v0, v1 = weight[e], weight[e + 1]
    for c in range(width):
        buffer[c] = fma(v1, np.float64(rows[j1, c]), v0 * np.float64(rows[j0, c]))
    e += 2
    while e + 4 <= end:
        j0, j1 = np.int64(slot[e]), np.int64(slot[e + 1])
        j2, j3 = np.int64(slot[e + 2]), np.int64(slot[e + 3])
        v0, v1, v2, v3 = weight[e], weight[e + 1], weight[e + 2], weight[e + 3]
        for c in range(width):
            one = fma(v1, np.float64(rows[j1, c]), v0 * np.float64(rows[j0, c]))
            two = fma(v3, np.float64(rows[j3, c]), v2 * np.float64(rows[j2, c]))
            buffer[c] += one + two
        e += 4
    while e < end:
        j0, v0 = np.int64(slot[e]), weight[e]
        for c in range(width):
            buffer[c] = fma(v0, np.float64(rows[j0, c]), buffer[c])
        e += 1


@kernel(error_model="numpy")
def _sum_exp(buffer, first, terms):
    """Add exp up over half a tile."""
    for c in range(QUARTER):
        terms[c] = exp(buffer[first + c]) + exp(buffer[first + c + QUARTER])
    return add_up(terms)


@kernel(error_model="numpy")
def pass_draws(row_slot, row_terms, slot, weight, hashes, seed, first, half, rows, scored, total):
    """Bring a tile of draws, from `first` on, through a piece; or half of it.

    Rows are as wide as a tile or half of it, which is then half 0 or 1. Gives the sum of exp(y) of
    the rows of the piece that are `scored`, which rise. A row that is mixed has two terms or more.
    """
    width = WIDTH if rows.shape[1] == WIDTH else HALF
    lines = width * rows.itemsize // 64
    buffer, sums = np.empty(WIDTH), np.empty(QUARTER)
    at = source = k = 0
    n_terms = len(slot)
    for r in range(len(row_slot)):
        terms = np.int64(row_terms[r])
        into = np.int64(row_slot[r])
        for e in range(at + AHEAD, min(at + AHEAD + terms, n_terms)):
            for line in range(lines):
                prefetch(rows, np.int64(slot[e]), np.int64(64 * line))
        if terms == 0:
            fill_draws(hashes[source], seed, first, 1.0, 0.0, buffer, True)
            if half == 1:
                for c in range(HALF):
                    buffer[c] = buffer[HALF + c]
            source += 1
        else:
            _mix(at, terms, slot, weight, rows, width, buffer)
        for c in range(width):
            rows[into, c] = buffer[c]
        at += terms
        if k < len(scored) and scored[k] == r:
            total[k] = _sum_exp(buffer, 0, sums)
            if width == WIDTH:
                total[k] += _sum_exp(buffer, HALF, sums)
            k += 1


@kernel(error_model="numpy")
def pass_gathers(row_slot, row_terms, slot, rows):
    """Read and write what a pass does, without its arithmetic: the floor it is measured by."""
    lines = rows.shape[1] * rows.itemsize // 64
    step = 64 // rows.itemsize
    at = 0
    n_terms = len(slot)
    for r in range(len(row_slot)):
        terms = np.int64(row_terms[r])
        into = np.int64(row_slot[r])
        for e in range(at + AHEAD, min(at + AHEAD + terms, n_terms)):
            for line in range(lines):
                prefetch(rows, np.int64(slot[e]), np.int64(64 * line))
        for line in range(lines):
            found = rows[into, line * step]
            for e in range(at, at + terms):
                found = max(found, rows[np.int64(slot[e]), line * step])
            rows[into, line * step] = found
        at += terms


@kernel(error_model="numpy")
def pass_columns(
    row_slot, row_terms, slot, weight, source, first, rows, live, scored, entropy, mass
):
    """Bring 64 sources, from number `first` on, through a piece; `source` is the piece's first.

    Gives what these sources give the rows that are `scored`: their part of entropy and mass. Only
    rows that some of them reach are touched.
    """
    buffer, sums = np.empty(WIDTH), np.empty(QUARTER)
    at = k = 0
    for r in range(len(row_slot)):
        terms = np.int64(row_terms[r])
        into = np.int64(row_slot[r])
        reached = False
        if terms == 0:
            own = source - first
            reached = 0 <= own < WIDTH
            if reached:
                for c in range(WIDTH):
                    buffer[c] = 0.0
                buffer[own] = 1.0
            source += 1
        else:
            for e in range(at, at + terms):
                j = np.int64(slot[e])
                if not live[j]:
                    continue
                if not reached:
                    for c in range(WIDTH):
                        buffer[c] = 0.0
                    reached = True
                v = weight[e]
                for c in range(WIDTH):
                    buffer[c] = fma(v, rows[j, c], buffer[c])
            at += terms
        live[into] = reached
        here = k < len(scored) and scored[k] == r
        k += here
        if not reached:
            continue
        for c in range(WIDTH):
            rows[into, c] = buffer[c]
        if not here:
            continue
        for c in range(QUARTER):
            sums[c] = (buffer[c] + buffer[c + 32]) + (buffer[c + 16] + buffer[c + 48])
        mass[k - 1] = add_up(sums)
        for c in range(QUARTER):
            sums[c] = (surprise(buffer[c]) + surprise(buffer[c + 32])) + (
                surprise(buffer[c + 16]) + surprise(buffer[c + 48])
            )
        entropy[k - 1] = add_up(sums)


@kernel()
def pass_back(row_slot, row_terms, slot, weight, rows, terms, held, mass, source, found):
    """Bring the mass in `held` slots back through the first `rows` rows of a piece, newest first.

    `terms` is how many terms these have. When a row is met, its slot holds the mass that came to
    it; before it was made the slot was another row's. Gives how many sources were reached, with
    their rows and masses, how many rows and terms, and how many slots still hold mass.
    """
    end = terms
    sources = met = brought = 0
    for r in range(rows - 1, -1, -1):
        if held == 0:
            break
        first = end - np.int64(row_terms[r])
        own = np.int64(row_slot[r])
        m = mass[own]
        if m != 0.0:
            met += 1
            brought += end - first
            mass[own] = 0.0
            held -= 1
            if first == end:
                source[sources], found[sources] = r, m
                sources += 1
            for e in range(first, end):
                j = np.int64(slot[e])
                before = mass[j]
                mass[j] = before + m * weight[e]
                if before == 0.0 and mass[j] != 0.0:
                    held += 1
        end = first
    return sources, met, brought, held
