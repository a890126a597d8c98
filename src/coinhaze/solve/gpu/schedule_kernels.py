"""Hot loops of the schedule, and its twin on the CPU: one tile solved as a GPU solves it.

The CUDA kernels in tiles.cu do the same operations in the same order of levels; `run_tile` is what
tests hold them and the schedule against.
"""

from __future__ import annotations

import numpy as np

from coinhaze.kernels import kernel
from coinhaze.solve.exact.pairs_kernels import two_sum
from coinhaze.solve.exact.stream_kernels import WIDTH

BACK = 1  # continues a row that an earlier operation began, and divides it by its pivot
READ = 2  # only reads a row: one of a core, scored once the core is solved
CARRY = 4  # its first entry is the state before in a chain that carries what sums lose


@kernel()
def operation_levels(
    lower, lower_at, upper, upper_at, pivot, block_start, blocks, core_size, needed, scored
):
    """Give the level of each state's forward and back operation, -1 where it has none.

    An operation of a level reads only what earlier levels wrote. Also gives, for each block with a
    core, the level before which the core is solved; -1 for other blocks.
    """
    n = len(pivot)
    forward, back, final = np.full(n, -1), np.full(n, -1), np.full(n, -1)
    solved = np.full(blocks, -1)
    inner = block_start[blocks]
    for b in range(blocks):
        start, end = block_start[b], block_start[b + 1]
        top = -1
        for i in range(start, end):
            level = 0
            for e in range(lower[i], lower[i + 1]):
                j = lower_at[e]
                level = max(level, (forward[j] if j >= start else final[j]) + 1)
            forward[i] = final[i] = level
            top = max(top, level)
        first_core = end - core_size[b]
        if core_size[b] > 0:
            solved[b] = top + 1
            for i in range(first_core, end):
                final[i] = top
        if end - start == 1 and pivot[start] == 1.0:
            continue
        for i in range(first_core - 1, start - 1, -1):
            if not needed[i] or (upper[i] == upper[i + 1] and pivot[i] == 1.0):
                continue
            level = top + 1
            for e in range(upper[i], upper[i + 1]):
                level = max(level, final[upper_at[e]] + 1)
            back[i] = final[i] = level
    for i in range(inner, n):
        if scored[i]:
            level = 0
            for e in range(lower[i], lower[i + 1]):
                level = max(level, final[lower_at[e]] + 1)
            forward[i] = level
    return forward, back, solved


@kernel()
def last_reads(state, level, begin, count, at, keeps, n):
    """Give the last level in which each state's row is read; -1 if it is never read.

    `keeps` marks operations that read the row of their own state.
    """
    last = np.full(n, -1)
    for k in range(len(state)):
        for e in range(begin[k], begin[k] + count[k]):
            last[at[e]] = max(last[at[e]], level[k])
        if keeps[k]:
            last[state[k]] = max(last[state[k]], level[k])
    return last


@kernel()
def assign_slots(state, begins_row, level_start, last, slot):
    """Give each row that is read later a slot; a slot is free once its row was read last.

    Rows that have a slot keep it. Gives how many slots there are in all.
    """
    levels = len(level_start) - 1
    head, after = np.full(levels, -1), np.full(len(slot), -1)
    free = np.empty(len(slot), np.int32)
    n_free = 0
    top = 0
    for i in range(len(slot)):
        top = max(top, slot[i] + 1)
    for level in range(levels):
        for k in range(level_start[level], level_start[level + 1]):
            i = state[k]
            if not begins_row[k] or slot[i] >= 0 or last[i] < 0:
                continue
            if n_free > 0:
                n_free -= 1
                slot[i] = free[n_free]
            else:
                slot[i] = top
                top += 1
            after[i] = head[last[i]]
            head[last[i]] = i
        i = head[level]
        while i >= 0:
            free[n_free] = slot[i]
            n_free += 1
            i = after[i]
    return top


@kernel(error_model="numpy")
def run_levels(
    first_level, last_level, level_start, begin, counted, slot, column, score, own, excess, lost_at,
    entry_slot, entry_value, first, x, live, lost, weighed, rows, found,
):  # fmt: skip
    """Run some levels for the tile of columns that begins at `first`.

    Finished rows go to `rows` by their score, with `found` telling which have anything in them.
    """
    sums = np.zeros((4, WIDTH))
    for k in range(level_start[first_level], level_start[last_level]):
        s, flags, end = slot[k], counted[k] & 7, begin[k] + (counted[k] >> 3)
        sums[:] = 0.0
        anything = False
        if flags & (BACK | READ):
            anything = live[s]
            if anything:
                sums[0] = x[s]
        elif 0 <= column[k] - first < WIDTH:
            anything = True
            sums[0, column[k] - first] = own[k]
        held = 0
        if flags & CARRY:
            less_of = lost[lost_at[k]]
            for e in range(begin[k], end):
                if not live[entry_slot[e]]:
                    continue
                anything = True
                v = entry_value[e]
                for c in range(WIDTH):
                    total, less = two_sum(sums[0, c], v * x[entry_slot[e], c])
                    sums[0, c] = total
                    if e == begin[k]:
                        less_of[c] = v * less_of[c]
                    less_of[c] += less
            if anything:
                for c in range(WIDTH):
                    total = sums[0, c] + less_of[c]
                    less_of[c] += sums[0, c] - total
                    sums[0, c] = total
        else:
            for e in range(begin[k], end):
                if live[entry_slot[e]]:
                    anything = True
                    for c in range(WIDTH):
                        sums[held, c] += entry_value[e] * x[entry_slot[e], c]
                    held = (held + 1) % 4
        for c in range(WIDTH):
            total = (sums[0, c] + sums[1, c]) + (sums[2, c] + sums[3, c])
            sums[0, c] = total / own[k] if flags & BACK else total
        if s >= 0 and not flags & READ:
            live[s] = anything
            if anything:
                x[s] = sums[0]
        if score[k] >= 0:
            found[score[k]] = anything
            if anything:
                rows[score[k]] = sums[0]
        if anything and excess[k] > 0:
            for c in range(WIDTH):
                weighed[c] += excess[k] * sums[0, c]
