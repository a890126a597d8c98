"""PSBTs written from plain facts, apart from the reader's own code."""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass, replace

from formats.block_samples import ODD_SCRIPTS

SCRIPTS = [script for script in ODD_SCRIPTS.values() if len(script) < 200]


def size(number: int) -> bytes:
    if number < 253:
        return bytes([number])
    return b"\xfd" + number.to_bytes(2, "little")


def text(octets: bytes) -> bytes:
    return size(len(octets)) + octets


def record(kind: int, value: bytes, more: bytes = b"") -> bytes:
    return text(bytes([kind]) + more) + text(value)


def transaction(spends: list[tuple[bytes, int]], pays: list[tuple[int, bytes]]) -> bytes:
    octets = (2).to_bytes(4, "little") + size(len(spends))
    for txid, vout in spends:
        octets += txid + vout.to_bytes(4, "little") + b"\0" + b"\xfd\xff\xff\xff"
    octets += size(len(pays))
    for value, script in pays:
        octets += value.to_bytes(8, "little") + text(script)
    return octets + bytes(4)


def digest(octets: bytes) -> bytes:
    return hashlib.sha256(hashlib.sha256(octets).digest()).digest()


@dataclass(frozen=True)
class Spend:
    """A coin, the transaction that made it, and what of both the PSBT tells."""

    maker: bytes
    vout: int
    value: int
    script: bytes
    whole: bool
    witness: bool

    @property
    def txid(self) -> bytes:
        return digest(self.maker)

    def record(self) -> bytes:
        told = record(0, self.maker) if self.whole else b""
        if self.witness:
            told += record(1, self.value.to_bytes(8, "little") + text(self.script))
        return told


@dataclass(frozen=True)
class Sample:
    """What a PSBT says."""

    spends: tuple[Spend, ...]
    pays: tuple[tuple[int, bytes], ...]

    def plain(self) -> bytes:
        return transaction([(s.txid, s.vout) for s in self.spends], list(self.pays))

    def first(self) -> bytes:
        """Write version 0."""
        octets = b"psbt\xff" + record(0, self.plain()) + b"\0"
        for spend in self.spends:
            octets += spend.record() + record(6, b"key", b"\2" * 33) + b"\0"
        return octets + b"\0" * len(self.pays)

    def second(self, *, locktime: bytes = b"") -> bytes:
        """Write version 2."""
        octets = b"psbt\xff" + record(2, (2).to_bytes(4, "little")) + locktime
        octets += record(4, size(len(self.spends))) + record(5, size(len(self.pays)))
        octets += record(0xFB, (2).to_bytes(4, "little")) + b"\0"
        for spend in self.spends:
            octets += spend.record() + record(0x0E, spend.txid)
            octets += record(0x0F, spend.vout.to_bytes(4, "little"))
            octets += record(0x10, b"\xfd\xff\xff\xff") + b"\0"
        for value, script in self.pays:
            octets += record(3, value.to_bytes(8, "little")) + record(4, script) + b"\0"
        return octets


def draw(chance: random.Random) -> Sample:
    """Draw a proposal: one to four coins, paid out with a fee."""
    spends = []
    for _ in range(chance.randrange(1, 5)):
        pays = [
            (chance.randrange(1, 10**10), chance.choice(SCRIPTS))
            for _ in range(chance.randrange(1, 4))
        ]
        maker = transaction([(chance.randbytes(32), chance.randrange(4))], pays)
        vout = chance.randrange(len(pays))
        told = chance.choice(((True, False), (False, True), (True, True), (False, False)))
        spends.append(Spend(maker, vout, *pays[vout], *told))
    money, made = sum(s.value for s in spends), []
    for _ in range(chance.randrange(0, 4)):
        made.append((chance.randrange(money + 1), chance.choice(SCRIPTS)))
        money -= made[-1][0]
    return Sample(tuple(spends), tuple(made))


def told(sample: Sample) -> Sample:
    """Give the same with every coin told."""
    return replace(sample, spends=tuple(replace(s, witness=True) for s in sample.spends))
