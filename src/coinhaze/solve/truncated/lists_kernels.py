"""Hot loops on lists of tokens, which are one source or many that go together, and on what is lost.

A token is an outcome, or several collapsed into one. While exactly one list holds a set of tokens,
every later list gets them in the proportions they have there, so one token with an inner entropy
may stand for them (chain rule, exact by the strong Markov property). Who holds a token is counted:
the live lists with it, and the states yet to come that can end in it.

A token has a slot, which is used again when it is gone. What must not depend on slots (draws, the
tree of what was collapsed into what) goes by the token's number of birth. `totals` is the
probability met so far at the current state (0 between states), `holders` who holds it, or the next
free slot where a slot is free: both are looked at for every entry of a list, so they are apart from
the rest, a line of numbers, which is not.

What lists drop is known by its mass, bounds on its entropy and a sketch: proofs in lists.py. Slow
twins in the tests: sums with collapsing on and off (tests/solve/test_sweep.py); the tiles of
`stream` and rational arithmetic (tests/solve/test_lists.py).
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from coinhaze.kernels import kernel
from coinhaze.measures.intervals import ROUNDING
from coinhaze.solve.exact.pairs_kernels import exact_sum
from coinhaze.solve.exact.stream_kernels import surprise
from coinhaze.solve.prefetch_kernels import prefetch
from coinhaze.solve.sketch.kernels import draw_into, mix

NO_SLOT = -1
# What a token's line holds: its inner entropy, that of the columns in it, and a bound on the
# rounding of both; the largest inner share and the column that has it; the number of birth.
BITS, PRIOR, SLACK, TOP, LIKELIEST, BORN, LINE = range(7)
# What `count` holds: slots ever used, the first free slot, tokens born.
USED, FREE, BIRTHS = 0, 1, 2
# What there is of each state's list, if it has one: its length, its start.
LENGTH, START, OF_LIST = range(3)
# What `mark` holds: where the lists end, how many are kept, entries alive, the most ever alive, and
# entries met in all; the next state, how many rows are scored and states dropped something, and the
# slot of what lies elsewhere.
END, KEPT, ALIVE, PEAK, WORK, NEXT, ROWS, DROPS, ELSEWHERE, MARKS = range(10)
_LN2 = math.log(2.0)
# What a state's tail holds: the mass missing, bounds on its entropy from above and below, and the
# most that one source has of it.
MISSING, UPPER, LOWER, MAXIMUM = 0, 1, 2, 3
# A sweep passes dozens of arrays on for every state, and none is made on the way: counting who
# refers to each takes a twelfth of its time.
list_kernel = partial(kernel, _nrt=False)


@list_kernel()
def take_slot(totals, holders, count):
    """Give a slot to a new token; there is room for one."""
    t = count[FREE]
    if t == NO_SLOT:
        t = count[USED]
        count[USED] += 1
    else:
        count[FREE] = holders[t]
    totals[t] = 0.0
    return t


@list_kernel()
def begin_token(
    totals, holders, tokens, count, inner, c, held_by, inner_bits, prior_bits, prior_top,
    prior_powers,
):  # fmt: skip
    """Give birth to the token of a column that holds nothing but it."""
    t = take_slot(totals, holders, count)
    holders[t] = held_by
    tokens[t, BITS] = inner_bits[c]
    tokens[t, PRIOR] = prior_bits[c]
    tokens[t, SLACK] = 0.0
    tokens[t, TOP] = prior_top[c]
    tokens[t, LIKELIEST] = c
    tokens[t, BORN] = c
    for o in range(inner.shape[1]):
        inner[t, o] = prior_powers[o, c]
    return t


@list_kernel(inline="always")
def free_slot(holders, count, t):
    """Let a token go."""
    holders[t] = count[FREE]
    count[FREE] = t


@list_kernel(error_model="numpy")
def collapse(holders, tokens, count, inner, parent, share, members, values, n, orders):
    """Turn n tokens, held by one list only with these values, into one; give it and its value.

    The value is summed with its rounding carried along (Neumaier), so that collapsing thousands
    costs a probability two roundings, not thousands. `parent` and `share` record the tree, if
    there is room for one at all.
    """
    w = exact_sum(values[:n])
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
        free_slot(holders, count, members[k])
    tokens[new, BITS] = h
    tokens[new, PRIOR] = prior
    # At most n roundings of sums, and a few of each quotient and log2.
    tokens[new, SLACK] = slack + (n + 16) * ROUNDING * (h + prior + 2.0)
    tokens[new, TOP] = top
    tokens[new, LIKELIEST] = best
    tokens[new, BORN] = born
    return new, w


@list_kernel()
def unfold(parent, share, born, weighed):
    """Share what collapsed tokens weigh among what they stand for, the last born first."""
    for b in range(born - 1, -1, -1):
        if parent[b] >= 0:
            weighed[b] += share[b] * weighed[parent[b]]


@kernel()
def last_uses(indices, n):
    """Tell of each move whether no later one leads to the same of n nodes."""
    last = np.zeros(len(indices), np.bool_)
    later = np.zeros(n, np.bool_)
    for e in range(len(indices) - 1, -1, -1):
        last[e] = not later[indices[e]]
        later[indices[e]] = True
    return last


@list_kernel(inline="always")
def has_list(live, i):
    """Tell whether a state has a list: one bit each, since most have none of a block's columns."""
    return live[i >> 3] >> (i & 7) & 1


