"""Small Zcash blocks with transactions of every version, and a slow twin that reads them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

from formats.block_samples import (
    compact,
    height_script,
    pay,
    pay_to_key_hash,
    root,
    spend,
    text,
    twice,
)
from formats.block_twin import Bytes

MAIN, TEST = bytes.fromhex("24e92764"), bytes.fromhex("fa1af9bf")
EASIEST_MAIN, EASIEST_TEST = 0x1F07FFFF, 0x2007FFFF
GROUPS = {3: 0x03C48270, 4: 0x892F2085, 5: 0x26A7270A, 6: 0xD884B698}
TIME = 1_650_000_000
NU5 = bytes.fromhex("b4d0d6c2")


def filler(n: int, seed: int = 0) -> bytes:
    return random.Random(seed).randbytes(n)


def amount(n: int) -> bytes:
    return n.to_bytes(8, "little", signed=True)


def head(version: int) -> bytes:
    if version < 3:
        return version.to_bytes(4, "little")
    return (version | 1 << 31).to_bytes(4, "little") + GROUPS[version].to_bytes(4, "little")


def transparent(inputs: Sequence[bytes], outputs: Sequence[bytes]) -> bytes:
    return compact(len(inputs)) + b"".join(inputs) + compact(len(outputs)) + b"".join(outputs)


def joinsplits(flows: Sequence[tuple[int, int]], size: int) -> bytes:
    each = b"".join(amount(a) + amount(b) + filler(size - 16) for a, b in flows)
    return compact(len(flows)) + each + (filler(96) if flows else b"")


@dataclass(frozen=True)
class Made:
    """What a transaction is made of; amounts as the format has them, not as we turn them."""

    version: int
    inputs: Sequence[bytes] = ()
    outputs: Sequence[bytes] = ()
    sprout: Sequence[tuple[int, int]] = ()  # vpub_old, vpub_new
    sapling: int = 0  # valueBalance
    spends: int = 0
    sapling_outputs: int = 0
    orchard: int = 0
    actions: int = 0
    ironwood: int = 0
    ironwood_actions: int = 0

    def octets(self) -> bytes:
        both = transparent(self.inputs, self.outputs)
        if self.version >= 5:
            start = head(self.version) + NU5 + bytes(4) + bytes(4)
            end = self.v5_sapling() + self.v5_orchard()
            if self.version == 6:
                end += actions_octets(self.ironwood_actions, self.ironwood, 14)
            return start + both + end
        out = head(self.version) + both + bytes(4 if self.version < 3 else 8)
        if self.version == 4:
            out += amount(self.sapling) + compact(self.spends) + filler(384 * self.spends)
            out += compact(self.sapling_outputs) + filler(948 * self.sapling_outputs)
        if self.version >= 2:
            out += joinsplits(self.sprout, 1698 if self.version == 4 else 1802)
        return out + filler(64 if self.spends + self.sapling_outputs else 0)

    def v5_sapling(self) -> bytes:
        s, o = self.spends, self.sapling_outputs
        out = compact(s) + filler(96 * s) + compact(o) + filler(756 * o, 1)
        if not s + o:
            return out
        out += amount(self.sapling) + filler(32 if s else 0, 2)
        return out + filler(192 * s + 64 * s + 192 * o + 64, 3)

    def v5_orchard(self) -> bytes:
        return actions_octets(self.actions, self.orchard, 4)

    def v6_id(self) -> bytes:
        """Name a transaction of version 6 (ZIP 229), of the parts it is made of."""
        inputs, outputs = b"".join(self.inputs), b"".join(self.outputs)
        points = b"".join(i[:36] for i in self.inputs)
        sequences = b"".join(i[-4:] for i in self.inputs)
        paid = [digest("ZTxIdPrevoutHash", points), digest("ZTxIdSequencHash", sequences)]
        paid += [digest("ZTxIdOutputsHash", outputs)]
        parts = [
            digest("ZTxIdHeadersHash", head(6) + NU5 + bytes(8)),
            digest("ZTxIdTranspaHash", b"".join(paid) if inputs + outputs else b""),
            self._sapling_id(),
            actions_id(self.actions, self.orchard, 4, "ZTxIdOrchardH_v6", "ZTxIdOrcAct{}Hash"),
            actions_id(
                self.ironwood_actions, self.ironwood, 14, "ZTxIdIronwd_H_v6", "ZTxIdIrnAct{}H_v6"
            ),
        ]
        person = b"ZcashTxHash_" + NU5
        return blake2b(b"".join(parts), digest_size=32, person=person).digest()

    def _sapling_id(self) -> bytes:
        if not self.spends + self.sapling_outputs:
            return digest("ZTxIdSaplingHash", b"")
        spends = cut(filler(96 * self.spends), 96)
        made = cut(filler(756 * self.sapling_outputs, 1), 756)
        some = digest("ZTxIdSSpendCHash", b"".join(s[32:64] for s in spends))
        some += digest("ZTxIdSSpendNH_v6", b"".join(s[:32] + s[64:96] for s in spends))
        # Commitments of value and note, key, 52 bytes of the note, 512 of its memo, the rest.
        other = digest("ZTxIdSOutC__Hash", b"".join(o[32:64] + o[64:96] + o[96:148] for o in made))
        other += digest("ZTxIdSOutM__Hash", b"".join(o[148:660] for o in made))
        other += digest("ZTxIdSOutN__Hash", b"".join(o[:32] + o[660:676] + o[676:] for o in made))
        return digest(
            "ZTxIdSaplingHash",
            digest("ZTxIdSSpendsHash", some if spends else b"")
            + digest("ZTxIdSOutputHash", other if made else b"")
            + amount(self.sapling),
        )


def digest(person: str, octets: bytes) -> bytes:
    return blake2b(octets, digest_size=32, person=person.encode()).digest()


def cut(octets: bytes, size: int) -> list[bytes]:
    return [octets[at : at + size] for at in range(0, len(octets), size)]


def actions_octets(n: int, balance: int, seed: int) -> bytes:
    out = compact(n) + filler(820 * n, seed)
    if not n:
        return out
    out += b"\3" + amount(balance) + filler(32, seed + 1) + text(filler(200, seed + 2))
    return out + filler(64 * n + 64, seed + 3)


def actions_id(n: int, balance: int, seed: int, whole: str, part: str) -> bytes:
    if not n:
        return digest(whole, b"")
    each = cut(filler(820 * n, seed), 820)
    # Commitment of value, nullifier, key, commitment of note, key, note, note to the sender.
    compacted = b"".join(a[32:64] + a[96:128] + a[128:160] + a[160:212] for a in each)
    memos = b"".join(a[212:724] for a in each)
    rest = b"".join(a[:32] + a[64:96] + a[724:740] + a[740:820] for a in each)
    digests = [
        digest(part.format(x), y) for x, y in zip("CMN", (compacted, memos, rest), strict=True)
    ]
    return digest(whole, b"".join(digests) + b"\3" + amount(balance))


def made_by_miner(
    height: int, version: int = 4, sapling: int = 0, sapling_outputs: int = 0
) -> Made:
    nothing = spend((bytes(32), 2**32 - 1), height_script(height))
    paid = [pay(10**9, pay_to_key_hash(1))]
    return Made(version, [nothing], paid, sapling=sapling, sapling_outputs=sapling_outputs)


def block(
    previous: bytes,
    transactions: Sequence[bytes],
    *,
    ids: Sequence[bytes] | None = None,
    bits: int = EASIEST_MAIN,
    solution: bytes = bytes(1344),
) -> bytes:
    ids = [twice(t) for t in transactions] if ids is None else ids
    header = (4).to_bytes(4, "little") + previous + root(ids) + bytes(32)
    header += TIME.to_bytes(4, "little") + bits.to_bytes(4, "little") + bytes(32)
    return header + text(solution) + compact(len(transactions)) + b"".join(transactions)


def name(octets: bytes) -> bytes:
    return twice(octets[: 140 + 3 + 1344])


def chain(
    made: Sequence[Sequence[Made]], first: int = 1000, bits: int = EASIEST_MAIN
) -> list[bytes]:
    """Make blocks that follow each other, each with a coinbase before what is given."""
    blocks: list[bytes] = []
    previous = b"\7" * 32
    for height, others in enumerate(made, first):
        txs = [made_by_miner(height).octets(), *(t.octets() for t in others)]
        blocks.append(block(previous, txs, bits=bits))
        previous = name(blocks[-1])
    return blocks


VARIED = [
    [Made(1, [spend((b"\1" * 32, 0))], [pay(5, pay_to_key_hash(2)), pay(0, b"\x6a")])],
    [Made(2, sprout=[(700, 0), (0, 100)], outputs=[pay(50, pay_to_key_hash(3))])],
    [Made(3, [spend((b"\1" * 32, 1))], [], sprout=[(40, 0)])],
    [
        Made(4, [spend((b"\2" * 32, 7))], sapling=-900, sapling_outputs=2),
        Made(4, outputs=[pay(800, pay_to_key_hash(4))], sapling=850, spends=1),
        Made(4, sapling=0, spends=1, sapling_outputs=2),
        Made(4, sprout=[(0, 60)], sapling=-50, sapling_outputs=1),
    ],
]


@dataclass
class SlowTx:
    """A transaction read byte by byte."""

    inputs: int = 0
    coinbase: bool = False
    outputs: list[int] = field(default_factory=list)
    joinsplits: list[tuple[int, int]] = field(default_factory=list)
    sapling: int = 0
    orchard: int = 0
    ironwood: int = 0

    @property
    def into(self) -> dict[str, int]:
        flows = {
            "sprout": sum(old - new for old, new in self.joinsplits),
            "sapling": -self.sapling,
            "orchard": -self.orchard,
            "ironwood": -self.ironwood,
        }
        return {pool: flow for pool, flow in flows.items() if flow}


def signed(b: Bytes) -> int:
    n = b.number(8)
    return n - 2**64 if n >= 2**63 else n


def read_tx(b: Bytes) -> SlowTx:
    t = SlowTx()
    word = b.number(4)
    version = word % 2**31
    if word >= 2**31:
        b.number(4)
    if version >= 5:
        b.many(12)
    for _ in range(b.compact()):
        t.coinbase |= b.many(36) == bytes(32) + b"\xff" * 4
        b.many(b.compact())
        b.number(4)
        t.inputs += 1
    for _ in range(b.compact()):
        t.outputs.append(signed(b))
        b.many(b.compact())
    if version >= 5:
        read_v5_end(b, t)
        t.orchard = read_actions(b)
        t.ironwood = read_actions(b) if version == 6 else 0
        return t
    b.many(8 if version >= 3 else 4)
    shielded = 0
    if version == 4:
        t.sapling = signed(b)
        for size in (384, 948):
            number = b.compact()
            shielded += number
            b.many(size * number)
    if version >= 2:
        number = b.compact()
        for _ in range(number):
            t.joinsplits.append((signed(b), signed(b)))
            b.many((1698 if version == 4 else 1802) - 16)
        b.many(96 if number else 0)
    b.many(64 if shielded else 0)
    return t


def read_v5_end(b: Bytes, t: SlowTx) -> None:
    spends = b.compact()
    b.many(96 * spends)
    outputs = b.compact()
    b.many(756 * outputs)
    if spends + outputs:
        t.sapling = signed(b)
        b.many(32 if spends else 0)
        b.many(192 * spends + 64 * spends + 192 * outputs + 64)


def read_actions(b: Bytes) -> int:
    actions = b.compact()
    b.many(820 * actions)
    if not actions:
        return 0
    b.one()
    balance = signed(b)
    b.many(32)
    b.many(b.compact())
    b.many(64 * actions + 64)
    return balance


def read_block(octets: bytes) -> list[SlowTx]:
    b = Bytes(octets)
    b.many(140)
    b.many(b.compact())
    txs = [read_tx(b) for _ in range(b.compact())]
    assert next(b.left, None) is None
    return txs
