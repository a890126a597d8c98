"""Hot loops over slots: rows that are numbered, and what they win or lose in a month."""

from __future__ import annotations

import numpy as np

from coinhaze.history.index.live_kernels import kernel

# A slot is 48 bytes: live coins on its row, the row, sources it may have, stored roundings behind
# it, its place among those a transaction spends from and 1, the last block that changed it, the
# month it was last changed in, its live coins before that month, as a float64 the roundings of sums
# behind it, and as a word of 8 bytes how much value the row has won or lost in that month.
COINS, ROW, SOURCES, DEPTH, PLACE, STAMP, MONTH, BEFORE = range(8)
ROUNDED = 4
MORE_VALUE = 5
SLOT_WORDS = 12
FIRST_MONTH = -(2**15)  # a month is stored as how far it is from this one
NO_ROW = 2**32 - 1
MAXIMUM = np.uint32(2**32 - 1)

# Places in the counters. LOW is the least number of free slots since a block began.
ROWS, TERMS, SLOTS, FREE, LIVE, ALL_ROWS, ALL_SOURCES, TRANSACTIONS = range(8)
MAKERS, PLACES, LOW, LOG_SPENT, LOG_SLOTS, LOG_FREE, CHANGES = range(8, 15)
COUNTERS = 15


@kernel(inline="always")
def touch(slots, slot, stamp, counts, log_slots):
    """Log a slot that the block changes for the first time."""
    if stamp > 0 and slots[slot, STAMP] != stamp:
        k = counts[LOG_SLOTS]
        log_slots[k, SLOT_WORDS] = slot
        for w in range(SLOT_WORDS):
            log_slots[k, w] = slots[slot, w]
        counts[LOG_SLOTS] += 1
        slots[slot, STAMP] = stamp


@kernel(inline="always")
def write_change(
    slots, slot_values, slot, counts, change_row, change_coins, change_value, change_month
):
    """Write down what the row in a slot has won or lost in the month it was last changed in."""
    coins, before = np.int64(slots[slot, COINS]), np.int64(slots[slot, BEFORE])
    if coins != before or slot_values[slot, MORE_VALUE] != 0:
        k = counts[CHANGES]
        change_row[k] = slots[slot, ROW]
        change_month[k] = np.int64(slots[slot, MONTH]) + FIRST_MONTH
        change_coins[k], change_value[k] = coins - before, slot_values[slot, MORE_VALUE]
        slots[slot, BEFORE] = slots[slot, COINS]
        slot_values[slot, MORE_VALUE] = 0
        counts[CHANGES] += 1


@kernel()
def write_changes(
    slots, slot_values, chosen, counts, change_row, change_coins, change_value, change_month
):
    """Write down what the rows in some slots have won or lost."""
    for k in range(len(chosen)):
        write_change(
            slots, slot_values, np.int64(chosen[k]), counts, change_row, change_coins,
            change_value, change_month,
        )  # fmt: skip


@kernel(error_model="numpy")
def new_row(
    slots, slot_values, free, counts, row_slot, row_terms, terms, coins, stamp, log_slots,
    log_free, month, change_row, change_coins, change_value, change_month,
):  # fmt: skip
    """Take a slot for a row, and write the row down."""
    if counts[FREE] > 0:
        counts[FREE] -= 1
        slot = np.int64(free[counts[FREE]])
        if counts[FREE] < counts[LOW]:
            counts[LOW] = counts[FREE]
            if stamp > 0:
                log_free[counts[LOG_FREE]] = slot
                counts[LOG_FREE] += 1
    else:
        slot = counts[SLOTS]
        counts[SLOTS] += 1
    touch(slots, slot, stamp, counts, log_slots)
    write_change(
        slots, slot_values, slot, counts, change_row, change_coins, change_value, change_month
    )
    k = counts[ROWS]
    row_slot[k], row_terms[k] = slot, terms
    slots[slot, COINS], slots[slot, BEFORE] = coins, 0
    slots[slot, ROW], slots[slot, MONTH] = counts[ALL_ROWS], month
    counts[ROWS] += 1
    counts[ALL_ROWS] += 1
    return slot


@kernel(error_model="numpy")
def note_source(
    slots, slot_floats, row_sources, row_depth, row_transaction, row_rounded, counts, slot,
    source_row, source_input, number, e,
):  # fmt: skip
    """Say of a row just made that it is a source, and of which input."""
    k = counts[ROWS] - 1
    counts[ALL_SOURCES] += 1
    slots[slot, SOURCES], slots[slot, DEPTH], slot_floats[slot, ROUNDED] = 1, 0, 0.0
    row_sources[k], row_depth[k], row_transaction[k] = 1, 0, counts[TRANSACTIONS]
    row_rounded[k] = 0.0
    source_row[number], source_input[number] = k, e
