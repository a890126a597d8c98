"""Damage done to files at random, and what readers may make of it."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from types import ModuleType

from coinhaze.errors import InputError
from formats.ethereum_files import read
from ledger.mutants import mutants as damaged

PIECES = [
    b"", b"\n", b"\r\n", b",", b"\t", b'"', b"\0", b"\x1f\x8b", b"\xef\xbb\xbf", b"\xff", b"-",
    b".", b"0", b"1", b"e9", b"9" * 30, b"\\N", b"null", b"true", b"NaN", b"{", b"}", b"[]", b"[",
    b"\\ud800", b"\\u0000", b"0x", b"0.0", b"0,0", b"call", b"suicide", b"genesis", b"PAR1",
]  # fmt: skip


mutants = partial(damaged, pieces=PIECES, cuts=(0, 1, 1, 2, 5, 40), repeats=(10, 40, 400))


def is_read_or_refused(reader: ModuleType, path: Path, content: bytes) -> bool:
    path.write_bytes(content)
    try:
        reader.recognises(content[:4096])
        read(reader, path)
    except InputError:
        return False
    except BaseException as stray:
        stray.add_note(f"reading {content!r}")
        raise
    return True
