"""What a person pastes into the search box: taken out of what is around it, and found."""

from __future__ import annotations

import re
from functools import cached_property
from itertools import pairwise
from urllib.parse import unquote

import numpy as np

from coinhaze.amounts import Ints
from coinhaze.errors import InputError
from coinhaze.explore.describe import short_id
from coinhaze.explore.ledger_index import Prefixes
from coinhaze.explore.models import (
    Hit,
    SearchAnswer,
    ThingKind,
)
from coinhaze.explore.nodes import Nodes
from coinhaze.explore.query import thing_link
from coinhaze.formats.lists.labels import normal_address
from coinhaze.graph import TransactionGraph
from coinhaze.graph.find import other_network
from coinhaze.graph.graph import Kind
from coinhaze.ledger import CoinLedger

LONGEST = 2_000  # letters that are looked at
SHORTEST = 6  # letters a beginning needs
MAXIMUM = 20  # hits
_HEX = re.compile(r"(?:0x)?[0-9a-fA-F]{64}", re.ASCII)
_COIN = re.compile(r"(?P<txid>[0-9a-fA-F]{64})[:_#/](?:output/)?(?P<vout>[0-9]{1,10})", re.ASCII)
_URL = re.compile(r"[a-z][a-z0-9+.-]*:(//|(?=[a-zA-Z0-9]{20,}))", re.IGNORECASE)
_PATH = ("tx", "transaction", "address", "addr", "block", "block-height", "output", "token")


class Seeker:
    """Finds things of one ledger by what people write."""

    def __init__(self, nodes: Nodes) -> None:
        self.nodes = nodes
        self.graph: TransactionGraph = nodes.graph

    def search(self, query: str) -> SearchAnswer:
        """Find a transaction, coin, address, account or block, or what begins so."""
        # A name is what the ledger says it is, whatever its letters: first exactly what was given.
        for given in dict.fromkeys([query, query.strip()]):
            hits = self._named(given)
            if hits:
                return self._answer(query, _words(hits[0].kind), hits)
        text = taken_out(query)
        if not text:
            raise InputError(
                "nothing to look for: paste a transaction id, txid:vout, an address, an account "
                "or the height of a block"
            )
        hits = self._exact(text)
        if hits:
            return self._answer(query, _words(hits[0].kind), hits)
        if len(text) >= SHORTEST:
            hits = self._beginning(text)
            if hits:
                return self._answer(query, f"the beginning of a name, {short_id(text)}", hits)
        return self._nothing(query, text)

    def _answer(self, query: str, understood: str, hits: list[Hit]) -> SearchAnswer:
        shown = tuple(hits[:MAXIMUM])
        return SearchAnswer(
            query=query[:LONGEST], understood=understood, hits=shown, more=len(hits) > MAXIMUM
        )

    def _nothing(self, query: str, text: str) -> SearchAnswer:
        note = other_network(self.graph, [text])
        if note is None:
            note = (
                "Nothing in this ledger has this name or begins with it. It may lie outside the "
                "ledger's window. Paste a transaction id, txid:vout, an address, an account or "
                "the height of a block."
            )
            if len(text) < SHORTEST:
                note = f"Beginnings of names need {SHORTEST} letters or more. {note}"
        return SearchAnswer(query=query[:LONGEST], understood=_guess(text), hits=(), note=note)

    def _exact(self, text: str) -> list[Hit]:
        """Find what has exactly this name, in one of the ways it may be written."""
        for name in dict.fromkeys([text, text.lower(), normal_address(text)]):
            hits = self._named(name)
            if hits:
                return hits
        block = self._block(text)
        return [] if block is None else [block]

    def _named(self, name: str) -> list[Hit]:
        """Find what has this name, letter by letter."""
        found = (self._transaction(name), self._node(name), self._address(name))
        return [hit for hit in found if hit is not None]

    def _transaction(self, name: str) -> Hit | None:
        bare = name.removeprefix("tx:")
        if self.graph.names.parties.find(f"tx:{bare}") < 0:
            return None
        return self._hit("transaction", bare, "tx", f"Transaction {short_id(bare)}")

    def _node(self, name: str) -> Hit | None:
        names = self.graph.names
        party = names.parties.find(name)
        found = names.newest[[party]] if party >= 0 else self._snapshots(name)
        if len(found) != 1 or found[0] < 0:
            return None
        kind = self.graph.kinds[int(found[0])]
        if kind == Kind.coin:
            return self._hit("coin", name, "coin", f"Coin {short_id(name)}")
        if kind == Kind.address:
            return self._hit("address", name, "address", f"Address {short_id(name)}")
        if kind in (Kind.transaction, Kind.ring):
            return None
        return self._hit("account", name, "coin", f"Account {short_id(name)}")

    def _snapshots(self, name: str) -> Ints:
        # Another name of coins, such as an address, is found as one.
        names = self.graph.names
        return names.nodes(name) if not len(names.parties_named(name)) else np.zeros(0, np.int64)

    def _address(self, name: str) -> Hit | None:
        if not len(self.graph.names.others.parties(name)):
            return None
        return self._hit("address", name, "address", f"Address {short_id(name)}")

    def _block(self, text: str) -> Hit | None:
        ledger = self.graph.ledger
        digits = text.replace(",", "").replace("_", "").removeprefix("#")
        if not isinstance(ledger, CoinLedger) or not (digits.isascii() and digits.isdigit()):
            return None
        height = int(digits[:18])
        if not len(block_rows(ledger, height)):
            return None
        return self._hit("block", str(height), "block", f"Block {height:,}")

    def _beginning(self, text: str) -> list[Hit]:
        found: list[Hit] = []
        for kind, prefixes in self._columns:
            for way in dict.fromkeys([text, text.lower()]):
                rows = prefixes.rows(way, limit=MAXIMUM + 1)
                for name in prefixes.column.take(rows).to_pylist():
                    words = f"{_words(kind)} {short_id(name)}"
                    found.append(self._hit(kind, name, _PAGES[kind], words))
                if len(rows):
                    break
        return found[: MAXIMUM + 1]

    @cached_property
    def _columns(self) -> list[tuple[ThingKind, Prefixes]]:
        ledger = self.graph.ledger
        if not isinstance(ledger, CoinLedger):
            return [("account", Prefixes(ledger.accounts))]
        return [("transaction", Prefixes(ledger.txids)), ("address", Prefixes(ledger.owners))]

    def _hit(self, kind: ThingKind, name: str, page: str, words: str) -> Hit:
        label = self.nodes.labels.get(name)
        return Hit(
            kind=kind,
            ledger=self.nodes.ledger,
            name=name,
            words=words if label is None else f"{words} ({label})",
            href=thing_link(self.nodes.ledger, page, name),
        )


