"""One Bitcoin transaction out of its bytes: what it spends, what it pays."""

from __future__ import annotations

from typing import NamedTuple

from coinhaze.formats.bitcoin_raw.wire import Cursor, Malformed, double_sha256, id_text

MOST_VALUE = 2**63 - 1
# The least bytes of an input (id, number, empty script, sequence) and of an output.
LEAST_INPUT, LEAST_OUTPUT = 41, 9


class Paid(NamedTuple):
    """A value and the script it is paid to."""

    value: int
    script: bytes


class PlainTransaction(NamedTuple):
    """The parts of a transaction that say which coins it spends and makes."""

    txid: str
    spends: tuple[tuple[str, int], ...]
    pays: tuple[Paid, ...]
    signed: bool  # whether an input has a script or a witness


def read_transaction(octets: bytes, *, witness: bool = True) -> PlainTransaction:
    """Read a transaction that fills all of the bytes; raises Malformed.

    Without `witness` a transaction of no inputs is taken as such, not as one with a witness.

    >>> empty = bytes.fromhex("02000000" "00" "01" "0500000000000000" "00" "00000000")
    >>> read_transaction(empty, witness=False).pays
    (Paid(value=5, script=b''),)
    """
    cursor = Cursor(octets)
    version = cursor.take(4)
    has_witness = witness and octets[4:6] == b"\0\1"
    if has_witness:
        cursor.skip(2)
    body = cursor.at
    spends, scripts = [], 0
    for _ in range(cursor.count(LEAST_INPUT)):
        spends.append((id_text(cursor.take(32)), cursor.unsigned(4)))
        scripts += len(cursor.text())
        cursor.skip(4)
    pays = tuple(read_paid(cursor) for _ in range(cursor.count(LEAST_OUTPUT)))
    end = cursor.at
    if has_witness:
        for _ in spends:
            for _ in range(cursor.count(1)):
                cursor.text()
    locktime = cursor.take(4)
    if cursor.at != cursor.end:
        raise Malformed(f"{cursor.end - cursor.at} bytes left over after a transaction")
    txid = id_text(double_sha256(version + octets[body:end] + locktime))
    return PlainTransaction(txid, tuple(spends), pays, has_witness or scripts > 0)


def read_paid(cursor: Cursor) -> Paid:
    """Read an output: its value and script."""
    value = cursor.unsigned(8)
    if value > MOST_VALUE:
        raise Malformed(f"a value below 0 or above 2^63 - 1: {value}")
    return Paid(value, cursor.text())
