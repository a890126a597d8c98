"""Hot loop of the sweep with sparse lists: each state's row of B as the outcomes it can end in.

Slow twin in the tests: tests/solve/test_lists.py, the tiles of `stream` and rational arithmetic.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from coinhaze.solve.stream_kernels import surprise


@njit(cache=True, nogil=True)
def _compact(start, length, kept, n_kept, columns, values):
    """Move the lists still needed to the front; give how many there are and where they end."""
    end = 0
    still = 0
    for k in range(n_kept):
        i = kept[k]
        if start[i] < 0:
            continue
        for t in range(length[i]):
            columns[end + t] = columns[start[i] + t]
            values[end + t] = values[start[i] + t]
        start[i] = end
        end += length[i]
        kept[still] = i
        still += 1
    return still, end


@njit(cache=True, nogil=True, error_model="numpy")
def sweep_lists(
    indptr, indices, data, own, column, uses, scored, first, last, least, most_entries,
    prior_bits, prior_top, prior_powers, orders, elsewhere, excess, weighed,
    entropy, mass, prior, top, top_column, powers, at_elsewhere, missing, above, below,
):  # fmt: skip
    """Sweep over an acyclic chain for outcomes first .. last - 1, dropping entries below `least`.

    `scored` gives each state's row among the results, -1 if it has none. `missing` is the mass
    dropped on the way, `above` and `below` bound what it adds to the entropy (see lists.py).
    Gives the largest number of entries alive at once, or -1 if they passed `most_entries`.
    """
    n = len(own)
    width = last - first
    sums = np.zeros(width)
    touched = np.empty(width, np.int64)
    start = np.full(n, -1, np.int64)
    length = np.zeros(n, np.int64)
    left = uses.copy()
    lost = np.zeros(n)
    upper = np.zeros(n)
    lower = np.zeros(n)
    columns = np.empty(1 << 16, np.int32)
    values = np.empty(1 << 16)
    kept = np.empty(n, np.int64)
    n_kept = 0
    end = 0
    alive = 0
    peak = 0
    for i in range(n):
        count = 0
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            w = data[e]
            lost[i] += w * lost[j]
            upper[i] += w * upper[j] + surprise(w) * lost[j]
            lower[i] += w * lower[j]
            for t in range(start[j], start[j] + length[j]):
                c = columns[t]
                p = w * values[t]
                # What has become too small for a float is nothing; it must not be met twice.
                if p > 0.0:
                    if sums[c] == 0.0:
                        touched[count] = c
                        count += 1
                    sums[c] += p
            left[j] -= 1
            if left[j] == 0 and start[j] >= 0:
                start[j] = -1
                alive -= length[j]
                length[j] = 0
        c = column[i] - first
        if 0 <= c < width:
            if sums[c] == 0.0:
                touched[count] = c
                count += 1
            sums[c] += own[i]
        if end + count > len(columns):
            n_kept, end = _compact(start, length, kept, n_kept, columns, values)
            while end + count > len(columns) // 2:
                wider = np.empty(2 * len(columns), np.int32)
                wider[:end] = columns[:end]
                columns = wider
                wide = np.empty(2 * len(values))
                wide[:end] = values[:end]
                values = wide
        r = scored[i]
        begin = end
        dropped = 0.0
        pieces = 0.0
        # Sums go by 64 entries at a time, so that roundings stay few (as in a tile).
        h = 0.0
        m = 0.0
        q = 0.0
        held = 0
        for t in range(count):
            c = touched[t]
            p = sums[c]
            sums[c] = 0.0
            if excess[i] > 0:
                weighed[c] += excess[i] * p
            if p < least:
                dropped += p
                pieces += surprise(p)
                upper[i] += p * prior_bits[first + c]
                lower[i] += p * prior_bits[first + c]
                continue
            if left[i] > 0:
                columns[end] = c
                values[end] = p
                end += 1
            if r < 0:
                continue
            if first + c == elsewhere:
                at_elsewhere[r] += p
            else:
                h += surprise(p)
                m += p
                q += p * prior_bits[first + c]
            held += 1
            if held == 64:
                entropy[r] += h
                mass[r] += m
                prior[r] += q
                h = m = q = 0.0
                held = 0
            if p * prior_top[first + c] > top[r]:
                top[r] = p * prior_top[first + c]
                top_column[r] = first + c
            for o in range(len(orders)):
                powers[r, o] += p ** orders[o] * prior_powers[o, first + c]
        lost[i] += dropped
        upper[i] += pieces
        lower[i] += pieces - surprise(dropped)
        if r >= 0:
            entropy[r] += h
            mass[r] += m
            prior[r] += q
            missing[r] += lost[i]
            above[r] += upper[i]
            below[r] += lower[i]
        if left[i] > 0:
            start[i] = begin
            length[i] = end - begin
            kept[n_kept] = i
            n_kept += 1
            alive += length[i]
            peak = max(peak, alive)
            if alive > most_entries:
                return -1
    return peak
