"""A wallet's coins as people keep them: which coins are meant, and what they are called.

| file | content |
|---|---|
| text | one coin `txid:vout`, one address or one public key, a line; `#` begins a comment |
| CSV | a header with `txid` and `vout`, or `coin` (or `output`), or `address`; also `label` |
| JSON lines | labels of a wallet (BIP-329): those of coins and addresses, spent ones left out |
| JSON | an array of such texts, or of objects with those names |

Sparrow's export of UTXOs is such CSV; `listunspent` of Bitcoin Core and of Electrum, and what
Electrum's servers list, are such JSON; so is `listdescriptors`, by its keys. Core's
`listtransactions` names the coins of payments received, some of which may be spent by now: those
are left out, and change is not there. What other commands of theirs give names no coins (a history
of Electrum lists transactions, and not which outputs are the wallet's): it is refused, with the
command to take instead.

Values are compared with the ledger's: `amount` in whole coins, and `value` in the smallest unit
unless it has a point, as Sparrow (in BTC) and Electrum write it; Sparrow may write a comma instead.

A public key is an extended one or a descriptor (`coinhaze.formats.descriptors`); private ones are
refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import msgspec

from coinhaze.errors import InputError, LedgerError, hide_wallet_keys
from coinhaze.formats.compression import read_plain
from coinhaze.formats.descriptors import (
    Descriptor,
    is_key,
    parse_keys,
    refuse_private,
)
from coinhaze.formats.json.records import FAULTS
from coinhaze.formats.lists.bip329 import ADDRESS, OUTPUT, is_bip329, read_wallet_labels
from coinhaze.formats.lists.labels import (
    COMMENT,
    csv_rows,
    decoded,
    names_by_line,
    normal_address,
)
from coinhaze.formats.tabular.column_use import plain_name
from coinhaze.ledger.checks import check_name, exact_amount
from coinhaze.ledger.columns import HEADER_AGAIN

LARGEST = 1 << 28  # bytes, unpacked
COIN_UNIT = 100_000_000  # satoshi in a coin, the same in every chain a node lists coins of

# What columns are called, plain, and what they tell.
_COLUMNS = {
    spelt: what
    for what, spellings in {
        "coin": ("coin", "output", "outpoint", "utxo"),
        "txid": ("txid", "txhash", "transactionid", "transactionhash", "prevouthash"),
        "vout": ("vout", "outputindex", "prevoutn", "txpos"),
        "address": ("address",),
        "label": ("label",),
        "amount": ("amount", "amountbtc", "valuebtc"),
        "value": ("value", "valuesats", "amountsats", "sats"),
    }.items()
    for spelt in spellings
}
_NO_CHANGE = "bitcoin-cli listunspent > coins.json"
_COIN = re.compile(r"(?P<txid>\S+):(?P<vout>[0-9]{1,10})", re.ASCII)
_HASH = re.compile("[0-9a-fA-F]{64}")
# As Sparrow writes it where a comma stands for the point; fewer places may be thousands.
_COMMA = re.compile(r"[0-9]{1,8},[0-9]{8}", re.ASCII)
_POINT = re.compile(r"[0-9]{1,12}\.[0-9]{0,8}", re.ASCII)
_CHECKED = re.compile(r"[a-z_]+\([^#]*\)#[0-9a-z]*(?=\s|$)")
_WHOLE = re.compile(r"[0-9]{1,12}(\.[0-9]{1,8})?", re.ASCII)
_SMALLEST = Decimal(1) / COIN_UNIT
Row = tuple[str, Mapping[str, object]]


@dataclass(frozen=True)
class ListedCoin:
    """One entry: a coin by name, or an address or key that stands for its coins."""

    where: str
    coin: str | None = None
    address: str | None = None
    label: str | None = None
    value: int | None = None
    keys: tuple[Descriptor, ...] = ()
    received: bool = False  # listed as a payment: it may be spent by now, and is then left out
    labelled: bool = False  # by a wallet's labels, which name what was spent too: likewise


def read_coin_list(path: str | Path) -> list[ListedCoin]:
    """Read a list of coins or addresses; the format is recognised by what the file begins with."""
    content = read_plain(Path(path), maximum=LARGEST, what="coins")
    return parse_coin_list(content, where=str(path))


def parse_coin_list(content: bytes, *, where: str = "coins") -> list[ListedCoin]:
    """Read bytes as `read_coin_list` reads a file.

    >>> parse_coin_list(b"txid,vout,label\\nt,1,rent")[0].coin
    't:1'
    """
    from coinhaze.formats.lists.recognise import side_file

    beside = side_file(content[:512])
    if beside is not None and not beside.has_coins:
        raise beside.instead_of("list of coins", where)
    text = decoded(content, where)
    hide_wallet_keys(text)
    refuse_private(text, where)
    begins = text.lstrip()
    head = begins.partition("\n")[0]
    rows: Iterable[Row]
    if is_bip329(text):
        rows = _from_labels(text, where)
    elif begins.startswith(("[", "{")):
        rows = _from_json(text, where)
    elif is_key(head):
        rows = ((place, {"coin": name}) for place, name in _keys_by_line(text, where))
    elif any(mark in head for mark in ",;\t") or plain_name(head) in ("coin", "output", "address"):
        rows = _from_csv(text, where)
    else:
        rows = ((place, {"coin": name}) for place, name in names_by_line(text, where))
    listed = [_entry(place, row) for place, row in rows]
    if not listed:
        raise InputError(f"{where}: lists no coin: write txid:vout or an address, one per line")
    _refuse_twice(listed)
    return listed


def names_coins(header: Sequence[str]) -> bool:
    """Tell by the names of its columns whether a table lists coins.

    >>> names_coins(["Date (UTC)", "Output", "Address", "Label", "Value (BTC)"])
    True
    """
    stated = {_COLUMNS.get(plain_name(name)) for name in header}
    return {"txid", "vout"} <= stated or ("coin" in stated and bool(stated & {"value", "amount"}))


def parse_entry(text: str, where: str = "coin") -> ListedCoin:
    """Tell a coin from an address.

    >>> parse_entry("1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa").address
    '1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa'
    """
    hide_wallet_keys(text)
    refuse_private(text, where)
    return _entry(where, {"coin": text})


def _from_labels(text: str, file: str) -> Iterator[Row]:
    names = {OUTPUT: "coin", ADDRESS: "address"}
    for read in read_wallet_labels(text, file):
        if read.type in names:
            label = {} if read.label is None else {"label": read.label}
            yield read.where, {names[read.type]: read.ref, "labelled": True} | label


def _keys_by_line(text: str, where: str) -> Iterator[tuple[str, str]]:
    """Give one name a line, with its place; `#` begins a comment, or a descriptor's checksum."""
    for number, line in enumerate(text.split("\n"), 1):
        name = line.strip()
        if not (checked := _CHECKED.match(name)):
            name = COMMENT.sub("", name).strip()
        if name:
            yield f"{where}:{number}", checked[0] if checked else name


