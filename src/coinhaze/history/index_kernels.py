"""Hot loops of indexing: live coins by name, and rows and slots numbered once.

Slow twin in the tests: tests/history/tape_twin.py.
"""

from __future__ import annotations

import numpy as np

from coinhaze.history.pass_kernels import prefetch
from coinhaze.kernels import kernel
from coinhaze.solve.sketch.kernels import mix

# Columns of the table of live coins: the first 16 bytes of the maker's id; the value and 1, as 0 is
# an empty entry; the maker's number and the coin's own; the slot its row is in; and the maker's
# expected steps (a float64).
KEY, KEY2, VALUE, WHERE, SLOT, STEPS = range(6)
COLUMNS = 6
EMPTY = np.uint64(0)
AHEAD = 6  # transactions whose coins are asked for ahead
# Columns of slots: live coins on the row, the row, sources it may have, stored roundings behind it.
COINS, ROW, SOURCES, DEPTH = range(4)
NO_ROW = 2**32 - 1
MOST = np.uint32(2**32 - 1)

FAULTS = {
    -1: "spends a coin that is not there: never made, spent before, or made before the history",
    -2: "spends a coin whose value is another where it was made",
    -3: "makes a coin of a name that a coin has which is not spent",
    -4: "outputs above inputs",
    -5: "values that add up to more than 2^63 - 1",
    -6: "no inputs, but not a coinbase",
}
UNKNOWN, VALUES, TWICE, ABOVE, OVERFLOW, NO_INPUTS = FAULTS

# Places in the counters.
ROWS, TERMS, SLOTS, FREE, LIVE, ALL_ROWS, ALL_SOURCES, TRANSACTIONS = range(8)


@kernel(inline="always")
def _home(first, second, vout, salt, mask):
    return mix(first ^ mix(second + np.uint64(vout) + salt)) & mask


@kernel()
def find(table, salt, first, second, vout):
    """Give the place of a live coin, or of the empty entry where it would stand."""
    mask = np.uint64(len(table) - 1)
    at = _home(first, second, vout, salt, mask)
    while table[at, VALUE] != EMPTY:
        if (
            table[at, KEY] == first
            and table[at, KEY2] == second
            and table[at, WHERE] & np.uint64(0xFFFFFFFF) == np.uint64(vout)
        ):
            return at
        at = (at + np.uint64(1)) & mask
    return at


@kernel()
def remove(table, salt, at):
    """Take an entry out, and move those behind it up, so that none is lost."""
    mask = np.uint64(len(table) - 1)
    hole = at
    at = (at + np.uint64(1)) & mask
    while table[at, VALUE] != EMPTY:
        vout = table[at, WHERE] & np.uint64(0xFFFFFFFF)
        home = _home(table[at, KEY], table[at, KEY2], vout, salt, mask)
        if (at - home) & mask >= (at - hole) & mask:
            for c in range(COLUMNS):
                table[hole, c] = table[at, c]
            hole = at
        at = (at + np.uint64(1)) & mask
    table[hole, VALUE] = EMPTY


@kernel()
def enter(entries, table, salt):
    """Put entries into a table that has room for them."""
    mask = np.uint64(len(table) - 1)
    for k in range(len(entries)):
        a = min(k + 4 * AHEAD, len(entries) - 1)
        vout = entries[a, WHERE] & np.uint64(0xFFFFFFFF)
        home = _home(entries[a, KEY], entries[a, KEY2], vout, salt, mask)
        prefetch(table, np.int64(home), np.int64(0))
        vout = entries[k, WHERE] & np.uint64(0xFFFFFFFF)
        at = find(table, salt, entries[k, KEY], entries[k, KEY2], vout)
        for c in range(COLUMNS):
            table[at, c] = entries[k, c]


@kernel()
def _new_row(slots, rounded, free, counts, row_slot, row_terms, terms, coins):
    """Take a slot for a row, and write the row down."""
    if counts[FREE] > 0:
        counts[FREE] -= 1
        slot = np.int64(free[counts[FREE]])
    else:
        slot = counts[SLOTS]
        counts[SLOTS] += 1
    k = counts[ROWS]
    row_slot[k], row_terms[k] = slot, terms
    slots[slot, COINS] = coins
    slots[slot, ROW] = counts[ALL_ROWS]
    counts[ROWS] += 1
    counts[ALL_ROWS] += 1
    return slot


@kernel()
def _source(slots, rounded, facts, row_steps, row_rounded, counts, slot, transaction):
    """Say of a row just made that it is a source."""
    k = counts[ROWS] - 1
    counts[ALL_SOURCES] += 1
    slots[slot, SOURCES], slots[slot, DEPTH], rounded[slot] = 1, 0, 0.0
    facts[k, 0], facts[k, 1], facts[k, 2] = 1, 0, transaction
    row_steps[k], row_rounded[k] = 1.0, 0.0


