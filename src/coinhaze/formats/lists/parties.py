"""Who knows which coins: a table of parties, or the labels of a wallet.

| file | content |
|---|---|
| CSV | a header with `party` and `coin` (or `output`, `address`, `txid`): one per line |
| JSON lines | labels as wallets export them (BIP 329) |

A label names those who know a coin, with commas between where they are several. Labels of outputs,
addresses and transactions are read; an input of a transaction is a coin of yours that was spent,
whatever its label. Labels of keys name no coin and are left.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec

from coinhaze.errors import InputError, LedgerError
from coinhaze.formats.compression import read_plain
from coinhaze.formats.lists.labels import LARGEST, csv_rows, decoded, normal_address
from coinhaze.ledger.checks import check_name

OWNER = "me"  # the party that is yourself
_COLUMNS = ("coin", "output", "address", "txid")
Row = tuple[str, str, str]  # where, party, what it knows


class _Label(msgspec.Struct):
    """A line of BIP 329; other fields are left."""

    type: Literal["tx", "addr", "pubkey", "input", "output", "xpub"]
    ref: str
    label: str | None = None


_LINE = msgspec.json.Decoder(_Label)


def read_parties(path: str | Path) -> dict[str, list[str]]:
    """Read who knows what: party -> coins, addresses and transactions, in the order of the file."""
    text = decoded(read_plain(Path(path), maximum=LARGEST, what="parties"), str(path))
    return parse_parties(text, where=str(path))


def parse_parties(text: str, *, where: str = "parties") -> dict[str, list[str]]:
    """Read text as `read_parties` reads a file.

    >>> parse_parties('{"type": "output", "ref": "t:1", "label": "Bob, a shop"}')
    {'Bob': ['t:1'], 'a shop': ['t:1']}
    >>> parse_parties("party,coin\\nBob,t:1\\nme,1abc")
    {'Bob': ['t:1'], 'me': ['1abc']}
    """
    rows = _from_lines(text, where) if text.lstrip().startswith("{") else _from_csv(text, where)
    found: dict[str, dict[str, None]] = {}
    for place, party, ref in rows:
        name = check_name(party, place, field="party")
        found.setdefault(name, {})[normal_address(check_name(ref, place, field="coin"))] = None
    if not found:
        raise InputError(f"{where}: names no party: write party,coin, one per line")
    return {party: list(refs) for party, refs in found.items()}


def _from_csv(text: str, file: str) -> Iterator[Row]:
    rows = csv_rows(text, file)
    header = [name.strip().lower() for name in next(rows)[1]]
    found = [k for k, name in enumerate(header) if name in _COLUMNS]
    if header.count("party") != 1 or len(found) != 1:
        raise LedgerError(
            f"{file}:1", "no table of parties", value=header, fix="party,coin or party,address"
        )
    party, what = header.index("party"), found[0]
    for where, row in rows:
        yield where, row[party].strip(), row[what].strip()


def _from_lines(text: str, file: str) -> Iterator[Row]:
    for number, line in enumerate(text.split("\n"), 1):
        where = f"{file}:{number}"
        if not line.strip():
            continue
        try:
            entry = _LINE.decode(line)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            fix = 'lines as {"type": "output", "ref": "txid:vout", "label": "who knows it"}'
            raise LedgerError(where, f"not a BIP-329 label: {error}", fix=fix) from None
        if entry.type == "input":
            yield where, OWNER, entry.ref.rpartition(":")[0]
        elif entry.type in ("tx", "addr", "output"):
            for party in (entry.label or "").split(","):
                if party.strip():
                    yield where, party.strip(), entry.ref