@list_kernel()
def compact(held, shares, lists, kept, mark):
    """Move the lists still needed to the front."""
    end = 0
    still = 0
    for k in range(mark[KEPT]):
        i = kept[k]
        first = lists[i, START]
        if first < 0:
            continue
        for t in range(lists[i, LENGTH]):
            held[end + t] = held[first + t]
            shares[end + t] = shares[first + t]
        lists[i, START] = end
        end += lists[i, LENGTH]
        kept[still] = i
        still += 1
    mark[KEPT] = still
    mark[END] = end


@list_kernel(inline="always")
def count_alone(held, begin, end, totals, holders):
    """Count what only this list holds.

    A token already met at the current state, through a list that ended here, is about to be held
    by this state too: it is left alone.
    """
    n = 0
    for k in range(begin, end):
        if holders[held[k]] == 1 and totals[held[k]] == 0.0:
            n += 1
    return n


@list_kernel()
def collapse_in(
    held, shares, begin, end, totals, holders, tokens, count, inner, parent, share, members, values,
    orders,
):  # fmt: skip
    """Collapse what only the list from begin to end holds, though it lives on; give its end."""
    n = 0
    to = begin
    for k in range(begin, end):
        t = held[k]
        if holders[t] == 1 and totals[t] == 0.0:
            members[n] = t
            values[n] = shares[k]
            n += 1
        else:
            held[to] = t
            shares[to] = shares[k]
            to += 1
    t, p = collapse(holders, tokens, count, inner, parent, share, members, values, n, orders)
    holders[t] = 1
    held[to] = t
    shares[to] = p
    return to + 1


@list_kernel(inline="always")
def mix_list(
    held, shares, begin, end, w, ends, totals, holders, tokens, count, touched, met
):  # fmt: skip
    """Add a list, times w, to the current state; give how many tokens were met so far."""
    for k in range(begin, end):
        t = held[k]
        p = w * shares[k]
        if ends:
            holders[t] -= 1
        # What has become too small for a float is nothing; it must not be met twice.
        if p > 0.0:
            if totals[t] == 0.0:
                touched[met] = t
                met += 1
                prefetch(tokens, np.int64(t), np.int64(0))
            totals[t] += p
        elif holders[t] == 0 and totals[t] == 0.0:
            free_slot(holders, count, t)
    return met


@list_kernel(inline="always", error_model="numpy")
def score_row(totals, tokens, touched, met, elsewhere, figures, row, values, terms):
    """Add a row up over its tokens: entropy, mass, inner entropy, its slack, top, elsewhere.

    Sums go by 64 entries at a time, so that roundings stay few (as in a tile). Gives the column
    that has most of the row. `values` and `terms` are room for as many numbers as were met: side by
    side their logarithms run on vector units.
    """
    for k in range(met):
        values[k] = totals[touched[k]]
        terms[k] = tokens[touched[k], BITS]
    for k in range(met):
        terms[k] = surprise(values[k]) + values[k] * terms[k]
    entropy = mass = prior = slack = top = apart = 0.0
    best = -1
    h = m = q = 0.0
    for k in range(met):
        t = touched[k]
        p = values[k]
        if t == elsewhere:
            apart += p
        else:
            h += terms[k]
            m += p
            q += p * tokens[t, PRIOR]
        if k & 63 == 63:
            entropy += h
            mass += m
            prior += q
            h = m = q = 0.0
        slack += p * tokens[t, SLACK]
        share = p * tokens[t, TOP]
        best = t if share > top else best
        top = share if share > top else top
    figures[row, 0] = entropy + h
    figures[row, 1] = mass + m
    figures[row, 2] = prior + q
    figures[row, 3] = slack
    figures[row, 4] = top
    figures[row, 5] = apart
    return int(tokens[best, LIKELIEST]) if best >= 0 else -1