@kernel()
def advance(
    ids,  # two words of each transaction's id
    coinbase,
    inputs,
    outputs,
    spent_ids,
    spent_vouts,
    spent_values,
    made_vouts,
    made_values,
    made_spendable,
    window,  # whether a coin that is not there was made before, and is a source
    table,
    steps_of,  # the table as floats
    salt,
    slots,
    rounded,
    place,
    free,
    counts,
    row_slot,
    row_terms,
    row_steps,
    row_rounded,
    facts,  # of each row: sources it may have, depth, its transaction
    earlier,  # of each row: the input whose coin is this source, or -1
    term_slot,
    term_weight,
    tx_row,
    tx_steps,
):
    """Number the rows of some transactions; give the fault, its transaction and its input."""
    i = o = 0
    most = 1
    for t in range(len(inputs)):
        most = max(most, inputs[t])
    seen = np.empty(most, np.int64)
    amount = np.empty(most, np.int64)
    low = np.uint64(0xFFFFFFFF)
    mask = np.uint64(len(table) - 1)
    ta = ia = oa = 0
    for t in range(len(ids)):
        while ta < min(t + AHEAD, len(ids)):
            for e in range(ia, ia + inputs[ta]):
                home = _home(spent_ids[e, 0], spent_ids[e, 1], spent_vouts[e], salt, mask)
                prefetch(table, np.int64(home), np.int64(0))
            for q in range(oa, oa + outputs[ta]):
                home = _home(ids[ta, 0], ids[ta, 1], made_vouts[q], salt, mask)
                prefetch(table, np.int64(home), np.int64(0))
            ia += inputs[ta]
            oa += outputs[ta]
            ta += 1
        total = np.int64(0)
        met = 0
        moved = 0.0  # the sum of values times steps
        if inputs[t] == 0 and not coinbase[t]:
            return NO_INPUTS, t, i
        for e in range(i, i + inputs[t]):
            vout = np.uint64(spent_vouts[e])
            at = find(table, salt, spent_ids[e, 0], spent_ids[e, 1], vout)
            if table[at, VALUE] == EMPTY:
                value = spent_values[e]
                if not window or value < 0:
                    return UNKNOWN, t, e
                if value == 0:
                    continue
                slot = _new_row(slots, rounded, free, counts, row_slot, row_terms, 0, 0)
                _source(
                    slots, rounded, facts, row_steps, row_rounded, counts, slot,
                    counts[TRANSACTIONS],
                )  # fmt: skip
                earlier[counts[ROWS] - 1] = e
                steps = 0.0  # the coin is the source: one step, as below
            else:
                value = np.int64(table[at, VALUE] - np.uint64(1))
                if spent_values[e] >= 0 and spent_values[e] != value:
                    return VALUES, t, e
                slot = np.int64(table[at, SLOT])
                steps = steps_of[at, STEPS]
                remove(table, salt, at)
                counts[LIVE] -= 1
                if value == 0:
                    continue
                slots[slot, COINS] -= np.uint32(1)
            total += value
            if total < 0:
                return OVERFLOW, t, e
            moved += np.float64(value) * (1.0 + steps)
            if place[slot] < 0:
                place[slot] = met
                seen[met] = slot
                amount[met] = 0
                met += 1
            amount[place[slot]] += value
        i += inputs[t]
        coins = 0
        paid = np.int64(0)
        for q in range(o, o + outputs[t]):
            paid += made_values[q]
            if paid < 0:
                return OVERFLOW, t, i
            if made_spendable[q] and made_values[q] > 0:
                coins += 1
        if paid > total and not coinbase[t]:
            return ABOVE, t, i
        for q in range(met):
            place[seen[q]] = -1
        slot = np.int64(NO_ROW)
        steps = 0.0
        if coinbase[t]:
            if paid > 0:
                slot = _new_row(slots, rounded, free, counts, row_slot, row_terms, 0, coins)
                _source(
                    slots, rounded, facts, row_steps, row_rounded, counts, slot,
                    counts[TRANSACTIONS],
                )  # fmt: skip
                steps = 1.0
        elif met > 0:
            steps = 1.0 + moved / np.float64(total)
        if met == 1:
            # All of it hangs on one row: the transaction has that row.
            slot = seen[0]
            slots[slot, COINS] += np.uint32(coins)
        elif met > 1:
            sources = np.uint64(0)
            depth = np.uint32(0)
            worst = 0.0
            for q in range(met):
                s = seen[q]
                k = counts[TERMS]
                term_slot[k] = s
                term_weight[k] = np.float64(amount[q]) / np.float64(total)
                counts[TERMS] += 1
                sources += np.uint64(slots[s, SOURCES])
                depth = max(depth, slots[s, DEPTH])
                worst = max(worst, rounded[s])
                if slots[s, COINS] == 0:
                    free[counts[FREE]] = s
                    counts[FREE] += 1
            slot = _new_row(slots, rounded, free, counts, row_slot, row_terms, met, coins)
            k = counts[ROWS] - 1
            sources = min(sources, np.uint64(counts[ALL_SOURCES]), np.uint64(MOST))
            slots[slot, SOURCES], slots[slot, DEPTH] = sources, depth + np.uint32(1)
            rounded[slot] = worst + met + 4.0
            facts[k, 0], facts[k, 1] = slots[slot, SOURCES], slots[slot, DEPTH]
            facts[k, 2] = counts[TRANSACTIONS]
            row_steps[k], row_rounded[k] = steps, rounded[slot]
        row = NO_ROW
        if slot != NO_ROW:
            row = slots[slot, ROW]
            if slots[slot, COINS] == 0:
                free[counts[FREE]] = slot
                counts[FREE] += 1
        tx_row[t], tx_steps[t] = row, steps
        for q in range(o, o + outputs[t]):
            if not made_spendable[q]:
                continue
            vout = np.uint64(made_vouts[q])
            at = find(table, salt, ids[t, 0], ids[t, 1], vout)
            if table[at, VALUE] != EMPTY:
                return TWICE, t, q
            table[at, KEY], table[at, KEY2] = ids[t, 0], ids[t, 1]
            table[at, VALUE] = np.uint64(made_values[q]) + np.uint64(1)
            table[at, WHERE] = np.uint64(counts[TRANSACTIONS]) << np.uint64(32) | vout & low
            table[at, SLOT] = np.uint64(slot)
            steps_of[at, STEPS] = steps
            counts[LIVE] += 1
        o += outputs[t]
        counts[TRANSACTIONS] += 1
    return 0, 0, 0