_PAGES = {"transaction": "tx", "address": "address", "account": "coin", "coin": "coin"}


def taken_out(query: str) -> str:
    """Take an id out of what people paste it with: blanks, quotes, an explorer's address.

    >>> taken_out(' "https://mempool.space/tx/' + "AB" * 32 + '?x=1#vin=0" ')[:6]
    'ababab'
    >>> taken_out("ab" * 32 + " : 3")[-3:], taken_out("bitcoin:bc1qxyz0000000000000?amount=1")
    ('b:3', 'bc1qxyz0000000000000')
    """
    text = unquote(query[:LONGEST]).strip().strip("\"'`<>()[]{},;").strip()
    squeezed = re.sub(r"\s*([:#_])\s*(?=[0-9]+$)", r"\1", text)
    coin = _COIN.search(squeezed)
    if coin is not None:
        return f"{coin['txid'].lower()}:{int(coin['vout'])}"
    if _URL.match(text):
        text = _last_part(text)
    whole = _HEX.search(text)
    if whole is not None and not text.startswith("tx:"):
        return whole[0].lower() if not whole[0].startswith("0x") or _is_id(whole[0]) else text
    return text.strip()


def _is_id(text: str) -> bool:
    return len(text) == 66


def _last_part(text: str) -> str:
    """Give what an explorer's address is about: what follows tx, address or block, or its end."""
    path = re.split(r"[?#]", _URL.sub("", text, count=1))[0].strip("/")
    parts = [part for part in path.split("/") if part]
    for before, part in pairwise(parts):
        if before.lower() in _PATH and part.lower() not in _PATH:
            return part
    return parts[-1] if parts else ""


def block_rows(ledger: CoinLedger, height: int) -> Ints:
    """Find the transactions of a block."""
    heights = ledger.heights.to_numpy(zero_copy_only=False)
    found: Ints = np.flatnonzero((heights == height) & ledger.inside)
    return found


def _words(kind: str) -> str:
    return {
        "transaction": "Transaction",
        "coin": "Coin",
        "address": "Address",
        "block": "Block",
    }.get(kind, "Account")


def _guess(text: str) -> str:
    if _COIN.fullmatch(text):
        return "a coin"
    if _HEX.fullmatch(text):
        return "the id of a transaction or block"
    if text.isascii() and text.isdigit():
        return "the height of a block"
    return f"a name, {short_id(text)}"
