"""Transactions that several people make together, and people who regularly mix their coins."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse

from coinhaze.amounts import Bools
from coinhaze.graph import TransactionGraph
from coinhaze.observer.walks import proportional
from coinhaze.simulate.intents import Intents
from coinhaze.simulate.technology import NOBODY, Realised, Technology
from coinhaze.simulate.wallets import Pay, SimulatedCoin, SimulatedWallets


@dataclass(frozen=True)
class Seat:
    """One person's part in a joint transaction: coins in, sums that others get too, and change.

    What the person brings beyond that is their part of the fee.
    """

    person: int
    spent: tuple[SimulatedCoin, ...]
    mixed: tuple[int, ...]
    change: int = 0
    payee: int | None = None  # who receives the mixed sums, if not the person

    @property
    def rounds(self) -> int:
        """How often the least mixed coin will have been mixed."""
        return 1 + min(coin.rounds for coin in self.spent)

    def waited(self, time: float, ready: int) -> float:
        """Return the mean hours its money waited, by value, except coins that were ready."""
        late = ((c, time - c.made if c.rounds < ready else 0.0) for c in self.spent)
        total = sum(coin.value for coin in self.spent)
        return sum(c.value * (c.waited + hours) for c, hours in late) / total


@dataclass(frozen=True, eq=False)
class KnownOwners:
    """Coins whose owner is known to an observer, up to which of several equal ones each got.

    Used as a policy: the rows of those coins go to the coins their possible owners brought.
    """

    rows: list[tuple[list[str], dict[str, float]]] = field(default_factory=list)

    def __call__(self, graph: TransactionGraph) -> scipy.sparse.csr_array:
        """Return the rows of all nodes: by amount, except for coins with a known owner."""
        walk = proportional(graph)
        n = len(graph)
        names = graph.names.of(np.arange(n)).to_pylist()
        number = {name: node for node, name in enumerate(names)}
        row, column, share = [], [], []
        for coins, origins in self.rows:
            at = np.array([number[c] for c in coins])
            to = np.array([number[o] for o in origins])
            row.append(np.repeat(at, len(to)))
            column.append(np.tile(to, len(at)))
            share.append(np.tile(list(origins.values()), len(at)))
        by_amount = np.ones(n)
        if not row:
            return scipy.sparse.csr_array(scipy.sparse.hstack([walk.q, walk.own[:, None]]))
        rows = np.concatenate(row)
        by_amount[rows] = 0.0
        known = scipy.sparse.coo_array(
            (np.concatenate(share), (rows, np.concatenate(column))), shape=(n, n)
        )
        q = scipy.sparse.dia_array((by_amount[None, :], [0]), shape=(n, n)) @ walk.q + known
        return scipy.sparse.csr_array(scipy.sparse.hstack([q, (by_amount * walk.own)[:, None]]))


def join(
    wallets: SimulatedWallets,
    time: float,
    seats: Sequence[Seat],
    dice: np.random.Generator,
    known: KnownOwners,
    *,
    ready: int = 1,
    coordinator: int = 0,
) -> None:
    """Make one transaction of all seats, with inputs and outputs in descending order of value.

    Equal coins are in random order, so that the order reveals nothing. After `ready` rounds a coin
    no longer waits. `coordinator` is what the coordinator takes. What the observer learns is added
    to `known`.
    """
    paid: list[tuple[Seat | None, bool, Pay]] = []
    for seat in seats:
        owner = seat.person if seat.payee is None else seat.payee
        mine = seat.payee is None
        rounds, waited = (seat.rounds, seat.waited(time, ready)) if mine else (0, 0.0)
        paid += [(seat, True, Pay(owner, v, rounds=rounds, waited=waited)) for v in seat.mixed]
        if seat.change:
            paid.append((seat, False, Pay(seat.person, seat.change)))
    if coordinator:
        paid.append((None, False, Pay(NOBODY, coordinator)))
    paid = [paid[k] for k in dice.permutation(len(paid))]
    paid.sort(key=lambda p: -p[2].value)
    spent = sorted((c for seat in seats for c in seat.spent), key=lambda c: (-c.value, c.name))
    made = wallets.add(time, spent, [p[2] for p in paid], joint=True)
    known.rows.extend(
        _possible_origins(seats, [(s, m, c) for (s, m, _), c in zip(paid, made, strict=True)])
    )


def _possible_origins(
    seats: Sequence[Seat], made: Sequence[tuple[Seat | None, bool, SimulatedCoin]]
) -> Iterable[tuple[list[str], dict[str, float]]]:
    """Yield the possible origins of each coin, unless they follow from amounts.

    Change comes from its owner's coins; a mixed sum comes from the coins of all who got that sum,
    each in proportion to how many they got.
    """
    values = {coin.value for seat in seats for coin in seat.spent}
    if len(values) == 1 and all(sum(s.mixed) == sum(c.value for c in s.spent) for s in seats):
        return
    shares = {id(seat): _shares(seat.spent) for seat in seats}
    for seat, mixed, coin in made:
        if seat is not None and not mixed:
            yield [coin.name], shares[id(seat)]
    got = Counter((v, id(seat)) for seat in seats for v in seat.mixed)
    for value in dict.fromkeys(v for seat in seats for v in seat.mixed):
        coins = [coin.name for _, mixed, coin in made if mixed and coin.value == value]
        origins: dict[str, float] = {}
        for seat in seats:
            for name, share in shares[id(seat)].items():
                part = share * got[value, id(seat)] / len(coins)
                if part > 0:
                    origins[name] = part
        yield coins, origins


def _shares(spent: Sequence[SimulatedCoin]) -> dict[str, float]:
    total = sum(coin.value for coin in spent)
    return {coin.name: coin.value / total for coin in spent}


# The part of the reserve that people who mix hold back for the fees of payments.
HELD_BACK = 4

OBSERVERS = {
    "amounts": "walks from coin to coin by amounts, through joint transactions as any others",
    "told": "is told who brought and who got each coin of joint transactions, but for equal ones",
}

# Makes the joint transactions of one moment: wallets, hours, participants, random generator, known
# owners.
Round = Callable[[SimulatedWallets, float, list[int], np.random.Generator, KnownOwners], None]
Payment = Callable[[SimulatedWallets, int, Bools, np.random.Generator, KnownOwners], None]


def spare(wallets: SimulatedWallets, who: int) -> int:
    """Return what a person can spend on mixing without risking a later payment."""
    reserve = int(wallets.intents.reserve[who])
    return reserve - wallets.fees[who] - reserve // HELD_BACK


def mixed_coins(
    wallets: SimulatedWallets, i: int, adopters: Bools, *, ready: int = 1
) -> list[SimulatedCoin]:
    """Return the payer's coins that were mixed `ready` times, if the payer is an adopter."""
    payer = int(wallets.intents.payer[i])
    return (
        [coin for coin in wallets.coins[payer] if coin.rounds >= ready] if adopters[payer] else []
    )


