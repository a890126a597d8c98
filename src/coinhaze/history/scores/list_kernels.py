"""Hot loop of proven lists: of every row at most so many sources, and bounds on the rest.

Slow twin in the tests: tests/history/test_lists.py.
"""

from __future__ import annotations

import math

import numpy as np

from coinhaze.kernels import kernel

# What is known of the part of a row that is not listed: its mass m, a bound above on the sum of
# -p log2 p over it, one below on m times the entropy of it alone, and one on its largest entry.
MASS, ABOVE, BELOW, LARGEST = range(4)


@kernel(inline="always")
def _phi(p):
    return -p * math.log2(p) if p > 0.0 else 0.0


@kernel(error_model="numpy")
def pass_lists(
    row_slot, row_terms, slot, weight, source, listed, share, length, rest, dense, met, values,
    low, high, above,
):  # fmt: skip
    """Bring lists through a piece of the tape, whose first source has the number `source`.

    A slot has `length` sources, `listed`, with their probabilities, `share`, and the `rest`.
    `dense` is zero for every source; `met` and `values` have room for all of them. Gives the bits
    of every row from below and above, but for rounding, and how much was added up for the latter.
    """
    maximum = listed.shape[1]
    at = 0
    part = np.zeros(4)
    for r in range(len(row_slot)):
        into = np.int64(row_slot[r])
        found = 0
        for w in range(4):
            part[w] = 0.0
        if row_terms[r] == 0:
            dense[source], met[0] = 1.0, source
            found, source = 1, source + 1
        for e in range(at, at + np.int64(row_terms[r])):
            j, v = np.int64(slot[e]), weight[e]
            if rest[j, MASS] > 0.0:
                part[MASS] += v * rest[j, MASS]
                part[ABOVE] += v * rest[j, ABOVE] + _phi(v) * rest[j, MASS]
                part[BELOW] += v * rest[j, BELOW]
                part[LARGEST] += v * rest[j, LARGEST]
            for q in range(length[j]):
                c = np.int64(listed[j, q])
                if dense[c] == 0.0:
                    met[found] = c
                    found += 1
                dense[c] += v * share[j, q]
        at += np.int64(row_terms[r])
        cut, ties = -1.0, 0
        if found > maximum:
            for q in range(found):
                values[q] = dense[met[q]]
            cut = np.partition(values[:found], found - maximum)[found - maximum]
            ties = maximum
            for q in range(found):
                ties -= dense[met[q]] > cut
        # What is above the cut stays, and of what is equal to it as much as there is room for.
        kept = 0
        mass = bits = largest = 0.0
        dropped = pieces = top = 0.0
        for q in range(found):
            c = met[q]
            p = dense[c]
            dense[c] = 0.0
            stays = p > cut
            if p == cut and ties > 0:
                stays, ties = True, ties - 1
            if stays:
                listed[into, kept], share[into, kept] = c, p
                kept += 1
                mass += p
                bits += _phi(p)
                largest = max(largest, p)
            else:
                dropped += p
                pieces += _phi(p)
                top = max(top, p)
        length[into] = kept
        if dropped > 0.0:
            part[MASS] += dropped
            part[ABOVE] += pieces
            part[BELOW] += max(pieces - _phi(dropped), 0.0)
            part[LARGEST] += top
        m = part[MASS]
        if m > 0.0:
            part[BELOW] = max(part[BELOW], m * math.log2(m / min(part[LARGEST], m)))
            part[ABOVE] = min(part[ABOVE], _phi(m) + m * math.log2(np.float64(max(source, 1))))
        for w in range(4):
            rest[into, w] = part[w]
        # Sums of -p log2 p over both parts are more than that of all; the entropies of both, by
        # their masses, are less; and so is what it would be if all the rest were the largest entry.
        above[r] = bits + part[ABOVE]
        high[r] = above[r]
        low[r] = max(
            bits - _phi(mass) + part[BELOW], bits - _phi(largest) + _phi(min(largest + m, 1.0))
        )
    return source
