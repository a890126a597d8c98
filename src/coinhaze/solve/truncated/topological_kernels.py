"""Hot loops of the sweep over acyclic chains: lists of tokens by blocks, and what they dropped.

Slow twin in the tests: tests/solve/test_lists.py, the tiles of `stream` and rational arithmetic.
"""

from __future__ import annotations

import numpy as np

from coinhaze.kernels import kernel
from coinhaze.solve.exact.stream_kernels import surprise
from coinhaze.solve.prefetch_kernels import prefetch
from coinhaze.solve.truncated.lists_kernels import (
    ALIVE,
    BIRTHS,
    BORN,
    DROPS,
    ELSEWHERE,
    END,
    FREE,
    KEPT,
    LENGTH,
    LOWER,
    MAXIMUM,
    MISSING,
    NEXT,
    NO_SLOT,
    PEAK,
    ROWS,
    START,
    UPPER,
    USED,
    WORK,
    begin_token,
    collapse,
    collapse_in,
    compact,
    count_alone,
    drop,
    estimate_tail,
    free_slot,
    has_list,
    list_kernel,
    mix_list,
    mix_tail,
    part_tokens,
    raise_lower,
    score_row,
    sketch_drops,
)

# Why a sweep stops: it is done, it has met as many entries as it may, or something is full: what
# is met at a state, the tree of tokens, tokens, rows, drops, lists.
DONE, TOO_MANY, MET, TREE, TOKENS, SCORED, DROPPED, LISTS = range(8)
# What is found of a row, as it stands in a block's results; there are so many numbers.
ENTROPY, MASS, PRIOR, SLACK_SUM, LARGEST, APART, FIGURES = range(7)
FAR, NEAR = 40, 20  # so many states ahead memory is requested: where lists are, and what they hold


