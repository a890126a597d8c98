"""Raw blocks read byte by byte: slow, obvious, for comparison."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import new, sha256

from formats.block_samples import root, twice

LETTERS = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
LETTERS32 = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"


class Bytes:
    """Bytes taken one at a time; `taken` remembers them."""

    def __init__(self, octets: bytes) -> None:
        self.left: Iterator[int] = iter(octets)
        self.taken: list[int] = []

    def one(self) -> int:
        octet = next(self.left)
        self.taken.append(octet)
        return octet

    def many(self, n: int) -> bytes:
        return bytes(self.one() for _ in range(n))

    def number(self, n: int) -> int:
        return sum(self.one() << 8 * i for i in range(n))

    def compact(self) -> int:
        first = self.one()
        return first if first < 0xFD else self.number({0xFD: 2, 0xFE: 4, 0xFF: 8}[first])

    def forget(self, n: int) -> None:
        del self.taken[len(self.taken) - n :]


@dataclass
class Tx:
    txid: str
    inputs: list[tuple[str, int]] = field(default_factory=list)
    outputs: list[tuple[int, bytes]] = field(default_factory=list)


def read_tx(b: Bytes) -> Tx:
    b.taken.clear()
    b.number(4)
    number, witness = b.compact(), False
    if number == 0:
        b.one()
        b.forget(2)
        number, witness = b.compact(), True
    inputs = []
    for _ in range(number):
        inputs.append((b.many(32)[::-1].hex(), b.number(4)))
        b.many(b.compact())
        b.number(4)
    outputs = [(b.number(8), b.many(b.compact())) for _ in range(b.compact())]
    before = len(b.taken)
    if witness:
        for _ in range(number):
            for _ in range(b.compact()):
                b.many(b.compact())
    del b.taken[before:]
    b.number(4)
    return Tx(twice(bytes(b.taken))[::-1].hex(), inputs, outputs)


@dataclass
class Block:
    hash: str
    previous: str
    time: int
    merkle: str
    txs: list[Tx]


def read_block(octets: bytes) -> Block:
    b = Bytes(octets)
    b.number(4)
    previous, merkle, time = b.many(32), b.many(32), b.number(4)
    b.many(8)
    txs = [read_tx(b) for _ in range(b.compact())]
    assert next(b.left, None) is None
    assert root([bytes.fromhex(t.txid)[::-1] for t in txs]) == merkle
    return Block(
        twice(octets[:80])[::-1].hex(), previous[::-1].hex(), time, merkle[::-1].hex(), txs
    )


def read_file(octets: bytes) -> list[Block]:
    blocks = []
    while octets:
        length = int.from_bytes(octets[4:8], "little")
        blocks.append(read_block(octets[8 : 8 + length]))
        octets = octets[8 + length :]
    return blocks


def base58(version: bytes, payload: bytes) -> str:
    octets = version + payload
    octets += twice(octets)[:4]
    number, letters = int.from_bytes(octets), ""
    while number:
        number, digit = divmod(number, 58)
        letters = LETTERS[digit] + letters
    return "1" * (len(octets) - len(octets.lstrip(b"\0"))) + letters


def bech32(hrp: str, version: int, program: bytes) -> str:
    bits = "".join(f"{o:08b}" for o in program)
    bits += "0" * (-len(bits) % 5)
    values = [version] + [int(bits[i : i + 5], 2) for i in range(0, len(bits), 5)]
    check = 1
    for value in [*(ord(c) >> 5 for c in hrp), 0, *(ord(c) & 31 for c in hrp), *values, *[0] * 6]:
        top = check >> 25
        check = (check & 0x1FFFFFF) << 5 ^ value
        steps = (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)
        for i, step in enumerate(steps):
            check ^= step if top >> i & 1 else 0
    check ^= 0x2BC830A3 if version else 1
    values += [check >> 5 * (5 - i) & 31 for i in range(6)]
    return hrp + "1" + "".join(LETTERS32[v] for v in values)


def hash160(octets: bytes) -> bytes:
    return new("ripemd160", sha256(octets).digest()).digest()


def is_key(octets: bytes) -> bool:
    return (len(octets) == 33 and octets[0] in (2, 3)) or (
        len(octets) == 65 and octets[0] in (4, 6, 7)
    )


def multisig_keys(s: bytes) -> list[bytes]:
    if len(s) < 3 or s[-1] != 0xAE or not 0x51 <= s[0] <= s[-2] <= 0x60:
        return []
    keys, rest = [], s[1:-2]
    while rest:
        keys.append(rest[1 : 1 + rest[0]])
        if len(keys[-1]) != rest[0] or not is_key(keys[-1]):
            return []
        rest = rest[1 + rest[0] :]
    return keys if len(keys) == s[-2] - 0x50 else []


def owner(s: bytes, key: bytes = b"\0", script: bytes = b"\5", hrp: str = "bc") -> str | None:
    if len(s) > 10_000:
        return None
    if len(s) == 25 and s.startswith(b"\x76\xa9\x14") and s.endswith(b"\x88\xac"):
        return base58(key, s[3:23])
    if len(s) == 23 and s.startswith(b"\xa9\x14") and s.endswith(b"\x87"):
        return base58(script, s[2:22])
    if hrp and len(s) in (22, 34) and s[0] == 0 and s[1] == len(s) - 2:
        return bech32(hrp, 0, s[2:])
    if hrp and len(s) == 34 and s[:2] == b"\x51\x20":
        return bech32(hrp, 1, s[2:])
    if len(s) in (35, 67) and s[0] == len(s) - 2 and s[-1] == 0xAC and is_key(s[1:-1]):
        return base58(key, hash160(s[1:-1]))
    return ",".join(sorted({base58(key, hash160(k)) for k in multisig_keys(s)})) or None


def spendable(s: bytes) -> bool:
    return s[:1] != b"\x6a" and len(s) <= 10_000
