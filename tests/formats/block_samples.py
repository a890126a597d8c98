"""Small files of raw blocks, made from parts by the formats' own rules."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

MAGIC = bytes.fromhex("f9beb4d9")
REGTEST = bytes.fromhex("fabfb5da")
TIME = 1_600_000_000
NO_BLOCK = bytes(32)
# The point that all keys of Bitcoin are multiples of: a public key whose secret is 1.
ONE_X = bytes.fromhex("79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798")
ONE_Y = bytes.fromhex("483ada7726a3c4655da4fbfc0e1108a8fd17b448a68554199c47d08ffb10d4b8")

Coin = tuple[bytes, int]  # txid, vout


def twice(octets: bytes) -> bytes:
    return sha256(sha256(octets).digest()).digest()


def compact(n: int) -> bytes:
    if n < 0xFD:
        return n.to_bytes(1, "little")
    size = 2 if n < 1 << 16 else 4 if n < 1 << 32 else 8
    return bytes([{2: 0xFD, 4: 0xFE, 8: 0xFF}[size]]) + n.to_bytes(size, "little")


def text(octets: bytes) -> bytes:
    return compact(len(octets)) + octets


def pay_to_key_hash(fill: int) -> bytes:
    return bytes.fromhex("76a914") + bytes([fill]) * 20 + bytes.fromhex("88ac")


def spend(coin: Coin, script: bytes = b"\x51") -> bytes:
    return coin[0] + coin[1].to_bytes(4, "little") + text(script) + b"\xfe\xff\xff\xff"


def pay(value: int, script: bytes) -> bytes:
    return value.to_bytes(8, "little", signed=True) + text(script)


def transaction(
    inputs: Sequence[bytes],
    outputs: Sequence[bytes],
    *,
    version: int = 2,
    witness: Sequence[Sequence[bytes]] | None = None,
    extra: bytes = b"",
) -> bytes:
    head = version.to_bytes(4, "little")
    body = compact(len(inputs)) + b"".join(inputs) + compact(len(outputs)) + b"".join(outputs)
    if witness is None:
        return head + body + bytes(4) + extra
    items = b"".join(compact(len(w)) + b"".join(map(text, w)) for w in witness)
    return head + b"\0\1" + body + items + bytes(4) + extra


def height_script(height: int) -> bytes:
    if height <= 16:
        return bytes([0x50 + height, 0])
    octets = height.to_bytes((height.bit_length() + 8) // 8, "little")
    return text(octets) + b"/coinhaze/"


def coinbase(height: int, *outputs: bytes, script: bytes | None = None) -> bytes:
    nothing = spend((bytes(32), 2**32 - 1), height_script(height) if script is None else script)
    return transaction([nothing], outputs or [pay(50, pay_to_key_hash(height % 250))])


def root(ids: Sequence[bytes]) -> bytes:
    row = list(ids)
    while len(row) > 1:
        row += row[-1:] * (len(row) % 2)
        row = [twice(row[i] + row[i + 1]) for i in range(0, len(row), 2)]
    return row[0]


def block(
    previous: bytes,
    transactions: Sequence[bytes],
    *,
    version: int = 4,
    ids: Sequence[bytes] | None = None,
    time: int = TIME,
    work: bytes = b"",
    behind: bytes = b"",
) -> bytes:
    """Make a block. `ids` are wanted where transactions carry more than their ids hash."""
    ids = [twice(t) for t in transactions] if ids is None else ids
    head = version.to_bytes(4, "little", signed=True) + previous + root(ids)
    head += time.to_bytes(4, "little") + bytes.fromhex("ffff001d") + bytes(4)
    return head + work + compact(len(transactions)) + b"".join(transactions) + behind


def name(octets: bytes) -> bytes:
    return twice(octets[:80])


def chain(
    first: int, number: int, previous: bytes = b"\7" * 32, version: int = 4, salt: int = 0
) -> list[bytes]:
    """Make blocks that follow each other and hold a coinbase each."""
    blocks: list[bytes] = []
    for height in range(first, first + number):
        script = None if version >= 2 else b"\4" + (height * 1000 + salt).to_bytes(4, "little")
        made = coinbase(height, pay(50 + salt, pay_to_key_hash(1)), script=script)
        blocks.append(block(previous, [made], version=version))
        previous = name(blocks[-1])
    return blocks


def frame(octets: bytes, magic: bytes = MAGIC) -> bytes:
    return magic + len(octets).to_bytes(4, "little") + octets


def file_of(blocks: Sequence[bytes], magic: bytes = MAGIC) -> bytes:
    return b"".join(frame(b, magic) for b in blocks)


def hide(octets: bytes, key: bytes) -> bytes:
    return bytes(o ^ key[i % len(key)] for i, o in enumerate(octets))


def varint(n: int) -> bytes:
    octets = [n & 0x7F]
    while n > 0x7F:
        n = (n >> 7) - 1
        octets.append(n & 0x7F | 0x80)
    return bytes(reversed(octets))


def compress(amount: int) -> int:
    if amount == 0:
        return 0
    zeros = 0
    while amount % 10 == 0 and zeros < 9:
        amount //= 10
        zeros += 1
    if zeros < 9:
        digit = amount % 10
        return 1 + (amount // 10 * 9 + digit - 1) * 10 + zeros
    return 1 + (amount - 1) * 10 + 9


def short_script(script: bytes) -> bytes:
    """Write a script as undo files do."""
    if len(script) == 25 and script[:3] == b"\x76\xa9\x14" and script[23:] == b"\x88\xac":
        return b"\0" + script[3:23]
    if len(script) == 23 and script[:2] == b"\xa9\x14" and script[22:] == b"\x87":
        return b"\1" + script[2:22]
    if len(script) == 35 and script[0] == 33 and script[34] == 0xAC:
        return script[1:34]
    if len(script) == 67 and script[:2] == b"\x41\4" and script[66] == 0xAC:
        return bytes([4 + script[65] % 2]) + script[2:34]
    return varint(len(script) + 6) + script


def undo_coin(value: int, script: bytes, height: int = 100, coinbase: bool = False) -> bytes:
    version = b"\0" if height else b""
    return varint(2 * height + coinbase) + version + varint(compress(value)) + short_script(script)


def undo(coins: Sequence[Sequence[tuple[int, bytes]]]) -> bytes:
    """Write the coins that the transactions of a block spend, without its coinbase."""
    each = (compact(len(t)) + b"".join(undo_coin(*coin) for coin in t) for t in coins)
    return compact(len(coins)) + b"".join(each)


def undo_frame(record: bytes, previous: bytes, magic: bytes = MAGIC) -> bytes:
    return frame(record, magic) + twice(previous + record)


ODD_SCRIPTS = {
    "p2pkh": pay_to_key_hash(9),
    "p2sh": bytes.fromhex("a914") + b"\x11" * 20 + b"\x87",
    "p2wpkh": bytes.fromhex("0014") + b"\x12" * 20,
    "p2wsh": bytes.fromhex("0020") + b"\x13" * 32,
    "p2tr": bytes.fromhex("5120") + ONE_X,
    "p2pk": b"\x21\2" + ONE_X + b"\xac",
    "p2pk, whole": b"\x41\4" + ONE_X + ONE_Y + b"\xac",
    "multisig": b"\x51\x21\2" + ONE_X + b"\x41\4" + ONE_X + ONE_Y + b"\x52\xae",
    "data": b"\x6a\4abcd",
    "anything": b"\x51",
    "nothing": b"",
    "witness of the future": b"\x52\x20" + ONE_X,
}


def varied_blocks(first: int = 300_000) -> tuple[list[bytes], list[bytes]]:
    """Make three blocks with every kind of script and witnesses, and the undo of each."""
    scripts = list(ODD_SCRIPTS.values())
    one = coinbase(first, *(pay(1000 * i, s) for i, s in enumerate(scripts)))
    first_block = block(b"\7" * 32, [one])
    coins = [(twice(one), i) for i in range(len(scripts))]
    plain = transaction([spend(c) for c in coins[:8]], [pay(5, scripts[0])])
    bare = transaction([spend(c) for c in coins[9:]], [pay(7, scripts[2]), pay(0, scripts[8])])
    with_witness = transaction(
        [spend(c) for c in coins[9:]],
        [pay(7, scripts[2]), pay(0, scripts[8])],
        witness=[[b"sig", b""], [], [b"x" * 300]],
    )
    two = coinbase(first + 1)
    ids = [twice(two), twice(plain), twice(bare)]
    second = block(name(first_block), [two, plain, with_witness], ids=ids)
    spent = [(1000 * i, s) for i, s in enumerate(scripts)]
    third = block(name(second), [coinbase(first + 2)])
    undos = [undo([]), undo([spent[:8], spent[9:]]), undo([])]
    return [first_block, second, third], undos
