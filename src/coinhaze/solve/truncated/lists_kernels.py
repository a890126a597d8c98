"""Hot loops on lists of tokens, which are one source or many that go together, and on what is lost.

A token is an outcome, or several collapsed into one. While exactly one list holds a set of tokens,
every later list gets them in the proportions they have there, so one token with an inner entropy
may stand for them (chain rule, exact by the strong Markov property). Who holds a token is counted:
the live lists with it, and the states yet to come that can end in it.

A token is a line of eight numbers (one line of a processor's cache), in a slot that is used again
when it is gone. What must not depend on slots (draws, the tree of what was collapsed into what)
goes by the token's number of birth.

What lists drop is known by its mass, bounds on its entropy and a sketch: proofs in lists.py. Slow
twins in the tests: sums with collapsing on and off (tests/solve/test_sweep.py); the tiles of
`stream` and rational arithmetic (tests/solve/test_lists.py).
"""

from __future__ import annotations

import math

import numpy as np

from coinhaze.kernels import kernel
from coinhaze.measures.intervals import ROUNDING
from coinhaze.solve.exact.pairs_kernels import exact_sum
from coinhaze.solve.exact.stream_kernels import WIDTH, surprise
from coinhaze.solve.sketch.kernels import fill_draws, mix

NO_SLOT = -1
# What a token's line holds: the probability met so far at the current state (0 between states);
# who holds it; its inner entropy, that of the columns in it, and a bound on the rounding of both;
# the largest inner share and the column that has it; the number of birth. A free slot holds the
# next free one in place of holders.
TOTAL, HOLDERS, BITS, PRIOR, SLACK, TOP, LIKELIEST, BORN, LINE = 0, 1, 2, 3, 4, 5, 6, 7, 8
# What `count` holds: slots ever used, the first free slot, tokens born.
USED, FREE, BIRTHS = 0, 1, 2
# What `mark` holds: where the lists end, how many are kept, entries alive, the most ever alive,
# and entries met in all.
END, KEPT, ALIVE, PEAK, WORK = 0, 1, 2, 3, 4
_LN2 = math.log(2.0)
# What a state's tail holds: the mass missing, bounds on its entropy from above and below, and the
# most that one source has of it.
MISSING, UPPER, LOWER, MOST = 0, 1, 2, 3
# What `count` holds.
USED_SKETCHES, FREE_SKETCHES = 0, 1


@kernel()
def longer(old, length, fill):
    """Give a longer array, the new part filled."""
    new = np.full(length, fill, old.dtype)
    new[: len(old)] = old
    return new


@kernel()
def wider(old, rows):
    """Give an array with more rows, the new ones zero."""
    new = np.zeros((rows, old.shape[1]), old.dtype)
    new[: len(old)] = old
    return new


@kernel()
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


@kernel()
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


@kernel(inline="always")
def free_slot(tokens, count, t):
    """Let a token go."""
    tokens[t, HOLDERS] = count[FREE]
    count[FREE] = t


@kernel(error_model="numpy")
def collapse(tokens, count, inner, parent, share, members, values, n, orders):
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
        free_slot(tokens, count, members[k])
    tokens[new, BITS] = h
    tokens[new, PRIOR] = prior
    # At most n roundings of sums, and a few of each quotient and log2.
    tokens[new, SLACK] = slack + (n + 16) * ROUNDING * (h + prior + 2.0)
    tokens[new, TOP] = top
    tokens[new, LIKELIEST] = best
    tokens[new, BORN] = born
    return new, w


@kernel()
def unfold(parent, share, born, weighed):
    """Share what collapsed tokens weigh among what they stand for, the last born first."""
    for b in range(born - 1, -1, -1):
        if parent[b] >= 0:
            weighed[b] += share[b] * weighed[parent[b]]


@kernel()
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


@kernel()
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


@kernel()
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


@kernel()
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


@kernel(error_model="numpy")
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


@kernel()
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


@kernel()
def count_visits(indptr, indices, data, visits):
    """Add to what begins at each state what comes from others; moves lead to lower numbers."""
    for i in range(len(visits) - 1, -1, -1):
        for e in range(indptr[i], indptr[i + 1]):
            visits[indices[e]] += visits[i] * data[e]


@kernel()
def own_sketch(sketch_of, i, sketches, free, count):
    """Give state i's sketch, an empty one if it has none yet; there is room for one."""
    if sketch_of[i] < 0:
        if count[FREE_SKETCHES] > 0:
            count[FREE_SKETCHES] -= 1
            sketch_of[i] = free[count[FREE_SKETCHES]]
        else:
            sketch_of[i] = count[USED_SKETCHES]
            count[USED_SKETCHES] += 1
        sketches[sketch_of[i]] = 0.0
    return sketches[sketch_of[i]]


@kernel()
def free_sketch(sketch_of, i, free, count):
    """Let a state's sketch go, if it has one."""
    if len(sketch_of) > 0 and sketch_of[i] >= 0:
        free[count[FREE_SKETCHES]] = sketch_of[i]
        count[FREE_SKETCHES] += 1
        sketch_of[i] = -1


@kernel(error_model="numpy")
def mix_tail(tails, i, j, w):
    """Add what is missing at j, times w, to what is missing at i: all of it is linear."""
    m = tails[j, MISSING]
    tails[i, MISSING] += w * m
    tails[i, UPPER] += w * tails[j, UPPER] + surprise(w) * m
    tails[i, LOWER] += w * tails[j, LOWER]
    tails[i, MOST] += w * tails[j, MOST]


@kernel()
def mix_sketch(mine, theirs, w):
    """Add one sketch, times w, to another."""
    v = np.float32(w)
    for d in range(len(mine)):
        mine[d] += v * theirs[d]


@kernel(error_model="numpy")
def drop(tails, i, tokens, members, values, n):
    """Add n dropped tokens to what is missing at state i."""
    mass = pieces = inner = largest = 0.0
    for k in range(n):
        p = values[k]
        mass += p
        pieces += surprise(p)
        inner += p * (tokens[members[k], BITS] + tokens[members[k], PRIOR])
        largest = max(largest, p * tokens[members[k], TOP])
    tails[i, MISSING] += mass
    tails[i, UPPER] += pieces + inner
    tails[i, LOWER] += pieces - surprise(mass) + inner
    tails[i, MOST] += largest


@kernel()
def sketch_drops(mine, tokens, members, values, n, draws, drawn_for, seed):
    """Add n dropped tokens to a sketch; one of inner entropy h draws X - h.

    Draws of a token are kept while its slot is its own.
    """
    for k in range(n):
        t = members[k]
        x = draws[t]
        born = int(tokens[t, BORN])
        if drawn_for[t] != born:
            drawn_for[t] = born
            row = np.empty(WIDTH)
            name = mix(np.uint64(born) + np.uint64(0x9E3779B97F4A7C15))
            bits = tokens[t, BITS] + tokens[t, PRIOR]
            fill_draws(name, seed, 0, 1.0, bits * _LN2, row, True)
            for d in range(len(x)):
                x[d] = row[d]
        v = np.float32(values[k])
        for d in range(len(mine)):
            mine[d] += v * x[d]


@kernel(error_model="numpy")
def raise_lower(tails, i):
    """Raise the lower bound: with at most `most` on one source, entropy is log2(m / most) or more.

    Not near the end of the range of floats, where `most` may have become too small or nothing.
    """
    m, most = tails[i, MISSING], tails[i, MOST]
    if most > 1e-290:
        tails[i, LOWER] = max(tails[i, LOWER], m * math.log2(m / most))


@kernel(error_model="numpy")
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
