"""Partially signed transactions (PSBT): what somebody proposes to spend and to pay.

Version 0 (BIP 174) and version 2 (BIP 370), binary, in base64 or in hex. Only what tells coins and
payments is read; signatures, keys and unknown records are passed over, but every record must be
whole, and none may stand twice. Values of spent coins come from the coins or transactions the file
carries, and are None where it carries none.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from coinhaze.errors import LedgerError
from coinhaze.formats.bitcoin_raw.networks import BITCOIN, Network
from coinhaze.formats.bitcoin_raw.scripts import owners_of
from coinhaze.formats.bitcoin_raw.wire import Cursor, Malformed, double_sha256, id_text
from coinhaze.formats.compression import read_plain
from coinhaze.ledger.coins import Input, Output, Transaction
from coinhaze.units import SMALLEST, UNITS

MAX_VALUE = 2**63 - 1
# The least bytes of an input (id, number, empty script, sequence) and of an output.
MIN_INPUT, MIN_OUTPUT = 41, 9

MAGIC = b"psbt\xff"
LARGEST = 1 << 26  # bytes; each coin may carry the whole transaction that made it
# Types of records by map: the transaction, its inputs, its outputs.
UNSIGNED_TX, TX_VERSION, LOCKTIME, INPUTS, OUTPUTS, VERSION = 0x00, 0x02, 0x03, 0x04, 0x05, 0xFB
WHOLE_TX, WITNESS_COIN, PREVIOUS_TXID, PREVIOUS_VOUT, SEQUENCE = 0x00, 0x01, 0x0E, 0x0F, 0x10
MIN_TIME, MIN_HEIGHT = 0x11, 0x12
AMOUNT, SCRIPT = 0x03, 0x04
# Those of version 2 alone.
_NEW = ({TX_VERSION, LOCKTIME, INPUTS, OUTPUTS, 0x06}, set(range(0x0E, 0x13)), {AMOUNT, SCRIPT})
_BASE64 = re.compile(rb"[A-Za-z0-9+/]+={0,2}")
Records = dict[int, bytes]


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
    for _ in range(cursor.count(MIN_INPUT)):
        spends.append((id_text(cursor.take(32)), cursor.unsigned(4)))
        scripts += len(cursor.text())
        cursor.skip(4)
    pays = tuple(read_paid(cursor) for _ in range(cursor.count(MIN_OUTPUT)))
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
    if value > MAX_VALUE:
        raise Malformed(f"a value below 0 or above 2^63 - 1: {value}")
    return Paid(value, cursor.text())


def read_psbt(path: str | Path, *, network: Network = BITCOIN) -> Transaction:
    """Read a file; addresses of its coins and payments are written as the network writes them.

    The id is that of the transaction without signatures: the one it will have if all its coins
    are of witness kind.
    """
    content = read_plain(Path(path), maximum=LARGEST, what="a PSBT")
    return parse_psbt(content, network=network, where=str(path))


def parse_psbt(content: bytes, *, network: Network = BITCOIN, where: str = "PSBT") -> Transaction:
    """Read bytes as `read_psbt` reads a file.

    >>> parse_psbt(b"cHNidP8AAAA=")
    Traceback (most recent call last):
    coinhaze.errors.LedgerError: PSBT: no PSBT: no unsigned transaction (type 0x00)
    """
    octets = _octets(content, where)
    try:
        return _proposed(octets, network, where)
    except Malformed as error:
        raise LedgerError(where, f"no PSBT: {error}") from None


def _octets(content: bytes, where: str) -> bytes:
    if content.startswith(MAGIC):
        return content
    text = b"".join(content.split())
    octets = b""
    if _BASE64.fullmatch(text) and not text.lower().startswith(MAGIC.hex().encode()):
        try:
            octets = base64.b64decode(text, validate=True)
        except binascii.Error as error:
            raise LedgerError(where, f"no PSBT: damaged base64: {error}") from None
    else:
        try:
            octets = bytes.fromhex(text.decode("ascii", "replace"))
        except ValueError:
            octets = b""
    if not octets.startswith(MAGIC):
        fix = "a PSBT begins with psbt and a byte 0xff, or in base64 with cHNidP"
        raise LedgerError(where, "no PSBT", value=content[:20], fix=fix)
    return octets


def _proposed(octets: bytes, network: Network, where: str) -> Transaction:
    cursor = Cursor(octets, len(MAGIC))
    top = _records(cursor)
    version = _number(top, VERSION, 4) if VERSION in top else 0
    if version not in (0, 2):
        raise Malformed(f"version {version}, where 0 and 2 are known")
    plain = _unsigned(top) if version == 0 else None
    if version == 2 and UNSIGNED_TX in top:
        raise Malformed("version 2 with an unsigned transaction, which it must not have")
    if version == 0 and _NEW[0] & top.keys():
        raise Malformed("version 0 with records of version 2")
    counts = (
        (len(plain.spends), len(plain.pays))
        if plain
        else (_count(top, INPUTS, cursor), _count(top, OUTPUTS, cursor))
    )
    inputs = [_records(cursor) for _ in range(counts[0])]
    outputs = [_records(cursor) for _ in range(counts[1])]
    if cursor.at != cursor.end:
        raise Malformed(f"{cursor.end - cursor.at} bytes left over")
    if plain is None:
        plain = _assembled(top, inputs, outputs)
    elif any(_NEW[1] & r.keys() for r in inputs) or any(_NEW[2] & r.keys() for r in outputs):
        raise Malformed("version 0 with records of version 2")
    coins = [_coin(r, spent) for r, spent in zip(inputs, plain.spends, strict=True)]
    _check(plain, coins, network, where)
    return _transaction(plain, coins, network, where)


def _records(cursor: Cursor) -> Records:
    """Read a map; records whose key says more than the type are no concern of ours."""
    records: Records = {}
    seen: set[bytes] = set()
    while key := cursor.text():
        if key in seen:
            raise Malformed(f"a record twice: key {key[:40].hex()}")
        seen.add(key)
        inner = Cursor(key)
        kind = inner.compact_size()
        value = cursor.text()
        if inner.at == inner.end:
            records[kind] = value
    return records


def _number(records: Records, kind: int, size: int) -> int:
    if kind not in records:
        raise Malformed(f"a record of type {kind:#04x} is missing")
    if len(records[kind]) != size:
        raise Malformed(f"type {kind:#04x} of {len(records[kind])} bytes, not {size}")
    return int.from_bytes(records[kind], "little")


def _count(records: Records, kind: int, cursor: Cursor) -> int:
    if kind not in records:
        raise Malformed(f"a record of type {kind:#04x} is missing")
    inner = Cursor(records[kind])
    count = inner.compact_size()
    # Every map takes a byte at least: without this a few bytes could ask for 2^64 of them.
    if inner.at != inner.end or count > cursor.end - cursor.at:
        raise Malformed(f"{count} maps in {cursor.end - cursor.at} bytes")
    return count


def _unsigned(top: Records) -> PlainTransaction:
    if UNSIGNED_TX not in top:
        raise Malformed("no unsigned transaction (type 0x00)")
    plain = read_transaction(top[UNSIGNED_TX], witness=False)
    if plain.signed:
        raise Malformed("an unsigned transaction with a script in an input")
    return plain


def _assembled(
    top: Records, inputs: Sequence[Records], outputs: Sequence[Records]
) -> PlainTransaction:
    """Put the transaction of version 2 together from its maps."""
    spends, pays = [], []
    body = _number(top, TX_VERSION, 4).to_bytes(4, "little") + _size(len(inputs))
    for records in inputs:
        _number(records, PREVIOUS_TXID, 32)
        vout = _number(records, PREVIOUS_VOUT, 4)
        sequence = _number(records, SEQUENCE, 4) if SEQUENCE in records else 0xFFFFFFFF
        spends.append((id_text(records[PREVIOUS_TXID]), vout))
        body += records[PREVIOUS_TXID] + vout.to_bytes(4, "little") + b"\0"
        body += sequence.to_bytes(4, "little")
    body += _size(len(outputs))
    for records in outputs:
        value = _number(records, AMOUNT, 8)
        if SCRIPT not in records or value > MAX_VALUE:
            raise Malformed(f"an output without a script, or of a value below 0: {value}")
        pays.append(Paid(value, records[SCRIPT]))
        body += value.to_bytes(8, "little") + _size(len(records[SCRIPT])) + records[SCRIPT]
    body += _locktime(top, inputs).to_bytes(4, "little")
    return PlainTransaction(id_text(double_sha256(body)), tuple(spends), tuple(pays), False)


def _locktime(top: Records, inputs: Sequence[Records]) -> int:
    """Give the least lock that all inputs agree to, a height where one is possible (BIP 370)."""
    asking = [records for records in inputs if {MIN_TIME, MIN_HEIGHT} & records.keys()]
    for kind in (MIN_HEIGHT, MIN_TIME):
        if asking and all(kind in records for records in asking):
            return max(_number(records, kind, 4) for records in asking)
    if asking:
        raise Malformed("inputs that ask for a time and for a height, which exclude each other")
    return _number(top, LOCKTIME, 4) if LOCKTIME in top else 0


def _size(number: int) -> bytes:
    if number < 0xFD:
        return bytes([number])
    return (
        b"\xfd" + number.to_bytes(2, "little")
        if number < 1 << 16
        else b"\xfe" + number.to_bytes(4, "little")
    )


def _coin(records: Records, spent: tuple[str, int]) -> Paid | None:
    """Find the value and script of a coin: both ways of telling it must agree."""
    txid, vout = spent
    stated = None
    if WHOLE_TX in records:
        whole = read_transaction(records[WHOLE_TX])
        if whole.txid != txid or vout >= len(whole.pays):
            raise Malformed(f"the transaction given for coin {txid}:{vout} did not make it")
        stated = whole.pays[vout]
    if WITNESS_COIN in records:
        cursor = Cursor(records[WITNESS_COIN])
        paid = read_paid(cursor)
        if cursor.at != cursor.end or (stated is not None and stated != paid):
            raise Malformed(
                f"coin {txid}:{vout} stated in two ways that differ, or with bytes over"
            )
        stated = paid
    return stated


def _check(
    plain: PlainTransaction, coins: Sequence[Paid | None], network: Network, where: str
) -> None:
    if not plain.spends:
        raise Malformed("it spends no coin")
    if len(set(plain.spends)) < len(plain.spends):
        raise Malformed("it spends a coin twice")
    known = [coin.value for coin in coins if coin is not None]
    paid = sum(pay.value for pay in plain.pays)
    if len(known) == len(coins) and paid > sum(known):
        unit = UNITS.get(network.name, SMALLEST)
        what = "a PSBT whose outputs are worth more than its inputs"
        value = f"{unit.words(paid)} out, {unit.words(sum(known))} in"
        raise LedgerError(where, what, value=value, fix="pay less, or add a coin")


def _transaction(
    plain: PlainTransaction, coins: Sequence[Paid | None], network: Network, where: str
) -> Transaction:
    scripts = [coin.script for coin in coins if coin is not None]
    owners, spendable = owners_of([*scripts, *(pay.script for pay in plain.pays)], network)
    names, can_spend = owners.to_pylist(), spendable.to_pylist()
    owner = iter(names)
    return Transaction(
        txid=plain.txid,
        inputs=tuple(
            Input(txid, vout)
            if coin is None
            else Input(txid, vout, value=coin.value, address=next(owner))
            for (txid, vout), coin in zip(plain.spends, coins, strict=True)
        ),
        outputs=tuple(
            Output(pay.value, address, vout=k, spendable=spendable)
            for k, (pay, address, spendable) in enumerate(
                zip(plain.pays, names[len(scripts) :], can_spend[len(scripts) :], strict=True)
            )
        ),
        coinbase=False,
        where=where,
    )
