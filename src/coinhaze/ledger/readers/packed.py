"""Files that may be packed: opened by what they begin with, whatever they are called."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import BinaryIO, cast

GZIP = b"\x1f\x8b"
# What reading a damaged or absent file can raise.
UNREADABLE = (OSError, EOFError, zlib.error)


def is_gzip(path: Path) -> bool:
    """Tell whether a file is packed by gzip: by its first bytes or, to be refused, by its name."""
    with open(path, "rb") as file:
        return file.read(2) == GZIP or path.suffix == ".gz"


def open_plain(path: Path) -> BinaryIO:
    """Open a file for reading, unpacking it if it is packed."""
    return cast(BinaryIO, gzip.open(path) if is_gzip(path) else open(path, "rb"))
