"""Files that may be packed: opened by what they begin with, whatever they are called."""

from __future__ import annotations

import gzip
import io
import lzma
import zlib
from pathlib import Path
from typing import Any, BinaryIO, cast

import pyarrow as pa

from coinhaze.errors import InputError

GZIP, XZ, ZSTD = b"\x1f\x8b", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd"
# What zlib begins with, by how hard it tried; some programs call such files .gz.
ZLIB = (b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda")
SUFFIXES = {".gz": GZIP, ".xz": XZ, ".zst": ZSTD}
# What reading a damaged or absent file can raise.
UNREADABLE = (OSError, EOFError, zlib.error, lzma.LZMAError, pa.ArrowInvalid)


def packing(path: Path) -> bytes:
    """Tell how a file is packed: by its first bytes or, to be refused, by its name."""
    with open(path, "rb") as file:
        start = file.read(512)
    for magic in SUFFIXES.values():
        if start.startswith(magic):
            return magic
    if start[:2] in ZLIB and _unpacks(start):
        return start[:2]
    return SUFFIXES.get(path.suffix, b"")


def _unpacks(start: bytes) -> bool:
    """Tell whether zlib can go on from here; two bytes alone may begin anything."""
    try:
        zlib.decompressobj().decompress(start, 64)
    except zlib.error:
        return False
    return True


def is_gzip(path: Path) -> bool:
    """Tell whether a file is packed by gzip."""
    return packing(path) == GZIP


def open_plain(path: Path) -> BinaryIO:
    """Open a file for reading, unpacking it if it is packed by gzip, zlib, xz or zstd."""
    how = packing(path)
    if how == GZIP:
        return cast(BinaryIO, gzip.open(path))
    if how == XZ:
        return cast(BinaryIO, lzma.open(path))
    if how == ZSTD:
        return io.BufferedReader(cast(io.RawIOBase, pa.input_stream(str(path), compression="zstd")))
    if how in ZLIB:
        return io.BufferedReader(_Unzlib(path))
    return open(path, "rb")


def read_plain(path: Path, *, most: int, what: str) -> bytes:
    """Read a whole file of at most so many bytes, unpacked."""
    try:
        with open_plain(path) as file:
            content = bytes(file.read(most + 1))
    except UNREADABLE as error:
        raise InputError(f"{path}: cannot be read: {error}") from None
    if len(content) > most:
        raise InputError(f"{path}: more than {most} bytes of {what}")
    return content


class _Unzlib(io.RawIOBase):
    """A file packed by zlib, read from its beginning to its end."""

    def __init__(self, path: Path) -> None:
        self.file = open(path, "rb")  # noqa: SIM115
        self.unpack = zlib.decompressobj()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Unpack as much as fits."""
        want = len(buffer)
        while not self.unpack.eof:
            packed = self.unpack.unconsumed_tail or self.file.read(1 << 16)
            if not packed:
                raise EOFError("the packed stream ends before its end was marked")
            if plain := self.unpack.decompress(packed, want):
                buffer[: len(plain)] = plain
                return len(plain)
        if self.unpack.unused_data or self.file.read(1):
            raise zlib.error("something follows the packed stream")
        return 0

    def close(self) -> None:
        """Close the file beneath."""
        self.file.close()
        super().close()
