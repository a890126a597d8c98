"""Hot loops of SHA-256: ids of transactions and Merkle roots, hashed without holding other threads.

hashlib holds the interpreter's lock while it hashes something as short as a transaction, so several
threads that use it take turns.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from coinhaze.formats.bitcoin_raw.wire import Malformed, double_sha256, merkle_root
from coinhaze.kernels import kernel

WORD = 0xFFFFFFFF
ENDED = np.uint32(0x80000000)  # the bit behind a text


def _roots(power, bits=32):
    """Give the first `bits` bits after the point of roots of the first 64 primes."""
    primes = [p for p in range(2, 312) if all(p % q for q in range(2, p))]
    roots = []
    for p in primes:
        low, high = 0, p << bits
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if middle**power <= p << bits * power else (low, middle)
        roots.append(low % 2**bits)
    return np.array(roots, np.uint32)


SHA256_ROUNDS, SHA256_START = _roots(3), _roots(2)[:8]


@kernel(inline="always")
def _turn(x, n):
    return (x >> np.uint32(n)) | (x << np.uint32(32 - n))


@kernel(error_model="numpy", _nrt=False)
def sha256_block(w, state):
    """Hash one block of 16 words, which are used up."""
    a, b, c, d = state[0], state[1], state[2], state[3]
    e, f, g, h = state[4], state[5], state[6], state[7]
    for t in range(64):
        i = t & 15
        if t >= 16:
            x, y = w[(t + 1) & 15], w[(t + 14) & 15]
            s0 = _turn(x, 7) ^ _turn(x, 18) ^ (x >> np.uint32(3))
            s1 = _turn(y, 17) ^ _turn(y, 19) ^ (y >> np.uint32(10))
            w[i] = np.uint32(w[i] + s0 + w[(t + 9) & 15] + s1)
        s1 = _turn(e, 6) ^ _turn(e, 11) ^ _turn(e, 25)
        one = np.uint32(h + s1 + (g ^ (e & (f ^ g))) + SHA256_ROUNDS[t] + w[i])
        s0 = _turn(a, 2) ^ _turn(a, 13) ^ _turn(a, 22)
        two = np.uint32(s0 + ((a & b) | (c & (a | b))))
        h, g, f, e = g, f, e, np.uint32(d + one)
        d, c, b, a = c, b, a, np.uint32(one + two)
    state[0] += a
    state[1] += b
    state[2] += c
    state[3] += d
    state[4] += e
    state[5] += f
    state[6] += g
    state[7] += h


@kernel(error_model="numpy", _nrt=False)
def _double(data, begin, end, w, state, out, k):
    """Hash bytes twice into a row."""
    for j in range(8):
        state[j] = SHA256_START[j]
    at = begin
    while at + 64 <= end:
        for j in range(16):
            p = at + 4 * j
            w[j] = (
                np.uint32(data[p]) << np.uint32(24)
                | np.uint32(data[p + 1]) << np.uint32(16)
                | np.uint32(data[p + 2]) << np.uint32(8)
                | np.uint32(data[p + 3])
            )
        sha256_block(w, state)
        at += 64
    left = end - at
    for j in range(16):
        w[j] = 0
    for j in range(left):
        w[j >> 2] |= np.uint32(data[at + j]) << np.uint32(24 - 8 * (j & 3))
    w[left >> 2] |= ENDED >> np.uint32(8 * (left & 3))
    if left >= 56:
        sha256_block(w, state)
        for j in range(16):
            w[j] = 0
    size = (end - begin) * 8
    w[14], w[15] = np.uint32(size >> 32), np.uint32(size & WORD)
    sha256_block(w, state)
    for j in range(8):
        w[j], w[8 + j] = state[j], 0
        state[j] = SHA256_START[j]
    w[8], w[15] = ENDED, 256
    sha256_block(w, state)
    for j in range(8):
        for q in range(4):
            out[k, 4 * j + q] = (state[j] >> np.uint32(24 - 8 * q)) & np.uint32(255)


def _hashes(data, ends):
    octets = data.tobytes()
    hashes = [double_sha256(octets[a:b]) for a, b in pairwise([0, *ends.tolist()])]
    return np.frombuffer(b"".join(hashes), np.uint8).reshape(-1, 32)


@kernel(plain=_hashes, error_model="numpy")
def double_hashes(data, ends):
    """Hash texts that stand one behind the other, as Bitcoin does; `ends` is where each ends."""
    out = np.empty((len(ends), 32), np.uint8)
    w, state = np.empty(16, np.uint32), np.empty(8, np.uint32)
    begin = 0
    for k in range(len(ends)):
        _double(data, begin, ends[k], w, state, out, k)
        begin = ends[k]
    return out


def _roots_of(ids, after):
    roots = np.zeros((len(after), 32), np.uint8)
    twice = np.zeros(len(after), np.bool_)
    for k, (first, last) in enumerate(pairwise([0, *after.tolist()])):
        try:
            roots[k] = np.frombuffer(merkle_root([i.tobytes() for i in ids[first:last]]), np.uint8)
        except Malformed:
            twice[k] = True
    return roots, twice


@kernel(plain=_roots_of, error_model="numpy")
def merkle_roots(ids, after):
    """Give the Merkle root of each block, and whether its list shares the root with a shorter one.

    `after` is how many ids there are up to each block, of which each has one at least.
    """
    roots = np.zeros((len(after), 32), np.uint8)
    twice = np.zeros(len(after), np.bool_)
    w, state = np.empty(16, np.uint32), np.empty(8, np.uint32)
    first = 0
    for k in range(len(after)):
        n = after[k] - first
        row = np.empty((n + 1, 32), np.uint8)
        row[:n] = ids[first : after[k]]
        first = after[k]
        flat = row.reshape(-1)
        while n > 1:
            for i in range(n // 2):
                same = True
                for j in range(32):
                    same = same and row[2 * i, j] == row[2 * i + 1, j]
                twice[k] = twice[k] or same
            if n % 2:
                row[n] = row[n - 1]
                n += 1
            n //= 2
            for i in range(n):
                _double(flat, 64 * i, 64 * i + 64, w, state, row, i)
        roots[k] = row[0]
    return roots, twice
