"""The elements of Ethereum's JSON, decoded and checked: hex quantities, addresses and hashes."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Lock
from typing import TypeVar

import msgspec
import pyarrow as pa

from coinhaze.errors import LedgerError
from coinhaze.ledger.batches import Where
from coinhaze.nodes.best_chain import HIGHEST, BlockMissing

ZERO_ADDRESS = "0x" + "0" * 40
LARGEST = 2**256 - 1
T = TypeVar("T")

_QUANTITY = re.compile("0x[0-9a-fA-F]{1,64}")
_ADDRESS = re.compile("0x[0-9a-fA-F]{40}")
_WORD = re.compile("0x[0-9a-fA-F]{64}")


class EthereumHeader(msgspec.Struct, rename="camel"):
    """The header fields that every block has, with or without its transactions."""

    number: str
    hash: str
    parent_hash: str
    timestamp: str


def decode(decoder: msgspec.json.Decoder[T], raw: bytes, where: str) -> T:
    """Decode a node's response; `where` begins the error message if it has another shape."""
    try:
        return decoder.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise LedgerError(
            where, f"an answer of another shape: {error}", value=raw[:400], fix="is it Ethereum's?"
        ) from None


def quantity(text: str | None, where: str, *, field: str, maximum: int = LARGEST) -> int:
    """Read a hexadecimal number.

    >>> quantity("0x1f", "block 1", field="value")
    31
    """
    if text is None or not _QUANTITY.fullmatch(text):
        raise LedgerError(where, f"{field} is no hex quantity", value=text)
    number = int(text, 16)
    if number > maximum:
        raise LedgerError(where, f"{field} is above {maximum}", value=text)
    return number


def address(text: str | None, where: str, *, field: str) -> str:
    """Check an address and return it in lower case."""
    if text is None or not _ADDRESS.fullmatch(text):
        raise LedgerError(where, f"{field} is no address", value=text)
    return text.lower()


def word(text: str | None, where: str, *, field: str) -> str:
    """Check a hash, or any other 32-byte word, and return it in lower case."""
    if text is None or not _WORD.fullmatch(text):
        raise LedgerError(where, f"{field} is not 32 bytes of hex", value=text)
    return text.lower()


def decode_block(decoder: msgspec.json.Decoder[T], raw: bytes, height: int) -> T:
    """Decode a block or its header; raise an error where the node has none."""
    if raw == b"null":
        raise BlockMissing(f"block {height} is not there yet: is the node in step?")
    return decode(decoder, raw, f"block {height}")


def header_row(header: EthereumHeader, height: int) -> dict[str, object]:
    """Return the row of `blocks`; raise an error for a header of another height."""
    where = f"block {height}"
    found = quantity(header.number, where, field="number", maximum=HIGHEST)
    if found != height:
        raise LedgerError(where, "the node gave another block", value=found)
    return {
        "height": height,
        "hash": word(header.hash, where, field="hash"),
        "previous": word(header.parent_hash, where, field="parentHash"),
        "time": quantity(header.timestamp, where, field="timestamp", maximum=2**63 - 1),
    }


def block_places(tables: Mapping[str, pa.Table]) -> Where:
    """Return a function that names the block to which a row belongs."""
    return lambda table, row: f"block {tables[table]['height'][row].as_py()}"


_deep_lock = Lock()
_deep_users = 0
_usual_limit = 0


@contextmanager
def deep_nesting() -> Iterator[None]:
    """Allow JSON to nest as deep as EVM calls do: 1,024 frames, an object and a list each.

    Before Python 3.12 decoders count against the interpreter's recursion limit of 1,000, which all
    threads share: the first to enter raises it, the last to leave lowers it.
    """
    global _deep_users, _usual_limit
    with _deep_lock:
        if _deep_users == 0:
            _usual_limit = sys.getrecursionlimit()
            sys.setrecursionlimit(max(_usual_limit, 4000))
        _deep_users += 1
    try:
        yield
    finally:
        with _deep_lock:
            _deep_users -= 1
            if _deep_users == 0:
                sys.setrecursionlimit(_usual_limit)
