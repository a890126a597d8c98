"""Transactions of Zcash, versions 1 to 6, from bytes: ids, coins and flows of shielded pools."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import NamedTuple

from coinhaze.formats.bitcoin_raw.wire import Cursor, Malformed, double_sha256

MAX_MONEY = 21_000_000 * 10**8
_OVERWINTERED = 1 << 31
_GROUPS = {3: 0x03C48270, 4: 0x892F2085, 5: 0x26A7270A, 6: 0xD884B698}
NOTHING = bytes(32) + b"\xff" * 4  # the coin that a coinbase spends
_OUTPOINT, _INPUT, _OUTPUT = 36, 41, 9
# Sizes of the parts of shielded transfers, from the protocol's section 7.1; with PHGR proofs until
# version 3, with Groth16 proofs since.
_JOINSPLIT = {2: 1802, 3: 1802, 4: 1698}
_V4_SPEND, _V4_OUTPUT = 384, 948
_SPEND, _SAPLING_OUTPUT, _ACTION = 96, 756, 820
_PROOF, _SIGNATURE = 192, 64


@dataclass
class ZcashTransaction:
    """One transaction. `into` has the flow into each pool, below 0 out of it, without zeros."""

    txid: bytes = b""
    spent: list[bytes] = field(default_factory=list)
    coinbase_script: bytes | None = None
    values: list[int] = field(default_factory=list)
    scripts: list[bytes] = field(default_factory=list)
    into: dict[str, int] = field(default_factory=dict)

    def add_flow(self, pool: str, amount: int) -> None:
        """Count an amount that goes into a pool."""
        total = self.into.get(pool, 0) + amount
        self.into[pool] = total
        if not total:
            del self.into[pool]


def read_transaction(cursor: Cursor) -> ZcashTransaction:
    """Read the transaction that begins at a place, and move on behind it."""
    start = cursor.at
    head = cursor.unsigned(4)
    version = head & ~_OVERWINTERED
    if head == version:
        if not version >= 1:
            raise Malformed(f"a transaction of version {version}")
        version = min(version, 2)  # before Overwinter whatever was above 2 had the form of 2
    else:
        group = cursor.unsigned(4)
        if group != _GROUPS.get(version):
            raise Malformed(
                f"a transaction of version {version}, group {group:#x}: versions 1 to 6 are known"
            )
    if version >= 5:
        return _read_v5(cursor, head, version)
    found = ZcashTransaction()
    _read_inputs(cursor, found)
    _read_outputs(cursor, found)
    cursor.skip(4 if version < 3 else 8)
    shielded = _read_v4_sapling(cursor, found) if version == 4 else 0
    if version >= 2:
        _read_joinsplits(cursor, found, _JOINSPLIT[version])
    cursor.skip(_SIGNATURE if shielded else 0)
    found.txid = double_sha256(cursor.data[start : cursor.at])
    return found


def skip_to_coinbase_script(cursor: Cursor) -> None:
    """Move from the start of a coinbase to the size of its script."""
    head = cursor.unsigned(4)
    if head & _OVERWINTERED:
        cursor.skip(16 if head & ~_OVERWINTERED == 5 else 4)
    cursor.compact_size()
    cursor.skip(_OUTPOINT)


def _read_inputs(cursor: Cursor, found: ZcashTransaction) -> list[bytes]:
    """Read inputs, and give their sequence numbers."""
    sequences = []
    for i in range(cursor.count(_INPUT)):
        outpoint = cursor.take(_OUTPOINT)
        script = cursor.text()
        sequences.append(cursor.take(4))
        if outpoint != NOTHING:
            found.spent.append(outpoint)
        elif i:
            raise Malformed("an input that spends nothing beside others")
        else:
            found.coinbase_script = script
    if found.coinbase_script is not None and found.spent:
        raise Malformed("an input that spends nothing beside others")
    return sequences


def _read_outputs(cursor: Cursor, found: ZcashTransaction) -> None:
    for _ in range(cursor.count(_OUTPUT)):
        found.values.append(_money(cursor.signed(8)))
        found.scripts.append(cursor.text())


def _money(amount: int, minimum: int = 0) -> int:
    if not minimum <= amount <= MAX_MONEY:
        raise Malformed(f"an amount from {minimum} to {MAX_MONEY} is wanted, not {amount}")
    return amount


def _read_balance(cursor: Cursor, found: ZcashTransaction, pool: str) -> bytes:
    """Read what a transfer takes out of a pool: above 0 out of it, where ours is below 0."""
    octets = cursor.take(8)
    found.add_flow(pool, -_money(int.from_bytes(octets, "little", signed=True), -MAX_MONEY))
    return octets


def _read_v4_sapling(cursor: Cursor, found: ZcashTransaction) -> int:
    _read_balance(cursor, found, "sapling")
    spends = cursor.count(_V4_SPEND)
    cursor.skip(spends * _V4_SPEND)
    outputs = cursor.count(_V4_OUTPUT)
    cursor.skip(outputs * _V4_OUTPUT)
    if found.into and not spends + outputs:
        raise Malformed("a flow of the Sapling pool without shielded spends and outputs")
    return spends + outputs


def _read_joinsplits(cursor: Cursor, found: ZcashTransaction, size: int) -> None:
    number = cursor.count(size)
    for _ in range(number):
        into, out_of = _money(cursor.signed(8)), _money(cursor.signed(8))
        found.add_flow("sprout", into - out_of)
        cursor.skip(size - 16)
    if number:
        cursor.skip(32 + _SIGNATURE)


def _hash(name: bytes, *parts: bytes) -> bytes:
    return blake2b(b"".join(parts), digest_size=32, person=name).digest()


def _hash_each(name: bytes, things: Iterable[bytes], *slices: slice) -> bytes:
    return _hash(name, *(thing[part] for thing in things for part in slices))


def _read_v5(cursor: Cursor, head: int, version: int) -> ZcashTransaction:
    """Read a transaction of version 5 or 6: its id is a tree of hashes without signatures.

    ZIP 244 defines it. Version 6 (ZIP 229) adds the pool Ironwood, in the form of Orchard, and
    leaves anchors out of the id.
    """
    found = ZcashTransaction()
    branch, rest = cursor.take(4), cursor.take(8)
    words = head.to_bytes(4, "little") + _GROUPS[version].to_bytes(4, "little") + branch + rest
    digests = [
        _hash(b"ZTxIdHeadersHash", words),
        _read_transparent(cursor, found),
        _read_v5_sapling(cursor, found, version),
        _read_actions(cursor, found, _ORCHARD if version == 5 else _ORCHARD_V6),
    ]
    if version == 6:
        digests.append(_read_actions(cursor, found, _IRONWOOD))
    found.txid = _hash(b"ZcashTxHash_" + branch, *digests)
    return found


def _read_transparent(cursor: Cursor, found: ZcashTransaction) -> bytes:
    sequences = _read_inputs(cursor, found)
    start = cursor.at
    number = cursor.compact_size()
    first = cursor.at
    cursor.at = start
    _read_outputs(cursor, found)
    if not sequences and not number:
        return _hash(b"ZTxIdTranspaHash")
    spent = [NOTHING] if found.coinbase_script is not None else found.spent
    return _hash(
        b"ZTxIdTranspaHash",
        _hash(b"ZTxIdPrevoutHash", *spent),
        _hash(b"ZTxIdSequencHash", *sequences),
        _hash(b"ZTxIdOutputsHash", cursor.data[first : cursor.at]),
    )


def _read_v5_sapling(cursor: Cursor, found: ZcashTransaction, version: int) -> bytes:
    spends = [cursor.take(_SPEND) for _ in range(cursor.count(_SPEND))]
    outputs = [cursor.take(_SAPLING_OUTPUT) for _ in range(cursor.count(_SAPLING_OUTPUT))]
    if not spends and not outputs:
        return _hash(b"ZTxIdSaplingHash")
    balance = _read_balance(cursor, found, "sapling")
    anchor = cursor.take(32) if spends else b""
    cursor.skip((_PROOF + _SIGNATURE) * len(spends) + _PROOF * len(outputs) + _SIGNATURE)
    # Of a spend: value commitment, nullifier, key; of an output: value commitment, note commitment,
    # ephemeral key, note (52 bytes of it compact, 512 of memo), note for the sender.
    hashed_spends: tuple[bytes, ...] = ()
    hashed_outputs: tuple[bytes, ...] = ()
    if spends:
        rooted, name = (anchor, b"ZTxIdSSpendNHash") if version == 5 else (b"", b"ZTxIdSSpendNH_v6")
        pairs = (part for s in spends for part in (s[:32], rooted, s[64:]))
        hashed_spends = (
            _hash_each(b"ZTxIdSSpendCHash", spends, slice(32, 64)),
            _hash(name, *pairs),
        )
    if outputs:
        hashed_outputs = (
            _hash_each(b"ZTxIdSOutC__Hash", outputs, slice(32, 148)),
            _hash_each(b"ZTxIdSOutM__Hash", outputs, slice(148, 660)),
            _hash_each(b"ZTxIdSOutN__Hash", outputs, slice(0, 32), slice(660, None)),
        )
    return _hash(
        b"ZTxIdSaplingHash",
        _hash(b"ZTxIdSSpendsHash", *hashed_spends),
        _hash(b"ZTxIdSOutputHash", *hashed_outputs),
        balance,
    )


class _Pool(NamedTuple):
    """A pool of actions, and what its hashes are called."""

    name: str
    whole: bytes
    compact: bytes
    memos: bytes
    other: bytes
    rooted: bool  # whether the id depends on the anchor


_PARTS = (b"ZTxIdOrcActCHash", b"ZTxIdOrcActMHash", b"ZTxIdOrcActNHash")
_ORCHARD = _Pool("orchard", b"ZTxIdOrchardHash", *_PARTS, True)
_ORCHARD_V6 = _Pool("orchard", b"ZTxIdOrchardH_v6", *_PARTS, False)
_IRONWOOD = _Pool(
    "ironwood", b"ZTxIdIronwd_H_v6", b"ZTxIdIrnActCH_v6", b"ZTxIdIrnActMH_v6", b"ZTxIdIrnActNH_v6",
    False,
)  # fmt: skip


def _read_actions(cursor: Cursor, found: ZcashTransaction, pool: _Pool) -> bytes:
    actions = [cursor.take(_ACTION) for _ in range(cursor.count(_ACTION))]
    if not actions:
        return _hash(pool.whole)
    flags = cursor.take(1)
    balance = _read_balance(cursor, found, pool.name)
    anchor = cursor.take(32)
    cursor.text()
    cursor.skip(_SIGNATURE * (len(actions) + 1))
    # Value commitment, nullifier, key, note commitment, ephemeral key, note, note for the sender.
    return _hash(
        pool.whole,
        _hash_each(pool.compact, actions, slice(32, 64), slice(96, 212)),
        _hash_each(pool.memos, actions, slice(212, 724)),
        _hash_each(pool.other, actions, slice(0, 32), slice(64, 96), slice(724, None)),
        flags,
        balance,
        anchor if pool.rooted else b"",
    )
