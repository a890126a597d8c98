"""A file of no known format: what was seen in it, and what the nearest format would need."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from coinhaze.errors import InputError, first_few, shorten
from coinhaze.formats.compression import BOM
from coinhaze.formats.lists.recognise import side_file

if TYPE_CHECKING:
    from coinhaze.formats.registry import Format

SHOWN = 12  # columns
_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs"}
# Files that people take for an export, by how they begin, and what to do instead.
_OTHER = (
    (rb"SQLite format 3\0", "an SQLite database: export its tables as CSV"),
    (rb"%PDF-", "a PDF document: export the data as CSV"),
    (rb"(?i)\s*<(!doctype|html)", "a web page and no data: perhaps a login or an error page"),
    (rb"\s*<\?xml", "XML, which no format is in: export the data as CSV or JSON"),
)


def unknown_file(
    path: Path, head: bytes, names: Sequence[str] | None, formats: Iterable[Format]
) -> InputError:
    """Make the error; `names` are the columns of a Parquet file."""
    text = head.removeprefix(BOM)
    if names is None and not text.strip():
        return InputError(f"{path}: no known format: the file is empty")
    formats = list(formats)
    force = f"--format forces one of {', '.join(entry.name for entry in formats)}"
    if names is not None:
        seen = f"Parquet with the columns {_listed(names)}"
        return InputError(f"{path}: no known format: {seen}; {_nearest(names, formats)}; {force}")
    beside = side_file(text)
    if beside is not None:
        command = beside.command.format(file=path)
        return InputError(f"{path}: no ledger: this is {beside.what}; take it as in: {command}")
    for pattern, words in _OTHER:
        if re.match(pattern, text):
            return InputError(f"{path}: no known format: this is {words}")
    if b"\0" in text or _is_binary(text):
        what = "binary data that begins like nothing known"
        return InputError(f"{path}: no known format: {what}; {force}")
    if text.lstrip().startswith((b"{", b"[")):
        keys = list(
            dict.fromkeys(re.findall(r'"([^"\\]{1,40})"\s*:', text.decode("utf-8", "replace")))
        )
        seen = f"JSON with the keys {_listed(keys)}" if keys else "JSON without keys"
        return InputError(f"{path}: no known format: {seen}; {force}")
    return InputError(f"{path}: no known format: {_table(text, formats)}; {force}")


def _table(text: bytes, formats: Sequence[Format]) -> str:
    """Describe a table of text by its header and first row."""
    from coinhaze.formats.tabular.delimited import header_names, separator_of

    lines = text.decode("utf-8", "replace").splitlines()
    separator = separator_of(lines[0])
    names = header_names(lines[0], separator)
    row = f", first row {shorten(lines[1], 80)}" if len(lines) > 1 else ", and no row"
    if len(names) == 1:
        return f"text that begins {shorten(lines[0], 80)}; a table begins with its columns' names"
    parted = f"a table parted by {_SEPARATORS[separator]} with the columns {_listed(names)}"
    return f"{parted}{row}; {_nearest(names, formats)}"


def _nearest(names: Sequence[str], formats: Iterable[Format]) -> str:
    """Name the format most of whose columns are there, and what it lacks."""
    found = [
        (len(has) / (len(has) + len(lacks)), entry.name, lacks)
        for entry in formats
        if entry.needs is not None
        for has, lacks in entry.needs(names)
        if has
    ]
    transfers = "--columns from=NAME,to=NAME,amount=NAME says which columns tell transfers"
    if not found:
        return f"no format has any of them; {transfers}"
    _, name, lacks = max(found, key=lambda one: one[0])
    if name == "transfers":
        columns = ",".join(f"{what}=NAME" for what in lacks)
        transfers = f"--columns {columns} says which it is"
    return f"nearest is {name}, which also needs {', '.join(lacks)}; {transfers}"


def _listed(names: Sequence[str]) -> str:
    return first_few([shorten(name, 40)[1:-1] for name in names], SHOWN)


def _is_binary(text: bytes) -> bool:
    """Tell bytes from text: much of it is no UTF-8, the end apart, which may be cut."""
    shown = text[:4096].decode("utf-8", "replace")[:-3]
    odd = sum(letter == "\ufffd" or (letter < " " and letter not in "\t\r\n") for letter in shown)
    return odd * 10 > len(shown)
