"""Hot loops over the letters of Arrow text: hashes of names, numbers of names, numbers in names.

Names are numbered by an open table of slots, each the half of a hash and a number. Slow twins in
the tests: tests/ledger/test_text.py and test_names.py.
"""

from __future__ import annotations

import numpy as np

from coinhaze.kernels import kernel

COLON, ZERO, NINE = 58, 48, 57
FNV_START, FNV_FACTOR = 0xCBF29CE484222325, 0x100000001B3
HALF, LOW = np.uint64(32), np.uint64(0xFFFFFFFF)


@kernel()
def fnv(data, first, last, h):
    """Go on hashing a range of letters to 64 bits (FNV-1a), the same on every machine."""
    for k in range(first, last):
        h = (h ^ np.uint64(data[k])) * np.uint64(FNV_FACTOR)
    return h


@kernel()
def hash_texts(offsets, data):
    """Give each text its hash."""
    n = len(offsets) - 1
    hashes = np.empty(n, np.uint64)
    # Every letter waits for the one before it: four texts side by side take a third of the time.
    for i in range(0, n - 3, 4):
        a, b, c, d, end = offsets[i : i + 5]
        both = min(min(b - a, c - b), min(d - c, end - d))
        h0 = h1 = h2 = h3 = np.uint64(FNV_START)
        for k in range(both):
            h0 = (h0 ^ np.uint64(data[a + k])) * np.uint64(FNV_FACTOR)
            h1 = (h1 ^ np.uint64(data[b + k])) * np.uint64(FNV_FACTOR)
            h2 = (h2 ^ np.uint64(data[c + k])) * np.uint64(FNV_FACTOR)
            h3 = (h3 ^ np.uint64(data[d + k])) * np.uint64(FNV_FACTOR)
        hashes[i] = fnv(data, a + both, b, h0)
        hashes[i + 1] = fnv(data, b + both, c, h1)
        hashes[i + 2] = fnv(data, c + both, d, h2)
        hashes[i + 3] = fnv(data, d + both, end, h3)
    for i in range(n - n % 4, n):
        hashes[i] = fnv(data, offsets[i], offsets[i + 1], np.uint64(FNV_START))
    return hashes


@kernel()
def number_lengths(offsets, data):
    """Count the digits each text ends in after a colon; -1 if it is digits only, 0 if neither."""
    lengths = np.zeros(len(offsets) - 1, np.int64)
    for i in range(len(lengths)):
        first, last = offsets[i], offsets[i + 1]
        k = last
        while k > first and ZERO <= data[k - 1] <= NINE:
            k -= 1
        if k == last:
            continue
        if k == first:
            lengths[i] = -1
        elif data[k - 1] == COLON:
            lengths[i] = last - k
    return lengths


@kernel()
def number_texts(offsets, data, slots, ends, letters, count, adds):
    """Give each text its number, -1 to one not met before, or the next number where `adds`.

    A slot is 0, or the upper half of a hash beside a number above 0. There must be an empty slot,
    and room for all new texts. Text k stands from ends[k] to ends[k + 1] in letters.
    """
    numbers = np.empty(len(offsets) - 1, np.int32)
    mask = np.uint64(len(slots) - 1)
    for i in range(len(numbers)):
        first, last = offsets[i], offsets[i + 1]
        # Rows of one transaction stand together: most names are those of the row above.
        if i > 0 and same_text(data, first, last, data, offsets[i - 1], first):
            numbers[i] = numbers[i - 1]
            continue
        half = upper_half(data, first, last)
        at = half & mask
        found = -1
        while slots[at] != 0:
            row = np.int64(slots[at] & LOW) - 1
            if slots[at] >> HALF == half and same_text(
                data, first, last, letters, ends[row], ends[row + 1]
            ):
                found = row
                break
            at = (at + np.uint64(1)) & mask
        if found < 0 and adds:
            ends[count + 1] = ends[count] + last - first
            letters[ends[count] : ends[count + 1]] = data[first:last]
            found = count
            count += 1
            slots[at] = half << HALF | np.uint64(count)
        numbers[i] = found
    return numbers, count


@kernel()
def same_text(some, first, last, others, begin, end):
    """Tell whether two stretches of letters are equal."""
    if last - first != end - begin:
        return False
    for k in range(last - first):  # noqa: SIM110, compiled
        if some[first + k] != others[begin + k]:
            return False
    return True


@kernel()
def upper_half(data, first, last):
    """Hash a text to 32 bits: the low bits of its hash mixed into the upper ones."""
    h = fnv(data, first, last, np.uint64(FNV_START))
    h = (h ^ (h >> np.uint64(29))) * np.uint64(0x9E3779B97F4A7C15)
    return h >> HALF


@kernel()
def spread_slots(old, new):
    """Put the slots of one table into a larger, empty one."""
    mask = np.uint64(len(new) - 1)
    for slot in old:
        if slot != 0:
            at = (slot >> HALF) & mask
            while new[at] != 0:
                at = (at + np.uint64(1)) & mask
            new[at] = slot
