"""Hot loops of indexing: live coins by name, and rows and slots numbered once.

Transactions with unspent coins, the *makers*, stand in the order they were made, and so do their
coins: what is spent is mostly young, so it lies close together. A hash table finds a maker by its
id. What is spent stays in its place until everything is moved together.

A block can be taken back: what it changes is logged while it is indexed.

Slow twin in the tests: tests/history/tape_twin.py.
"""

from __future__ import annotations

import numpy as np

from coinhaze.history.pass_kernels import prefetch
from coinhaze.kernels import kernel
from coinhaze.solve.sketch.kernels import mix

# A maker is 48 bytes: as words of 8 bytes the first 16 bytes of its id and the place of its first
# coin, as words of 4 how many coins there are and how many are live, its number and the slot of its
# row, and as a float64 its expected steps.
KEY, KEY2, FIRST = range(3)
COUNT, LEFT, NUMBER, SLOT = range(6, 10)
STEPS = 5
WORDS = 6
# A coin: its value, -1 - value once it is spent, and its number among the outputs.
VALUE, VOUT = range(2)
# An entry of the hash table: 31 bits of the hash, and the maker's place and 1; 0 where it is empty.
HASH_BITS = 31
PLACE_MASK = 0xFFFFFFFF
# A slot is 32 bytes: live coins on its row, the row, sources it may have, stored roundings behind
# it, its place among those a transaction spends from and 1, the last block that changed it, and as
# a float64 the roundings of sums behind it.
COINS, ROW, SOURCES, DEPTH, PLACE, STAMP = range(6)
ROUNDED = 3
SLOT_WORDS = 8
NO_ROW = 2**32 - 1
MOST = np.uint32(2**32 - 1)
# Inputs ahead of the one that is spent: its entry in the table is asked for, then its maker, then
# its coin and the slot of its row.
TABLE_AHEAD, MAKER_AHEAD, COIN_AHEAD = 24, 16, 8

FAULTS = {
    -1: "spends a coin that is not there: never made, spent before, or made before the history",
    -2: "spends a coin whose value is another where it was made",
    -3: "makes a coin of a name that a coin has which is not spent",
    -4: "outputs above inputs",
    -5: "values that add up to more than 2^63 - 1",
    -6: "no inputs, but not a coinbase",
}
UNKNOWN, VALUES, TWICE, ABOVE, OVERFLOW, NO_INPUTS = FAULTS

# Places in the counters. LOW is the least number of free slots since a block began.
ROWS, TERMS, SLOTS, FREE, LIVE, ALL_ROWS, ALL_SOURCES, TRANSACTIONS = range(8)
MAKERS, PLACES, LOW, LOG_SPENT, LOG_SLOTS, LOG_FREE = range(8, 14)
COUNTERS = 14


@kernel(inline="always")
def _hash(first, second, salt):
    return np.int64(mix(first ^ mix(second + salt)) >> np.uint64(33))


@kernel(error_model="numpy")
def _find(table, shift, words, code, first, second):
    """Give the place of a maker in the table, or of the empty entry where it would stand."""
    mask = len(table) - 1
    at = code >> shift
    while table[at, 0] != 0:
        if table[at, 0] >> 32 == code:
            k = (table[at, 0] & PLACE_MASK) - 1
            if words[k, KEY] == first and words[k, KEY2] == second:
                return at
        at = (at + 1) & mask
    return at


@kernel(error_model="numpy")
def _remove(table, shift, hole):
    """Take an entry out, and move those behind it up, so that none is lost."""
    mask = len(table) - 1
    at = (hole + 1) & mask
    while table[at, 0] != 0:
        home = (table[at, 0] >> 32) >> shift
        if (at - home) & mask >= (at - hole) & mask:
            table[hole, 0] = table[at, 0]
            hole = at
        at = (at + 1) & mask
    table[hole, 0] = 0


@kernel()
def _enter(table, shift, words, salt, k):
    """Put a maker into the table, where it is not."""
    mask = len(table) - 1
    code = _hash(words[k, KEY], words[k, KEY2], salt)
    at = code >> shift
    while table[at, 0] != 0:
        at = (at + 1) & mask
    table[at, 0] = code << 32 | k + 1


@kernel()
def enter_all(table, shift, words, halves, salt, makers):
    """Put all makers that have live coins into an empty table."""
    ahead = 16
    for k in range(makers):
        a = min(k + ahead, makers - 1)
        home = _hash(words[a, KEY], words[a, KEY2], salt) >> shift
        prefetch(table, home, np.int64(0))
        if halves[k, LEFT] > 0:
            _enter(table, shift, words, salt, k)


