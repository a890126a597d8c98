"""Where a page of rows ends, as text that only its own table reads."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json

from coinhaze.errors import InputError


def cursor_at(place: int, *what: object) -> str:
    """Write a place among rows of something down; however long its name, the cursor is short.

    >>> place_of_cursor(cursor_at(7, "-bits"), "-bits", most=10)
    7
    """
    return base64.urlsafe_b64encode(json.dumps([_mark(what), place]).encode()).decode().rstrip("=")


def place_of_cursor(cursor: str, *what: object, most: int) -> int:
    """Read a place below `most` back; refuse what was written for something else."""
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        found, place = json.loads(base64.urlsafe_b64decode(padded.encode("ascii")))
    except (binascii.Error, ValueError, TypeError, RecursionError):
        raise InputError("after is no cursor of this table: take it from the page before") from None
    if found != _mark(what) or type(place) is not int or not 0 <= place < most:
        raise InputError("after is a cursor of something else: begin at the first page again")
    return place


def _mark(what: tuple[object, ...]) -> str:
    """Give a few digits that tell things apart: a ledger, settings, a name."""
    return hashlib.sha256(repr(what).encode("utf-8", "surrogatepass")).hexdigest()[:16]
