"""Base58 with a checksum, as the tests write it."""

from __future__ import annotations

from hashlib import sha256

LETTERS = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


def base58_text(octets: bytes) -> str:
    """Write bytes with their checksum."""
    octets += sha256(sha256(octets).digest()).digest()[:4]
    number, text = int.from_bytes(octets), ""
    while number:
        number, rest = divmod(number, 58)
        text = LETTERS[rest] + text
    return "1" * (len(octets) - len(octets.lstrip(b"\0"))) + text