@kernel()
def move_together(words, halves, coins, makers):
    """Leave out what is spent; give how many makers and coins are left."""
    kept = place = 0
    for k in range(makers):
        if halves[k, LEFT] == 0:
            continue
        first = np.int64(words[k, FIRST])
        count = np.int64(halves[k, COUNT])
        for w in range(WORDS):
            words[kept, w] = words[k, w]
        words[kept, FIRST] = np.uint64(place)
        halves[kept, COUNT] = halves[kept, LEFT]
        for c in range(first, first + count):
            if coins[c, VALUE] >= 0:
                coins[place, VALUE] = coins[c, VALUE]
                coins[place, VOUT] = coins[c, VOUT]
                place += 1
        kept += 1
    return kept, place


@kernel()
def list_coins(words, halves, coins, makers, transaction, vout, value):
    """List all live coins in the order they were made."""
    n = 0
    for k in range(makers):
        if halves[k, LEFT] == 0:
            continue
        first = np.int64(words[k, FIRST])
        for c in range(first, first + np.int64(halves[k, COUNT])):
            if coins[c, VALUE] >= 0:
                transaction[n] = halves[k, NUMBER]
                vout[n] = coins[c, VOUT]
                value[n] = coins[c, VALUE]
                n += 1
    return n


@kernel()
def take_coins(transaction, vout, value, maker_of, ids, slot, steps, words, halves, floats, coins):
    """Take live coins in, as they were listed; `maker_of` is the place of each one's maker."""
    for e in range(len(value)):
        k = maker_of[e]
        if e == 0 or maker_of[e - 1] != k:
            words[k, KEY], words[k, KEY2], words[k, FIRST] = ids[k, 0], ids[k, 1], np.uint64(e)
            halves[k, COUNT] = halves[k, LEFT] = 0
            halves[k, NUMBER], halves[k, SLOT] = transaction[e], slot[k]
            floats[k, STEPS] = steps[k]
        halves[k, COUNT] += np.uint32(1)
        halves[k, LEFT] += np.uint32(1)
        coins[e, VALUE], coins[e, VOUT] = value[e], vout[e]


@kernel(inline="always")
def _touch(slots, slot, stamp, counts, log_slots):
    """Log a slot that the block changes for the first time."""
    if stamp > 0 and slots[slot, STAMP] != stamp:
        k = counts[LOG_SLOTS]
        log_slots[k, SLOT_WORDS] = slot
        for w in range(SLOT_WORDS):
            log_slots[k, w] = slots[slot, w]
        counts[LOG_SLOTS] += 1
        slots[slot, STAMP] = stamp


@kernel(error_model="numpy")
def _new_row(slots, free, counts, row_slot, row_terms, terms, coins, stamp, log_slots, log_free):
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
    _touch(slots, slot, stamp, counts, log_slots)
    k = counts[ROWS]
    row_slot[k], row_terms[k] = slot, terms
    slots[slot, COINS] = coins
    slots[slot, ROW] = counts[ALL_ROWS]
    counts[ROWS] += 1
    counts[ALL_ROWS] += 1
    return slot


@kernel(error_model="numpy")
def _source(slots, slot_floats, row_sources, row_depth, row_transaction, row_rounded, counts, slot):
    """Say of a row just made that it is a source."""
    k = counts[ROWS] - 1
    counts[ALL_SOURCES] += 1
    slots[slot, SOURCES], slots[slot, DEPTH], slot_floats[slot, ROUNDED] = 1, 0, 0.0
    row_sources[k], row_depth[k], row_transaction[k] = 1, 0, counts[TRANSACTIONS]
    row_rounded[k] = 0.0


