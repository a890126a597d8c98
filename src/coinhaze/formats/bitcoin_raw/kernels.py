"""Hot loops over raw blocks: where their parts stand; coins of undo files and UTXO snapshots.

Slow twins in the tests: tests/formats/block_twin.py.
"""

from __future__ import annotations

import numpy as np

from coinhaze.formats.bitcoin_raw.networks import MWEB, SPECIAL, WITNESS
from coinhaze.formats.bitcoin_raw.script_kernels import (
    HALF_KEY,
    KEY,
    KEY_HASH,
    SCRIPT_HASH,
    kind_of_script,
)
from coinhaze.kernels import kernel

UNLOCK = 9  # Dash: type of a transaction that takes money out of the platform
MAXIMUM = np.uint64(2**63 - 1)

FAULTS = {
    -1: "is cut short, or counts more than it holds",
    -2: "has a size that takes more bytes than it needs",
    -3: "has a transaction without inputs or without outputs",
    -4: "has a negative value, or one above 2^63 - 1",
    -5: "does not begin with a coinbase",
    -6: "has a second coinbase, or an input that spends nothing",
    -7: "has a transaction with flags that are not known",
    -8: "has bytes left over after its last transaction",
    -9: "has a Dash asset unlock: money from the platform, whose source is not in the chain",
    -10: "has a transaction that moves coins hidden in MWEB, which no block may hold",
}
CUT, LONG, EMPTY, VALUE, NO_COINBASE, COINBASE, FLAGS, LEFT, PLATFORM, HIDDEN = FAULTS

# Places in the counters.
TXS, INS, OUTS, PLAIN, HOGEX = 0, 1, 2, 3, 4


@kernel()
def number_at(data, at, size):
    """Give the whole number in `size` bytes, the lowest first."""
    number = np.uint64(0)
    for i in range(size):
        number |= np.uint64(data[at + i]) << np.uint64(8 * i)
    return number


@kernel()
def compact_size(data, at, end):
    """Give a number and the place after it, below 0 for a fault."""
    if at >= end:
        return 0, CUT
    first = np.int64(data[at])
    if first < 0xFD:
        return first, at + 1
    size = 2 << (first - 0xFD)
    if at + 1 + size > end:
        return 0, CUT
    number = number_at(data, at + 1, size)
    if number < np.uint64(0xFD if size == 2 else 1 << 4 * size):
        return 0, LONG
    if number > MAXIMUM:
        return 0, CUT
    return np.int64(number), at + 1 + size


@kernel()
def _after_texts(data, at, end, texts):
    """Skip texts that each follow their length."""
    for _ in range(texts):
        length, at = compact_size(data, at, end)
        if at < 0:
            return at
        if length > end - at:
            return CUT
        at += length
    return at


@kernel()
def _is_nothing(data, at):
    """Tell whether an input spends the coin that is none: what a coinbase spends."""
    for i in range(32):
        if data[at + i] != 0:
            return False
    return data[at + 32] & data[at + 33] & data[at + 34] & data[at + 35] == 0xFF


@kernel()
def _inputs(data, at, end, number, coinbase, counts, spent_at):
    if number > end or number * 41 > end - at:
        return CUT
    for _ in range(number):
        if end - at < 41:
            return CUT
        nothing = _is_nothing(data, at)
        if coinbase:
            if not nothing or number != 1:
                return NO_COINBASE
        elif nothing:
            return COINBASE
        else:
            spent_at[counts[INS]] = at
            counts[INS] += 1
        at = _after_texts(data, at + 36, end, 1)
        if at < 0:
            return at
        if end - at < 4:
            return CUT
        at += 4
    return at


@kernel()
def _outputs(data, at, end, counts, value, script_at, script_size):
    number, at = compact_size(data, at, end)
    if at < 0:
        return at
    if number == 0:
        return EMPTY
    if number > end or number * 9 > end - at:
        return CUT
    for _ in range(number):
        if end - at < 9:
            return CUT
        amount = number_at(data, at, 8)
        if amount > MAXIMUM:
            return VALUE
        size, at = compact_size(data, at + 8, end)
        if at < 0:
            return at
        if size > end - at:
            return CUT
        k = counts[OUTS]
        value[k] = np.int64(amount)
        script_at[k] = at
        script_size[k] = size
        counts[OUTS] += 1
        at += size
    return at


@kernel()
def _after_witness(data, at, end, flags, inputs, counts):
    """Skip what is no part of a transaction's id."""
    if flags & 1:
        for _ in range(inputs):
            items, at = compact_size(data, at, end)
            if at < 0:
                return at
            if items > end - at:
                return CUT
            at = _after_texts(data, at, end, items)
            if at < 0:
                return at
    if flags & 8:
        if at >= end:
            return CUT
        if data[at] != 0:
            return HIDDEN
        counts[HOGEX] = 1
        at += 1
    return at


