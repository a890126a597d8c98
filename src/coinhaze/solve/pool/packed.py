"""A work or a part as one file of plain arrays, written once, mapped by all processes.

Arrays lie uncompressed, each at its own aligned place, so that processes of one machine share the
pages; of those that are all zero, as many sums are, nothing is written. A mapped array is as its
original was, writable or not: compiled code is chosen by that.
"""

from __future__ import annotations

import hashlib
import mmap
import pickle
import struct
from collections.abc import Collection, Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

ALIGNED = 64
_HEAD = struct.Struct("<QQ")  # where the description of the arrays begins, and its length


def write_packed(value: Any, path: Path) -> None:
    """Write a work or a part to a file."""
    arrays: list[pickle.PickleBuffer] = []
    described = pickle.dumps(value, protocol=5, buffer_callback=arrays.append)
    places = []
    with open(path, "xb") as file:
        file.write(_HEAD.pack(0, 0))
        for array in arrays:
            file.write(bytes(-file.tell() % ALIGNED))
            raw = array.raw()
            places.append((file.tell(), raw.nbytes))
            if np.frombuffer(raw, dtype=np.uint8).any():
                file.write(raw)
            else:
                file.seek(raw.nbytes, 1)
        begin = file.tell()
        text = pickle.dumps((described, places))
        file.write(text)
        file.seek(0)
        file.write(_HEAD.pack(begin, len(text)))


def map_packed(path: Path) -> Any:
    """Open what a file holds, where it lies; what is written to its arrays stays in this process.

    The file may be removed then.
    """
    with open(path, "rb") as file:
        return unpack(memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)))


def packed_bytes(path: Path) -> npt.NDArray[np.uint8]:
    """Give the bytes of a packed work, to be sent to machines that do not see the file."""
    return np.fromfile(path, dtype=np.uint8)


def unpack(memory: memoryview) -> Any:
    """Make what was packed of its bytes; arrays are parts of them."""
    begin, size = _HEAD.unpack_from(memory)
    described, places = pickle.loads(memory[begin : begin + size])
    arrays = [memory[first : first + length] for first, length in places]
    return pickle.loads(described, buffers=arrays)


def bits_digest(value: Any, *, leave_out: Collection[str] = ()) -> str:
    """Give the digest of a work or a part: of every array and number in it, but for some fields.

    >>> bits_digest((np.zeros(2), 1)) == bits_digest((np.zeros(2), 2))
    False
    """
    digest = hashlib.sha256()
    for piece in _encoded(value, frozenset(leave_out)):
        digest.update(piece)
    return digest.hexdigest()


def _encoded(value: Any, leave_out: frozenset[str]) -> Iterator[bytes | memoryview]:
    if isinstance(value, np.ndarray):
        yield f"array {value.dtype.str} {value.shape};".encode()
        yield np.ascontiguousarray(value).reshape(-1).view(np.uint8).data
    elif is_dataclass(value):
        yield f"{type(value).__name__} ".encode()
        for field in fields(value):
            if field.name not in leave_out:
                yield f"{field.name} ".encode()
                yield from _encoded(getattr(value, field.name), leave_out)
    elif isinstance(value, dict):
        yield f"dict {len(value)};".encode()
        for key in sorted(value):
            yield from _encoded((key, value[key]), leave_out)
    elif isinstance(value, list | tuple):
        yield f"{type(value).__name__} {len(value)};".encode()
        for one in value:
            yield from _encoded(one, leave_out)
    elif value is None or isinstance(value, bool | int | float | str | range | np.generic):
        yield f"{value!r};".encode()
    else:
        raise TypeError(f"a work consists of arrays and numbers, not of {type(value).__name__}")
