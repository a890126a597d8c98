"""Shielded pools in the order of time: value enters a pool's row, and leaves with that row.

A pool is like an account: what it pays out has the distribution of all it holds, and what comes in
mixes with that.
"""

from __future__ import annotations

import numpy as np

from coinhaze.history.index.live_kernels import kernel
from coinhaze.history.index.row_kernels import (
    ALL_SOURCES,
    COINS,
    DEPTH,
    FREE,
    MAXIMUM,
    MONTH,
    MORE_VALUE,
    ROUNDED,
    ROWS,
    SOURCES,
    TERMS,
    TRANSACTIONS,
    new_row,
    note_source,
    touch,
    write_change,
)

# A pool is 40 bytes: as words of 8 bytes its value, the slot of its row, the number of the last
# transaction that changed it and whether any has, and as a float64 its expected steps.
WORTH, AT_SLOT, CHANGED, MET = range(4)
POOL_STEPS = 4
POOL_WORDS = 5
OPENED = -2  # less the pool's number: what a source is that a pool held before the first block


@kernel(error_model="numpy")
def open_pool(
    pool, opening, pools, pool_floats, slots, slot_floats, slot_values, free, counts, row_slot,
    row_terms, row_rounded, row_sources, row_depth, row_transaction, source_row, source_input,
    first_source, stamp, log_slots, log_free, month, change_row, change_coins, change_value,
    change_month,
):  # fmt: skip
    """Give a pool that is met for the first time what it held before the first block."""
    pools[pool, MET] = 1
    if opening == 0:
        return
    slot = new_row(
        slots, slot_values, free, counts, row_slot, row_terms, 0, 1, stamp, log_slots, log_free,
        month, change_row, change_coins, change_value, change_month,
    )  # fmt: skip
    note_source(
        slots, slot_floats, row_sources, row_depth, row_transaction, row_rounded, counts, slot,
        source_row, source_input, counts[ALL_SOURCES] - first_source, OPENED - pool,
    )  # fmt: skip
    slot_values[slot, MORE_VALUE] += opening
    pools[pool, WORTH], pools[pool, AT_SLOT] = opening, slot
    pool_floats[pool, POOL_STEPS] = 1.0


@kernel(error_model="numpy")
def _begin_month(
    slots, slot, slot_values, counts, month, stamp, log_slots, change_row, change_coins,
    change_value, change_month,
):  # fmt: skip
    """Let what a row wins and loses from now on count in a month."""
    touch(slots, slot, stamp, counts, log_slots)
    if slots[slot, MONTH] != month:
        write_change(
            slots, slot_values, slot, counts, change_row, change_coins, change_value, change_month
        )
        slots[slot, MONTH] = month


@kernel(error_model="numpy")
def take_out(
    pool, value, pools, slots, slot_values, counts, stamp, log_slots, month, change_row,
    change_coins, change_value, change_month,
):  # fmt: skip
    """Let value leave a pool; give the slot of its row, or -1 if the pool has less."""
    if pools[pool, WORTH] < value:
        return np.int64(-1)
    slot = pools[pool, AT_SLOT]
    _begin_month(
        slots, slot, slot_values, counts, month, stamp, log_slots, change_row, change_coins,
        change_value, change_month,
    )  # fmt: skip
    pools[pool, WORTH] -= value
    pools[pool, CHANGED] = counts[TRANSACTIONS]
    slot_values[slot, MORE_VALUE] -= value
    if pools[pool, WORTH] == 0:
        slots[slot, COINS] -= np.uint32(1)
    return slot


@kernel(error_model="numpy")
def put_in(
    pool, value, slot, steps, pools, pool_floats, slots, slot_floats, slot_values, free, counts,
    row_slot, row_terms, row_rounded, row_sources, row_depth, row_transaction, term_slot,
    term_weight, stamp, log_slots, log_free, month, change_row, change_coins, change_value,
    change_month,
):  # fmt: skip
    """Let value of the row in a slot enter a pool, whose own row mixes with it.

    Gives whether the pool holds no more than 2^63 - 1.
    """
    held, old = pools[pool, WORTH], pools[pool, AT_SLOT]
    total = held + value
    if total < 0:
        return False
    pools[pool, WORTH], pools[pool, CHANGED] = total, counts[TRANSACTIONS]
    moved = np.float64(held) * pool_floats[pool, POOL_STEPS] + np.float64(value) * steps
    pool_floats[pool, POOL_STEPS] = 1.0 + moved / np.float64(total)
    if held == 0:
        slots[slot, COINS] += np.uint32(1)
        pools[pool, AT_SLOT] = slot
    if held == 0 or old == slot:
        slot_values[slot, MORE_VALUE] += value
        return True
    _begin_month(
        slots, old, slot_values, counts, month, stamp, log_slots, change_row, change_coins,
        change_value, change_month,
    )  # fmt: skip
    slots[old, COINS] -= np.uint32(1)
    slot_values[old, MORE_VALUE] -= held
    k = counts[TERMS]
    term_slot[k], term_slot[k + 1] = old, slot
    term_weight[k] = np.float64(held) / np.float64(total)
    term_weight[k + 1] = np.float64(value) / np.float64(total)
    counts[TERMS] += 2
    sources = np.int64(slots[old, SOURCES]) + np.int64(slots[slot, SOURCES])
    sources = min(sources, counts[ALL_SOURCES], np.int64(MAXIMUM))
    depth = max(slots[old, DEPTH], slots[slot, DEPTH]) + 1
    rounded = max(slot_floats[old, ROUNDED], slot_floats[slot, ROUNDED]) + 2 + 4.0
    if slots[old, COINS] == 0:
        free[counts[FREE]] = old
        counts[FREE] += 1
    mixed = new_row(
        slots, slot_values, free, counts, row_slot, row_terms, 2, 1, stamp, log_slots, log_free,
        month, change_row, change_coins, change_value, change_month,
    )  # fmt: skip
    k = counts[ROWS] - 1
    slots[mixed, SOURCES], slots[mixed, DEPTH] = sources, depth
    slot_floats[mixed, ROUNDED] = rounded
    row_sources[k], row_depth[k], row_rounded[k] = sources, depth, rounded
    row_transaction[k] = counts[TRANSACTIONS]
    slot_values[mixed, MORE_VALUE] += total
    pools[pool, AT_SLOT] = mixed
    return True
