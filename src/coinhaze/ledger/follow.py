"""Node -> store: the blocks that are missing, and branches that the chain has left behind."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from coinhaze.errors import InputError, UsageError
from coinhaze.ledger.batches import Batch, in_chunks
from coinhaze.ledger.ingest import ahead
from coinhaze.ledger.store import Source, Store

# What a source is called, and where the class that reads such a node lives.
NODES = {
    "bitcoin": ("bitcoin", "BitcoinNode"),
    "ethereum": ("ethereum", "EthereumNode"),
    "monero": ("monero", "MoneroNode"),
    "zcash": ("zcash", "ZcashNode"),
}
# Rows committed at a time: a node is slower than a file, and little should be lost.
ROWS = 100_000
# Seconds between looks for new blocks.
PATIENCE = 5.0

Progress = Callable[[int, int], None]  # blocks read, blocks in all; from the reading thread


class Node(Protocol):
    """What can be asked of a node, whatever its chain."""

    def tip(self) -> tuple[int, str]:
        """Give the height and hash of the last block."""

    def common_ancestor(self, headers: Mapping[int, str]) -> int | None:
        """Give the last of these blocks that is still on the chain."""

    def batches(self, first: int, last: int) -> Iterator[Batch]:
        """Read blocks, both ends included."""


@dataclass(frozen=True)
class Followed:
    """What a look at a node brought."""

    rows: int
    first: int
    last: int
    left_behind: int  # blocks taken out again, because the chain has left them


def is_node(source: str) -> bool:
    """Tell whether a source is a node: kind+http://host:port."""
    return "://" in source


def open_node(source: str, **settings: Any) -> tuple[str, Any]:
    """Open a node by kind+URL, with credentials from the environment; also give what it is called.

    The kind is bitcoin (and all its relatives), zcash, ethereum or monero.
    """
    from importlib import import_module

    kind, plus, url = source.partition("+")
    if not plus or kind not in NODES:
        raise UsageError(
            f"which kind of node is {source.split('@')[-1]!r}? put one of {', '.join(NODES)} and a "
            "plus before the address: bitcoin+http://127.0.0.1:8332"
        )
    from coinhaze.ledger.nodes.credentials import Credentials
    from coinhaze.ledger.nodes.rpc import JsonRpc

    module, name = NODES[kind]
    client = JsonRpc(url, credentials=Credentials.from_environment())
    node = getattr(import_module(f"coinhaze.ledger.nodes.{module}"), name)(client, **settings)
    return f"{kind}+{client.node}", node


def catch_up(
    store: Store,
    node: Node,
    *,
    name: str,
    first: int | None = None,
    last: int | None = None,
    progress: Progress = lambda done, whole: None,
    **asking: Any,
) -> Followed:
    """Bring a store up to a node's tip, or to `last`.

    Blocks that the chain has left are taken out, and those that took their place put in, in one
    transaction. A store that has blocks goes on above them; `first` is where an empty one begins.
    """
    tip, _ = node.tip()
    last = tip if last is None else min(last, tip)
    headers = store.headers()
    start, left = _start(headers, node, first)
    begun = start
    if start > last and not left:
        return Followed(0, begun, last, 0)
    whole, rows = max(last - start + 1, 1), 0
    read = _told(node.batches(start, last, **asking), start, whole, progress)
    batches = ahead(in_chunks(read, rows=ROWS))
    old_tip = max(headers, default=-1)
    while True:
        with store.transaction():
            if left:
                store.roll_back(start)
            reached = start - 1
            # A branch left behind is replaced whole: up to where it was.
            for batch in batches:
                rows += store.append(batch)
                reached = _last_height(batch)
                if not left or reached >= min(old_tip, last):
                    break
            else:
                reached = last
            store.note_source(Source(f"node {name}", name, "node", reached + 1, done=False))
        if reached >= last:
            return Followed(rows, begun, last, max(old_tip - begun + 1, 0) if left else 0)
        left = False


def _start(headers: Mapping[int, str], node: Node, first: int | None) -> tuple[int, bool]:
    """Give the height to read from, and whether what the store has from there on must go."""
    if not headers:
        return first or 0, False
    highest = max(headers)
    if first is not None and first > highest + 1:
        raise UsageError(
            f"the store ends with block {highest}: from {first} on would leave a gap; begin with "
            f"{highest + 1} or use another store"
        )
    ancestor = node.common_ancestor(headers)
    if ancestor is None:
        raise InputError(
            f"none of the newest {len(headers)} blocks of the store is on the node's chain: it is "
            "of another network, or was reorganised deeper than that"
        )
    return ancestor + 1, ancestor < highest


def _told(batches: Iterator[Batch], start: int, whole: int, progress: Progress) -> Iterator[Batch]:
    """Tell of blocks as they come from the node: commits are far between where it is slow."""
    progress(0, whole)
    for batch in batches:
        progress(_last_height(batch) - start + 1, whole)
        yield batch


def _last_height(batch: Batch) -> int:
    return int(batch.tables["blocks"]["height"][-1].as_py())