@kernel()
def _keep(data, first, last, plain, counts):
    """Add bytes to those that make the id."""
    k = counts[PLAIN]
    plain[k : k + last - first] = data[first:last]
    counts[PLAIN] += last - first


@kernel()
def _transaction(data, at, end, rules, coinbase, counts, plain, spent_at, value, s_at, s_size):
    """Walk over one transaction, and give the place after it."""
    if end - at < 10:
        return CUT
    _keep(data, at, at + 4, plain, counts)
    version = np.int64(number_at(data, at, 2))
    special = np.int64(number_at(data, at + 2, 2)) if rules & SPECIAL and version >= 3 else 0
    flags = 0
    at += 4
    if rules & WITNESS and data[at] == 0:
        flags = np.int64(data[at + 1])
        known = 9 if rules & MWEB else 1
        if flags == 0 or flags & ~known:
            return FLAGS
        at += 2
    first = at
    number, at = compact_size(data, at, end)
    if at < 0:
        return at
    if number == 0:
        return PLATFORM if special == UNLOCK else EMPTY
    at = _inputs(data, at, end, number, coinbase, counts, spent_at)
    if at < 0:
        return at
    at = _outputs(data, at, end, counts, value, s_at, s_size)
    if at < 0:
        return at
    _keep(data, first, at, plain, counts)
    at = _after_witness(data, at, end, flags, number, counts)
    if at < 0:
        return at
    if end - at < 4:
        return CUT
    first = at
    at += 4
    if special:
        at = _after_texts(data, at, end, 1)
        if at < 0:
            return at
    _keep(data, first, at, plain, counts)
    counts[TXS] += 1
    return at