def _from_csv(text: str, file: str) -> Iterator[Row]:
    rows = csv_rows(text, file)
    header = [name.strip() for name in next(rows)[1]]
    stated = [_COLUMNS.get(plain_name(name), name) for name in header]
    if len(set(stated)) < len(stated):
        raise LedgerError(f"{file}:1", "a column twice", value=header)
    if not ({"txid", "vout"} <= set(stated) or {"coin", "address"} & set(stated)):
        what, fix = _not_coins(header)
        raise LedgerError(f"{file}:1", what, value=header, fix=fix)
    for where, row in rows:
        cells = [cell.strip() for cell in row]
        if cells == header:
            raise LedgerError(where, "header repeated", fix=HEADER_AGAIN)
        yield where, {name: cell for name, cell in zip(stated, cells, strict=True) if cell}


def _not_coins(header: list[str]) -> tuple[str, str]:
    """Say what a table is that names no coins, and what to take instead."""
    plain = {plain_name(name) for name in header}
    if {"octransactionhash", "transactionhash"} & plain:
        fix = "list the coins instead: electrum listunspent > coins.json, or in its console"
        return "a history of Electrum, which names no coins", fix
    if {"txid", "balance"} <= plain:
        fix = "export the UTXOs tab instead of the transactions"
        return "Sparrow's transactions, which name no coins", fix
    if "paymentaddress" in plain:
        return "Sparrow's addresses, used or not", "export the UTXOs tab instead of the addresses"
    return "no column that names coins", "txid,vout or coin or address"


