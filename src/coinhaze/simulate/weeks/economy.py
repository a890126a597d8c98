"""An economy on an account ledger: people, and the hubs through which most of their money goes.

People receive, spend, pass on or do all of it. Hubs are exchanges (which receive money through
deposit addresses and pay out in batches) and pools (of liquidity or loans), reached directly or
through routers, which retain nothing. Bots move money from hub to hub. Payers pay many from earlier
holdings, miners from block rewards. The k-th of a kind is 1/k as busy as the first.

People pay people, but those who are paid by people do not spend: hubs hold the graph together, as
they do in real weeks, so that exact elimination leaves a core of hubs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from coinhaze.amounts import DIGIT_BITS, Bools, Floats, Ints
from coinhaze.ledger import AccountLedger, Amounts
from coinhaze.ledger.accounts import ZERO_ADDRESSES
from coinhaze.simulate.weeks.coin_columns import START, hex_names

BATCH = 600.0  # seconds between an exchange's batches of withdrawals
SWEEP = 1800.0  # mean seconds until an exchange sweeps a deposit
REMINTED = 0.05  # the share of what a token's bots move that is burnt and minted again on the way

EXCHANGE, POOL, ROUTER, PAYER, PEER = range(5)


@dataclass(frozen=True)
class Ways:
    """The shares of the ways to make payments; the rest goes from person to person."""

    exchange: float
    pool: float
    router: float
    payer: float = 0.0


@dataclass(frozen=True)
class Economy:
    """The parameters of a week, at full size; docs/simulated-weeks.md gives the sources."""

    unit: int  # base units of the ledger in one unit of account
    receivers: int  # people who are paid and spend nothing this week
    spenders: int  # people who pay from earlier holdings
    passers: int  # people who pay on exactly what they are paid
    regulars: int  # people who are paid by hubs and pay, in any order
    partners: float  # how many a regular pays, and how many pay it, on average
    repeats: float  # payments a person makes to one partner, or in one way, on average
    takes: Ways  # where receivers are paid from
    pays: Ways  # where people pay to
    exchanges: int
    pools: int
    routers: int
    bots: int
    payers: int
    miners: int  # how many of the payers, the busiest, live on block rewards
    blocks: int  # how many blocks are rewarded from the zero address
    reward: int  # what a block brings, in units of account
    mints: bool  # whether hubs burn and mint money, as for a token
    median: float  # a person's median payment, in units of account
    spread: float  # standard deviation of its natural logarithm
    reserves: float  # what hubs pay from earlier holdings, relative to what spenders pay
    unevenness: float  # the k-th hub pays k^-unevenness of what the first pays from these
    trades: int  # transactions of bots
    turnover: float  # what bots move, relative to what hubs pay from earlier holdings
    pool_trips: float  # the share of bots' transactions that go from pool to pool


def simulate_economy(economy: Economy, *, size: float, seed: int) -> AccountLedger:
    """Simulate a week of the economy: `size` scales people and payments, its square root hubs."""
    town = Town(economy, size, np.random.default_rng(seed))
    town.make_week()
    return town.book.ledger(unit=economy.unit, seed=seed)


class Town:
    """The participants. Hubs come first in the record, which makes computing balances cheap."""

    def __init__(self, economy: Economy, size: float, rng: np.random.Generator) -> None:
        self.economy, self.size, self.rng = economy, size, rng
        self.book = book = PaymentRecord()
        e = economy
        self.exchanges, self.pools, self.routers, self.bots, self.payers = (
            book.open(max(2, round(n * size**0.5)) if n else 0)
            for n in (e.exchanges, e.pools, e.routers, e.bots, e.payers)
        )
        self.miners = self.payers[: math.ceil(e.miners * size**0.5)]
        self.hubs = _by_turns(self.exchanges, self.pools)
        self.hub_accounts = book.accounts
        self.receivers, self.spenders, self.passers, self.regulars = (
            book.open(max(1, round(n * size)))
            for n in (e.receivers, e.spenders, e.passers, e.regulars)
        )

    def make_week(self) -> None:
        """Let people pay, bots trade, and hubs settle."""
        self._people_pay()
        self._bots_trade()
        self._hubs_settle()

    def _people_pay(self) -> None:
        e = self.economy
        way_in = self._ways(len(self.receivers), e.takes)
        from_peers = way_in == PEER
        from_peers[0] = True  # in the smallest towns, too, there is somebody for people to pay
        payer = np.concatenate([self.spenders, self.passers, self._busy()])
        way = self._ways(len(payer), e.pays)
        # Everybody who expects a person's payment gets one: where too few pay, some pay more.
        few = int(from_peers.sum()) - int((way == PEER).sum())
        if few > 0:
            payer = np.append(payer, self.rng.choice(payer, few))
            way = np.append(way, np.full(few, PEER))
        paid = self._pay(payer, way, self.receivers[from_peers])
        self._pass_on(*paid)
        self._take(self.receivers[~from_peers], way_in[~from_peers])
        customers = self._busy()
        self._take(customers, self._ways(len(customers), _hubs_alone(e.takes)))

    def _busy(self) -> Ints:
        """Draw how many partners each regular has, at least one."""
        partners = 1 + self.rng.poisson(self.economy.partners - 1, len(self.regulars))
        return np.repeat(self.regulars, partners)

    def _pay(self, payer: Ints, way: Ints, waiting: Ints) -> tuple[Ints, Ints, Floats]:
        """Pay into hubs and to the people who wait; return payers, amounts and moments."""
        via, hub = np.empty((2, len(payer)), dtype=np.int64)
        for kind, hubs in ((EXCHANGE, self.exchanges), (POOL, self.pools), (ROUTER, self.pools)):
            hub[way == kind] = self._pick(hubs, int((way == kind).sum()))
        via[way == EXCHANGE] = self.book.open(int((way == EXCHANGE).sum()))
        via[way == POOL] = hub[way == POOL]
        via[way == ROUTER] = self._pick(self.routers, int((way == ROUTER).sum()))
        via[way == PEER] = self._everyone_then_anyone(waiting, int((way == PEER).sum()))
        link, amount, moment = self._repeated(len(payer))
        who, way, via, hub = payer[link], way[link], via[link], hub[link]
        self.book.pay(who, via, amount, moment)
        rows = np.flatnonzero(way == ROUTER)
        self.book.pay(via[rows], hub[rows], amount[rows], moment[rows])
        rows = np.flatnonzero(way == EXCHANGE)
        later = moment[rows] + self.rng.exponential(SWEEP, len(rows))
        self.book.pay(via[rows], hub[rows], amount[rows], np.minimum(later, WEEK))
        return who, amount, moment

    def _pass_on(self, who: Ints, amount: Ints, moment: Floats) -> None:
        """Pay each passer, before its first payment, what it pays in total."""
        rows = np.flatnonzero((who >= self.passers[0]) & (who <= self.passers[-1]))
        passer = who[rows] - self.passers[0]
        total = np.zeros(len(self.passers), dtype=np.int64)
        first = np.full(len(self.passers), WEEK)
        np.add.at(total, passer, amount[rows])
        np.minimum.at(first, passer, moment[rows])
        way = self._ways(len(self.passers), _hubs_alone(self.economy.takes))
        self._draw(self.passers, way, total, first * self.rng.random(len(first)))

    def _take(self, payee: Ints, way: Ints) -> None:
        link, amount, moment = self._repeated(len(payee))
        self._draw(payee[link], way[link], amount, moment)

    def _draw(self, who: Ints, way: Ints, amount: Ints, moment: Floats) -> None:
        """Pay people from hubs and payers."""
        pay = self.book.pay
        rows = np.flatnonzero(way == EXCHANGE)
        batch = moment[rows] // BATCH * BATCH
        pay(self._pick(self.exchanges, len(rows)), who[rows], amount[rows], batch)
        rows = np.flatnonzero(way == POOL)
        pay(self._pick(self.pools, len(rows)), who[rows], amount[rows], moment[rows])
        rows = np.flatnonzero(way == ROUTER)
        pool, router = self._pick(self.pools, len(rows)), self._pick(self.routers, len(rows))
        self.book.pass_on(pool, router, who[rows], amount[rows], moment[rows])
        rows = np.flatnonzero(way == PAYER)
        payer = self._pick(self.payers, len(rows))
        pay(payer, who[rows], self._as_mined(payer, amount[rows]), moment[rows])

    def _as_mined(self, payer: Ints, amount: Ints) -> Ints:
        """Reward blocks, and scale what miners pay so that they pay out what they earned.

        Payers pay only receivers, all at once, so blocks are rewarded once.
        """
        blocks = round(self.economy.blocks * self.size)
        if not blocks or not len(self.miners) or not len(payer):
            return amount
        finder = self._pick(self.miners, blocks)
        reward = np.full(blocks, self.economy.reward)
        self.book.pay(np.full(blocks, ZERO), finder, reward, self.rng.random(blocks) * WEEK)
        earned = np.bincount(finder, minlength=self.hub_accounts) * float(self.economy.reward)
        owed = np.bincount(payer, amount, minlength=self.hub_accounts)
        scale = np.divide(earned, owed, out=np.ones(len(owed)), where=(earned > 0) & (owed > 0))
        scaled: Ints = np.maximum(1, np.floor(amount * scale[payer])).astype(np.int64)
        return scaled

    def _bots_trade(self) -> None:
        """Move money from hub to hub; for a token, some is burnt here and minted there."""
        n = max(1, round(self.economy.trades * self.size))
        one, other, via = (self._pick(hubs, n) for hubs in (self.hubs, self.hubs, self.bots))
        rows = np.flatnonzero(self.rng.random(n) < self.economy.pool_trips)
        one[rows], other[rows] = (self._pick(self.pools, len(rows)) for _ in range(2))
        if self.economy.mints:
            via[self.rng.random(n) < REMINTED] = ZERO
        weight = self.rng.lognormal(0, 1, n)
        carried = self.economy.turnover * self._released()
        amount = 1 + (weight * (carried / weight.sum())).astype(np.int64)
        moment = self.rng.random(n) * WEEK
        rows = np.flatnonzero(one != other)
        self.book.pass_on(one[rows], via[rows], other[rows], amount[rows], moment[rows])

    def _released(self) -> float:
        """Return what hubs pay from earlier holdings."""
        e = self.economy
        mean = e.median * np.exp(e.spread**2 / 2) * e.repeats
        return float(e.reserves * len(self.spenders) * mean)

    def _hubs_settle(self) -> None:
        """Balance hubs, so that half of them end up paying out reserves and half retain money."""
        members = np.append(ZERO, self.hubs) if self.economy.mints else self.hubs
        surplus = self.book.surplus(self.hub_accounts)[members]
        gives = np.arange(len(members)) % 4 % 3 == 0
        total = int(surplus.sum())
        released = max(int(self._released()), total)
        target = _split(released, gives, self.economy.unevenness)
        target -= _split(released - total, ~gives, self.economy.unevenness)
        more = target - surplus
        giver, taker = members[more > 0], members[more < 0]
        give, take = np.cumsum(more[more > 0]), np.cumsum(-more[more < 0])
        # Match what is to be given with what is to be received: each piece is one settlement.
        ends = np.union1d(give, take)
        one, other = giver[np.searchsorted(give, ends)], taker[np.searchsorted(take, ends)]
        moment = self.rng.random(len(ends)) * WEEK
        via = self._pick(self.bots, len(ends))
        self.book.pass_on(one, via, other, np.diff(ends, prepend=0), moment)

    def _ways(self, n: int, ways: Ways) -> Ints:
        reach = np.cumsum([ways.exchange, ways.pool, ways.router, ways.payer])
        return np.searchsorted(reach, self.rng.random(n), side="right")

    def _pick(self, hubs: Ints, n: int) -> Ints:
        """Choose n times, the k-th 1/k as often as the first."""
        reach = np.cumsum(1 / np.arange(1, len(hubs) + 1))
        reach /= reach[-1]
        return hubs[np.searchsorted(reach, self.rng.random(n))]

    def _everyone_then_anyone(self, people: Ints, n: int) -> Ints:
        """Choose n of the people, everyone once before anyone twice."""
        once = self.rng.permutation(people)[:n]
        return np.append(once, self.rng.choice(people, n - len(once))) if n > len(once) else once

    def _repeated(self, n: int) -> tuple[Ints, Ints, Floats]:
        """Turn each of n links into one or more payments, each with an amount and a moment."""
        e = self.economy
        link = np.repeat(np.arange(n), self.rng.geometric(1 / e.repeats, n))
        amount = e.median * np.exp(e.spread * self.rng.standard_normal(len(link)))
        return link, 1 + amount.astype(np.int64), self.rng.random(len(link)) * WEEK


def _hubs_alone(ways: Ways) -> Ways:
    """Return the ways without payers and people."""
    total = ways.exchange + ways.pool + ways.router
    # The last share is set to 1: the remainder could fall slightly below by rounding.
    return Ways(ways.exchange / total, ways.pool / total, 1.0)


def _by_turns(one: Ints, other: Ints) -> Ints:
    """Rank two kinds of hub as one: first of each, second of each, and so on."""
    rank = np.concatenate([np.arange(len(one)), np.arange(len(other))])
    return np.concatenate([one, other])[np.argsort(rank, kind="stable")]


def _split(total: int, chosen: Bools, unevenness: float) -> Ints:
    """Split a sum over the chosen by rank, exactly; the first receives what rounding leaves."""
    weight = np.zeros(len(chosen))
    weight[chosen] = np.arange(1.0, int(chosen.sum()) + 1) ** -unevenness
    share: Ints = np.floor(weight * (total / weight.sum())).astype(np.int64)
    share[np.flatnonzero(chosen)[0]] += total - int(share.sum())
    return share


WEEK = 7 * 24 * 3600.0
BLOCK = 13  # seconds between blocks then
ZERO = 0  # the number of the zero address in every record


@dataclass
class PaymentRecord:
    """The payments so far; accounts are numbers, opened as needed."""

    accounts: int = 1
    parts: list[tuple[Ints, Ints, Ints, Floats]] = field(default_factory=list)

    def open(self, n: int) -> Ints:
        """Open n new accounts."""
        self.accounts += n
        return np.arange(self.accounts - n, self.accounts)

    def pay(self, sender: Ints, receiver: Ints, amount: Ints, moment: Floats) -> None:
        """Record payments; those of the same moment stay in the order they are recorded."""
        self.parts.append((sender, receiver, amount, moment))

    def pass_on(self, first: Ints, via: Ints, last: Ints, amount: Ints, moment: Floats) -> None:
        """Record payments that pass in full through an account within one transaction."""
        self.pay(first, via, amount, moment)
        self.pay(via, last, amount, moment)

    def surplus(self, n: int) -> Ints:
        """Return how much more than it received each of the first n accounts has paid."""
        net = np.zeros(n, dtype=np.int64)
        for sender, receiver, amount, _ in self.parts:
            out, into = sender < n, receiver < n
            np.add.at(net, sender[out], amount[out])
            np.subtract.at(net, receiver[into], amount[into])
        return net

    def ledger(self, *, unit: int, seed: int) -> AccountLedger:
        """Return the ledger: payments in order of time, amounts times `unit`, accounts named."""
        columns = [np.concatenate(c) for c in zip(*self.parts, strict=True)]
        order = np.argsort(columns[3], kind="stable")
        sender, receiver, amount, moment = (c[order] for c in columns)
        used = np.zeros(self.accounts, dtype=np.bool_)
        used[sender] = used[receiver] = True
        number = np.cumsum(used) - 1
        seconds = START + (moment // BLOCK).astype(np.int64) * BLOCK
        return AccountLedger(
            accounts=_names(used, seed),
            sender=number[sender],
            receiver=number[receiver],
            amounts=_times_unit(amount, unit),
            times=pa.array(seconds, pa.timestamp("s", "UTC")),
        )


def _names(used: Bools, seed: int) -> pa.StringArray:
    names = hex_names(int(used.sum()) - int(used[ZERO]), seed=seed, prefix="0x")
    return pa.concat_arrays([pa.array(ZERO_ADDRESSES[: int(used[ZERO])], names.type), names])


def _times_unit(values: Ints, unit: int) -> Amounts:
    """Multiply exactly beyond 64 bits, by factors small enough for the product of a digit to fit.

    >>> _times_unit(np.array([2**40 + 1]), 10**12).ints() == [(2**40 + 1) * 10**12]
    True
    """
    mask = (1 << DIGIT_BITS) - 1
    digits = [values & mask, values >> DIGIT_BITS]
    while unit > 1:
        factor = min(unit, 10**9)  # below 2^30, so that its product with a digit is below 2^62
        assert unit % factor == 0, "units are powers of ten"
        unit //= factor
        carry = np.zeros_like(values)
        for k, digit in enumerate(digits):
            carry += digit * factor
            digits[k] = carry & mask
            carry >>= DIGIT_BITS
        digits.append(carry)
    while len(digits) > 1 and not digits[-1].any():
        digits.pop()
    return Amounts(np.stack(digits).T)
