"""Hot loop of the sweep over acyclic chains, with lists of tokens.

Slow twin in the tests: tests/solve/test_lists.py, the tiles of `stream` and rational arithmetic.
"""

from __future__ import annotations

import numpy as np

from coinhaze.kernels import kernel
from coinhaze.solve.exact.stream_kernels import surprise
from coinhaze.solve.truncated.lists_kernels import (
    ALIVE,
    BIRTHS,
    BORN,
    END,
    FREE,
    FREE_SKETCHES,
    HOLDERS,
    KEPT,
    LINE,
    LOWER,
    MISSING,
    NO_SLOT,
    PEAK,
    TOTAL,
    UPPER,
    USED,
    USED_SKETCHES,
    WORK,
    begin_token,
    collapse,
    collapse_in,
    compact,
    drop,
    estimate_tail,
    free_sketch,
    free_slot,
    longer,
    mix_list,
    mix_sketch,
    mix_tail,
    own_sketch,
    part_tokens,
    raise_lower,
    score_row,
    sketch_drops,
    unfold,
    wider,
)

# Bytes of what there is for each state, column, entry of a list, token met at a state, and token
# ever born.
OF_STATE, OF_BIRTH, OF_ENTRY, OF_MET, OF_PARENT = 60, 8, 12, 28, 24


