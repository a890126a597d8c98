"""Lists of addresses, with names or without: for naming clusters and for sets of sources.

| file | content |
|---|---|
| CSV | a header with `address` and, if known, `name` or `label`, and `programme`; others are left |
| TXT | one address per line; `#` at the beginning of a line or after a blank begins a comment |
| JSON | an array of addresses, as OFAC's lists have it, or an object of address: name |
| JSON lines | labels of a wallet (BIP-329): those of addresses, coins and transactions |
| YAML | a GraphSense TagPack: `tags` with `address` and `label`, where need be from the header |

The first name of an address stands. Ethereum's addresses become lower case. Tags of transactions in
a TagPack are left out.
"""

from __future__ import annotations

import csv
import importlib
import io
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coinhaze.errors import InputError, LedgerError, UsageError
from coinhaze.formats.compression import SUFFIXES, read_plain
from coinhaze.formats.lists.bip329 import ADDRESS, is_bip329, read_wallet_labels
from coinhaze.formats.tabular.delimited import WHOLE_ROW, fields, header_names, separator_of
from coinhaze.ledger.checks import check_name
from coinhaze.ledger.text import text_buffers

LARGEST = 1 << 28  # bytes, unpacked
LARGEST_YAML = 1 << 25
DEEPEST_YAML = 16
MAX_ALIASES = 1000

# Case is a checksum in the first and means nothing in the second, which codes on paper write so.
_ETHEREUM = "0[xX][0-9a-fA-F]{40}"
_BECH32 = "(?:BC|TB|BCRT|LTC|TLTC)1[02-9AC-HJ-NP-Z]{6,}"
_IN_ANY_CASE = re.compile(f"{_ETHEREUM}|{_BECH32}")
COMMENT = re.compile(r"(?:^|\s)#.*")
_ADDRESS = "call the column of the addresses `address`, that of their names `name`"
_NOTHING = ("", "~", "null", "Null", "NULL")
# Where, address, name; and the programme, if the file has one.
Tag = tuple[str, str, str | None] | tuple[str, str, str | None, str | None]


@dataclass(frozen=True)
class Labels:
    """Addresses, each once, in the order of the file, and the names of those that have one."""

    names: dict[str, str]
    addresses: tuple[str, ...]
    programmes: dict[str, str] = field(default_factory=dict)  # by which an address was listed


def read_labels(path: str | Path) -> Labels:
    """Read a list of addresses; recognised by its name or, failing that, by its content."""
    path = Path(path)
    text = decoded(read_plain(path, maximum=LARGEST, what="labels"), str(path))
    suffixes = [s.lower() for s in path.suffixes if s not in SUFFIXES]
    suffix = suffixes[-1] if suffixes else ""
    if is_bip329(text):
        return _wallet_labels(text, path)
    tags: Iterable[Tag]
    if suffix in (".yaml", ".yml"):
        tags = _from_yaml(text, path)
    elif suffix == ".json" or text.lstrip().startswith(("[", "{")):
        tags = _from_json(text, path)
    elif suffix == ".csv" or _is_header(text.lstrip().partition("\n")[0]):
        tags = _from_csv(text, path)
    else:
        tags = ((where, name, None) for where, name in names_by_line(text, str(path)))
    return _labels(tags)


def _wallet_labels(text: str, path: Path) -> Labels:
    """Give the labels of a wallet, those of coins and transactions by their names in a ledger."""
    names: dict[str, str] = {}
    addresses: dict[str, None] = {}
    for read in read_wallet_labels(text, str(path)):
        ref = read.ref
        if read.type == ADDRESS:
            ref = normal_address(check_name(ref, read.where, field="ref"))
            addresses[ref] = None
        if read.label is not None:
            names.setdefault(ref, check_name(read.label, read.where, field="label"))
    return Labels(names, tuple(addresses))