@list_kernel(error_model="numpy")
def sweep_lists(
    indptr, indices, data, ends, read, own, column, births, scored, minimum, collapsing,
    max_entries, inner_bits, prior_bits, prior_top, prior_powers, orders, elsewhere_column, excess,
    seed, uniform, live, lists, kept, slot_of, count, mark,
    touched, alone, alone_p, out, out_p, parent, share, weights, totals, holders, tokens, inner,
    drawn, drawn_for,
    rows, figures, likeliest, powers, dropping, dropped, sketches, held, shares,
):  # fmt: skip
    """Sweep over an acyclic chain, dropping entries of state i below `minimum[i]`.

    `ends` tells which moves are the last to read a list, `read` which states' lists are read at
    all. `births` gives for each column the states that can end in it, 0 for those of other blocks.
    `scored` gives each state's row among the results, -1 if it has none. What follows `seed` is a
    worker's room (`ListRoom`). Found are the rows that have any of these columns, with the figures,
    largest column and sums of powers of each; and the states that dropped something, with its mass,
    the bound on its entropy from above and its largest part, and columns of a sketch of it.

    Gives why it stopped. It goes on from there when called again: arrays never grow in here, since
    numba would count who refers to them at every use.
    """
    weigh = len(excess) > 0
    draws = sketches.shape[1]
    n = len(own)
    for i in range(mark[NEXT], n):
        first, last = indptr[i], indptr[i + 1]
        # What is read soon is requested now: first what there is of lists, then what they hold.
        ahead = min(i + FAR, n - 1)
        for e in range(indptr[ahead], indptr[ahead + 1]):
            prefetch(lists, np.int64(indices[e]), np.int64(0))
        ahead = min(i + NEAR, n - 1)
        prefetch(data, np.int64(indptr[ahead]), np.int64(0))
        for e in range(indptr[ahead], indptr[ahead + 1]):
            j = indices[e]
            at = np.int64(lists[j, START]) * np.int64(has_list(live, j))
            prefetch(held, at, np.int64(0))
            prefetch(shares, at, np.int64(0))
        room = 1
        for e in range(first, last):
            if has_list(live, indices[e]):
                room += lists[indices[e], LENGTH]
        c = column[i]
        begins = c >= 0 and births[c] > 0
        if room == 1 and not begins:
            continue
        mark[NEXT] = i
        if room > len(touched):
            return MET
        if weigh and count[BIRTHS] + last - first + 2 > len(parent):
            return TREE
        if begins and count[FREE] == NO_SLOT and count[USED] == len(tokens):
            return TOKENS
        if mark[ROWS] == len(rows):
            return SCORED
        if mark[DROPS] == len(dropping):
            return DROPPED
        if mark[END] + room > len(held):
            compact(held, shares, lists, kept, mark)
            # Lists that leave little free would have to be moved again soon.
            if mark[END] + room > len(held) - len(held) // 4:
                return LISTS
        if mark[WORK] > max_entries:
            return TOO_MANY
        mark[WORK] += room - 1
        met = 0
        for e in range(first, last):
            j = indices[e]
            if not has_list(live, j):
                continue
            begin, end = lists[j, START], lists[j, START] + lists[j, LENGTH]
            if (
                collapsing
                and not ends[e]
                and lists[j, LENGTH] > 1
                and count_alone(held, begin, end, totals, holders) > 1
            ):
                shorter = collapse_in(
                    held, shares, begin, end, totals, holders, tokens, count, inner, parent, share,
                    alone, alone_p, orders,
                )  # fmt: skip
                mark[ALIVE] -= end - shorter
                lists[j, LENGTH] = shorter - begin
                end = shorter
            met = mix_list(
                held, shares, begin, end, data[e], ends[e], totals, holders, tokens, count, touched,
                met,
            )  # fmt: skip
            if ends[e]:
                mark[ALIVE] -= lists[j, LENGTH]
                lists[j, START] = -1
                live[j >> 3] &= ~(1 << (j & 7))
        if begins:
            if slot_of[c] == NO_SLOT:
                # What lies elsewhere is kept apart, so it never goes into another token.
                apart = c == elsewhere_column
                slot_of[c] = begin_token(
                    totals,
                    holders,
                    tokens,
                    count,
                    inner,
                    c,
                    births[c] + apart,
                    inner_bits,
                    prior_bits,
                    prior_top,
                    prior_powers,
                )
                if apart:
                    mark[ELSEWHERE] = slot_of[c]
            t = slot_of[c]
            holders[t] -= 1
            if totals[t] == 0.0:
                touched[met] = t
                met += 1
            totals[t] += own[i]
        if scored[i] >= 0 and met > 0:
            row = mark[ROWS]
            mark[ROWS] += 1
            rows[row] = scored[i]
            likeliest[row] = score_row(
                totals, tokens, touched, met, mark[ELSEWHERE], figures, row, alone_p, out_p
            )
            for o in range(len(orders)):
                powers[row, o] = 0.0
                for k in range(met):
                    t = touched[k]
                    powers[row, o] += totals[t] ** orders[o] * inner[t, o]
        if weigh and excess[i] > 0:
            for k in range(met):
                weights[int(tokens[touched[k], BORN])] += excess[i] * totals[touched[k]]
        begin = mark[END]
        n_alone, n_out, stay = part_tokens(
            totals, holders, count, touched, met, read[i], collapsing, minimum[i], alone, alone_p,
            out, out_p, drawn, held, shares, begin,
        )  # fmt: skip
        if not read[i]:
            continue
        if n_alone > 0:
            t, p = alone[0], alone_p[0]
            if n_alone > 1:
                t, p = collapse(
                    holders, tokens, count, inner, parent, share, alone, alone_p, n_alone, orders
                )
            holders[t] = 0
            if p < minimum[i]:
                out[n_out] = t
                out_p[n_out] = p
                n_out += 1
            else:
                held[begin + stay] = t
                shares[begin + stay] = p
                holders[t] = 1
                stay += 1
        if n_out > 0:
            row = mark[DROPS]
            mark[DROPS] += 1
            dropping[row] = i
            drop(dropped, row, tokens, out, out_p, n_out)
            if draws > 0:
                sketch_drops(
                    sketches, row, tokens, out, out_p, n_out, drawn, drawn_for, seed, uniform
                )
            for k in range(n_out):
                if holders[out[k]] == 0:
                    free_slot(holders, count, out[k])
        if stay > 0:
            lists[i, START] = begin
            lists[i, LENGTH] = stay
            live[i >> 3] |= 1 << (i & 7)
            kept[mark[KEPT]] = i
            mark[KEPT] += 1
            mark[END] = begin + stay
            mark[ALIVE] += stay
            mark[PEAK] = max(mark[PEAK], mark[ALIVE])
    return DONE


