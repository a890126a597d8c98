"""Hot loop of the simulated week of Zcash: payments in the open, mining, shielded pools.

Slow twin in the tests: see coin_kernels.py.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coinhaze.simulate.weeks.coin_kernels import (
    FEES,
    NONE,
    OUTPUT,
    TX,
    begin,
    below,
    earlier_coin,
    fee_of,
    flow,
    heavy,
    keep,
    kernel,
    make,
    many,
    new_owner,
    pay,
    pay_somebody,
    pop,
    push,
    spend,
    spend_loose,
    sweep,
    uniform,
    week_kernel,
    withdraw,
)

SPROUT, SAPLING = 0, 1  # indices into POOLS
PAYMENT, WITHDRAWAL, SWEEP, PAYOUT, GATHER, PROTECT, SHIELD, UNSHIELD, SHIELDED, MIGRATE = range(10)


class ZcashMining(NamedTuple):
    """Mining pools and the miners they pay, each at one address."""

    pick: np.ndarray  # table for drawing a mining pool by size
    reward_owner: np.ndarray  # where each mining pool's coinbases go ...
    payout_owner: np.ndarray  # ... and where it pays from
    fund_owner: np.ndarray  # other recipients of a coinbase
    ripe: np.ndarray  # topmost spendable coinbase coin of each mining pool
    wallet: np.ndarray  # topmost coin it can pay out
    first: np.ndarray  # where the miners of each mining pool begin
    miner_owner: np.ndarray
    miner_coin: np.ndarray  # topmost coin of each miner
    rewards: np.ndarray  # each block's coinbase coin ...
    finders: np.ndarray  # ... and the mining pool that found it


@kernel
def _fill_wallet(book, mining, p, k, height, wanted):
    """Give a mining pool money for some payouts: its earlier money, or the shielded pool's."""
    if uniform(book) < p.from_pool:
        begin(book, height, False)
        fee = fee_of(book, wanted, 1, 1, p.fee_rate)
        flow(book, SAPLING, -(wanted + fee))
        coin = make(book, wanted, mining.payout_owner[k])
    else:
        coin = earlier_coin(book, wanted, mining.payout_owner[k])
    push(mining.wallet, k, book.after, coin)


@kernel
def _payout(book, mining, p, height):
    """Pay some of a mining pool's miners, the rest back to where it pays from."""
    k = mining.pick[below(book, len(mining.pick))]
    first, last = mining.first[k], mining.first[k + 1]
    outputs = min(last - first, many(book, p.min_payout, p.max_payout, p.payout_exponent))
    needed = 2 * outputs * int(p.payout_mean) + 1000 * int(p.fee_rate)
    coin = pop(mining.wallet, k, book.after)
    if coin == NONE or book.output_value[coin] < needed:
        if coin != NONE:
            push(mining.wallet, k, book.after, coin)
        _fill_wallet(book, mining, p, k, height, needed + p.wallet)
        coin = pop(mining.wallet, k, book.after)
    begin(book, height, False)
    total = spend(book, coin)
    rest = total - fee_of(book, total, 1, outputs + 1, p.fee_rate)
    start = below(book, last - first)
    for j in range(outputs):
        miner = first + (start + j) % (last - first)
        amount = min(heavy(book, p.payout_mean * 0.6, 1.0), rest)
        if amount > 0:
            push(
                mining.miner_coin, miner, book.after, make(book, amount, mining.miner_owner[miner])
            )
            rest -= amount
    if rest > 0:
        push(mining.wallet, k, book.after, make(book, rest, mining.payout_owner[k]))


@kernel
def _gather(book, cast, mining, p, height):
    """Spend all coins of one miner, including those from before the window."""
    k = mining.pick[below(book, len(mining.pick))]
    miner = mining.first[k] + below(book, mining.first[k + 1] - mining.first[k])
    begin(book, height, False)
    inputs = many(book, p.min_gather, p.max_gather, p.gather_exponent)
    total = 0
    for _ in range(inputs):
        amount = heavy(book, p.payout_mean * 0.6, 1.0)
        total += spend(book, earlier_coin(book, amount, mining.miner_owner[miner]))
    coin = pop(mining.miner_coin, miner, book.after)
    while coin != NONE and inputs < p.max_gather:
        total += spend(book, coin)
        inputs += 1
        coin = pop(mining.miner_coin, miner, book.after)
    if coin != NONE:
        push(mining.miner_coin, miner, book.after, coin)
    pay(book, cast, p, total - fee_of(book, total, inputs, 1, p.fee_rate))