def pay_mixed_first(
    wallets: SimulatedWallets,
    i: int,
    adopters: Bools,
    dice: np.random.Generator,
    known: KnownOwners,
) -> None:
    """Make a payment with mixed coins alone if those are enough."""
    wallets.pay(i, wanted=mixed_coins(wallets, i, adopters))


def realise_mixing(
    intents: Intents,
    adopters: Bools,
    observer: str,
    *,
    name: str,
    interval: float | None = None,
    make_round: Round | None = None,
    pay: Payment = pay_mixed_first,
) -> Realised:
    """Make payments at their times, and a mixing round every `interval` hours.

    Payments never wait: what is not mixed yet is paid as it is. Waiting is reported for money
    instead.
    """
    wallets, known, dice = SimulatedWallets.open(intents), KnownOwners(), intents.dice(name)
    who = np.flatnonzero(adopters).tolist()
    moments = deque[float]()
    if make_round is not None and interval is not None:
        moments.extend(np.arange(interval, intents.hours + 1e-9, interval).tolist())
    for i in range(len(intents) + 1):
        until = intents.time[i] if i < len(intents) else intents.hours
        while make_round is not None and moments and moments[0] <= until:
            make_round(wallets, moments.popleft(), who, dice, known)
        if i < len(intents):
            pay(wallets, i, adopters, dice, known)
    settings: dict[str, Any] = {"policy": known} if observer == "told" else {}
    return wallets.realised(adopters=adopters, settings=settings)


def mixing_technology(name: str, mix: Round, *, interval: float, says: str) -> Technology:
    """Return a technology: a share of people have their coins mixed every `interval` hours."""

    def make(intents: Intents, share: float, observer: str) -> Realised:
        adopters = intents.adopters(share)
        return realise_mixing(
            intents, adopters, observer, name=name, interval=interval, make_round=mix
        )

    return Technology(
        name=name,
        make=make,
        parameter="share of people who mix",
        minimum=0.0,
        maximum=0.5,
        values=(0.0, 0.1, 0.2, 0.3, 0.4, 0.5),
        usual=0.25,
        says=says,
        observers=OBSERVERS,
    )
