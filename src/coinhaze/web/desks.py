"""A desk for a ledger of a shelf."""

from __future__ import annotations

from coinhaze.solve.kept import Kept
from coinhaze.web.desk import Desk
from coinhaze.web.shelf import Shelf


def desk_of(shelf: Shelf, ledger: str, kept: Kept) -> Desk:
    """Make the desk of a ledger that is open: with the shelf's lists and labels."""
    return Desk(
        kept.chain,
        kept.scores,
        id=ledger,
        digest=shelf.card(ledger).digest or kept.digest,
        card=lambda: shelf.card(ledger),
        names_of=shelf.names_of,
        labels=shelf.labels(),
    )
