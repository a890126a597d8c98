"""Files that may be packed: opened by what they begin with, whatever they are called."""

from __future__ import annotations

import bz2
import gzip
import io
import itertools
import lzma
import os
import re
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from coinhaze.errors import InputError, LedgerError, UsageError, first_few, shorten

BOM = b"\xef\xbb\xbf"  # before text
GZIP, XZ, ZSTD = b"\x1f\x8b", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd"
# What zlib begins with, by how hard it tried; some programs call such files .gz.
ZLIB = (b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda")
BZIP2, BZIP2_BLOCK = b"BZh", b"1AY&SY"  # three letters, a digit, and what a block begins with
ZIP = b"PK\x03\x04"
SUFFIXES = {".gz": GZIP, ".xz": XZ, ".zst": ZSTD, ".bz2": BZIP2, ".zip": ZIP}
# A packed file may hold this many times its own size, or this many bytes if that is more. Ledgers
# reach 100 at the most; what was packed to fill a disk or the memory reaches 1 000 and far more.
MAX_RATIO = 200
RATIO_VARIABLE = "COINHAZE_MAX_RATIO"
FREE = 64 << 20
# How people write a server: HOST:PORT or a web address; a path has lost one of its slashes.
_SERVER = re.compile(r"[A-Za-z0-9.-]+:[0-9]{1,5}|[a-z+]+:/{1,2}[^/].*")
# What reading a damaged or absent file can raise.
UNREADABLE = (
    OSError, EOFError, zlib.error, lzma.LZMAError, pa.ArrowInvalid, zipfile.BadZipFile,
    NotImplementedError,
)  # fmt: skip

_DAMAGED = (EOFError, zlib.error, lzma.LZMAError, pa.ArrowInvalid, zipfile.BadZipFile)


@contextmanager
def errors_of_reading(path: Path) -> Iterator[None]:
    """Turn what reading a file can raise that is damaged or not there into errors that name it."""
    try:
        yield
    except FileNotFoundError:
        raise InputError(f"{path}: no such file{_server_meant(path)}") from None
    except UNREADABLE as error:
        raise unreadable(path, error) from None


def unreadable(path: Path, error: Exception) -> InputError:
    """Make the error of a file that cannot be read, with what mends it."""
    damaged = isinstance(error, _DAMAGED) or not getattr(error, "errno", None)
    why = "cut short or damaged, or no packed file: download or copy it again"
    return InputError(f"{path}: cannot be read: {error}" + (f" ({why})" if damaged else ""))


def _server_meant(path: Path) -> str:
    """Say how servers are named, to who wrote HOST:PORT or an address without its kind."""
    if not _SERVER.fullmatch(str(path)):
        return ""
    return (
        "; a server or node is named with its kind, such as electrum+ssl://HOST:50002, "
        "esplora+https://HOST/api or bitcoin+http://HOST:8332"
    )


def packing(path: Path) -> bytes:
    """Tell how a file is packed: by its first bytes or, to be refused, by its name."""
    with open(path, "rb") as file:
        return _packing(file.read(512), path)


def _packing(start: bytes, path: Path) -> bytes:
    if start.startswith(BZIP2) and start[4:10] == BZIP2_BLOCK:
        return BZIP2
    for magic in (GZIP, XZ, ZSTD, ZIP):
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


def open_plain(path: Path, *, arrow: bool = False) -> BinaryIO:
    """Open a file for reading, unpacking it if it is packed by gzip, zlib, xz, zstd, bzip2 or zip.

    Arrow's own unpacking of gzip is quicker where much is read at a time.
    """
    file = open(path, "rb")  # noqa: SIM115
    try:
        how = _packing(file.read(512), path)
        file.seek(0)
        if how == ZSTD or (how == GZIP and arrow):
            name = "zstd" if how == ZSTD else "gzip"
            return capped(pa.CompressedInputStream(pa.PythonFile(file), name), path, file)
        if how == GZIP:
            return capped(gzip.GzipFile(fileobj=file), path, file)
        if how == XZ:
            return capped(lzma.LZMAFile(file), path, file)
        if how == BZIP2:
            return capped(bz2.BZ2File(file), path, file)
        if how in ZLIB:
            return capped(_Unzlib(file), path, file)
        if how == ZIP:
            return capped(_only_member(file, path), path, file)
    except BaseException:
        file.close()
        raise
    return file


def _only_member(file: BinaryIO, path: Path) -> Any:
    """Open the one file that a zip archive holds."""
    archive = zipfile.ZipFile(file)
    members = [m for m in archive.infolist() if not m.is_dir() and "__MACOSX/" not in m.filename]
    names = [member.filename for member in members]
    if "[Content_Types].xml" in names:
        raise InputError(f"{path}: a workbook or document of an office program: save it as CSV")
    if len(members) != 1:
        shown = f" ({first_few(names)})" if names else ""
        raise InputError(
            f"{path}: a zip archive of {len(members)} files{shown}, where one is expected: unpack "
            "it, and name the files"
        )
    if members[0].flag_bits & 1:
        raise InputError(f"{path}: a zip archive with a password: unpack it first")
    return archive.open(members[0])


def capped(stream: Any, path: Path, packed: Any) -> BinaryIO:
    """Give what a packed file unpacks to, and refuse it when that is too much for its size."""
    return io.BufferedReader(_Capped(stream, path, packed), 1 << 17)


def bytes_read(file: BinaryIO, path: Path) -> int:
    """Give how many bytes of a file, as it lies on the disk, were read so far."""
    if file.closed:
        return path.stat().st_size
    raw = getattr(file, "raw", None)
    if not isinstance(raw, _Capped):
        return file.tell()
    return int(raw.packed.tell())


class _Capped(io.RawIOBase):
    def __init__(self, stream: Any, path: Path, packed: Any) -> None:
        self.stream = stream
        self.path = path
        self.packed = packed
        self.ratio = _max_ratio()
        self.left = self.maximum = max(FREE, self.ratio * path.stat().st_size)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Unpack as much as fits."""
        count = int(self.stream.readinto(buffer))
        self.left -= count
        if self.left < 0:
            raise InputError(
                f"{self.path}: unpacks to more than {self.maximum:,} bytes: of a packed file "
                f"{self.ratio} times its size is read, or {FREE:,} bytes if that is more; if it is "
                f"meant to hold so much, set {RATIO_VARIABLE} to a larger number"
            )
        return count

    def tell(self) -> int:
        """Give how many bytes were unpacked."""
        return self.maximum - self.left

    def close(self) -> None:
        """Close the stream beneath, and the file."""
        self.stream.close()
        self.packed.close()
        super().close()


def _max_ratio() -> int:
    text = os.environ.get(RATIO_VARIABLE, str(MAX_RATIO))
    if not text.isascii() or not text.isdecimal() or len(text) > 9 or not int(text):
        raise UsageError(
            f"{RATIO_VARIABLE} is a whole number from 1 to 999999999, not {shorten(text)}"
        )
    return int(text)


def read_plain(path: Path, *, maximum: int, what: str) -> bytes:
    """Read a whole file of at most so many bytes, unpacked."""
    with errors_of_reading(path), open_plain(path) as file:
        content = bytes(file.read(maximum + 1))
    if len(content) > maximum:
        raise InputError(f"{path}: more than {maximum} bytes of {what}")
    return content


def numbered_lines(file: BinaryIO, path: Path, longest: int) -> Iterator[tuple[int, bytes]]:
    """Give the lines of an open file with their numbers; one of `longest` bytes is refused."""
    for number in itertools.count(1):
        line = bytes(file.readline(longest))
        if not line:
            return
        if len(line) == longest:
            raise LedgerError(f"{path}:{number}", f"a line of {longest} bytes or more")
        yield number, line.removeprefix(BOM) if number == 1 else line


class _Unzlib(io.RawIOBase):
    """A file packed by zlib, read from its beginning to its end."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
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
