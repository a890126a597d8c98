"""Files that may be packed: opened by what they begin with, whatever they are called."""

from __future__ import annotations

import gzip
import io
import lzma
import zlib
from pathlib import Path
from typing import BinaryIO, cast

import pyarrow as pa

GZIP, XZ, ZSTD = b"\x1f\x8b", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd"
SUFFIXES = {".gz": GZIP, ".xz": XZ, ".zst": ZSTD}
# What reading a damaged or absent file can raise.
UNREADABLE = (OSError, EOFError, zlib.error, lzma.LZMAError, pa.ArrowInvalid)


def packing(path: Path) -> bytes:
    """Tell how a file is packed: by its first bytes or, to be refused, by its name."""
    with open(path, "rb") as file:
        start = file.read(6)
    for magic in SUFFIXES.values():
        if start.startswith(magic):
            return magic
    return SUFFIXES.get(path.suffix, b"")


def is_gzip(path: Path) -> bool:
    """Tell whether a file is packed by gzip."""
    return packing(path) == GZIP


def open_plain(path: Path) -> BinaryIO:
    """Open a file for reading, unpacking it if it is packed by gzip, xz or zstd."""
    how = packing(path)
    if how == GZIP:
        return cast(BinaryIO, gzip.open(path))
    if how == XZ:
        return cast(BinaryIO, lzma.open(path))
    if how == ZSTD:
        return io.BufferedReader(cast(io.RawIOBase, pa.input_stream(str(path), compression="zstd")))
    return open(path, "rb")
