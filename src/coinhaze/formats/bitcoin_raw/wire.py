"""Bytes of raw blocks: sizes, hashes and ids as Bitcoin writes them."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from operator import eq

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from coinhaze.ledger.text import MAX_TEXT

Octets = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]

_HEX = np.frombuffer(b"".join(b"%02x" % i for i in range(256)), dtype=np.uint16)
_sha256 = hashlib.sha256


class Malformed(ValueError):
    """Bytes that break the rules of a format; readers turn it into an error that says where."""


class Cursor:
    """A place in bytes that moves forward and never past the end.

    >>> Cursor(bytes([3, 97, 98, 99])).text()
    b'abc'
    """

    __slots__ = ("at", "data", "end")

    def __init__(self, data: bytes, at: int = 0, end: int | None = None) -> None:
        self.data = data
        self.at = at
        self.end = len(data) if end is None else end

    def skip(self, size: int) -> int:
        """Move on, and give the place before."""
        at = self.at
        if not 0 <= size <= self.end - at:
            raise Malformed(f"{size} bytes wanted at byte {at}, but {self.end - at} are left")
        self.at = at + size
        return at

    def take(self, size: int) -> bytes:
        """Give the next bytes."""
        at = self.skip(size)
        return self.data[at : at + size]

    def unsigned(self, size: int) -> int:
        """Give a whole number written in `size` bytes, the lowest first."""
        return int.from_bytes(self.take(size), "little")

    def signed(self, size: int) -> int:
        """Give a whole number in two's complement, the lowest byte first."""
        return int.from_bytes(self.take(size), "little", signed=True)

    def compact_size(self) -> int:
        """Give a number of 1 to 9 bytes that says itself how many. Longer than need be is wrong."""
        first = self.unsigned(1)
        if first < 0xFD:
            return first
        size = 2 << first - 0xFD
        number = self.unsigned(size)
        if number < (0xFD if size == 2 else 1 << 4 * size):
            raise Malformed(f"a size that takes more bytes than it needs: {number} in {size}")
        return number

    def count(self, minimum: int) -> int:
        """Give a number of things of at least `minimum` bytes each, refusing more than can follow.

        Without this a few bytes could make a reader set aside memory for 2^64 things.
        """
        number = self.compact_size()
        if number * minimum > self.end - self.at:
            raise Malformed(f"{number} things of {minimum} bytes or more in {self.end - self.at}")
        return number

    def text(self) -> bytes:
        """Give bytes after their number."""
        return self.take(self.compact_size())


def double_sha256(octets: bytes) -> bytes:
    """Hash as Bitcoin hashes blocks and transactions."""
    return _sha256(_sha256(octets).digest()).digest()


def merkle_root(ids: Sequence[bytes]) -> bytes:
    """Give the root over ids, refusing the lists that share a root with a shorter one.

    An odd row is filled with its last id, so a list with its end repeated has the root of the list
    without (CVE-2012-2459): a block with such a list would count transactions twice.
    """
    if not ids:
        raise Malformed("no transactions")
    row = list(ids)
    while len(row) > 1:
        if any(map(eq, row[::2], row[1::2])):
            raise Malformed("transactions that stand in the block twice")
        if len(row) % 2:
            row.append(row[-1])
        row = [
            _sha256(_sha256(a + b).digest()).digest()
            for a, b in zip(row[::2], row[1::2], strict=True)
        ]
    return row[0]


def id_text(digest: bytes) -> str:
    """Write a hash as people do: backwards, in hex."""
    return digest[::-1].hex()


def id_letters(digests: Octets) -> Octets:
    """Write hashes, a row each, as rows of 64 letters."""
    return _HEX[digests[:, ::-1]].view(np.uint8)


def text_column(letters: Octets, *, maximum: int = MAX_TEXT) -> pa.ChunkedArray:
    """Make a column of texts of one length from rows of letters.

    It is cut where a piece would have more than `maximum` bytes, which its offsets could not reach.
    """
    rows, length = letters.shape
    step = max(maximum // length, 1)
    parts = [_texts(letters[first : first + step]) for first in range(0, rows, step)]
    return pa.chunked_array(parts, pa.string())


def _texts(letters: Octets) -> pa.Array:
    rows, length = letters.shape
    offsets = np.arange(rows + 1, dtype=np.int32) * np.int32(length)
    letters = np.ascontiguousarray(letters)
    return pa.StringArray.from_buffers(rows, pa.py_buffer(offsets), pa.py_buffer(letters))


def read_uint32(octets: bytes, at: int) -> int:
    """Give the number in four bytes, the lowest first."""
    number: int = struct.unpack_from("<I", octets, at)[0]
    return number