@kernel
def _protect(book, mining, p, height):
    """Shield a mining pool's coinbases, which cannot be spent in any other way."""
    k = mining.pick[below(book, len(mining.pick))]
    begin(book, height, False)
    coin = pop(mining.ripe, k, book.after)
    if coin == NONE:
        coin = earlier_coin(book, p.miner_reward, mining.reward_owner[k])
    total = spend(book, coin)
    inputs = 1
    while mining.ripe[k] != NONE and inputs < p.max_protect:
        total += spend(book, pop(mining.ripe, k, book.after))
        inputs += 1
    flow(book, SAPLING, total - fee_of(book, total, inputs, 1, p.fee_rate))


@kernel
def _shield(book, cast, p, height):
    """Shield part of a coin; the rest goes back to its owner."""
    begin(book, height, False)
    coin, total = spend_loose(book, cast, p)
    rest = total - fee_of(book, total, 1, 1, p.fee_rate)
    change = int(rest * uniform(book)) if uniform(book) < 0.5 else 0
    flow(book, SAPLING, rest - change)
    if change > 0:
        reused = uniform(book) < p.change_reuse
        keep(cast, make(book, change, book.output_owner[coin] if reused else new_owner(book)))


@kernel
def _cross(book, cast, p, height, kind):
    """Pay from a pool: to somebody in the open, to nobody visible, or from the old to the new."""
    begin(book, height, False)
    if kind == SHIELDED:
        flow(book, SAPLING, -fee_of(book, 1 << 40, 1, 2, p.fee_rate))
        return
    value = heavy(book, p.shielded_median, p.spread)
    rest = value - fee_of(book, value, 1, 1, p.fee_rate)
    if kind == MIGRATE:
        flow(book, SPROUT, -value)
        if rest > 0:
            flow(book, SAPLING, rest)
        return
    flow(book, SPROUT if uniform(book) < p.from_sprout else SAPLING, -value)
    if rest > 0:
        pay(book, cast, p, rest)


@kernel
def _transact(book, cast, mining, p, kinds, height):
    kind = kinds[below(book, len(kinds))]
    if kind == PAYMENT:
        pay_somebody(book, cast, p, height)
    elif kind == WITHDRAWAL:
        withdraw(book, cast, p, height, 1)
    elif kind == SWEEP:
        sweep(book, cast, p, height)
    elif kind == PAYOUT:
        _payout(book, mining, p, height)
    elif kind == GATHER:
        _gather(book, cast, mining, p, height)
    elif kind == PROTECT:
        _protect(book, mining, p, height)
    elif kind == SHIELD:
        _shield(book, cast, p, height)
    else:
        _cross(book, cast, p, height, kind)


@week_kernel
def run_week(book, cast, mining, p, kinds, first_height, blocks, transactions):
    """Write blocks until there are `transactions` of them; return False if the columns are full."""
    maximum = 2 * max(p.max_payout, p.max_gather, p.max_sweep, p.max_protect) + 1000
    for b in range(blocks):
        height = first_height + b
        k = mining.pick[below(book, len(mining.pick))]
        begin(book, height, True)
        mining.finders[b] = k
        mining.rewards[b] = make(book, p.miner_reward, mining.reward_owner[k])
        make(book, p.first_fund, mining.fund_owner[0])
        make(book, p.second_fund, mining.fund_owner[1])
        make(book, p.third_fund, mining.fund_owner[2])
        if b >= p.maturity:
            ripe = b - p.maturity
            push(mining.ripe, mining.finders[ripe], book.after, mining.rewards[ripe])
        book.count[FEES] = 0
        while book.count[TX] * blocks < transactions * (b + 1):
            if book.count[OUTPUT] + maximum > len(book.output_tx):
                return False
            _transact(book, cast, mining, p, kinds, height)
        # It cannot be spent yet: it matures for a hundred blocks.
        book.output_value[mining.rewards[b]] += book.count[FEES]
    return True
