"""The hot loop of indexing: rows and slots numbered once; and a block taken back.

A block can be taken back: what it changes is logged while it is indexed.

Slow twin in the tests: tests/history/tape_twin.py.
"""

from __future__ import annotations

import numpy as np

from coinhaze.history.index.live_kernels import (
    AT_ONCE,
    COUNT,
    FIRST,
    KEY,
    KEY2,
    LEFT,
    NUMBER,
    PLACE_MASK,
    SLOT,
    STEPS,
    VALUE,
    VOUT,
    VOUT_BITS,
    WORDS,
    coin_of,
    enter,
    find,
    hash_of,
    kernel,
    remove,
)
from coinhaze.history.index.pool_kernels import MET, POOL_STEPS, open_pool, put_in, take_out
from coinhaze.history.index.row_kernels import (
    ALL_SOURCES,
    COINS,
    DEPTH,
    FIRST_MONTH,
    FREE,
    LIVE,
    LOG_SPENT,
    MAKERS,
    MAXIMUM,
    MONTH,
    MORE_VALUE,
    NO_ROW,
    PLACE,
    PLACES,
    ROUNDED,
    ROW,
    ROWS,
    SLOT_WORDS,
    SOURCES,
    TERMS,
    TRANSACTIONS,
    new_row,
    note_source,
    touch,
    write_change,
)
from coinhaze.solve.prefetch_kernels import prefetch

