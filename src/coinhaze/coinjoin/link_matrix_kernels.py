"""Hot loops over the decompositions of a transaction; `blocks.Blocks` describes the fields of `k`.

Counts are held modulo 2^64, or modulo a prime below 2^31 where one is given (0: none), or as
floats. Arrays are read from `k` before a loop: reading them inside it would count references. Slow
twin in the tests: tests/coinjoin/interpretations_twin.py.
"""

from __future__ import annotations

import numpy as np

from coinhaze.kernels import kernel

# The cost, in comparisons, of visiting one choice of outputs and looking up its inputs.
LOOKUP = 8


@kernel()
def count_down(k, choose, modulus, reached, limit):
    """Count the ways to reach each state from the whole; return the steps, or -1 past `limit`."""
    reached[-1] = 1
    nothing = reached[:0]
    present = np.empty(len(k.out_code), np.int64)
    top = len(k.in_stride) - 1
    steps = 0
    for whole in range(len(k.state_start) - 2, 0, -1):
        while k.in_stride[top] > whole:
            top -= 1
        taken = _take(
            k, whole, top, present, choose, modulus, reached, nothing, nothing, limit - steps
        )
        if taken < 0:
            return -1
        steps += taken
    return steps


@kernel()
def count_up(k, choose, modulus, reached, finished, blocks):
    """Count the ways to finish from each state, and the occurrences of each block."""
    finished[0] = 1
    present = np.empty(len(k.out_code), np.int64)
    top = 0
    for whole in range(1, len(k.state_start) - 1):
        while top + 1 < len(k.in_stride) and k.in_stride[top + 1] <= whole:
            top += 1
        _take(k, whole, top, present, choose, modulus, reached, finished, blocks, 2**62)


@kernel()
def _take(k, whole, top, present, choose, modulus, reached, finished, blocks, limit):
    """Remove every block that fits from the states with these inputs; return the steps made."""
    here = k.state_start[whole] - k.state_first[whole]
    n = _reached_here(reached, k.state_start[whole], k.state_start[whole + 1], here, present)
    if n == 0:
        return 0
    fits, steps = _fitting(k, whole, top)
    if n > 1:  # lookups need them ordered by sum
        fits = fits[np.argsort(k.block_sum[fits], kind="mergesort")]
    sums = k.block_sum[fits]
    ways = np.empty(len(fits), choose.dtype)
    tests = 0
    one = 1 << k.in_digit[top, 0]  # the first input of the highest value is already in the block
    for f in range(len(fits)):
        inputs = k.in_packed[k.block_inputs[fits[f]]]
        ways[f] = _ways(k.in_packed[whole] - one, inputs - one, k.in_repeated, choose, modulus)
        tests += k.block_end[fits[f]] - k.block_begin[fits[f]]
    for p in range(n):
        at, outputs = here + present[p], present[p]
        choices = _choices(k.out_packed[outputs], k.out_digit)
        if n > 1 and LOOKUP * choices < tests:
            steps += LOOKUP * choices + _by_outputs(
                k, whole, at, outputs, fits, sums, ways, choose, modulus, reached, finished, blocks
            )
        else:
            steps += tests
            if steps <= limit:
                _by_inputs(
                    k, whole, at, outputs, fits, ways, choose, modulus, reached, finished, blocks
                )
        if steps > limit:
            return -1
    return steps


@kernel()
def _by_inputs(
    k, whole, at, outputs, fits, in_ways, choose, modulus, reached, finished, blocks
):  # fmt: skip
    """Try, for each choice of inputs, all outputs it can pay for."""
    packed, guard, begin, end = k.out_packed, k.out_guard, k.block_begin, k.block_end
    begins = k.state_start, k.state_first, k.block_start
    names = k.out_code, k.out_rank
    inputs, repeated = k.block_inputs, k.out_repeated
    spare = packed[outputs] | guard
    for f in range(len(fits)):
        a = fits[f]
        for b in range(begin[a], end[a]):
            if (spare - packed[b]) & guard == guard:
                out_ways = _ways(spare, packed[b], repeated, choose, modulus)
                _move(
                    begins, names, whole - inputs[a], at, outputs, a, b, b - begin[a],
                    _times(in_ways[f], out_ways, modulus), modulus, reached, finished, blocks,
                )  # fmt: skip