@kernel(error_model="numpy")
def advance(
    ids,  # words of each transaction's id
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
    shift,
    salt,
    words,  # of makers, ...
    halves,  # ... as words of 4 bytes, ...
    floats,  # ... and as floats
    coins,
    slots,
    slot_floats,  # the same as floats
    free,
    counts,
    row_slot,
    row_terms,
    row_rounded,
    row_sources,
    row_depth,
    row_transaction,
    earlier,  # of each new row: the input whose coin is this source, or -1
    term_slot,
    term_weight,
    tx_row,
    tx_steps,
    stamp,  # of this block, above 0 where what it changes is logged
    log_spent,  # the maker and the coin
    log_slots,  # what a slot was, and the slot
    log_free,
):
    """Number the rows of some transactions; give the fault, its transaction and its input.

    Rows, terms and transactions are written behind those that are counted.
    """
    n, m = len(inputs), len(spent_vouts)
    i = o = 0
    largest = 1
    for t in range(n):
        largest = max(largest, inputs[t])
    seen = np.empty(largest, np.int64)
    amount = np.empty(largest, np.int64)
    codes = np.empty(m, np.int64)
    for e in range(m):
        codes[e] = _hash(spent_ids[e, 0], spent_ids[e, 1], salt)
    first_row = counts[ROWS]
    mask = len(table) - 1
    asked = found = held = 0
    for t in range(n):
        while asked < min(i + inputs[t] + TABLE_AHEAD, m):
            prefetch(table, codes[asked] >> shift, np.int64(0))
            asked += 1
        while found < min(i + inputs[t] + MAKER_AHEAD, m):
            at = codes[found] >> shift
            while table[at, 0] != 0 and table[at, 0] >> 32 != codes[found]:
                at = (at + 1) & mask
            if table[at, 0] != 0:
                prefetch(words, (table[at, 0] & PLACE_MASK) - 1, np.int64(0))
                prefetch(words, (table[at, 0] & PLACE_MASK) - 1, np.int64(8 * WORDS - 1))
            codes[found] = codes[found] | at << 32  # where to look, if nothing moves meanwhile
            found += 1
        while held < min(i + inputs[t] + COIN_AHEAD, m):
            entry = table[codes[held] >> 32, 0]
            if entry != 0:
                k = (entry & PLACE_MASK) - 1
                prefetch(coins, np.int64(words[k, FIRST]) + spent_vouts[held], np.int64(0))
                prefetch(slots, np.int64(halves[k, SLOT]), np.int64(0))
                prefetch(slots, np.int64(halves[k, SLOT]), np.int64(4 * SLOT_WORDS - 1))
            codes[held] = codes[held] & PLACE_MASK
            held += 1
        own = _hash(ids[t, 0], ids[t, 1], salt)
        if t + 4 < n:
            prefetch(table, _hash(ids[t + 4, 0], ids[t + 4, 1], salt) >> shift, np.int64(0))
        total = np.int64(0)
        met = 0
        moved = 0.0  # the sum of values times steps
        if inputs[t] == 0 and not coinbase[t]:
            return NO_INPUTS, t, i
        for e in range(i, i + inputs[t]):
            place = _find(table, shift, words, codes[e], spent_ids[e, 0], spent_ids[e, 1])
            k = c = np.int64(-1)
            if table[place, 0] != 0:
                k = (table[place, 0] & PLACE_MASK) - 1
                c = _coin(words, halves, coins, k, spent_vouts[e])
            if c < 0:
                value = spent_values[e]
                if not window or value < 0:
                    return UNKNOWN, t, e
                if value == 0:
                    continue
                slot = _new_row(
                    slots, free, counts, row_slot, row_terms, 0, 0, stamp, log_slots, log_free
                )
                _source(
                    slots, slot_floats, row_sources, row_depth, row_transaction, row_rounded,
                    counts, slot,
                )  # fmt: skip
                earlier[counts[ROWS] - 1 - first_row] = e
                steps = 0.0  # the coin is the source: one step, as below
            else:
                value = coins[c, VALUE]
                if spent_values[e] >= 0 and spent_values[e] != value:
                    return VALUES, t, e
                slot = np.int64(halves[k, SLOT])
                steps = floats[k, STEPS]
                coins[c, VALUE] = -1 - value
                halves[k, LEFT] -= np.uint32(1)
                if halves[k, LEFT] == 0:
                    _remove(table, shift, place)
                counts[LIVE] -= 1
                if stamp > 0:
                    log_spent[counts[LOG_SPENT], 0], log_spent[counts[LOG_SPENT], 1] = k, c
                    counts[LOG_SPENT] += 1
                if value == 0:
                    continue
                _touch(slots, slot, stamp, counts, log_slots)
                slots[slot, COINS] -= np.uint32(1)
            total += value
            if total < 0:
                return OVERFLOW, t, e
            moved += np.float64(value) * (1.0 + steps)
            if slots[slot, PLACE] == 0:
                seen[met] = slot
                amount[met] = 0
                met += 1
                slots[slot, PLACE] = met
            amount[np.int64(slots[slot, PLACE]) - 1] += value
        i += inputs[t]
        alive = 0
        spendable = 0
        paid = np.int64(0)
        for q in range(o, o + outputs[t]):
            paid += made_values[q]
            if paid < 0:
                return OVERFLOW, t, i
            if made_spendable[q]:
                spendable += 1
                if made_values[q] > 0:
                    alive += 1
        if paid > total and not coinbase[t]:
            return ABOVE, t, i
        for q in range(met):
            slots[seen[q], PLACE] = 0
        slot = np.int64(NO_ROW)
        steps = 0.0
        if coinbase[t]:
            if paid > 0:
                slot = _new_row(
                    slots, free, counts, row_slot, row_terms, 0, alive, stamp, log_slots, log_free
                )
                _source(
                    slots, slot_floats, row_sources, row_depth, row_transaction, row_rounded,
                    counts, slot,
                )  # fmt: skip
                steps = 1.0
        elif met > 0:
            steps = 1.0 + moved / np.float64(total)
        if met == 1:
            # All of it hangs on one row: the transaction has that row.
            slot = seen[0]
            slots[slot, COINS] += np.uint32(alive)
        elif met > 1:
            sources = np.int64(0)
            depth = np.int64(0)
            worst = 0.0
            for q in range(met):
                s = seen[q]
                k = counts[TERMS]
                term_slot[k] = s
                term_weight[k] = np.float64(amount[q]) / np.float64(total)
                counts[TERMS] += 1
                sources += np.int64(slots[s, SOURCES])
                depth = max(depth, np.int64(slots[s, DEPTH]))
                worst = max(worst, slot_floats[s, ROUNDED])
                if slots[s, COINS] == 0:
                    free[counts[FREE]] = s
                    counts[FREE] += 1
            slot = _new_row(
                slots, free, counts, row_slot, row_terms, met, alive, stamp, log_slots, log_free
            )
            k = counts[ROWS] - 1
            sources = min(sources, counts[ALL_SOURCES], np.int64(MOST))
            slots[slot, SOURCES], slots[slot, DEPTH] = sources, depth + 1
            slot_floats[slot, ROUNDED] = worst + met + 4.0
            row_sources[k], row_depth[k] = sources, depth + 1
            row_transaction[k] = counts[TRANSACTIONS]
            row_rounded[k] = slot_floats[slot, ROUNDED]
        row = np.int64(NO_ROW)
        if slot != NO_ROW:
            row = np.int64(slots[slot, ROW])
            if slots[slot, COINS] == 0:
                free[counts[FREE]] = slot
                counts[FREE] += 1
        tx_row[t], tx_steps[t] = row, steps
        if spendable > 0:
            place = _find(table, shift, words, own, ids[t, 0], ids[t, 1])
            if table[place, 0] != 0:
                return TWICE, t, o
            k = counts[MAKERS]
            c = counts[PLACES]
            counts[MAKERS] += 1
            table[place, 0] = own << 32 | k + 1
            words[k, KEY], words[k, KEY2], words[k, FIRST] = ids[t, 0], ids[t, 1], np.uint64(c)
            halves[k, COUNT], halves[k, LEFT] = spendable, spendable
            halves[k, NUMBER], halves[k, SLOT] = counts[TRANSACTIONS], slot
            floats[k, STEPS] = steps
            for q in range(o, o + outputs[t]):
                if made_spendable[q]:
                    coins[c, VALUE], coins[c, VOUT] = made_values[q], made_vouts[q]
                    c += 1
            counts[PLACES] = c
            counts[LIVE] += spendable
        o += outputs[t]
        counts[TRANSACTIONS] += 1
    return 0, 0, 0