def normal_address(address: str) -> str:
    """Write an address as ledgers do: Ethereum's and bech32 in lower case, others as they are.

    >>> normal_address("0x01E2919679362dFBC9ee1644Ba9C6da6D6245BB1")
    '0x01e2919679362dfbc9ee1644ba9c6da6d6245bb1'
    >>> normal_address("BC1QW508D6QEJXTDG4Y5R3ZARVARY0C5XW7KV8F3T4"), normal_address("Alice")
    ('bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4', 'Alice')
    """
    return address.lower() if _IN_ANY_CASE.fullmatch(address) else address


def normal_addresses(names: pa.Array) -> pa.Array:
    """Write a column of names as `normal_address` does each.

    >>> normal_addresses(pa.array(["0x01E2919679362dFBC9ee1644Ba9C6da6D6245BB1", "Alice"]))[0]
    <pyarrow.StringScalar: '0x01e2919679362dfbc9ee1644ba9c6da6d6245bb1'>
    """
    _, letters = text_buffers(names)
    if not np.any((letters >= ord("A")) & (letters <= ord("Z"))):
        return names
    same = pc.match_substring_regex(names, f"^(?:{_IN_ANY_CASE.pattern})$")
    return pc.if_else(same, pc.ascii_lower(names), names)


def _labels(tags: Iterable[Tag]) -> Labels:
    addresses: dict[str, None] = {}
    names: dict[str, str] = {}
    programmes: dict[str, str] = {}
    for where, address, name, *more in tags:
        if " " in check_name(address, where, field="address"):
            raise LedgerError(where, "an address with a blank in it", value=address)
        address = normal_address(address)
        addresses[address] = None
        if name:
            names.setdefault(address, check_name(name, where, field="name"))
        if more and more[0]:
            programmes.setdefault(address, check_name(more[0], where, field="programme"))
    return Labels(names, tuple(addresses), programmes)


