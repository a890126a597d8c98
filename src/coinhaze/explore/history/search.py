"""What a person pasted, found in a whole history."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from coinhaze.errors import InputError, UnknownName, UsageError
from coinhaze.explore.describe import (
    short_id,
)
from coinhaze.explore.models import (
    Hit,
    SearchAnswer,
)
from coinhaze.explore.query import thing_link
from coinhaze.explore.search import LONGEST, MAXIMUM, SHORTEST, taken_out

if TYPE_CHECKING:
    from coinhaze.explore.history.explorer import HistoryExplorer


MAX_LOOKED_THROUGH = 100_000_000  # transactions whose ids are looked through for a beginning


def search_history(explorer: HistoryExplorer, query: str) -> SearchAnswer:
    """Find a transaction, coin, account or block, or transactions whose id begins so."""
    text = taken_out(query)
    if not text:
        raise InputError("nothing to look for: paste a transaction id, txid:vout or a height")
    hits = _named(explorer, text)
    understood = hits[0].kind.capitalize() if hits else f"a name, {short_id(text)}"
    note = None
    if not hits and len(text) >= SHORTEST:
        hits = _beginning(explorer, text)
        understood = f"the beginning of a name, {short_id(text)}" if hits else understood
    if not hits:
        note = "Nothing in this history has this name or begins with it."
        if len(text) < SHORTEST:
            note = f"Beginnings of names need {SHORTEST} letters or more. {note}"
    return SearchAnswer(
        query=query[:LONGEST],
        understood=understood,
        hits=tuple(hits[:MAXIMUM]),
        more=len(hits) > MAXIMUM,
        note=note,
    )


def _hit(explorer: HistoryExplorer, kind: Any, name: str, page: str, words: str) -> Hit:
    return Hit(
        kind=kind, ledger=explorer.id, name=name, words=words,
        href=thing_link(explorer.id, page, name),
    )  # fmt: skip


def _named(explorer: HistoryExplorer, text: str) -> list[Hit]:
    digits = text.replace(",", "").removeprefix("#")
    tape = explorer.history.tape
    for name in dict.fromkeys((text, text.lower())):
        txid, _, vout = name.rpartition(":")
        if txid and vout.isdecimal() and not explorer.accounts and tape.find(txid) is not None:
            return [_hit(explorer, "coin", name, "coin", f"Coin {short_id(name)}")]
        if not explorer.accounts and name.startswith("pool:") and _has(explorer, name):
            return [_hit(explorer, "coin", name, "coin", f"Pool {short_id(name)}")]
        if explorer.accounts and _has(explorer, name):
            return [_hit(explorer, "account", name, "coin", f"Account {short_id(name)}")]
        if not explorer.accounts and tape.find(name) is not None:
            return [_hit(explorer, "transaction", name, "tx", f"Transaction {short_id(name)}")]
    about = explorer.history.manifest
    height = int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 18 else -1
    if not 0 <= about.first_height <= height <= about.last_height:
        return []
    return [_hit(explorer, "block", str(height), "block", f"Block {height:,}")]


def _has(explorer: HistoryExplorer, name: str) -> bool:
    try:
        explorer.walk(name)
    except UnknownName:
        return False
    return True


def _beginning(explorer: HistoryExplorer, text: str) -> list[Hit]:
    if explorer.accounts:
        every = explorer.names(np.arange(len(explorer.scores)))
        found = [name for name in every if name.startswith(text)][: MAXIMUM + 1]
        return [_hit(explorer, "account", n, "coin", f"Account {short_id(n)}") for n in found]
    if len(explorer.history) > MAX_LOOKED_THROUGH:
        raise UsageError(
            f"more than {MAX_LOOKED_THROUGH:,} transactions are not looked through for a "
            "beginning: paste the whole id"
        )
    names = explorer.history.tape.beginning(text.lower(), MAXIMUM + 1)
    return [_hit(explorer, "transaction", n, "tx", f"Transaction {short_id(n)}") for n in names]