@kernel(error_model="numpy")
def _coin(words, halves, coins, maker, vout):
    """Give the place of a live coin of a maker, or -1."""
    first = np.int64(words[maker, FIRST])
    count = np.int64(halves[maker, COUNT])
    if vout < count and coins[first + vout, VOUT] == vout:
        return first + vout if coins[first + vout, VALUE] >= 0 else np.int64(-1)
    for c in range(first, first + count):
        if coins[c, VOUT] == vout and coins[c, VALUE] >= 0:
            return np.int64(c)
    return np.int64(-1)


@kernel()
def find_coin(table, shift, salt, words, halves, coins, first, second, vout):
    """Give the places of a live coin's maker and of the coin, or -1."""
    at = _find(table, shift, words, _hash(first, second, salt), first, second)
    if table[at, 0] == 0:
        return np.int64(-1), np.int64(-1)
    k = (table[at, 0] & PLACE_MASK) - 1
    return k, _coin(words, halves, coins, k, vout)


@kernel()
def take_back(
    table, shift, salt, words, halves, coins, slots, free, counts, before, log_spent, log_slots,
    log_free,
):  # fmt: skip
    """Take a block back by what was logged; `before` is what was counted before it."""
    for k in range(before[MAKERS], counts[MAKERS]):
        if halves[k, LEFT] > 0:
            code = _hash(words[k, KEY], words[k, KEY2], salt)
            place = _find(table, shift, words, code, words[k, KEY], words[k, KEY2])
            _remove(table, shift, place)
    for e in range(len(log_spent) - 1, -1, -1):
        k, c = log_spent[e, 0], log_spent[e, 1]
        if k >= before[MAKERS]:
            continue
        coins[c, VALUE] = -1 - coins[c, VALUE]
        if halves[k, LEFT] == 0:
            _enter(table, shift, words, salt, k)
        halves[k, LEFT] += np.uint32(1)
    for e in range(len(log_slots)):
        slot = np.int64(log_slots[e, SLOT_WORDS])
        for w in range(SLOT_WORDS):
            slots[slot, w] = log_slots[e, w]
    for e in range(len(log_free)):
        free[before[FREE] - 1 - e] = log_free[e]
    for k in range(len(counts)):
        counts[k] = before[k]