@list_kernel(inline="always")
def part_tokens(
    totals, holders, count, touched, met, live, collapsing, minimum, alone, alone_p, out, out_p,
    drawn, held, shares, begin,
):  # fmt: skip
    """Part what was met: held by nobody else, too small, and the rest, which makes the list.

    The list stands from `begin` on.
    """
    n_alone = n_out = 0
    n = begin
    for k in range(met):
        t = touched[k]
        p = totals[t]
        totals[t] = 0.0
        if not live:
            if holders[t] == 0:
                free_slot(holders, count, t)
        elif collapsing and holders[t] == 0:
            alone[n_alone] = t
            alone_p[n_alone] = p
            n_alone += 1
        elif p < minimum:
            out[n_out] = t
            out_p[n_out] = p
            n_out += 1
            prefetch(drawn, np.int64(t), np.int64(0))
        else:
            held[n] = t
            shares[n] = p
            holders[t] += 1
            n += 1
    return n_alone, n_out, n - begin


@list_kernel()
def count_visits(indptr, indices, data, visits):
    """Add to what begins at each state what comes from others; moves lead to lower numbers."""
    for i in range(len(visits) - 1, -1, -1):
        for e in range(indptr[i], indptr[i + 1]):
            visits[indices[e]] += visits[i] * data[e]


@list_kernel(error_model="numpy")
def mix_tail(mine, tails, j, w):
    """Add what is missing at state j, times w, to what is missing here: all is linear."""
    m = tails[j, MISSING]
    mine[MISSING] += w * m
    mine[UPPER] += w * tails[j, UPPER] + surprise(w) * m
    mine[LOWER] += w * tails[j, LOWER]
    mine[MAXIMUM] += w * tails[j, MAXIMUM]


@list_kernel(inline="always", error_model="numpy")
def drop(dropped, row, tokens, members, values, n):
    """Add n tokens up that a state drops: mass, sum of phi with inner entropies, largest part."""
    mass = pieces = inner = largest = 0.0
    for k in range(n):
        p = values[k]
        mass += p
        pieces += surprise(p)
        inner += p * (tokens[members[k], BITS] + tokens[members[k], PRIOR])
        largest = max(largest, p * tokens[members[k], TOP])
    dropped[row, 0] = mass
    dropped[row, 1] = pieces + inner
    dropped[row, 2] = largest


@list_kernel()
def sketch_drops(
    sketches, row, tokens, members, values, n, draws, drawn_for, seed, uniform
):  # fmt: skip
    """Sketch n dropped tokens; one of inner entropy h draws X - h.

    Draws of a token are kept while its slot is its own. `uniform` is room for `draw_into`.
    """
    width = sketches.shape[1]
    for d in range(width):
        sketches[row, d] = 0.0
    for k in range(n):
        t = members[k]
        born = int(tokens[t, BORN])
        if drawn_for[t] != born:
            drawn_for[t] = born
            name = mix(np.uint64(born) + np.uint64(0x9E3779B97F4A7C15))
            bits = tokens[t, BITS] + tokens[t, PRIOR]
            draw_into(name, seed, 0, 1.0, bits * _LN2, draws[t], True, uniform[0], uniform[1])
        v = np.float32(values[k])
        for d in range(width):
            sketches[row, d] += v * draws[t, d]


@list_kernel(error_model="numpy")
def raise_lower(tail):
    """Raise the lower bound: with at most `top` on one source, entropy is log2(m / top) or more.

    Not near the end of the range of floats, where `top` may have become too small or nothing.
    """
    m, top = tail[MISSING], tail[MAXIMUM]
    if top > 1e-290:
        tail[LOWER] = max(tail[LOWER], m * math.log2(m / top))


@list_kernel(error_model="numpy")
def estimate_tail(m, sketch):
    """Estimate the sum of phi over what is missing, m in all, in bits.

    The sketch over m is that of r / m, r being what is missing, and gives H(r / m); the sum of
    phi(r) is m H(r / m) + phi(m). Taken so, the standard error is 2.50 m / sqrt(draws) bits.
    """
    total = 0.0
    for d in range(len(sketch)):
        total += math.exp(sketch[d] / m)
    nats = -math.log(total / len(sketch)) - 1.5 / len(sketch)
    return m * max(nats, 0.0) / _LN2 + surprise(m)
