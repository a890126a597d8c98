"""Small UTXO snapshots, made from parts by the format's own rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from formats.block_samples import MAGIC, compact, compress, short_script, varint

SNAPSHOT = b"utxo\xff"
Unspent = tuple[int, int, bytes, int]  # vout, value, script, height


def coin(vout: int, value: int, script: bytes, height: int, coinbase: bool = False) -> bytes:
    code = varint(2 * height + coinbase)
    return compact(vout) + code + varint(compress(value)) + short_script(script)


def snapshot(
    coins: Mapping[bytes, Sequence[Unspent]],
    block: bytes,
    *,
    magic: bytes = MAGIC,
    version: int = 2,
    count: int | None = None,
) -> bytes:
    """Write a snapshot: coins by the ids of their transactions, and the block it is of."""
    number = sum(map(len, coins.values())) if count is None else count
    head = SNAPSHOT + version.to_bytes(2, "little") + magic + block + number.to_bytes(8, "little")
    body = (
        txid + compact(len(own)) + b"".join(coin(*one) for one in own)
        for txid, own in coins.items()
    )
    return head + b"".join(body)
