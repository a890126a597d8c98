"""Hot loops on lists of tokens: mixing, parting, adding up.

Slow twin in the tests: tests/solve/test_lists.py, the tiles of `stream` and rational arithmetic.
"""

from __future__ import annotations

from numba import njit

from coinhaze.solve.exact.stream_kernels import surprise
from coinhaze.solve.truncated.tokens_kernels import (  # fmt: skip
    BITS,
    HOLDERS,
    LIKELIEST,
    PRIOR,
    SLACK,
    TOP,
    TOTAL,
    collapse,
    free_slot,
)

# What `mark` holds: where the lists end, how many are kept, entries alive, the most ever alive,
# and entries met in all.
END, KEPT, ALIVE, PEAK, WORK = 0, 1, 2, 3, 4


@njit(cache=True, nogil=True)
def compact(tokens_in, values_in, start, length, kept, mark):
    """Move the lists still needed to the front."""
    end = 0
    still = 0
    for k in range(mark[KEPT]):
        i = kept[k]
        first = start[i]
        if first < 0:
            continue
        for t in range(length[i]):
            tokens_in[end + t] = tokens_in[first + t]
            values_in[end + t] = values_in[first + t]
        start[i] = end
        end += length[i]
        kept[still] = i
        still += 1
    mark[KEPT] = still
    mark[END] = end


@njit(cache=True, nogil=True)
def _alone_in(held, shares, tokens, members, values):
    """Take what only this list holds out of it; give how many were taken.

    A token already met at the current state, through a list that ended here, is about to be held
    by this state too: it is left alone.
    """
    n = 0
    for k in range(len(held)):
        if tokens[held[k], HOLDERS] == 1.0 and tokens[held[k], TOTAL] == 0.0:
            n += 1
    if n < 2:
        return 0
    n = 0
    end = 0
    for k in range(len(held)):
        t = held[k]
        if tokens[t, HOLDERS] == 1.0 and tokens[t, TOTAL] == 0.0:
            members[n] = t
            values[n] = shares[k]
            n += 1
        else:
            held[end] = t
            shares[end] = shares[k]
            end += 1
    return n


@njit(cache=True, nogil=True)
def collapse_in(held, shares, tokens, count, inner, parent, share, members, values, orders):
    """Collapse what only this list holds, though it lives on; give its length."""
    n = _alone_in(held, shares, tokens, members, values)
    if n == 0:
        return len(held)
    t, p = collapse(tokens, count, inner, parent, share, members, values, n, orders)
    tokens[t, HOLDERS] = 1.0
    held[len(held) - n] = t
    shares[len(held) - n] = p
    return len(held) - n + 1


@njit(cache=True, nogil=True)
def mix_list(held, shares, w, ends, tokens, count, touched, met):
    """Add a list, times w, to the current state; give how many tokens were met so far."""
    for k in range(len(held)):
        t = held[k]
        p = w * shares[k]
        if ends:
            tokens[t, HOLDERS] -= 1.0
        # What has become too small for a float is nothing; it must not be met twice.
        if p > 0.0:
            if tokens[t, TOTAL] == 0.0:
                touched[met] = t
                met += 1
            tokens[t, TOTAL] += p
        elif tokens[t, HOLDERS] == 0.0 and tokens[t, TOTAL] == 0.0:
            free_slot(tokens, count, t)
    return met


@njit(cache=True, nogil=True, error_model="numpy")
def score_row(tokens, touched, elsewhere):
    """Add a row up over its tokens: entropy, mass, inner entropy, its slack, top, elsewhere.

    Sums go by 64 entries at a time, so that roundings stay few (as in a tile).
    """
    entropy = mass = prior = slack = top = apart = 0.0
    best = -1.0
    h = m = q = 0.0
    for k in range(len(touched)):
        t = touched[k]
        p = tokens[t, TOTAL]
        if t == elsewhere:
            apart += p
        else:
            h += surprise(p) + p * tokens[t, BITS]
            m += p
            q += p * tokens[t, PRIOR]
        if k & 63 == 63:
            entropy += h
            mass += m
            prior += q
            h = m = q = 0.0
        slack += p * tokens[t, SLACK]
        if p * tokens[t, TOP] > top:
            top = p * tokens[t, TOP]
            best = tokens[t, LIKELIEST]
    return entropy + h, mass + m, prior + q, slack, top, int(best), apart


@njit(cache=True, nogil=True)
def part_tokens(
    tokens, count, touched, live, collapsing, least, alone, alone_p, out, out_p, held, shares
):
    """Part what was met: held by nobody else, too small, and the rest, which makes the list."""
    n_alone = n_out = n = 0
    for k in range(len(touched)):
        t = touched[k]
        p = tokens[t, TOTAL]
        tokens[t, TOTAL] = 0.0
        if not live:
            if tokens[t, HOLDERS] == 0.0:
                free_slot(tokens, count, t)
        elif collapsing and tokens[t, HOLDERS] == 0.0:
            alone[n_alone] = t
            alone_p[n_alone] = p
            n_alone += 1
        elif p < least:
            out[n_out] = t
            out_p[n_out] = p
            n_out += 1
        else:
            held[n] = t
            shares[n] = p
            tokens[t, HOLDERS] += 1.0
            n += 1
    return n_alone, n_out, n


@njit(cache=True, nogil=True)
def count_visits(indptr, indices, data, visits):
    """Add to what begins at each state what comes from others; moves lead to lower numbers."""
    for i in range(len(visits) - 1, -1, -1):
        for e in range(indptr[i], indptr[i + 1]):
            visits[indices[e]] += visits[i] * data[e]


@njit(cache=True, nogil=True)
def bound_sources(indptr, indices, own, most):
    """Bound the sources each state reaches by sums over moves, which lead to lower numbers."""
    bound = own.copy()
    for i in range(len(own)):
        for e in range(indptr[i], indptr[i + 1]):
            bound[i] += bound[indices[e]]
        bound[i] = min(bound[i], most)
    return bound
