"""Where a page of rows ends, as text that only its own table reads."""

from __future__ import annotations

import base64
import binascii
import json

from coinhaze.errors import InputError


def cursor_at(place: int, what: str) -> str:
    """Write a place among rows of something down.

    >>> place_of_cursor(cursor_at(7, "-bits"), "-bits", most=10)
    7
    """
    return base64.urlsafe_b64encode(json.dumps([what, place]).encode()).decode().rstrip("=")


def place_of_cursor(cursor: str, what: str, *, most: int) -> int:
    """Read a place below `most` back; refuse what was written for something else."""
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        found, place = json.loads(base64.urlsafe_b64decode(padded.encode("ascii")))
    except (binascii.Error, ValueError, TypeError, RecursionError):
        raise InputError("after is no cursor of this table: take it from the page before") from None
    if found != what or type(place) is not int or not 0 <= place < most:
        raise InputError("after is a cursor of something else: begin at the first page again")
    return place
