"""Services that soon pay out what was paid in: dice games, exchanges, swaps, pools left in haste.

Money of such a service is mixed in one account, but a pay-out that equals a recent pay-in, less a
fee, is probably that money. Where several pay-ins fit, all are equally likely.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from coinhaze.amounts import Ints
from coinhaze.errors import UnknownName, UsageError, first_few
from coinhaze.ledger import AccountLedger, CoinLedger, Ledger
from coinhaze.ledger.links import Link

ASSUMED = 0.5
CROWD = 100  # distinct payers, and payees, of what is detected as a service


@dataclass
class _Service:
    """The payments into a service so far, in order."""

    times: list[int] = field(default_factory=list)
    amounts: list[int] = field(default_factory=list)
    origins: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Payment:
    name: str
    payer: int  # -1 where several pay together
    payee: int
    amount: int
    time: int
    origin: str  # the node to name if the money came by this payment


def payout_links(
    ledger: Ledger,
    services: Iterable[str] | None = None,
    *,
    last: int = 5,
    within: int | None = None,
    fee: float = 0.02,
    confidence: float = ASSUMED,
) -> dict[str, Link]:
    """Link pay-outs of services to the pay-ins they follow.

    `services` are accounts or addresses; None selects those with at least a hundred distinct payers
    and a hundred distinct payees. Of the `last` pay-ins before a pay-out those count that equal it,
    or exceed it by at most the `fee`, a share of the pay-in; `within` restricts them to that many
    blocks, or seconds in an account ledger.

    >>> from coinhaze.ledger import AccountLedger
    >>> game = AccountLedger.from_transfers([("a", "dice", 5), ("b", "dice", 8), ("dice", "c", 8)])
    >>> payout_links(game, ["dice"])
    {'2': Link(origins={'b': 1.0}, confidence=0.5)}
    """
    if last < 1 or not 0 <= fee < 1 or not 0 <= confidence <= 1:
        raise UsageError(
            f"last={last}, fee={fee}, confidence={confidence}: at least 1, a share below 1, and a "
            "probability"
        )
    selected = _services(ledger, services)
    known = {int(party): _Service() for party in selected}
    links: dict[str, Link] = {}
    for payment in _payments(ledger, within is not None):
        if payment.payer in known and payment.payee != payment.payer:
            found = _fitting(known[payment.payer], payment, last, within, fee)
            if found:
                links[payment.name] = Link(found, confidence)
        if payment.payee in known and payment.payee != payment.payer:
            service = known[payment.payee]
            service.times.append(payment.time)
            service.amounts.append(payment.amount)
            service.origins.append(payment.origin)
    return links


def find_services(ledger: Ledger, *, min_parties: int = CROWD) -> list[str]:
    """Return accounts or addresses with at least `minimum` distinct payers and as many payees."""
    payers, payees = defaultdict(set), defaultdict(set)
    for payment in _payments(ledger, False):
        if payment.payer >= 0 and payment.payer != payment.payee:
            payers[payment.payee].add(payment.payer)
            payees[payment.payer].add(payment.payee)
    hubs = [h for h in payers if min(len(payers[h]), len(payees.get(h, ()))) >= min_parties]
    names = _parties(ledger)
    return sorted(names[h].as_py() for h in hubs)


def _fitting(
    service: _Service, out: _Payment, last: int, within: int | None, fee: float
) -> dict[str, float]:
    """Return probabilities of the recent pay-ins that fit a pay-out."""
    fits: dict[str, int] = defaultdict(int)
    for k in range(max(0, len(service.times) - last), len(service.times)):
        paid = service.amounts[k]
        recent = within is None or service.times[k] >= out.time - within
        if recent and out.amount <= paid and paid - out.amount <= fee * paid:
            fits[service.origins[k]] += 1
    total = sum(fits.values())
    return {origin: count / total for origin, count in fits.items()}


def _services(ledger: Ledger, services: Iterable[str] | None) -> Ints:
    names = list(find_services(ledger) if services is None else services)
    row = {name: k for k, name in enumerate(_parties(ledger).to_pylist())}
    unknown = [name for name in names if name not in row]
    if unknown:
        raise UnknownName(f"services that are not in the ledger: {first_few(unknown)}")
    return np.array([row[name] for name in names], dtype=np.int64)


def _parties(ledger: Ledger) -> pa.StringArray:
    return ledger.owners if isinstance(ledger, CoinLedger) else ledger.accounts


def _payments(ledger: Ledger, by_time: bool) -> Iterator[_Payment]:
    """Yield all payments in order, with times if `by_time`."""
    if isinstance(ledger, AccountLedger):
        yield from _transfers(ledger, by_time)
    else:
        yield from _outputs(ledger, by_time)


def _transfers(ledger: AccountLedger, by_time: bool) -> Iterator[_Payment]:
    times = np.zeros(len(ledger), dtype=np.int64)
    if by_time:
        if ledger.times is None or ledger.times.null_count:
            raise UsageError("not all transfers have a time: leave `within` out, and use `last`")
        times = np.asarray(ledger.times.cast("int64").to_numpy(zero_copy_only=False))
    accounts = ledger.accounts.to_pylist()
    columns = (
        ledger.transfer_ids().to_pylist(),
        ledger.sender.tolist(),
        ledger.receiver.tolist(),
        ledger.amounts.ints(),
        times.tolist(),
    )
    for name, payer, payee, amount, time in zip(*columns, strict=True):
        if amount:
            yield _Payment(name, payer, payee, amount, time, accounts[payer])


def _outputs(ledger: CoinLedger, by_time: bool) -> Iterator[_Payment]:
    if ledger.output_value is None:
        raise UsageError("pay-outs are recognised by amounts, which this ledger hides")
    rows = np.flatnonzero(ledger.inside[ledger.output_tx] & ledger.output_spendable)
    heights = ledger.heights.take(rows_of_tx := ledger.output_tx[rows])
    if by_time and heights.null_count:
        raise UsageError("not all transactions have a height: leave `within` out, and use `last`")
    txids = ledger.txids.take(rows_of_tx).to_pylist()
    columns = (
        ledger.output_names(rows).to_pylist(),
        _only_payer(ledger)[rows_of_tx].tolist(),
        ledger.output_owner[rows].tolist(),
        ledger.output_value.take(rows).ints(),
        heights.fill_null(0).to_pylist(),
    )
    for txid, (name, payer, payee, amount, time) in zip(
        txids, zip(*columns, strict=True), strict=True
    ):
        if amount:
            yield _Payment(name, payer, payee, amount, time, f"tx:{txid}")


def _only_payer(ledger: CoinLedger) -> Ints:
    """Return the owner of all inputs of a transaction, -1 where there are several or none."""
    owner = ledger.output_owner[ledger.input_output]
    low, high = np.full(len(ledger.txids), len(ledger.owners)), np.full(len(ledger.txids), -1)
    np.minimum.at(low, ledger.input_tx, owner)
    np.maximum.at(high, ledger.input_tx, owner)
    return np.where(low == high, high, -1)
