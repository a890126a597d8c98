"""Whether anything moves in a ledger: one in which nothing does has no answer to give."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from coinhaze.errors import InputError
from coinhaze.ledger.accounts import AccountLedger
from coinhaze.ledger.coins import CoinLedger
from coinhaze.ledger.window import ALL, Window


def refuse_unmoving(
    ledger: CoinLedger | AccountLedger, sources: Sequence[object], window: Window = ALL
) -> None:
    """Refuse a ledger without rows, or whose rows move nothing; `sources` are for the message."""
    names = [str(s) if isinstance(s, str) or hasattr(s, "__fspath__") else "table" for s in sources]
    where = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
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
    if values is not None and not np.any(values.positive() & ledger.inside[ledger.output_tx]):
        pools = len(ledger.flow_tx)
        if not pools:
            raise InputError(f"{where}: nothing moves: no transaction makes a coin worth anything")