class _Unspent(msgspec.Struct):
    """One coin as wallets and servers list it."""

    txid: str | None = None
    vout: int | None = None
    prevout_hash: str | None = None  # Electrum's listunspent
    prevout_n: int | None = None
    tx_hash: str | None = None  # Electrum's servers
    tx_pos: int | None = None
    coin: str | None = None
    address: str | None = None
    label: str | None = None
    amount: Decimal | None = None
    value: int | str | None = None
    value_sats: int | None = None
    category: str | None = None  # listtransactions of Bitcoin Core
    confirmations: int | None = None
    txids: list[str] | None = None  # listreceivedbyaddress
    desc: str | None = None  # listdescriptors, also beside the coins of listunspent


_THEIRS = {
    "prevout_hash": "txid", "tx_hash": "txid", "prevout_n": "vout", "tx_pos": "vout",
    "value_sats": "value",
}  # fmt: skip
_RECEIVED = ("receive", "generate", "immature")  # of listtransactions; others are not one's coins
_JSON = msgspec.json.Decoder(list[str | _Unspent])
_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])


def _from_json(text: str, file: str) -> Iterator[Row]:
    try:
        entries = _JSON.decode(_array(text, file))
    except FAULTS as error:
        fix = "an array of txid:vout, of addresses, or of what listunspent gives"
        raise LedgerError(file, f"no coins in JSON: {error}", fix=fix) from None
    for number, entry in enumerate(entries, 1):
        where = f"{file}: coin {number}"
        if isinstance(entry, str):
            yield where, {"coin": entry.strip()}
            continue
        if entry.category is not None:
            if entry.category in _RECEIVED and (entry.confirmations or 0) >= 0:
                names = ("txid", "vout", "amount", "label")
                known = {n: v for n in names if (v := getattr(entry, n)) is not None}
                yield where, known | {"received": True}
            continue
        stated = {name: v for name, v in msgspec.structs.asdict(entry).items() if v is not None}
        stated.pop("confirmations", None)
        descriptor = stated.pop("desc", None)
        if not stated and descriptor is not None:
            stated = {"coin": descriptor}
        if stated.pop("txids", None) is not None:
            stated.pop("amount", None)  # all that an address ever received
        for theirs, ours in _THEIRS.items():
            if theirs in stated:
                stated.setdefault(ours, stated[theirs])
        yield where, stated


def _array(text: str, file: str) -> str | msgspec.Raw:
    """Give the array of coins, also as a node's answer wraps it; no value is shown of others."""
    if not text.lstrip().startswith("{"):
        return text
    found = _OBJECT.decode(text)
    if "result" in found:
        answer = found["result"]
        if not bytes(answer).lstrip().startswith(b"{"):
            return answer
        found = _OBJECT.decode(answer)
    if "descriptors" in found:
        return found["descriptors"]
    if "transactions" in found:
        what = "a history of Electrum, which names no coins"
        raise LedgerError(
            file, what, fix="list the coins instead: electrum listunspent > coins.json"
        )
    keys = list(found)[:8]
    fix = f"an array, as listunspent gives it: {_NO_CHANGE}"
    raise LedgerError(file, "an object where a list of coins is expected", value=keys, fix=fix)


