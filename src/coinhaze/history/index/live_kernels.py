"""Hot loops over live coins: found by name, spent, and moved together.

Transactions with unspent coins, the *makers*, stand in the order they were made, and so do their
coins: what is spent is mostly young, so it lies close together. A hash table finds a maker by its
id. What is spent stays in its place until what is live is moved together: often among the youngest,
and seldom among all.
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
# A coin: its value, -1 - value once it is spent, and its number among the outputs, with the type of
# its script above that.
VALUE, VOUT = range(2)
VOUT_BITS, VOUT_MASK = 32, 0xFFFFFFFF
# An entry of the hash table: 31 bits of the hash, and the maker's place and 1; 0 where it is empty.
HASH_BITS = 31
PLACE_MASK = 0xFFFFFFFF
# So many inputs at a time are looked up ahead: first their entries in the table are requested, then
# their makers, then their coins and the slots of their rows.
AT_ONCE = 16
LOOKS = 4  # for a coin among those of its maker, before all that are left are halved


@kernel(inline="always")
def hash_of(first, second, salt):
    """Hash the first words of an id."""
    return np.int64(mix(first ^ mix(second + salt)) >> np.uint64(33))


@kernel(error_model="numpy")
def find(table, shift, words, code, first, second):
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
def remove(table, shift, hole):
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
def enter(table, shift, words, salt, k):
    """Put a maker into the table, where it is not."""
    mask = len(table) - 1
    code = hash_of(words[k, KEY], words[k, KEY2], salt)
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
        home = hash_of(words[a, KEY], words[a, KEY2], salt) >> shift
        prefetch(table, home, np.int64(0))
        if halves[k, LEFT] > 0:
            enter(table, shift, words, salt, k)


@kernel()
def move_together(table, shift, salt, words, halves, coins, first, place, makers):
    """Leave out what is spent of the makers from `first` on, whose coins begin at `place`.

    Gives how many makers and coins are left in all.
    """
    kept, mask = first, len(table) - 1
    for k in range(first, makers):
        a = min(k + AT_ONCE, makers - 1)
        prefetch(table, hash_of(words[a, KEY], words[a, KEY2], salt) >> shift, np.int64(0))
        if halves[k, LEFT] == 0:
            continue
        begin = np.int64(words[k, FIRST])
        count = np.int64(halves[k, COUNT])
        if kept < k:
            code = hash_of(words[k, KEY], words[k, KEY2], salt)
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
def list_coins(words, halves, coins, makers, transaction, vout, value, script):
    """List all live coins in the order they were made."""
    n = 0
    for k in range(makers):
        if halves[k, LEFT] == 0:
            continue
        first = np.int64(words[k, FIRST])
        for c in range(first, first + np.int64(halves[k, COUNT])):
            if coins[c, VALUE] >= 0:
                transaction[n] = halves[k, NUMBER]
                vout[n] = coins[c, VOUT] & VOUT_MASK
                script[n] = coins[c, VOUT] >> VOUT_BITS
                value[n] = coins[c, VALUE]
                n += 1
    return n


@kernel()
def take_coins(
    transaction, vout, value, script, maker_of, ids, slot, steps, words, halves, floats, coins
):  # fmt: skip
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
        coins[e, VALUE] = value[e]
        coins[e, VOUT] = np.int64(vout[e]) | np.int64(script[e]) << VOUT_BITS


@kernel(error_model="numpy")
def coin_of(words, halves, coins, maker, vout):
    """Give the place of a live coin of a maker, or -1."""
    first = np.int64(words[maker, FIRST])
    count = np.int64(halves[maker, COUNT])
    # Numbers mostly rise, so at most `vout` coins stand before this one, and two coins are no
    # farther apart than their numbers: few places are left after a look or two.
    low, high = first, first + min(vout, count - 1)
    at, looks = high, 0
    while low <= high:
        more = (coins[at, VOUT] & VOUT_MASK) - vout
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
        if coins[c, VOUT] & VOUT_MASK == vout and coins[c, VALUE] >= 0:
            return np.int64(c)
    return np.int64(-1)


@kernel()
def find_coin(table, shift, salt, words, halves, coins, first, second, vout):
    """Give the places of a live coin's maker and of the coin, or -1."""
    at = find(table, shift, words, hash_of(first, second, salt), first, second)
    if table[at, 0] == 0:
        return np.int64(-1), np.int64(-1)
    k = (table[at, 0] & PLACE_MASK) - 1
    return k, coin_of(words, halves, coins, k, vout)
