"""Hot loops over output scripts: which kind they are, and the letters of their addresses.

Slow twins in the tests: tests/formats/test_scripts.py.
"""

from __future__ import annotations

import numpy as np

from coinhaze.formats.bitcoin_raw.hash_kernels import SHA256_START, sha256_block
from coinhaze.kernels import kernel

# What a script pays to. HALF_KEY, only in undo files: a key of 65 bytes of which half is left out.
OTHER, KEY_HASH, SCRIPT_HASH, WITNESS_KEY, WITNESS_SCRIPT, TAPROOT = range(6)
KEY, MULTISIG, NOBODY, HALF_KEY = range(6, 10)
LARGEST_SCRIPT = 10_000  # one above it fails before it runs: nobody can spend its coin

BASE58 = np.frombuffer(b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz", np.uint8)
BASE32 = np.frombuffer(b"qpzry9x8gf2tvdw0s3jn54khce6mua7l", np.uint8)
BECH32_STEPS = np.array([0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3], np.int64)
BECH32, BECH32M = 1, 0x2BC830A3
LONGEST = 90  # letters of an address, by BIP173


# RIPEMD-160: the order of words and the turns, for the left and the right line.
_RHO = (7, 4, 13, 1, 10, 6, 15, 3, 12, 0, 9, 5, 2, 14, 11, 8)


def _ripemd_words():
    lines = []
    for line in (list(range(16)), [(9 * i + 5) % 16 for i in range(16)]):
        words = []
        for _ in range(5):
            words += line
            line = [_RHO[w] for w in line]
        lines.append(words)
    return np.array(lines, np.int64)


RIPEMD_WORDS = _ripemd_words()
# By round of 16 and word.
_TURNS = (
    (11, 14, 15, 12, 5, 8, 7, 9, 11, 13, 14, 15, 6, 7, 9, 8),
    (12, 13, 11, 15, 6, 9, 9, 7, 12, 15, 11, 13, 7, 8, 7, 7),
    (13, 15, 14, 11, 7, 7, 6, 8, 13, 14, 13, 12, 5, 5, 6, 9),
    (14, 11, 12, 14, 8, 6, 5, 5, 15, 12, 15, 14, 9, 9, 8, 6),
    (15, 12, 13, 13, 9, 5, 8, 6, 14, 11, 12, 11, 8, 6, 5, 5),
)
RIPEMD_TURNS = np.array(
    [[_TURNS[j // 16][word] for j, word in enumerate(words)] for words in RIPEMD_WORDS], np.int64
)
RIPEMD_ADDED = np.array(
    [
        [0, 0x5A827999, 0x6ED9EBA1, 0x8F1BBCDC, 0xA953FD4E],
        [0x50A28BE6, 0x5C4DD124, 0x6D703EF3, 0x7A6D76E9, 0],
    ],
    np.uint32,
)
RIPEMD_START = np.array([0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0], np.uint32)


@kernel()
def _is_key(data, at, size):
    """Tell whether bytes have the first byte and the size of a public key."""
    if size == 33:
        return data[at] == 2 or data[at] == 3
    return size == 65 and (data[at] == 4 or data[at] == 6 or data[at] == 7)


@kernel()
def _is_multisig(data, at, size):
    """Tell whether a script asks for m of n keys that stand in it."""
    if size < 37 or data[at + size - 1] != 0xAE:
        return False
    wanted, given = np.int64(data[at]) - 0x50, np.int64(data[at + size - 2]) - 0x50
    if not 1 <= wanted <= given <= 16:
        return False
    k, last = at + 1, at + size - 2
    for _ in range(given):
        length = np.int64(data[k])
        if last - k - 1 < length or not _is_key(data, k + 1, length):
            return False
        k += 1 + length
    return k == last


@kernel()
def kind_of_script(data, at, size):
    """Give the kind of a script and where what it pays to begins."""
    if size > LARGEST_SCRIPT:
        return NOBODY, at
    if size < 22:
        return (NOBODY if size > 0 and data[at] == 0x6A else OTHER), at
    a, b, last = data[at], data[at + 1], data[at + size - 1]
    if a == 0x6A:
        return NOBODY, at
    if size == 25 and a == 0x76 and b == 0xA9 and data[at + 2] == 20:
        if data[at + 23] == 0x88 and last == 0xAC:
            return KEY_HASH, at + 3
    elif size == 23 and a == 0xA9 and b == 20 and last == 0x87:
        return SCRIPT_HASH, at + 2
    elif size == 22 and a == 0 and b == 20:
        return WITNESS_KEY, at + 2
    elif size == 34 and b == 32 and (a == 0 or a == 0x51):
        return (WITNESS_SCRIPT if a == 0 else TAPROOT), at + 2
    elif last == 0xAC and np.int64(a) + 2 == size and _is_key(data, at + 1, size - 2):
        return KEY, at + 1
    elif _is_multisig(data, at, size):
        return MULTISIG, at
    return OTHER, at


@kernel()
def kinds_of_scripts(data, starts, sizes):
    """Give the kind of each script and where what it pays to begins."""
    kinds = np.empty(len(starts), np.int64)
    places = np.empty(len(starts), np.int64)
    for i in range(len(starts)):
        kinds[i], places[i] = kind_of_script(data, starts[i], sizes[i])
    return kinds, places


@kernel()
def _turn_right(x, n):
    return (x >> np.uint32(n)) | (x << np.uint32(32 - n))


@kernel()
def _add_checksum(text, size, w, state):
    """Put the first four bytes of the double SHA-256 of a short text behind it."""
    w[:16] = 0
    text[size] = 0x80
    for i in range(size + 1):
        w[i // 4] |= np.uint32(text[i]) << np.uint32(24 - 8 * (i % 4))
    w[15] = 8 * size
    state[:] = SHA256_START
    sha256_block(w, state)
    w[:8] = state
    w[8:16] = 0
    w[8] = np.uint32(0x80000000)
    w[15] = 256
    state[:] = SHA256_START
    sha256_block(w, state)
    for i in range(4):
        text[size + i] = (state[0] >> np.uint32(24 - 8 * i)) & np.uint32(255)


@kernel()
def _write_base58(text, size, out, at):
    """Write bytes as a number of base 58; every zero byte before it is a letter 1."""
    zeros = 0
    while zeros < size and text[zeros] == 0:
        out[at] = BASE58[0]
        at += 1
        zeros += 1
    limbs = np.zeros(8, np.int64)  # of five digits, the lowest first
    used = 0
    for i in range(zeros, size):
        carry = np.int64(text[i])
        for k in range(used):
            carry += limbs[k] << 8
            limbs[k] = carry % 656_356_768
            carry //= 656_356_768
        if carry:
            limbs[used] = carry
            used += 1
    digits = np.zeros(40, np.int64)
    number = 0
    for k in range(used):
        limb = limbs[k]
        for _ in range(5):
            digits[number] = limb % 58
            limb //= 58
            number += 1
    while number and digits[number - 1] == 0:
        number -= 1
    for k in range(number - 1, -1, -1):
        out[at] = BASE58[digits[k]]
        at += 1
    return at


@kernel()
def _step(check, value):
    top = check >> 25
    check = (check & 0x1FFFFFF) << 5 ^ value
    for i in range(5):
        if top >> i & 1:
            check ^= BECH32_STEPS[i]
    return check


@kernel()
def _write_bech32(data, place, size, version, hrp, out, at):
    """Write a witness program (BIP173, and BIP350 for versions above 0)."""
    check = np.int64(1)
    for c in hrp:
        check = _step(check, np.int64(c) >> 5)
    check = _step(check, 0)
    for c in hrp:
        check = _step(check, np.int64(c) & 31)
        out[at] = c
        at += 1
    out[at] = 49  # the digit 1 parts the network from the rest
    out[at + 1] = BASE32[version]
    at += 2
    check = _step(check, version)
    bits, held = 0, 0
    for i in range(size + 1):
        if i < size:
            held = (held << 8 | np.int64(data[place + i])) & 0xFFF
            bits += 8
        elif bits:
            held <<= 5 - bits
            bits = 5
        while bits >= 5:
            bits -= 5
            value = held >> bits & 31
            check = _step(check, value)
            out[at] = BASE32[value]
            at += 1
    for _ in range(6):
        check = _step(check, 0)
    check ^= BECH32 if version == 0 else BECH32M
    for i in range(6):
        out[at] = BASE32[check >> 5 * (5 - i) & 31]
        at += 1
    return at


@kernel()
def write_addresses(data, kinds, places, key_version, script_version, hrp):
    """Write the addresses of hashes and witness programs: letters, and where each one ends."""
    out = np.empty(len(kinds) * LONGEST, np.uint8)
    ends = np.zeros(len(kinds) + 1, np.int32)
    text = np.zeros(32, np.uint8)
    w = np.zeros(16, np.uint32)
    state = np.zeros(8, np.uint32)
    at = 0
    for i in range(len(kinds)):
        kind, place = kinds[i], places[i]
        if kind in (KEY_HASH, SCRIPT_HASH):
            version = key_version if kind == KEY_HASH else script_version
            n = len(version)
            text[:n] = version
            text[n : n + 20] = data[place : place + 20]
            _add_checksum(text, n + 20, w, state)
            at = _write_base58(text, n + 24, out, at)
        elif len(hrp) and WITNESS_KEY <= kind <= TAPROOT:
            size = 20 if kind == WITNESS_KEY else 32
            at = _write_bech32(data, place, size, 1 if kind == TAPROOT else 0, hrp, out, at)
        ends[i + 1] = at
    return out[:at], ends


@kernel()
def _mix(round_, x, y, z):
    if round_ == 0:
        return x ^ y ^ z
    if round_ == 1:
        return (x & y) | (~x & z)
    if round_ == 2:
        return (x | ~y) ^ z
    if round_ == 3:
        return (x & z) | (y & ~z)
    return x ^ (y | ~z)


@kernel()
def ripemd160(digests):
    """Hash texts of 32 bytes, a row each: the only ones that addresses need."""
    hashes = np.empty((len(digests), 20), np.uint8)
    words = np.zeros(16, np.uint32)
    words[8], words[14] = 0x80, 256
    ends = np.empty((2, 5), np.uint32)
    for i in range(len(digests)):
        for k in range(8):
            words[k] = 0
            for j in range(4):
                words[k] |= np.uint32(digests[i, 4 * k + j]) << np.uint32(8 * j)
        for line in range(2):
            a, b, c = RIPEMD_START[0], RIPEMD_START[1], RIPEMD_START[2]
            d, e = RIPEMD_START[3], RIPEMD_START[4]
            for j in range(80):
                part = j // 16
                f = _mix(part if line == 0 else 4 - part, b, c, d)
                t = np.uint32(a + f + words[RIPEMD_WORDS[line, j]] + RIPEMD_ADDED[line, part])
                t = np.uint32(_turn_right(t, 32 - RIPEMD_TURNS[line, j]) + e)
                a, e, d, c, b = e, d, _turn_right(c, 22), b, t
            ends[line, 0], ends[line, 1], ends[line, 2] = a, b, c
            ends[line, 3], ends[line, 4] = d, e
        for k in range(5):
            h = np.uint32(RIPEMD_START[(k + 1) % 5] + ends[0, (k + 2) % 5] + ends[1, (k + 3) % 5])
            for j in range(4):
                hashes[i, 4 * k + j] = (h >> np.uint32(8 * j)) & np.uint32(255)
    return hashes
