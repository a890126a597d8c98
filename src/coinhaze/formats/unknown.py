"""A file of no known format: what was seen in it, and what the nearest format would need."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from coinhaze.errors import InputError, first_few, hide_wallet_keys, shorten
from coinhaze.formats.compression import BOM
from coinhaze.formats.descriptors import is_key, refuse_private
from coinhaze.formats.lists.recognise import side_file
from coinhaze.formats.near_misses import near_binary, near_json, near_table, near_text
from coinhaze.formats.tabular.column_use import plain_name
from coinhaze.formats.tabular.delimited import header_names, separator_of
from coinhaze.formats.transfers.columns import NEEDED, spelt

if TYPE_CHECKING:
    from coinhaze.formats.registry import Format

SHOWN = 12  # columns
# Plain names of columns that are likely those of transfers, and too vague to be taken unasked.
_LIKELY = {
    "from": ("payer", "fromaddress", "fromaccount", "senderaddress", "source", "src"),
    "to": ("payee", "toaddress", "toaccount", "recipientaddress", "receiver", "destination", "dst"),
    "amount": ("total", "sum", "quantity", "qty"),
    "time": ("when",),
}
_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs"}
# Files that people take for an export, by how they begin, and what to do instead.
_OTHER = (
    (rb"SQLite format 3\0", "an SQLite database: export its tables as CSV"),
    (rb"%PDF-", "a PDF document: export the data as CSV"),
    (
        rb"(?i)\s*<(!doctype|html)",
        "a web page and no data, perhaps a login or an error page: open "
        "it in a browser to see, and download the data again",
    ),
    (rb"\s*<\?xml", "XML, which no format is in: export the data as CSV or JSON"),
)


def unknown_file(
    path: Path, head: bytes, names: Sequence[str] | None, formats: Iterable[Format]
) -> InputError:
    """Make the error; `names` are the columns of a Parquet file."""
    text = head.removeprefix(BOM)
    if names is None and not text.strip():
        again = "export or download it again"
        return InputError(f"{path}: no known format: the file is empty: {again}")
    formats = list(formats)
    force = f"--format forces one of {', '.join(entry.name for entry in formats)}"
    if names is not None:
        if (near := near_table(names)) is not None:
            return _instead(path, *near)
        seen = f"Parquet with the columns {_listed(names)}"
        return InputError(f"{path}: no known format: {seen}. {_advice(names, [], formats)}")
    beside = side_file(text)
    if beside is not None:
        return beside.instead_of("ledger", str(path))
    for pattern, words in _OTHER:
        if re.match(pattern, text):
            return InputError(f"{path}: no known format: this is {words}")
    if b"\0" in text or _is_binary(text):
        if (near := near_binary(path.name)) is not None:
            return _instead(path, *near)
        what = "binary data that begins like nothing known"
        return InputError(f"{path}: no known format: {what}; {force}")
    words = text.decode("utf-8", "replace")
    hide_wallet_keys(words)
    refuse_private(words, str(path))
    if is_key(words):
        what = "a wallet's keys, no ledger"
        return InputError(f"{path}: {what}: coinhaze wallet LEDGER --nodes {path} takes them")
    if text.lstrip().startswith((b"{", b"[")):
        keys = list(
            dict.fromkeys(re.findall(r'"([^"\\]{1,40})"\s*:', text.decode("utf-8", "replace")))
        )
        if (near := near_json(keys)) is not None:
            return _instead(path, *near)
        if not re.search(rb"[^\s\[\]{},]", text):
            return _instead(path, "JSON with nothing in it", "export or download it again")
        seen = f"JSON with the keys {_listed(keys)}" if keys else "JSON without keys"
        return InputError(f"{path}: no known format: {seen}; {force}")
    line = words.partition("\n")[0].rstrip("\r")
    near = near_text(line) or near_table(header_names(line, separator_of(line)))
    if near is not None:
        return _instead(path, *near)
    return InputError(f"{path}: no known format: {_table(text, formats, force)}")


def _instead(path: Path, what: str, fix: str) -> InputError:
    return InputError(f"{path}: no known format: this is {what}: {fix}")


def _table(text: bytes, formats: Sequence[Format], force: str) -> str:
    """Describe a table of text by its header, and say how it may be read."""
    lines = text.decode("utf-8", "replace").splitlines()
    separator = separator_of(lines[0])
    names = header_names(lines[0], separator)
    if len(names) == 1:
        begins = f"text that begins {shorten(lines[0], 80)}"
        return f"{begins}; a table begins with its columns' names; {force}"
    rows = [line.split(separator) for line in lines[1:]]
    seen = f"a table, separated by {_SEPARATORS[separator]}, with the columns {_listed(names)}"
    return f"{seen}. {_advice(names, rows, formats)}"


def _advice(names: Sequence[str], rows: Sequence[Sequence[str]], formats: Iterable[Format]) -> str:
    """Name the format most of whose columns are there, and the options that read transfers."""
    found = [
        (len(has) / (len(has) + len(lacks)), entry.name, lacks)
        for entry in formats
        if entry.needs is not None
        for has, lacks in entry.needs(names)
        if has
    ]
    transfers = f"If these are transfers: {_columns(names, rows)}"
    if not found:
        return transfers
    _, name, lacks = max(found, key=lambda one: one[0])
    if name == "transfers":
        return transfers
    return f"Nearest is {name}, which also needs {', '.join(lacks)}. {transfers}"


def _columns(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Write the options that would read a table as transfers; NAME where the column is not clear.

    >>> _columns(["payer", "payee", "Total"], [["ann", "ben", "1.50"]])  # doctest: +ELLIPSIS
    "--columns from=payer,to=payee,amount=Total --decimals N, ... (at least 2)"
    """
    chosen = {}
    for what, likely in _LIKELY.items():
        fitting = [name for name in names if plain_name(name) in likely]
        if not spelt(what, names) and (len(fitting) == 1 or what in NEEDED):
            chosen[what] = fitting[0] if len(fitting) == 1 else "NAME"
    options = shlex.quote(",".join(f"{what}={name}" for what, name in chosen.items()))
    amount = chosen.get("amount") or spelt("amount", names)[0][0]
    column = names.index(amount) if amount in names else None
    whole = [row for row in rows if len(row) == len(names)]
    places = 0 if column is None else _places([row[column] for row in whole])
    decimals = f" --decimals N, N being the currency's places (at least {places})" if places else ""
    return f"--columns {options}{decimals}"


def _places(amounts: Sequence[str]) -> int:
    """Count the places after the point, of the amount that has most."""
    points = (re.fullmatch(r"[0-9]*\.([0-9]+)", amount.strip('" ')) for amount in amounts)
    return max((len(point[1]) for point in points if point), default=0)


def _listed(names: Sequence[str]) -> str:
    return first_few([shorten(name, 40)[1:-1] for name in names], SHOWN)


def _is_binary(text: bytes) -> bool:
    """Tell bytes from text: much of it is no UTF-8, the end apart, which may be cut."""
    shown = text[:4096].decode("utf-8", "replace")[:-3]
    odd = sum(letter == "\ufffd" or (letter < " " and letter not in "\t\r\n") for letter in shown)
    return odd * 10 > len(shown)