@kernel()
def walk(data, starts, ends, rules):
    """Find all transactions of blocks, each from their number at `starts` to `ends`.

    Gives the fault (0 if none), the block and place of it; per block the number of transactions and
    per transaction the last of its bytes in `plain`, of its inputs and of its outputs; per input
    where the coin it spends is named; per output value, place and size of its script. Inputs of
    coinbases are left out.
    """
    octets = 0
    for b in range(len(starts)):
        octets += ends[b] - starts[b]
    plain = np.empty(octets, np.uint8)
    spent_at = np.empty(octets // 41 + 1, np.int64)
    value = np.empty(octets // 9 + 1, np.int64)
    s_at = np.empty(octets // 9 + 1, np.int64)
    s_size = np.empty(octets // 9 + 1, np.int64)
    lasts = np.empty((octets // 10 + 1, 3), np.int64)
    sizes = np.zeros(len(starts), np.int64)
    counts = np.zeros(5, np.int64)
    fault, b, at = 0, 0, 0
    for b in range(len(starts)):
        at, end = starts[b], ends[b]
        fault, at = _block(
            data, at, end, rules, counts, plain, spent_at, value, s_at, s_size, lasts
        )
        sizes[b] = counts[TXS]
        if fault < 0:
            break
    n = counts
    return (
        (fault, b, at),
        sizes,
        lasts[: n[TXS]],
        plain[: n[PLAIN]],
        spent_at[: n[INS]],
        value[: n[OUTS]],
        s_at[: n[OUTS]],
        s_size[: n[OUTS]],
    )


@kernel()
def _block(data, at, end, rules, counts, plain, spent_at, value, s_at, s_size, lasts):
    """Walk over one block; give its fault, and the place of the transaction that has it."""
    number, after = compact_size(data, at, end)
    if after < 0:
        return after, at
    at = after
    if number == 0:
        return NO_COINBASE, at
    counts[HOGEX] = 0
    for i in range(number):
        after = _transaction(
            data, at, end, rules, i == 0, counts, plain, spent_at, value, s_at, s_size
        )
        if after < 0:
            return after, at
        at = after
        t = counts[TXS] - 1
        lasts[t, 0], lasts[t, 1], lasts[t, 2] = counts[PLAIN], counts[INS], counts[OUTS]
    # After its last transaction, the HogEx, a Litecoin block carries the whole hidden side chain.
    if at != end and not counts[HOGEX]:
        return LEFT, at
    return 0, at


@kernel()
def varint(data, at, end):
    """Give a number as Bitcoin Core writes it in its own files, and the place after it."""
    number = np.uint64(0)
    while True:
        if at >= end:
            return np.uint64(0), CUT
        if number > np.uint64((2**64 - 1) >> 7):
            return np.uint64(0), VALUE
        octet = np.uint64(data[at])
        at += 1
        number = number << np.uint64(7) | octet & np.uint64(0x7F)
        if octet < np.uint64(0x80):
            return number, at
        if number == np.uint64(2**64 - 1):
            return np.uint64(0), VALUE
        number += np.uint64(1)


@kernel()
def amount_of(code):
    """Give the amount of a compressed one (Bitcoin Core's compressor.cpp), below 0 if too large."""
    one, nine, ten = np.uint64(1), np.uint64(9), np.uint64(10)
    if code == 0:
        return np.int64(0)
    code -= one
    zeros = np.int64(code % ten)
    code //= ten
    # Neither can pass 2^64: the code is below a tenth of it.
    amount = code // nine * ten + code % nine + one if zeros < 9 else code + one
    for _ in range(zeros):
        if amount > MAXIMUM // ten:
            return np.int64(VALUE)
        amount *= ten
    return np.int64(amount) if amount <= MAXIMUM else np.int64(VALUE)


@kernel()
def _coin(data, at, end, coins, k):
    """Read one spent coin: value, kind, place and size of its script; give the place after it."""
    code, at = varint(data, at, end)
    if at >= 0 and code > np.uint64(1):  # a height above 0: a version stands here, now always 0
        _, at = varint(data, at, end)
    return _compressed(data, at, end, coins, k) if at >= 0 else at


@kernel()
def _compressed(data, at, end, coins, k):
    """Read value and script of a coin as Bitcoin Core compresses them; give the place after."""
    code, at = varint(data, at, end)
    if at < 0:
        return at
    coins[k, 0] = amount_of(code)
    if coins[k, 0] < 0:
        return VALUE
    before = at
    number, at = varint(data, at, end)
    if at < 0:
        return at
    if number > np.uint64(end + 6):
        return CUT
    form = np.int64(number)
    if form < 2:
        coins[k, 1] = KEY_HASH if form == 0 else SCRIPT_HASH
        coins[k, 2], coins[k, 3] = at, 20
    elif form < 6:
        # The form, one byte, is the first byte of a compressed key.
        coins[k, 1] = KEY if form < 4 else HALF_KEY
        coins[k, 2], coins[k, 3] = before, 33
    else:
        coins[k, 2], coins[k, 3] = at, form - 6
    if coins[k, 3] > end - coins[k, 2]:
        return CUT
    if form >= 6:
        coins[k, 1], coins[k, 2] = kind_of_script(data, at, form - 6)
    return at + form - 6 if form >= 6 else coins[k, 2] + coins[k, 3]


@kernel()
def spent_coins(data, start, end):
    """Read the undo of one block: the fault, coins per transaction, and each coin as in `_coin`."""
    coins = np.empty(((end - start) // 3 + 1, 4), np.int64)
    number, at = compact_size(data, start, end)
    if at < 0 or number > end - at:
        return min(at, CUT), np.empty(0, np.int64), coins[:0]
    shape = np.zeros(number, np.int64)
    k = 0
    for t in range(number):
        shape[t], at = compact_size(data, at, end)
        if at < 0 or shape[t] > end - at:
            return min(at, CUT), shape, coins[:0]
        for _ in range(shape[t]):
            if k == len(coins):
                return CUT, shape, coins[:0]
            at = _coin(data, at, end, coins, k)
            if at < 0:
                return at, shape, coins[:0]
            k += 1
    return (0 if at == end else LEFT), shape, coins[:k]


@kernel()
def unspent_coins(data, start, end):
    """Read the transactions of a UTXO snapshot that are whole, up to one that is cut short.

    Give the fault, the place after the last one, and each coin: as in `_coin`, then the place of
    its transaction's id, its number there and its height.
    """
    coins = np.empty(((end - start) // 4 + 1, 7), np.int64)
    k, begin = 0, start
    while end - begin > 32:
        whole, fault = k, 0
        number, at = compact_size(data, begin + 32, end)
        if at >= 0 and number == 0:
            fault = EMPTY
        elif at < 0 or number > (end - at) // 4:
            fault = min(at, CUT)
        else:
            for _ in range(number):
                coins[k, 4] = begin
                coins[k, 5], at = compact_size(data, at, end)
                if at >= 0 and coins[k, 5] >= 2**32:
                    at = VALUE
                if at >= 0:
                    code, at = varint(data, at, end)
                    coins[k, 6] = np.int64(code >> np.uint64(1))
                if at >= 0:
                    at = _compressed(data, at, end, coins, k)
                if at < 0:
                    fault = at
                    break
                k += 1
        if fault:
            return (0 if fault == CUT else fault), begin, coins[:whole]
        begin = at
    return 0, begin, coins[:k]