@kernel()
def add_rows(
    rows, figures, likeliest, some_powers,
    entropy, mass, prior, top, top_column, powers, elsewhere, slack,
):  # fmt: skip
    """Add a block's rows to those of the blocks before it; of equal largest entries theirs stay."""
    for k in range(len(rows)):
        r = rows[k]
        entropy[r] += figures[k, ENTROPY]
        mass[r] += figures[k, MASS]
        prior[r] += figures[k, PRIOR]
        slack[r] += figures[k, SLACK_SUM]
        elsewhere[r] += figures[k, APART]
        if figures[k, LARGEST] > top[r]:
            top[r] = figures[k, LARGEST]
            top_column[r] = likeliest[k]
        for o in range(some_powers.shape[1]):
            powers[r, o] += some_powers[k, o]


@kernel()
def add_drops(dropping, dropped, some_sketches, tails, sketches):
    """Add what a block dropped to what the blocks before it did: columns of blocks are apart."""
    for k in range(len(dropping)):
        i = dropping[k]
        tails[i, MISSING] += dropped[k, 0]
        tails[i, UPPER] += dropped[k, 1]
        tails[i, MAXIMUM] = max(tails[i, MAXIMUM], dropped[k, 2])
        for d in range(some_sketches.shape[1]):
            sketches[i, d] += some_sketches[k, d]


@list_kernel(error_model="numpy")
def gather_tail(indptr, indices, data, i, tails, sketches, line, mine):
    """Gather what the states that i moves to miss, each times its weight."""
    line[:] = 0.0
    mine[:] = 0.0
    for e in range(indptr[i], indptr[i + 1]):
        j = indices[e]
        if tails[j, MISSING] > 0.0:
            w = data[e]
            mix_tail(line, tails, j, w)
            v = np.float32(w)
            for d in range(len(mine)):
                mine[d] += v * sketches[j, d]
    if line[MISSING] > 0.0:
        raise_lower(line)


@kernel(error_model="numpy")
def sweep_tails(indptr, indices, data, read, tails, sketches):
    """Follow what was dropped through the chain, as far as any move reads it.

    `tails` and `sketches` hold what each state dropped itself, and in the end all it misses.
    """
    line = np.zeros(4)
    mine = np.zeros(sketches.shape[1], np.float32)
    for i in range(len(indptr) - 1):
        if not read[i]:
            continue
        gather_tail(indptr, indices, data, i, tails, sketches, line, mine)
        dropped = tails[i, MISSING]
        if dropped > 0.0:
            line[LOWER] += tails[i, UPPER] - surprise(dropped)
            line[MISSING] += dropped
            line[UPPER] += tails[i, UPPER]
            line[MAXIMUM] += tails[i, MAXIMUM]
            raise_lower(line)
            for d in range(len(mine)):
                mine[d] += sketches[i, d]
        if line[MISSING] > 0.0:
            tails[i] = line
            sketches[i] = mine


@kernel(error_model="numpy")
def score_tails(
    indptr, indices, data, scored, tails, sketches, first, states, missing, above, below, tail
):
    """Bound what was dropped on the way adds to the rows of so many states from the first on.

    `missing` is the mass dropped on the way to a row, `above` and `below` bound what it adds to the
    entropy (see lists.py), and `tail` estimates it from the sketches. A state's own drops are no
    part of its row.
    """
    line = np.zeros(4)
    mine = np.zeros(sketches.shape[1], np.float32)
    for i in range(first, min(first + states, len(indptr) - 1)):
        r = scored[i]
        if r < 0:
            continue
        gather_tail(indptr, indices, data, i, tails, sketches, line, mine)
        m = line[MISSING]
        if m > 0.0:
            missing[r] = m
            above[r] = line[UPPER]
            below[r] = line[LOWER]
            tail[r] = estimate_tail(m, mine) if len(mine) > 0 else above[r]
