"""Damage done to files at random, and what readers may make of it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from coinhaze.errors import InputError
from ledger.readers.ethereum_files import read

PIECES = [
    b"", b"\n", b"\r\n", b",", b"\t", b'"', b"\0", b"\x1f\x8b", b"\xef\xbb\xbf", b"\xff", b"-",
    b".", b"0", b"1", b"e9", b"9" * 30, b"\\N", b"null", b"true", b"NaN", b"{", b"}", b"[]", b"[",
    b"\\ud800", b"\\u0000", b"0x", b"0.0", b"0,0", b"call", b"suicide", b"genesis", b"PAR1",
]  # fmt: skip


def mutants(good: bytes, count: int, seed: int) -> Iterator[bytes]:
    """Flip bits, cut, insert and repeat slices."""
    chance = random.Random(seed)
    for _ in range(count):
        data = bytearray(good)
        for _ in range(chance.choice((1, 1, 1, 2, 3, 8))):
            start = chance.randrange(len(data) + 1)
            end = min(start + chance.choice((0, 1, 1, 2, 5, 40)), len(data))
            match chance.randrange(6):
                case 0:
                    data[start:end] = bytes([chance.randrange(256)])
                case 1 | 2:
                    data[start:end] = chance.choice(PIECES)
                case 3 if start < len(data):
                    data[start] ^= 1 << chance.randrange(8)
                case 4:
                    begin = chance.randrange(len(data) + 1)
                    data[start:start] = data[begin : begin + chance.choice((10, 40, 400))]
                case _:
                    data[start:end] = b""
        if chance.random() < 0.05:
            del data[chance.randrange(len(data) + 1) :]
        yield bytes(data)


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
