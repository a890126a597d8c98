"""Pools of equal deposits, such as Tornado Cash: withdrawals that reveal their depositor.

Three habits that link them, after Wu et al. (Tutela, 2022, arXiv:2201.06811): withdrawing to an
address that deposited, paying the same unusual gas price twice, and using several pools in the same
numbers. All need a ledger that names depositors.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
import pyarrow.compute as pc

from coinhaze.errors import UnknownName, first_few
from coinhaze.ledger import AccountLedger, Ledger
from coinhaze.ledger.accounts import POOL, RELAYERS
from coinhaze.ledger.links import Link

ASSUMED = 0.5


class _Move(NamedTuple):
    row: int
    name: str
    pool: str
    other: str  # who deposited, or who received the money


def address_reuse_links(
    ledger: AccountLedger, pools: Iterable[str] | None = None, *, confidence: float = ASSUMED
) -> dict[str, Link]:
    """Link a withdrawal to its own recipient, if that account deposited in the pool before.

    `pools` are accounts; None selects those whose names begin with `pool:`.

    >>> from coinhaze.ledger import AccountLedger
    >>> ledger = AccountLedger.from_transfers(
    ...     [("a", "pool:1", 5), ("b", "pool:1", 5), ("pool:1", "a", 5)])
    >>> address_reuse_links(ledger)
    {'2': Link(origins={'a': 1.0}, confidence=0.5)}
    """
    deposits, withdrawals = _moves(ledger, pools)
    first: dict[tuple[str, str], int] = {}
    for move in deposits:
        first.setdefault((move.pool, move.other), move.row)
    return {
        move.name: Link({move.other: 1.0}, confidence)
        for move in withdrawals
        if first.get((move.pool, move.other), move.row) < move.row
    }


def gas_price_links(
    ledger: AccountLedger,
    gas_prices: Mapping[str, int],
    pools: Iterable[str] | None = None,
    *,
    confidence: float = ASSUMED,
) -> dict[str, Link]:
    """Link a withdrawal to the only earlier deposit in its pool made at the same gas price.

    `gas_prices` are by transfer; a price that several deposits in the pool paid yields no link.
    """
    unknown = sorted(gas_prices.keys() - set(ledger.transfer_ids().to_pylist()))
    if unknown:
        raise UnknownName(f"gas prices of transfers not in the ledger: {first_few(unknown)}")
    deposits, withdrawals = _moves(ledger, pools)
    paid: dict[tuple[str, int], list[_Move]] = defaultdict(list)
    for move in deposits:
        if move.name in gas_prices:
            paid[move.pool, gas_prices[move.name]].append(move)
    links = {}
    for move in withdrawals:
        matching = paid.get((move.pool, gas_prices.get(move.name, -1)), [])
        if len(matching) == 1 and matching[0].row < move.row:
            links[move.name] = Link({matching[0].other: 1.0}, confidence)
    return links


def denomination_links(
    ledger: AccountLedger, pools: Iterable[str] | None = None, *, confidence: float = ASSUMED
) -> dict[str, Link]:
    """Link all withdrawals of a recipient to the only account with the same earlier deposits.

    The same means equally often in each pool, and in at least two pools.
    """
    deposits, withdrawals = _moves(ledger, pools)
    by_depositor, by_recipient = _portfolios(deposits), _portfolios(withdrawals)
    known: dict[frozenset[tuple[str, int]], list[str]] = defaultdict(list)
    for depositor, (portfolio, _) in by_depositor.items():
        known[portfolio].append(depositor)
    links: dict[str, Link] = {}
    for portfolio, moves in by_recipient.values():
        matching = known.get(portfolio, [])
        if len(portfolio) < 2 or len(matching) != 1:
            continue
        if all(_in_time(by_depositor[matching[0]][1], moves, pool) for pool, _ in portfolio):
            links |= {move.name: Link({matching[0]: 1.0}, confidence) for move in moves}
    return links


def short_pools(ledger: AccountLedger) -> dict[str, int]:
    """Return the pools that pay out more than was paid in, with the amount: deposits are missing.

    >>> from coinhaze.ledger import AccountLedger
    >>> short_pools(AccountLedger.from_transfers([("a", "pool:1", 5), ("pool:1", "b", 8)]))
    {'pool:1': 3}
    """
    pools = pc.starts_with(ledger.accounts, POOL).to_numpy(zero_copy_only=False).astype(np.bool_)
    found = {}
    for pool in np.flatnonzero(pools).tolist():
        paid = sum(ledger.amounts.take(ledger.receiver == pool).ints())
        taken = sum(ledger.amounts.take(ledger.sender == pool).ints())
        if taken > paid:
            found[ledger.accounts[pool].as_py()] = taken - paid
    return found


def short_pool_notes(ledger: Ledger) -> tuple[str, ...]:
    """Return notes on pools with missing deposits, which count as one source each."""
    short = short_pools(ledger) if isinstance(ledger, AccountLedger) else {}
    return tuple(
        f"{pool} paid out {amount} more than was paid in: deposits are missing, and its opening "
        "balance stands for all of them, so bits are too low"
        for pool, amount in short.items()
    )


def _portfolios(
    moves: list[_Move],
) -> dict[str, tuple[frozenset[tuple[str, int]], list[_Move]]]:
    """Count how often each account used each pool."""
    by_account: dict[str, list[_Move]] = defaultdict(list)
    for move in moves:
        by_account[move.other].append(move)
    return {
        account: (frozenset(Counter(m.pool for m in own).items()), own)
        for account, own in by_account.items()
    }


def _in_time(deposits: list[_Move], withdrawals: list[_Move], pool: str) -> bool:
    """Return whether each withdrawal from a pool comes after as many deposits."""
    paid = [m.row for m in deposits if m.pool == pool]
    taken = [m.row for m in withdrawals if m.pool == pool]
    return all(before < after for before, after in zip(paid, taken, strict=True))


def _pools(ledger: AccountLedger, pools: Iterable[str] | None) -> list[str]:
    names = ledger.accounts.to_pylist()
    if pools is None:
        return [name for name in names if name.startswith(POOL)]
    requested = list(pools)
    unknown = sorted(set(requested) - set(names))
    if unknown:
        raise UnknownName(f"pools that are not in the ledger: {first_few(unknown)}")
    return requested


def _moves(ledger: AccountLedger, pools: Iterable[str] | None) -> tuple[list[_Move], list[_Move]]:
    """Return deposits and withdrawals in order; payments to relayers are neither."""
    names, ids = ledger.accounts.to_pylist(), ledger.transfer_ids()
    is_pool = np.isin(names, _pools(ledger, pools))
    pays, gets = is_pool[ledger.sender], is_pool[ledger.receiver]
    found: tuple[list[_Move], list[_Move]] = ([], [])
    for row in np.flatnonzero(pays != gets).tolist():
        sender, receiver = names[ledger.sender[row]], names[ledger.receiver[row]]
        pool, other = (sender, receiver) if pays[row] else (receiver, sender)
        if not other.startswith(RELAYERS):
            found[int(pays[row])].append(_Move(row, ids[row].as_py(), pool, other))
    return found