FAULTS = {
    -1: "spends a coin that is not there: never made, spent before, or made before the history",
    -2: "spends a coin whose value is another where it was made",
    -3: "makes a coin of a name that a coin has which is not spent",
    -4: "outputs above inputs",
    -5: "values that add up to more than 2^63 - 1",
    -6: "no inputs, but not a coinbase",
    -7: "takes more out of a shielded pool than the history has in it",
}
UNKNOWN, VALUES, TWICE, ABOVE, OVERFLOW, NO_INPUTS, POOL_SHORT = FAULTS


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
    made_scripts,  # none where types of scripts are not known
    flow_tx,  # of each flow between a transaction and a pool, ...
    flow_pool,
    flow_into,  # ... negative where it leaves the pool
    openings,  # what each pool held before the first block
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
    pools,
    pool_floats,  # the same as floats
    free,
    counts,
    row_slot,
    row_terms,
    row_rounded,
    row_sources,
    row_depth,
    row_transaction,
    source_row,  # of each new source, and ...
    source_input,  # ... the input whose coin it is, -1, or as OPENED says
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
    known = len(made_scripts) > 0
    mask = len(table) - 1
    fetched = found = ready = 0
    flow = 0
    for t in range(n):
        while t == block_end:
            block += 1
            block_end += sizes[block]
            month = np.int64(months[block]) - FIRST_MONTH
        while ready < min(i + inputs[t] + AT_ONCE, m):
            last = min(fetched + AT_ONCE, m)
            for e in range(fetched, last):
                codes[e] = hash_of(spent_ids[e, 0], spent_ids[e, 1], salt)
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
        own = hash_of(ids[t, 0], ids[t, 1], salt)
        if t + 4 < n:
            prefetch(table, hash_of(ids[t + 4, 0], ids[t + 4, 1], salt) >> shift, np.int64(0))
        total = np.int64(0)
        met = 0
        moved = 0.0  # the sum of values times steps
        first_flow = flow
        while flow < len(flow_tx) and flow_tx[flow] == t:
            flow += 1
        if inputs[t] == 0 and not coinbase[t] and flow == first_flow:
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
                place = find(table, shift, words, codes[e], spent_ids[e, 0], spent_ids[e, 1])
                k = (table[place, 0] & PLACE_MASK) - 1
            c = np.int64(-1)
            if k >= 0:
                c = coin_of(words, halves, coins, k, spent_vouts[e])
            if c < 0:
                value = spent_values[e]
                if not window or value < 0:
                    return UNKNOWN, t, e
                if value == 0:
                    continue
                slot = new_row(
                    slots, slot_values, free, counts, row_slot, row_terms, 0, 0, stamp, log_slots,
                    log_free, month, change_row, change_coins, change_value, change_month,
                )  # fmt: skip
                note_source(
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
                    remove(table, shift, place)
                counts[LIVE] -= 1
                if stamp > 0:
                    log_spent[counts[LOG_SPENT], 0], log_spent[counts[LOG_SPENT], 1] = k, c
                    counts[LOG_SPENT] += 1
                if value == 0:
                    continue
                touch(slots, slot, stamp, counts, log_slots)
                if slots[slot, MONTH] != month:
                    write_change(
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
        paid = left = np.int64(0)
        for f in range(first_flow, flow):
            pool, value = flow_pool[f], -flow_into[f]
            if pools[pool, MET] == 0:
                open_pool(
                    pool, openings[pool], pools, pool_floats, slots, slot_floats, slot_values, free,
                    counts, row_slot, row_terms, row_rounded, row_sources, row_depth,
                    row_transaction, source_row, source_input, first_source, stamp, log_slots,
                    log_free, month, change_row, change_coins, change_value, change_month,
                )  # fmt: skip
            if value <= 0:
                paid -= value
                if paid < 0:
                    return OVERFLOW, t, i
                continue
            slot = take_out(
                pool, value, pools, slots, slot_values, counts, stamp, log_slots, month, change_row,
                change_coins, change_value, change_month,
            )  # fmt: skip
            if slot < 0:
                return POOL_SHORT, t, f
            total += value
            if total < 0:
                return OVERFLOW, t, i
            moved += np.float64(value) * pool_floats[pool, POOL_STEPS]
            if slots[slot, PLACE] == 0:
                seen[met] = slot
                amount[met] = 0
                met += 1
                slots[slot, PLACE] = met
            amount[np.int64(slots[slot, PLACE]) - 1] += value
        alive = 0
        spendable = 0
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
                slot = new_row(
                    slots, slot_values, free, counts, row_slot, row_terms, 0, alive, stamp,
                    log_slots, log_free, month, change_row, change_coins, change_value,
                    change_month,
                )  # fmt: skip
                note_source(
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
            slot = new_row(
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
            for f in range(first_flow, flow):
                if flow_into[f] > 0 and not put_in(
                    flow_pool[f], flow_into[f], slot, steps, pools, pool_floats, slots, slot_floats,
                    slot_values, free, counts, row_slot, row_terms, row_rounded, row_sources,
                    row_depth, row_transaction, term_slot, term_weight, stamp, log_slots, log_free,
                    month, change_row, change_coins, change_value, change_month,
                ):  # fmt: skip
                    return OVERFLOW, t, i
            if slots[slot, COINS] == 0:
                free[counts[FREE]] = slot
                counts[FREE] += 1
        tx_row[t], tx_steps[t] = row, steps
        if spendable > 0:
            place = find(table, shift, words, own, ids[t, 0], ids[t, 1])
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
                    if known:
                        coins[c, VOUT] |= np.int64(made_scripts[q]) << VOUT_BITS
                    c += 1
            counts[PLACES] = c
            counts[LIVE] += spendable
        o += outputs[t]
        counts[TRANSACTIONS] += 1
    return 0, 0, 0


@kernel()
def take_back(
    table, shift, salt, words, halves, coins, slots, free, counts, before, log_spent, log_slots,
    log_free,
):  # fmt: skip
    """Take a block back by what was logged; `before` is what was counted before it."""
    for k in range(before[MAKERS], counts[MAKERS]):
        if halves[k, LEFT] > 0:
            code = hash_of(words[k, KEY], words[k, KEY2], salt)
            place = find(table, shift, words, code, words[k, KEY], words[k, KEY2])
            remove(table, shift, place)
    for e in range(len(log_spent) - 1, -1, -1):
        k, c = log_spent[e, 0], log_spent[e, 1]
        if k >= before[MAKERS]:
            continue
        coins[c, VALUE] = -1 - coins[c, VALUE]
        if halves[k, LEFT] == 0:
            enter(table, shift, words, salt, k)
        halves[k, LEFT] += np.uint32(1)
    for e in range(len(log_slots)):
        slot = np.int64(log_slots[e, SLOT_WORDS])
        for w in range(SLOT_WORDS):
            slots[slot, w] = log_slots[e, w]
    for e in range(len(log_free)):
        free[before[FREE] - 1 - e] = log_free[e]
    for k in range(len(counts)):
        counts[k] = before[k]