def _entry(where: str, row: Mapping[str, object]) -> ListedCoin:
    name = row.get("coin")
    if "txid" in row or "vout" in row:
        name = f"{row.get('txid', '')}:{row.get('vout', '')}"
    label = row.get("label") or None  # Core writes an empty one where there is none
    label = None if label is None else check_name(label, where, field="label")
    if name is None:
        address = row.get("address")
        if address is None:
            fix = "write txid:vout or an address; delete the line if it is a total"
            raise LedgerError(where, "names no coin", value=list(row.values()), fix=fix)
        return ListedCoin(
            where, address=_address(address, where), label=label, labelled="labelled" in row
        )
    if is_key(str(name)):
        return ListedCoin(where, label=label, keys=parse_keys(str(name), where))
    coin = _COIN.fullmatch(str(name))
    if coin is None:
        if "txid" in row or ":" in str(name):
            fix = "a transaction's id and the number of its output"
            if "txid" in row and "vout" not in row:
                fix += ", which is missing: vout in Core's lists, prevout_n in Electrum's"
            if "vout" in row and not row.get("txid"):
                fix += "; the id is missing: txid in Core's lists, prevout_hash in Electrum's"
            raise LedgerError(where, "not a coin txid:vout", value=name, fix=fix)
        if _HASH.fullmatch(str(name)):
            fix = f"write {name}:N, N being the output that is yours, counted from 0"
            raise LedgerError(where, "a transaction without the number of an output", fix=fix)
        return ListedCoin(where, address=_address(name, where), label=label)
    txid = coin["txid"].lower() if _HASH.fullmatch(coin["txid"]) else coin["txid"]
    return ListedCoin(
        where, f"{txid}:{int(coin['vout'])}", None, label, _value(row, where),
        received="received" in row, labelled="labelled" in row,
    )  # fmt: skip


def _address(address: object, where: str) -> str:
    name = check_name(address, where, field="address")
    if " " in name:
        raise LedgerError(where, "an address with a blank in it", value=name)
    return normal_address(name)


def _value(row: Mapping[str, object], where: str) -> int | None:
    """Give a value in the smallest unit, if one is given."""
    amount, value = row.get("amount"), row.get("value")
    if amount is not None:
        if isinstance(amount, str) and _COMMA.fullmatch(amount):
            amount = amount.replace(",", ".")
        if not _is_amount(amount):
            what = "not an amount in coins, of 8 places at most"
            raise LedgerError(where, what, value=amount, fix="with a point, such as 5.50")
        return int(Decimal(str(amount)) * COIN_UNIT)
    if isinstance(value, str) and not value.isdecimal():
        if not (_POINT.fullmatch(value) or _COMMA.fullmatch(value)):
            fix = (
                "digits of the smallest unit, or whole coins with a point and at most 8 places; "
                "nothing between thousands"
            )
            raise LedgerError(where, "value is not an amount", value=value, fix=fix)
        return int(Decimal(value.replace(",", ".")) * COIN_UNIT)
    return None if value is None else exact_amount(value, where, field="value")


def _is_amount(amount: object) -> bool:
    if not isinstance(amount, Decimal):
        return _WHOLE.fullmatch(str(amount)) is not None
    # Written out, 1e999999999 would fill the memory.
    if not amount.is_finite() or amount < 0 or amount.adjusted() > 11:
        return False
    places = amount.as_tuple().exponent
    return isinstance(places, int) and (places >= -8 or amount == amount.quantize(_SMALLEST))


def _refuse_twice(listed: list[ListedCoin]) -> None:
    seen: dict[str, str] = {}
    for entry in listed:
        name = entry.coin or entry.address or ""
        if name and name in seen:
            raise LedgerError(entry.where, "listed twice", value=name, fix=f"see {seen[name]}")
        seen[name] = entry.where
