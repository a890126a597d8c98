"""Hot loops on tokens: what a list of outcomes holds, one source or many that go together.

A token is an outcome, or several collapsed into one. While exactly one list holds a set of tokens,
every later list gets them in the proportions they have there, so one token with an inner entropy
may stand for them (chain rule, exact by the strong Markov property). Who holds a token is counted:
the live lists with it, and the states yet to come that can end in it.

A token is a line of eight numbers (one line of a processor's cache), in a slot that is used again
when it is gone. What must not depend on slots (draws, the tree of what was collapsed into what)
goes by the token's number of birth.

Slow twin in the tests: tests/solve/test_sweep.py, sums with collapsing on and off.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from coinhaze.solve.exact.stream_kernels import surprise

ROUNDING = 2.0**-53
NO_SLOT = -1
# What a token's line holds: the probability met so far at the current state (0 between states);
# who holds it; its inner entropy, that of the columns in it, and a bound on the rounding of both;
# the largest inner share and the column that has it; the number of birth. A free slot holds the
# next free one in place of holders.
TOTAL, HOLDERS, BITS, PRIOR, SLACK, TOP, LIKELIEST, BORN, LINE = 0, 1, 2, 3, 4, 5, 6, 7, 8
# What `count` holds: slots ever used, the first free slot, tokens born.
USED, FREE, BIRTHS = 0, 1, 2


@njit(cache=True, nogil=True)
def longer(old, length, fill):
    """Give a longer array, the new part filled."""
    new = np.full(length, fill, old.dtype)
    new[: len(old)] = old
    return new


@njit(cache=True, nogil=True)
def wider(old, rows):
    """Give an array with more rows, the new ones zero."""
    new = np.zeros((rows, old.shape[1]), old.dtype)
    new[: len(old)] = old
    return new


@njit(cache=True, nogil=True)
def take_slot(tokens, count):
    """Give a slot to a new token; there is room for one."""
    t = count[FREE]
    if t == NO_SLOT:
        t = count[USED]
        count[USED] += 1
    else:
        count[FREE] = int(tokens[t, HOLDERS])
    tokens[t, TOTAL] = 0.0
    return t


@njit(cache=True, nogil=True)
def begin_token(tokens, count, inner, c, holders, inner_bits, prior_bits, prior_top, prior_powers):
    """Give birth to the token of a column that holds nothing but it."""
    t = take_slot(tokens, count)
    tokens[t, HOLDERS] = holders
    tokens[t, BITS] = inner_bits[c]
    tokens[t, PRIOR] = prior_bits[c]
    tokens[t, SLACK] = 0.0
    tokens[t, TOP] = prior_top[c]
    tokens[t, LIKELIEST] = c
    tokens[t, BORN] = c
    for o in range(inner.shape[1]):
        inner[t, o] = prior_powers[o, c]
    return t


@njit(cache=True, nogil=True, inline="always")
def free_slot(tokens, count, t):
    """Let a token go."""
    tokens[t, HOLDERS] = count[FREE]
    count[FREE] = t


@njit(cache=True, nogil=True, error_model="numpy")
def collapse(tokens, count, inner, parent, share, members, values, n, orders):
    """Turn n tokens, held by one list only with these values, into one; give it and its value.

    The value is summed with its rounding carried along (Neumaier), so that collapsing thousands
    costs a probability two roundings, not thousands. `parent` and `share` record the tree, if
    there is room for one at all.
    """
    w = 0.0
    lost = 0.0
    for k in range(n):
        s = w + values[k]
        lost += (w - s) + values[k] if w >= values[k] else (values[k] - s) + w
        w = s
    w += lost
    born = count[BIRTHS]
    count[BIRTHS] += 1
    h = part = prior = slack = top = 0.0
    best = -1.0
    for k in range(n):
        t = members[k]
        x = values[k] / w
        part += surprise(x) + x * tokens[t, BITS]
        if k & 63 == 63:
            h += part
            part = 0.0
        prior += x * tokens[t, PRIOR]
        slack += x * tokens[t, SLACK]
        if x * tokens[t, TOP] > top:
            top = x * tokens[t, TOP]
            best = tokens[t, LIKELIEST]
    h += part
    if len(parent) > 0:
        for k in range(n):
            child = int(tokens[members[k], BORN])
            parent[child] = born
            share[child] = values[k] / w
    new = members[0]
    for o in range(len(orders)):
        total = 0.0
        for k in range(n):
            total += (values[k] / w) ** orders[o] * inner[members[k], o]
        inner[new, o] = total
    for k in range(1, n):
        free_slot(tokens, count, members[k])
    tokens[new, BITS] = h
    tokens[new, PRIOR] = prior
    # At most n roundings of sums, and a few of each quotient and log2.
    tokens[new, SLACK] = slack + (n + 16) * ROUNDING * (h + prior + 2.0)
    tokens[new, TOP] = top
    tokens[new, LIKELIEST] = best
    tokens[new, BORN] = born
    return new, w


@njit(cache=True, nogil=True)
def unfold(parent, share, born, weighed):
    """Share what collapsed tokens weigh among what they stand for, the last born first."""
    for b in range(born - 1, -1, -1):
        if parent[b] >= 0:
            weighed[b] += share[b] * weighed[parent[b]]