@kernel()
def _by_outputs(
    k, whole, at, outputs, fits, sums, in_ways, choose, modulus, reached, finished, blocks
):
    """Look up, for each choice of outputs, inputs that can pay for it; return the moves made."""
    begins = k.state_start, k.state_first, k.block_start
    names = k.out_code, k.out_rank
    inputs, begin, repeated = k.block_inputs, k.block_begin, k.out_repeated
    out_sum, packed, rank = k.out_sum, k.out_packed, k.out_rank
    digit, stride = k.out_digit, k.out_stride
    moves = 0
    maximum, part, code = packed[outputs], 0, 0
    while True:
        b = rank[code]
        f = np.searchsorted(sums, out_sum[b] + k.minimum)
        if f < len(fits) and sums[f] <= out_sum[b] + k.maximum:
            out_ways = _ways(maximum, part, repeated, choose, modulus)
            while f < len(fits) and sums[f] <= out_sum[b] + k.maximum:
                a = fits[f]
                _move(
                    begins, names, whole - inputs[a], at, outputs, a, b, b - begin[a],
                    _times(in_ways[f], out_ways, modulus), modulus, reached, finished, blocks,
                )  # fmt: skip
                moves += 1
                f += 1
        part, code = _next(maximum, part, code, digit, stride)
        if part == 0:
            return moves


@kernel(inline="always")
def _move(
    begins, names, left, at, outputs, a, b, number, ways, modulus, reached, finished, blocks
):  # fmt: skip
    """Move from a state to the one without a block: down or, where `finished` is given, up."""
    state_start, state_first, block_start = begins
    code, rank_of = names
    rank = rank_of[code[outputs] - code[b]]
    to = state_start[left] + rank - state_first[left]
    if rank >= state_first[left] and to < state_start[left + 1]:
        if len(finished) == 0:
            _add(reached, to, _times(ways, reached[at], modulus), modulus)
        elif finished[to] != 0:
            onward = _times(ways, finished[to], modulus)
            _add(finished, at, onward, modulus)
            _add(blocks, block_start[a] + number, _times(onward, reached[at], modulus), modulus)


@kernel()
def _reached_here(reached, begin, end, here, present):
    """List, by rank, the outputs of the states that were reached; return how many there are."""
    n = 0
    for s in range(begin, end):
        if reached[s] != 0:
            present[n] = s - here
            n += 1
    return n


@kernel()
def _fitting(k, whole, top):
    """List block inputs within `whole` with one of its highest value; return them and the steps."""
    begin = np.searchsorted(k.block_inputs, k.in_stride[top])
    end = np.searchsorted(k.block_inputs, whole, side="right")
    maximum = k.in_packed[whole]
    choices = _choices(maximum, k.in_digit)
    fits = np.empty(min(end - begin, choices), np.int64)
    n = 0
    if end - begin <= 4 * choices:
        for at in range(begin, end):
            if (
                (maximum | k.in_guard) - k.in_packed[k.block_inputs[at]]
            ) & k.in_guard == k.in_guard:
                fits[n] = at
                n += 1
        return fits[:n], end - begin
    part, code = 0, 0
    while True:
        if code >= k.in_stride[top] and k.in_block[code] >= 0:
            fits[n] = k.in_block[code]
            n += 1
        part, code = _next(maximum, part, code, k.in_digit, k.in_stride)
        if part == 0:
            return fits[:n], 4 * choices


@kernel(inline="always")
def _next(maximum, part, code, digit, stride):
    """Return the next choice within `maximum`, packed and as a code; 0 after the last."""
    for t in range(len(stride)):
        have = (part >> digit[t, 0]) & digit[t, 1]
        if have < (maximum >> digit[t, 0]) & digit[t, 1]:
            return part + (1 << digit[t, 0]), code + stride[t]
        part -= have << digit[t, 0]
        code -= have * stride[t]
    return 0, 0


@kernel()
def _choices(maximum, digit):
    """Count the choices within `maximum`."""
    n = 1
    for t in range(len(digit)):
        n *= 1 + ((maximum >> digit[t, 0]) & digit[t, 1])
    return n


@kernel(inline="always")
def _ways(whole, part, digit, choose, modulus):
    """Count the ways to choose `part` of `whole`, given shift and mask of the repeated values."""
    ways = choose[0, 0]
    for t in range(len(digit)):
        w = (whole >> digit[t, 0]) & digit[t, 1]
        ways = _times(ways, choose[w, (part >> digit[t, 0]) & digit[t, 1]], modulus)
    return ways


@kernel(inline="always")
def _times(x, y, modulus):
    return x * y % modulus if modulus else x * y


@kernel(inline="always")
def _add(counts, at, more, modulus):
    counts[at] += more
    if modulus:
        counts[at] %= modulus
