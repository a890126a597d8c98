"""Node -> store: the blocks that are missing, and branches that the chain has left behind."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from coinhaze.errors import CoinhazeError, InputError, NotAnswering, UsageError
from coinhaze.ledger.batches import Batch, in_chunks
from coinhaze.nodes.best_chain import BlockMissing, ChainChanged
from coinhaze.nodes.http import pause_after, shown_url
from coinhaze.nodes.servers import is_server
from coinhaze.store.ingest import ahead
from coinhaze.store.store import Source, Store

# What a source is called, and where the class that reads such a node lives.
NODES = {
    "bitcoin": ("bitcoin", "BitcoinNode"),
    "ethereum": ("ethereum.node", "EthereumNode"),
    "monero": ("monero", "MoneroNode"),
    "zcash": ("zcash", "ZcashNode"),
}
# Rows committed at a time: a node is slower than a file, and little should be lost.
ROWS = 100_000
# Seconds between looks for new blocks.
PATIENCE = 5.0
# Attempts to read a chain that is reorganised meanwhile.
ATTEMPTS = 8

Progress = Callable[[int, int], None]  # blocks read, blocks in all; from the reading thread


class Node(Protocol):
    """What a node can be queried for, whatever its chain."""

    def tip(self) -> tuple[int, str]:
        """Give the height and hash of the last block."""

    def common_ancestor(self, headers: Mapping[int, str]) -> int | None:
        """Give the last of these blocks that is still on the chain."""

    def batches(self, first: int, last: int, *, before: str = "") -> Iterator[Batch]:
        """Read blocks, both ends included; raise ChainChanged where one does not follow the other.

        The first must follow the block with the hash `before`, if that is given.
        """


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


def open_node(source: str) -> tuple[str, Any]:
    """Open a node by kind+URL, with credentials from the environment; also give what it is called.

    The kind is bitcoin (and all its relatives), zcash, ethereum or monero.
    """
    from importlib import import_module

    kind, plus, url = source.partition("+")
    if is_server(source):
        raise UsageError(
            f"{shown_url(source)} knows single coins, not whole blocks: use it with coinhaze "
            "wallet; blocks come from a node, bitcoin+http://127.0.0.1:8332"
        )
    if not plus or kind not in NODES:
        raise UsageError(
            f"which kind of node is {shown_url(source)!r}? put one of {', '.join(NODES)} and a "
            "plus before the address: bitcoin+http://127.0.0.1:8332"
        )
    from coinhaze.nodes.http import Credentials
    from coinhaze.nodes.rpc import JsonRpc

    module, name = NODES[kind]
    client = JsonRpc(url, credentials=Credentials.from_environment())
    try:
        node = getattr(import_module(f"coinhaze.nodes.{module}"), name)(client)
    except BaseException:
        client.close()
        raise
    return f"{kind}+{client.node}", node


def catch_up(
    store: Store,
    node: Node,
    *,
    name: str,
    first: int | None = None,
    last: int | None = None,
    progress: Progress = lambda done, whole: None,
    token: str | None = None,
) -> Followed:
    """Bring a store up to a node's tip, or to `last`.

    Blocks that the chain has left are taken out, and those that took their place put in, in one
    transaction. A store that has blocks goes on above them; `first` is where an empty one begins.
    `token` is the address of a token of Ethereum whose transfers are read, not those of ether.

    The first block read must follow the store's last, and each the one before it. Where the chain
    is reorganised meanwhile, what was committed stays until the next attempt finds the common
    ancestor again: the store always holds one branch, never parts of two.
    """
    wanted = {"token": token} if token else {}
    rows = left = 0
    begun: int | None = None
    for attempt in range(ATTEMPTS):
        tip: tuple[int, str] | None = None
        try:
            tip = node.tip()
            end = tip[0] if last is None else min(last, tip[0])
            at = _start(store.headers(), node, first)
            begun = at.height if begun is None else min(begun, at.height)
            for added, removed in _commits(store, node, name, at, end, progress, wanted):
                rows, left = rows + added, left + removed
            return Followed(rows, begun, end, left)
        except (ChainChanged, BlockMissing) as error:
            changed: CoinhazeError = error
        except (UsageError, NotAnswering):
            raise
        except CoinhazeError as error:
            # A branch that goes away while it is read can look like damage.
            if tip is None or node.common_ancestor({tip[0]: tip[1]}) == tip[0]:
                raise
            changed = error
        if attempt < ATTEMPTS - 1:
            time.sleep(pause_after(attempt))
    raise NotAnswering(
        f"{name}: the chain changed while it was read, {ATTEMPTS} times in a row: {changed} (wait "
        "until the node is in step)"
    )


def _commits(
    store: Store,
    node: Node,
    name: str,
    at: _Start,
    last: int,
    progress: Progress,
    wanted: Mapping[str, Any],
) -> Iterator[tuple[int, int]]:
    """Read blocks and commit them; give the rows added and the blocks removed by each commit."""
    start, gone = at.height, at.left_behind
    if start > last and not gone:
        return
    read = node.batches(start, last, before=at.before, **wanted)
    counted = _counted(read, start, max(last - start + 1, 1), progress)
    with closing(ahead(in_chunks(counted, rows=ROWS))) as batches:
        reached = start - 1
        while gone or reached < last:
            # A branch left behind is replaced whole: up to where it was.
            until = min(start + gone - 1, last) if gone else start
            rows = 0
            with store.transaction():
                if gone:
                    store.roll_back(start)
                for batch in batches:
                    rows += store.append(batch)
                    reached = _last_height(batch)
                    if reached >= until:
                        break
                else:
                    reached = max(last, start - 1)
                store.note_source(Source(f"node {name}", name, "node", reached + 1, done=False))
            yield rows, gone
            gone = 0


class _Start(NamedTuple):
    """Where reading begins: the height, the hash below it, and how many blocks must go first."""

    height: int
    before: str = ""
    left_behind: int = 0


def _start(headers: Mapping[int, str], node: Node, first: int | None) -> _Start:
    """Find where the store's blocks end on the node's chain."""
    if not headers:
        return _Start(first or 0)
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
    return _Start(ancestor + 1, headers[ancestor].lower(), highest - ancestor)


def _counted(
    batches: Iterator[Batch], start: int, whole: int, progress: Progress
) -> Iterator[Batch]:
    """Tell of blocks as they come from the node: commits are far between where it is slow."""
    progress(0, whole)
    for batch in batches:
        progress(_last_height(batch) - start + 1, whole)
        yield batch


def _last_height(batch: Batch) -> int:
    return int(batch.tables["blocks"]["height"][-1].as_py())
