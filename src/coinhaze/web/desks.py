"""A desk for a ledger of a shelf."""

from __future__ import annotations

import contextlib
from threading import Thread

import numpy as np

from coinhaze.cache.layers import Kept
from coinhaze.errors import CoinhazeError
from coinhaze.web.asks import CoinAsk
from coinhaze.web.desk import Desk
from coinhaze.web.shelf import Shelf

LARGE = 1_000_000  # nodes, from which on finding things the first time takes seconds
TRIED = 12  # coins looked at beforehand


def desk_of(shelf: Shelf, ledger: str, kept: Kept) -> Desk:
    """Make the desk of a ledger that is open: with the shelf's lists and labels."""
    desk = Desk(
        kept.chain,
        kept.scores,
        id=ledger,
        digest=shelf.card(ledger).digest or kept.digest,
        card=lambda: shelf.card(ledger),
        names_of=shelf.names_of,
        labels=shelf.labels(),
    )
    if len(kept.chain) >= LARGE:
        Thread(target=warm, args=(desk, kept), daemon=True).start()
    return desk


def warm(desk: Desk, kept: Kept) -> None:
    """Look at a few coins of all sorts, so that indexes are made before somebody waits for them."""
    nodes = kept.scores.nodes
    some = np.linspace(0, len(nodes) - 1, min(TRIED, len(nodes))).astype(np.int64)
    for name in kept.chain.graph.names.of(nodes[some]).to_pylist():
        with contextlib.suppress(CoinhazeError):
            desk.coin(name, CoinAsk())
