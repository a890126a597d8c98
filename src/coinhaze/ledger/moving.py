"""Whether anything moves in a ledger: one in which nothing does has no answer to give."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from coinhaze.errors import InputError, first_few
from coinhaze.ledger.accounts import AccountLedger
from coinhaze.ledger.coins import CoinLedger
from coinhaze.ledger.window import ALL, LedgerWindow


def refuse_unmoving(
    ledger: CoinLedger | AccountLedger, sources: Sequence[object], window: LedgerWindow = ALL
) -> None:
    """Refuse a ledger without rows, or whose rows move nothing; `sources` are for the message."""
    where = _named(sources)
    where += "" if window == ALL else f", from {window.first or 0} to {window.last or 'the end'}"
    if isinstance(ledger, AccountLedger):
        if not len(ledger):
            raise InputError(f"{where}: no transfers, so there is nothing to score")
        if not np.any((ledger.sender != ledger.receiver) & ledger.amounts.positive()):
            raise InputError(
                f"{where}: nothing moves: each of the {len(ledger):,} transfers is of 0, or from "
                "an account to itself"
            )
        return
    if not ledger.inside.any():
        raise InputError(f"{where}: no transactions, so there is nothing to score")
    values = ledger.output_value
    if values is not None and not values.positive().any() and not len(ledger.flow_tx):
        raise InputError(f"{where}: nothing moves: every coin is worth 0")


def nothing_in(sources: Sequence[object]) -> InputError:
    """Make the error for files that hold neither transfers nor transactions."""
    return InputError(
        f"{_named(sources)}: neither transfers nor transactions, so there is nothing to score"
    )


def _named(sources: Sequence[object]) -> str:
    names = [str(s) if isinstance(s, str) or hasattr(s, "__fspath__") else "table" for s in sources]
    return first_few(names)