@kernel(error_model="numpy")
def sweep_lists(
    indptr, indices, data, own, column, births, uses, scored, least, collapsing, most_bytes,
    most_entries, inner_bits, prior_bits, prior_top, prior_powers, orders, elsewhere_column, excess,
    draws, seed, weighed,
    entropy, mass, prior, top, top_column, powers, at_elsewhere, missing, above, below, slack, tail,
):  # fmt: skip
    """Sweep over an acyclic chain, dropping entries of state i below `least[i]`.

    `births` gives for each column the states that can end in it, 0 for columns of other blocks.
    `scored` gives each state's row among the results, -1 if it has none. `missing` is the mass
    dropped on the way, `above` and `below` bound what it adds to the entropy (see lists.py), and
    `tail` estimates it from `draws` columns of a sketch. Gives the largest number of entries alive
    at once, how many were met in all, and the bytes all lists took; -1 in place of the first if
    the others passed `most_bytes` or `most_entries`.
    """
    n = len(own)
    weigh = len(excess) > 0
    tokens = np.zeros((1 << 10, LINE))
    inner = np.zeros((1 << 10, len(orders)))
    count = np.zeros(3, np.int64)
    count[FREE] = NO_SLOT
    count[BIRTHS] = len(births)
    slot_of = np.full(len(births), NO_SLOT, np.int32)
    elsewhere = NO_SLOT
    parent = np.full(2 * len(births) + 16 if weigh else 0, -1, np.int64)
    share = np.zeros(len(parent))
    weights = np.zeros(len(parent))
    held = np.empty(1 << 12, np.int32)
    shares = np.empty(1 << 12)
    start = np.full(n, -1, np.int64)
    length = np.zeros(n, np.int32)
    kept = np.empty(n, np.int32)
    mark = np.zeros(5, np.int64)
    left = uses.copy()
    tails = np.zeros((n, 4))
    sketch_of = np.full(n if draws > 0 else 0, -1, np.int32)
    sketches = np.zeros((1 << 8, draws), np.float32)
    free_sketches = np.empty(1 << 8, np.int32)
    sketch_count = np.zeros(2, np.int64)
    drawn = np.zeros((len(tokens), draws), np.float32)
    drawn_for = np.full(len(tokens), -1, np.int64)
    touched = np.empty(1 << 10, np.int32)
    alone = np.empty(1 << 10, np.int32)
    alone_p = np.empty(1 << 10)
    out = np.empty(1 << 10, np.int32)
    out_p = np.empty(1 << 10)
    of_token = 8 * LINE + 8 * len(orders) + 4 * draws + 8
    of_sketch = 4 * draws + 4
    size = OF_STATE * n + OF_BIRTH * len(births) + OF_ENTRY * len(held) + OF_MET * len(touched)
    size += of_token * len(tokens) + of_sketch * len(sketches) + OF_PARENT * len(parent)
    for i in range(n):
        first, last = indptr[i], indptr[i + 1]
        room = 1
        for e in range(first, last):
            room += length[indices[e]]
        mark[WORK] += room - 1
        # While an array grows, its old form is there too.
        if room > len(touched):
            size += OF_MET * (2 * room - len(touched))
            touched = np.empty(2 * room, np.int32)
            alone = np.empty(2 * room, np.int32)
            alone_p = np.empty(2 * room)
            out = np.empty(2 * room, np.int32)
            out_p = np.empty(2 * room)
        if weigh and count[BIRTHS] + last - first + 2 > len(parent):
            more = 2 * len(parent) + last - first
            size += OF_PARENT * (more - len(parent))
            parent = longer(parent, more, -1)
            share = longer(share, more, 0.0)
            weights = longer(weights, more, 0.0)
        if sketch_count[FREE_SKETCHES] == 0 and sketch_count[USED_SKETCHES] == len(sketches):
            size += of_sketch * len(sketches)
            if size + of_sketch * len(sketches) > most_bytes:
                return -1, mark[WORK], size
            sketches = wider(sketches, 2 * len(sketches))
            free_sketches = np.empty(len(sketches), np.int32)
        met = 0
        for e in range(first, last):
            j = indices[e]
            w = data[e]
            ends = left[j] == 1
            if tails[j, MISSING] > 0.0:
                mix_tail(tails, i, j, w)
                if draws > 0:
                    mine = own_sketch(sketch_of, i, sketches, free_sketches, sketch_count)
                    mix_sketch(mine, sketches[sketch_of[j]], w)
            begin, end = start[j], start[j] + length[j]
            if begin >= 0:
                if collapsing and not ends and length[j] > 1:
                    shorter = collapse_in(
                        held[begin:end], shares[begin:end], tokens, count, inner, parent, share,
                        alone, alone_p, orders,
                    )  # fmt: skip
                    mark[ALIVE] -= length[j] - shorter
                    length[j] = shorter
                    end = begin + shorter
                met = mix_list(
                    held[begin:end], shares[begin:end], w, ends, tokens, count, touched, met
                )
            left[j] -= 1
            if ends:
                mark[ALIVE] -= length[j]
                start[j] = -1
                length[j] = 0
                free_sketch(sketch_of, j, free_sketches, sketch_count)
        c = column[i]
        if c >= 0 and births[c] > 0:
            if slot_of[c] == NO_SLOT:
                if count[FREE] == NO_SLOT and count[USED] == len(tokens):
                    size += of_token * len(tokens)
                    if size + of_token * len(tokens) > most_bytes:
                        return -1, mark[WORK], size
                    tokens = wider(tokens, 2 * len(tokens))
                    inner = wider(inner, len(tokens))
                    drawn = wider(drawn, len(tokens))
                    drawn_for = longer(drawn_for, len(tokens), -1)
                # What lies elsewhere is kept apart, so it never goes into another token.
                apart = c == elsewhere_column
                slot_of[c] = begin_token(
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
                    elsewhere = slot_of[c]
            t = slot_of[c]
            tokens[t, HOLDERS] -= 1.0
            if tokens[t, TOTAL] == 0.0:
                touched[met] = t
                met += 1
            tokens[t, TOTAL] += own[i]
        r = scored[i]
        if r >= 0:
            (
                entropy[r], mass[r], prior[r], slack[r], top[r], top_column[r], at_elsewhere[r],
            ) = score_row(tokens, touched[:met], elsewhere)  # fmt: skip
            for o in range(len(orders)):
                for k in range(met):
                    t = touched[k]
                    powers[r, o] += tokens[t, TOTAL] ** orders[o] * inner[t, o]
            m = tails[i, MISSING]
            if m > 0.0:
                raise_lower(tails, i)
                missing[r] = m
                above[r] = tails[i, UPPER]
                # What was kept and what was not, mixed: entropy is concave.
                below[r] = tails[i, LOWER] + surprise(mass[r] + m) - surprise(mass[r])
                tail[r] = estimate_tail(m, sketches[sketch_of[i]]) if draws > 0 else above[r]
        if weigh and excess[i] > 0:
            for k in range(met):
                weights[int(tokens[touched[k], BORN])] += excess[i] * tokens[touched[k], TOTAL]
        if mark[END] + met + 1 > len(held):
            compact(held, shares, start, length, kept, mark)
            wanted = len(held)
            while mark[END] + met + 1 > wanted - wanted // 4:
                wanted *= 2
            if wanted > len(held):
                size += OF_ENTRY * (wanted - len(held))
                if size + OF_ENTRY * len(held) > most_bytes:
                    return -1, mark[WORK], size
                held = longer(held, wanted, 0)
                shares = longer(shares, wanted, 0.0)
        live = left[i] > 0
        begin = mark[END]
        n_alone, n_out, stay = part_tokens(
            tokens, count, touched[:met], live, collapsing, least[i], alone, alone_p, out, out_p,
            held[begin:], shares[begin:],
        )  # fmt: skip
        if not live:
            free_sketch(sketch_of, i, free_sketches, sketch_count)
            continue
        if n_alone > 0:
            t, p = alone[0], alone_p[0]
            if n_alone > 1:
                t, p = collapse(
                    tokens, count, inner, parent, share, alone, alone_p, n_alone, orders
                )
            tokens[t, HOLDERS] = 0.0
            if p < least[i]:
                out[n_out] = t
                out_p[n_out] = p
                n_out += 1
            else:
                held[begin + stay] = t
                shares[begin + stay] = p
                tokens[t, HOLDERS] = 1.0
                stay += 1
        if n_out > 0:
            drop(tails, i, tokens, out, out_p, n_out)
            if draws > 0:
                mine = own_sketch(sketch_of, i, sketches, free_sketches, sketch_count)
                sketch_drops(mine, tokens, out, out_p, n_out, drawn, drawn_for, seed)
            for k in range(n_out):
                if tokens[out[k], HOLDERS] == 0.0:
                    free_slot(tokens, count, out[k])
        raise_lower(tails, i)
        start[i] = begin
        length[i] = stay
        kept[mark[KEPT]] = i
        mark[KEPT] += 1
        mark[END] = begin + stay
        mark[ALIVE] += stay
        mark[PEAK] = max(mark[PEAK], mark[ALIVE])
        if mark[WORK] > most_entries or size > most_bytes:
            return -1, mark[WORK], size
    if weigh:
        unfold(parent, share, count[BIRTHS], weights)
        weighed[:] = weights[: len(weighed)]
    return mark[PEAK], mark[WORK], size
