"""What the columns of files are called, and what became of each: used, known and unused, unknown.

Letter case, spaces and punctuation do not count: `Block Number`, `blockNumber` and `block_number`
are one name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from coinhaze.errors import first_few

Use = Mapping[str, tuple[str, ...]]  # used, unused, unknown -> names as the file has them
KINDS = ("used", "unused", "unknown")

# What exports of transfers tell beside who paid whom how much and when; none of it is needed.
UNUSED = frozenset([
    "amountusd", "basefeepergas", "blockchain", "blockhash", "blockmonth",
    "blockweek", "blockyear", "callindex", "chain", "chainid", "comment", "confirmations",
    "contractname", "cumulativegasused", "currentvalueusd", "decimals", "description",
    "effectivegasprice", "evttxfrom", "evttxto", "fees", "fromlabel", "fromname", "functionname",
    "gas", "gaslimit", "gasprice", "gasused", "historicalpriceusd", "input", "l1fee", "label",
    "maxfeepergas", "maxpriorityfeepergas", "memo", "method", "methodid", "network", "note",
    "price", "priceusd", "privatenote", "rowid", "symbol", "tokendecimal", "tokendecimals",
    "tokenname", "tokenstandard", "tokensymbol", "tolabel", "toname", "traceaddress",
    "transactiontype", "txfee", "txfrom", "txnfee", "txto", "txtype", "uniqueid", "usdvalue",
    "usdvaluedayoftx", "valueusd",
])  # fmt: skip
# These may say that a row does not count, or is of another kind: a note says so.
NOTED = frozenset([
    "errcode", "error", "failed", "iserror", "receiptstatus", "removed", "status", "success",
    "tokenid", "txreceiptstatus", "type",
])  # fmt: skip


def plain_name(name: str) -> str:
    """Leave out of a name what does not tell it from others.

    >>> plain_name("DateTime (UTC)")
    'datetimeutc'
    """
    return re.sub("[^a-z0-9]", "", name.lower())


def in_small_letters(names: Sequence[str]) -> list[str]:
    """Write names of columns in small letters, but for those that would then be called as another.

    >>> in_small_letters(["Hash", "VALUE", "value"])
    ['hash', 'VALUE', 'value']
    """
    own = set(names)
    return [name if name.lower() in own else name.lower() for name in names]


def use_of(
    names: Sequence[str],
    used: Iterable[str],
    known: Iterable[str] = UNUSED,
    unused: Iterable[str] = (),
) -> Use:
    """Sort the columns of one file by what becomes of them.

    `unused` are names as the file has them, `known` are plain ones.

    >>> use_of(["from", "Gas Price", "colour"], ["from"])["unknown"]
    ('colour',)
    """
    used, unused, known = set(used), set(unused), set(known)
    of: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for name in names:
        passed = name in unused or plain_name(name) in known
        of["used" if name in used else "unused" if passed else "unknown"].append(name)
    return {kind: tuple(here) for kind, here in of.items()}


def joined_use(uses: Iterable[Use]) -> Use:
    """Sum up several files: a column used in one of them is used.

    >>> joined_use([{"used": ("a",)}, {"used": ("b",), "unknown": ("a", "c")}])["unknown"]
    ('c',)
    """
    of: dict[str, dict[str, None]] = {kind: {} for kind in KINDS}
    for use in uses:
        for kind in KINDS:
            of[kind] |= dict.fromkeys(use.get(kind, ()))
    seen: set[str] = set()
    joined: dict[str, tuple[str, ...]] = {}
    for kind in KINDS:
        joined[kind] = tuple(name for name in of[kind] if name not in seen)
        seen |= set(of[kind])
    return joined if seen else {}


def without(use: Use, names: Iterable[str]) -> Use:
    """Count some columns as unused."""
    gone = [name for name in use.get("used", ()) if name in set(names)]
    used = tuple(name for name in use.get("used", ()) if name not in gone)
    return {**use, "used": used, "unused": (*use.get("unused", ()), *gone)} if gone else use


def rows_text(count: int) -> str:
    """Write a number of rows.

    >>> rows_text(1), rows_text(1200)
    ('1 row', '1,200 rows')
    """
    return "1 row" if count == 1 else f"{count:,} rows"


def column_notes(use: Use) -> tuple[str, ...]:
    """Say which columns nobody knows, and which may matter, that are not used."""
    unknown = [name or "(without a name)" for name in use.get("unknown", ())]
    noted = [name for name in use.get("unused", ()) if plain_name(name) in NOTED]
    notes = []
    if noted:
        notes.append(f"columns not used, whatever they say of rows: {first_few(noted, 8)}")
    if unknown:
        notes.append(f"columns not used, their names are not known: {first_few(unknown, 8)}")
    return tuple(notes)