def decoded(content: bytes, where: str) -> str:
    """Give the text of a file, or say on which line it is none."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise LedgerError(f"{where}:{line}", "text that is not UTF-8") from None


def names_by_line(text: str, where: str) -> Iterator[tuple[str, str]]:
    """Give one name per line, with its place; `#` begins a comment, except within a name."""
    for number, line in enumerate(text.split("\n"), 1):
        name = COMMENT.sub("", line).strip()
        if name:
            yield f"{where}:{number}", name


def csv_rows(text: str, where: str) -> Iterator[tuple[str, list[str]]]:
    """Give the rows of CSV with their places, first the header, whose width all others have.

    They are separated by commas, semicolons or tabs, whichever the header has most of.
    """
    separator = separator_of(text.partition("\n")[0])
    lines = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=separator)
    try:
        header = next(lines, [])
        yield f"{where}:1", header
        for row in lines:
            here = f"{where}:{lines.line_num}"
            if len(row) != len(header):
                what = f"{fields(len(row))} where the header has {len(header)}"
                raise LedgerError(here, what, value=separator.join(row), fix=WHOLE_ROW)
            yield here, row
    except csv.Error as error:
        raise LedgerError(f"{where}:{lines.line_num}", f"not CSV: {error}") from None


def _is_header(line: str) -> bool:
    names = header_names(line, separator_of(line))
    return "address" in [name.strip().lower() for name in names]


def _from_csv(text: str, path: Path) -> Iterator[Tag]:
    rows = csv_rows(text, str(path))
    header = [name.strip() for name in next(rows)[1]]
    address = _column(header, ("address",), path)
    name = _column(header, ("name", "label"), path)
    programme = _column(header, ("programme", "program", "programs"), path)
    if address is None:
        raise LedgerError(f"{path}:1", "no column 'address'", value=header, fix=_ADDRESS)

    def cell(row: list[str], column: int | None) -> str | None:
        return None if column is None else row[column].strip()

    for where, row in rows:
        yield where, row[address].strip(), cell(row, name), cell(row, programme)


def _column(header: list[str], names: tuple[str, ...], path: Path) -> int | None:
    found = [number for number, name in enumerate(header) if name.lower() in names]
    if len(found) > 1:
        raise LedgerError(f"{path}:1", f"more than one column {' or '.join(names)}", value=header)
    return found[0] if found else None


def _from_json(text: str, path: Path) -> Iterator[Tag]:
    try:
        content = msgspec.json.decode(text, type=list[str] | dict[str, str | None])
    except msgspec.ValidationError as error:
        found = re.search(r"\$\[([0-9]+)\]", str(error))
        where = f"{path}: label {int(found[1]) + 1}" if found else str(path)
        fix = "an array of addresses, or an object of address: name"
        raise LedgerError(where, "no labels in JSON: what is not text", fix=fix) from None
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        fix = "an array of addresses, or an object of address: name"
        raise LedgerError(str(path), f"no labels in JSON: {error}", fix=fix) from None
    named = content.items() if isinstance(content, dict) else ((a, None) for a in content)
    for number, (address, name) in enumerate(named, 1):
        yield f"{path}: label {number}", address.strip(), name and name.strip()


def _from_yaml(text: str, path: Path) -> Iterator[Tag]:
    try:
        yaml = importlib.import_module("yaml")
    except ImportError:
        raise UsageError("labels in YAML need pyyaml: pip install 'coinhaze[labels]'") from None
    if len(text) > LARGEST_YAML:
        raise InputError(f"{path}: more than {LARGEST_YAML} letters of YAML")
    # The plainest loader: nothing is built, and 0x12 or no stay the text they are.
    loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    try:
        _limit(yaml.parse(text, Loader=loader), path)
        root = yaml.compose(text, Loader=loader)
    except (yaml.YAMLError, UnicodeError, RecursionError) as error:
        what = f"not YAML: {' '.join(str(error).split())}"
        raise LedgerError(str(path), what) from None
    yield from _tags(root, path)


def _limit(events: Iterable[Any], path: Path) -> None:
    """Refuse what would cost more to compose than its size tells."""
    depth = aliases = 0
    for event in events:
        kind = type(event).__name__
        depth += kind in ("MappingStartEvent", "SequenceStartEvent")
        depth -= kind in ("MappingEndEvent", "SequenceEndEvent")
        aliases += kind == "AliasEvent"
        if depth > DEEPEST_YAML or aliases > MAX_ALIASES:
            what = f"YAML of more than {DEEPEST_YAML} levels or {MAX_ALIASES} aliases"
            raise LedgerError(f"{path}:{event.start_mark.line + 1}", what)


def _tags(root: Any, path: Path) -> Iterator[Tag]:
    header: dict[str, Any] = {}
    tags = root
    if root is not None and root.id == "mapping":
        header = _fields(root, path)
        tags = header.pop("tags", None)
    if tags is None or tags.id != "sequence":
        raise LedgerError(f"{path}:1", "no list of tags", fix="a TagPack has `tags`")
    for node in tags.value:
        where = f"{path}:{node.start_mark.line + 1}"
        if node.id != "mapping":
            raise LedgerError(where, "a tag that is no mapping", value=str(node.value))
        tag = header | _fields(node, path)
        address, label = (_scalar(tag.get(key), where) for key in ("address", "label"))
        if address is None and _scalar(tag.get("tx_hash"), where):
            continue
        if address is None or label is None:
            what = f"a tag without {'address' if address is None else 'label'}"
            raise LedgerError(where, what, value=sorted(tag))
        yield where, address, label


def _fields(node: Any, path: Path) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for key, value in node.value:
        where = f"{path}:{key.start_mark.line + 1}"
        name = str(key.value)
        if name in fields:
            raise LedgerError(where, "a key given twice", value=name)
        if name == "<<":
            raise LedgerError(where, "a merge key", fix="write the fields out")
        fields[name] = value
    return fields


def _scalar(node: Any, where: str) -> str | None:
    if node is None:
        return None
    if node.id != "scalar":
        raise LedgerError(where, "a list or mapping where text should be", value=str(node.tag))
    value = str(node.value).strip()
    # The style of plain text is None, or empty in the C reader.
    return None if not value or (not node.style and value in _NOTHING) else value
