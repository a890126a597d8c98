"""Hot loops of indexing: live coins by name, and rows and slots numbered once.

Transactions with unspent coins, the *makers*, stand in the order they were made, and so do their
coins: what is spent is mostly young, so it lies close together. A hash table finds a maker by its
id. What is spent stays in its place until what is live is moved together: often among the youngest,
and seldom among all.

A block can be taken back: what it changes is logged while it is indexed.

Slow twin in the tests: tests/history/tape_twin.py.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from coinhaze import kernels
from coinhaze.solve.prefetch_kernels import prefetch
from coinhaze.solve.sketch.kernels import mix

# Nothing here makes arrays: without counting who holds them, calls cost far less.
kernel = partial(kernels.kernel, _nrt=False)

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
# So many inputs at a time are looked up ahead: first their entries in the table are requested, then
# their makers, then their coins and the slots of their rows.
AT_ONCE = 16
LOOKS = 4  # for a coin among those of its maker, before all that are left are halved

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
MAKERS, PLACES, LOW, LOG_SPENT, LOG_SLOTS, LOG_FREE, CHANGES = range(8, 15)
COUNTERS = 15


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
def move_together(table, shift, salt, words, halves, coins, first, place, makers):
    """Leave out what is spent of the makers from `first` on, whose coins begin at `place`.

    Gives how many makers and coins are left in all.
    """
    kept, mask = first, len(table) - 1
    for k in range(first, makers):
        a = min(k + AT_ONCE, makers - 1)
        prefetch(table, _hash(words[a, KEY], words[a, KEY2], salt) >> shift, np.int64(0))
        if halves[k, LEFT] == 0:
            continue
        begin = np.int64(words[k, FIRST])
        count = np.int64(halves[k, COUNT])
        if kept < k:
            code = _hash(words[k, KEY], words[k, KEY2], salt)
            at = code >> shift
            while table[at, 0] != code << 32 | k + 1:
                at = (at + 1) & mask
            table[at, 0] = code << 32 | kept + 1
            for w in range(WORDS):
                words[kept, w] = words[k, w]
        words[kept, FIRST] = np.uint64(place)
        halves[kept, COUNT] = halves[kept, LEFT]
        for c in range(begin, begin + count):
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


@kernel(inline="always")
def _write_change(
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
        _write_change(
            slots, slot_values, np.int64(chosen[k]), counts, change_row, change_coins,
            change_value, change_month,
        )  # fmt: skip


@kernel(error_model="numpy")
def _new_row(
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
    _touch(slots, slot, stamp, counts, log_slots)
    _write_change(
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
def _source(
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
    accounts,  # whether coins are what accounts hold: receipts are steps, parts of a coin are not
    table,
    shift,
    salt,
    words,  # of makers, ...
    halves,  # ... as words of 4 bytes, ...
    floats,  # ... and as floats
    coins,
    slots,
    slot_floats,  # the same as floats, ...
    slot_values,  # ... and as words of 8 bytes
    free,
    counts,
    row_slot,
    row_terms,
    row_rounded,
    row_sources,
    row_depth,
    row_transaction,
    source_row,  # of each new source, and ...
    source_input,  # ... the input whose coin it is, or -1
    term_slot,
    term_weight,
    tx_row,
    tx_steps,
    sizes,  # of each block: how many transactions, and ...
    months,  # ... its month
    change_row,
    change_coins,
    change_value,
    change_month,
    stamp,  # of this block, above 0 where what it changes is logged
    log_spent,  # the maker and the coin
    log_slots,  # what a slot was, and the slot
    log_free,
    codes,  # room for two numbers of each input, ...
    places,
    seen,  # ... and for two of each input of a transaction
    amount,
):
    """Number the rows of some transactions; give the fault, its transaction and its input.

    Rows, terms and transactions are written behind those that are counted.
    """
    n, m = len(inputs), len(spent_vouts)
    i = o = 0
    first_source = counts[ALL_SOURCES]
    block, block_end, month = np.int64(-1), np.int64(0), np.int64(0)
    to_coin = 0.0 if accounts else 1.0  # steps from a coin to its transaction
    mask = len(table) - 1
    fetched = found = ready = 0
    for t in range(n):
        while t == block_end:
            block += 1
            block_end += sizes[block]
            month = np.int64(months[block]) - FIRST_MONTH
        while ready < min(i + inputs[t] + AT_ONCE, m):
            last = min(fetched + AT_ONCE, m)
            for e in range(fetched, last):
                codes[e] = _hash(spent_ids[e, 0], spent_ids[e, 1], salt)
                prefetch(table, codes[e] >> shift, np.int64(0))
            for e in range(found, fetched):
                at = codes[e] >> shift
                while table[at, 0] != 0 and table[at, 0] >> 32 != codes[e]:
                    at = (at + 1) & mask
                places[e] = at
                if table[at, 0] != 0:
                    k = (table[at, 0] & PLACE_MASK) - 1
                    prefetch(words, k, np.int64(0))
                    prefetch(words, k, np.int64(8 * WORDS - 1))
            for e in range(ready, found):
                entry = table[places[e], 0]
                if entry != 0:
                    k = (entry & PLACE_MASK) - 1
                    c = min(spent_vouts[e], np.int64(halves[k, COUNT]) - 1)
                    prefetch(coins, np.int64(words[k, FIRST]) + c, np.int64(0))
                    prefetch(slots, np.int64(halves[k, SLOT]), np.int64(0))
                    prefetch(slots, np.int64(halves[k, SLOT]), np.int64(4 * SLOT_WORDS - 1))
            ready, found, fetched = found, fetched, last
        own = _hash(ids[t, 0], ids[t, 1], salt)
        if t + 4 < n:
            prefetch(table, _hash(ids[t + 4, 0], ids[t + 4, 1], salt) >> shift, np.int64(0))
        total = np.int64(0)
        met = 0
        moved = 0.0  # the sum of values times steps
        if inputs[t] == 0 and not coinbase[t]:
            return NO_INPUTS, t, i
        for e in range(i, i + inputs[t]):
            place = places[e]
            entry = table[place, 0]
            k = (entry & PLACE_MASK) - 1
            # Where it was seen before, unless entries were moved meanwhile.
            if (
                entry == 0
                or entry >> 32 != codes[e]
                or words[k, KEY] != spent_ids[e, 0]
                or words[k, KEY2] != spent_ids[e, 1]
            ):
                place = _find(table, shift, words, codes[e], spent_ids[e, 0], spent_ids[e, 1])
                k = (table[place, 0] & PLACE_MASK) - 1
            c = np.int64(-1)
            if k >= 0:
                c = _coin(words, halves, coins, k, spent_vouts[e])
            if c < 0:
                value = spent_values[e]
                if not window or value < 0:
                    return UNKNOWN, t, e
                if value == 0:
                    continue
                slot = _new_row(
                    slots, slot_values, free, counts, row_slot, row_terms, 0, 0, stamp, log_slots,
                    log_free, month, change_row, change_coins, change_value, change_month,
                )  # fmt: skip
                _source(
                    slots, slot_floats, row_sources, row_depth, row_transaction, row_rounded,
                    counts, slot, source_row, source_input, counts[ALL_SOURCES] - first_source, e,
                )  # fmt: skip
                steps = 1.0 - to_coin  # the coin is the source: one step, as below
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
                if slots[slot, MONTH] != month:
                    _write_change(
                        slots, slot_values, slot, counts, change_row, change_coins, change_value,
                        change_month,
                    )  # fmt: skip
                    slots[slot, MONTH] = month
                slots[slot, COINS] -= np.uint32(1)
                slot_values[slot, MORE_VALUE] -= value
            total += value
            if total < 0:
                return OVERFLOW, t, e
            moved += np.float64(value) * (to_coin + steps)
            if slots[slot, PLACE] == 0:
                seen[met] = slot
                amount[met] = 0
                met += 1
                slots[slot, PLACE] = met
            amount[np.int64(slots[slot, PLACE]) - 1] += value
        i += inputs[t]
        alive = 0
        spendable = 0
        paid = left = np.int64(0)
        for q in range(o, o + outputs[t]):
            paid += made_values[q]
            if paid < 0:
                return OVERFLOW, t, i
            if made_spendable[q]:
                spendable += 1
                if made_values[q] > 0:
                    alive += 1
                    left += made_values[q]
        if paid > total and not coinbase[t]:
            return ABOVE, t, i
        for q in range(met):
            slots[seen[q], PLACE] = 0
        slot = np.int64(NO_ROW)
        steps = 0.0
        if coinbase[t]:
            if paid > 0:
                slot = _new_row(
                    slots, slot_values, free, counts, row_slot, row_terms, 0, alive, stamp,
                    log_slots, log_free, month, change_row, change_coins, change_value,
                    change_month,
                )  # fmt: skip
                _source(
                    slots, slot_floats, row_sources, row_depth, row_transaction, row_rounded,
                    counts, slot, source_row, source_input, counts[ALL_SOURCES] - first_source, -1,
                )  # fmt: skip
                steps = 1.0
        elif met > 0:
            steps = moved / np.float64(total)
            if not accounts or outputs[t] == 1:
                steps += 1.0
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
                slots, slot_values, free, counts, row_slot, row_terms, met, alive, stamp, log_slots,
                log_free, month, change_row, change_coins, change_value, change_month,
            )  # fmt: skip
            k = counts[ROWS] - 1
            sources = min(sources, counts[ALL_SOURCES], np.int64(MAXIMUM))
            slots[slot, SOURCES], slots[slot, DEPTH] = sources, depth + 1
            slot_floats[slot, ROUNDED] = worst + met + 4.0
            row_sources[k], row_depth[k] = sources, depth + 1
            row_transaction[k] = counts[TRANSACTIONS]
            row_rounded[k] = slot_floats[slot, ROUNDED]
        row = np.int64(NO_ROW)
        if slot != NO_ROW:
            row = np.int64(slots[slot, ROW])
            slot_values[slot, MORE_VALUE] += left
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
    # Numbers mostly rise, so at most `vout` coins stand before this one, and two coins are no
    # farther apart than their numbers: few places are left after a look or two.
    low, high = first, first + min(vout, count - 1)
    at, looks = high, 0
    while low <= high:
        more = np.int64(coins[at, VOUT]) - vout
        if more == 0:
            return at if coins[at, VALUE] >= 0 else np.int64(-1)
        if more > 0:
            low, high = max(low, at - more), at - 1
            at = low
        else:
            low, high = at + 1, min(high, at - more)
            at = high
        looks += 1
        if looks > LOOKS:
            at = (low + high) >> 1
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
