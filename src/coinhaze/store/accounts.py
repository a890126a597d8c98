"""Store -> ledger of accounts: the transfers of a window, in order, and what was there before."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from coinhaze.errors import InputError, UsageError, first_few
from coinhaze.ledger.accounts import AccountLedger
from coinhaze.ledger.window import LedgerWindow
from coinhaze.store.checks import account_completeness
from coinhaze.store.store import Store


def account_ledger(store: Store, window: LedgerWindow, *, token: str | None) -> AccountLedger:
    """Give the ledger of a window, of one token or of the chain's own money."""
    chosen = _token(store, token)
    found = store.table(
        "SELECT sender, recipient, CAST(amount AS VARCHAR) AS amount, txid || ':' || step AS id, "
        f"time FROM transfers WHERE token = ? AND {window.inside()} "
        "ORDER BY height, position, step",
        [chosen],
    )
    times = found["time"].combine_chunks()
    ledger = AccountLedger.from_columns(
        found["sender"],
        found["recipient"],
        found["amount"],
        ids=found["id"],
        times=None if times.null_count == len(times) else times.cast(pa.timestamp("s", "UTC")),
    )
    return replace(ledger, completeness=account_completeness(store, window, chosen))


def opening_balances(
    store: Store, window: LedgerWindow, *, token: str | None = None
) -> dict[str, int] | None:
    """Give what each account held when the window began, from what lies before it; None if nothing.

    A balance below zero shows that the store does not tell everything: that is refused.
    """
    moved = f"SELECT * FROM transfers WHERE token = ? AND {window.before()} AND sender <> recipient"
    rows = store.ask(
        "SELECT account, CAST(sum(change) AS VARCHAR) FROM (SELECT recipient AS account, amount AS "
        f"change FROM ({moved}) UNION ALL SELECT sender, -amount FROM ({moved})) GROUP BY account "
        "ORDER BY account",
        [_token(store, token)] * 2,
    )
    if not rows:
        return None
    balances = {account: int(total) for account, total in rows}
    zero = {account: 0 for account in balances if set(account.removeprefix("0x")) == {"0"}}
    below = [account for account, total in (balances | zero).items() if total < 0]
    if below:
        raise InputError(
            f"{store.name}: {len(below)} accounts paid more than they had received before the "
            f"window ({first_few(below)}): earlier transfers are missing; give a table of opening "
            "balances"
        )
    return {account: total for account, total in (balances | zero).items() if total > 0}


def _token(store: Store, token: str | None) -> str:
    tokens = [t for (t,) in store.ask("SELECT DISTINCT token FROM transfers ORDER BY token")]
    if token is None:
        if len(tokens) > 1:
            raise UsageError(
                f"the store holds {len(tokens)} tokens ({first_few(tokens)}): name one (--token on "
                "the command line)"
            )
        return tokens[0] if tokens else ""
    if token.lower() not in tokens:
        raise UsageError(f"the store holds no token {token!r}: it has {first_few(tokens)}")
    return token.lower()
