"""Hot loop of the simulated week of Bitcoin: who pays whom, one transaction after another.

Slow twin in the tests: see coin_kernels.py.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coinhaze.simulate.weeks.coin_kernels import (
    DUST,
    FEES,
    NONE,
    OUTPUT,
    TX,
    begin,
    below,
    earlier_coin,
    fee_of,
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
    sweep,
    uniform,
    week_kernel,
    withdraw,
)

PAYMENT, WITHDRAWAL, BATCH, SWEEP, PEEL, PAYOUT, JOIN = range(7)


class BitcoinMining(NamedTuple):
    """Mining pools, and peel chains."""

    pick: np.ndarray  # table for drawing a mining pool by size
    owner: np.ndarray
    ripe: np.ndarray  # topmost spendable coin of each mining pool
    rewards: np.ndarray  # each block's coinbase coin ...
    finders: np.ndarray  # ... and the mining pool that found it
    tips: np.ndarray  # the current coin of each peel chain


@kernel
def _peel(book, cast, mining, p, height):
    """Split the next small payment off the large coin of a peel chain."""
    k = below(book, len(mining.tips))
    begin(book, height, False)
    coin = mining.tips[k]
    if coin == NONE:
        coin = earlier_coin(book, heavy(book, p.peel_median, p.spread), new_owner(book))
    total = spend(book, coin)
    rest = total - fee_of(book, total, 1, 2, p.fee_rate)
    paid = min(rest, DUST + int(rest * p.peel_share * 2 * uniform(book)))
    pay(book, cast, p, paid)
    tip = NONE
    if rest > paid:
        tip = make(book, rest - paid, new_owner(book))
    if tip != NONE and uniform(book) * p.peel_length < 1:
        keep(cast, tip)
        tip = NONE
    mining.tips[k] = tip


@kernel
def _payout(book, cast, mining, p, height):
    """Distribute a mining pool's mature coins among its miners."""
    k = mining.pick[below(book, len(mining.pick))]
    begin(book, height, False)
    coin = pop(mining.ripe, k, book.after)
    if coin == NONE:
        coin = earlier_coin(book, p.subsidy, mining.owner[k])
    total = spend(book, coin)
    outputs = many(book, p.min_batch, p.max_batch, p.payout_exponent)
    rest = total - fee_of(book, total, 1, outputs, p.fee_rate)
    mean = rest // (outputs + 1)
    for _ in range(outputs):
        amount = min(heavy(book, mean * 0.5, 1.0), rest)
        if amount > 0:
            pay(book, cast, p, amount)
            rest -= amount
    if rest > 0:
        push(mining.ripe, k, book.after, make(book, rest, mining.owner[k]))


@kernel
def _join(book, cast, p, height):
    """Mix: everybody puts a coin in and takes the same amount out, and change."""
    begin(book, height, False)
    people = many(book, p.min_join, p.max_join, p.join_exponent)
    share = int(p.fee_rate * (68 + 62)) + 1
    needed = p.join_amount + share
    over = cast.amounts
    for k in range(people):
        coin = NONE
        if cast.n_loose[0] > 0 and uniform(book) < p.recent:
            j = below(book, cast.n_loose[0])
            if book.output_value[cast.loose[j]] >= needed:
                coin = cast.loose[j]
                cast.n_loose[0] -= 1
                cast.loose[j] = cast.loose[cast.n_loose[0]]
        if coin == NONE:
            value = needed + heavy(book, p.coin_median, p.spread)
            coin = earlier_coin(book, value, new_owner(book))
        over[k] = spend(book, coin) - needed
    for _ in range(people):
        keep(cast, make(book, p.join_amount, new_owner(book)))
    for k in range(people):
        if over[k] > 0:
            keep(cast, make(book, over[k], new_owner(book)))
    book.count[FEES] += share * people


@kernel
def _transact(book, cast, mining, p, kinds, height):
    kind = kinds[below(book, len(kinds))]
    if kind == PAYMENT:
        pay_somebody(book, cast, p, height)
    elif kind == WITHDRAWAL:
        withdraw(book, cast, p, height, 1)
    elif kind == BATCH:
        outputs = many(book, p.min_batch, p.max_batch, p.batch_exponent)
        withdraw(book, cast, p, height, outputs)
    elif kind == SWEEP:
        sweep(book, cast, p, height)
    elif kind == PEEL:
        _peel(book, cast, mining, p, height)
    elif kind == PAYOUT:
        _payout(book, cast, mining, p, height)
    else:
        _join(book, cast, p, height)


@week_kernel
def run_week(book, cast, mining, p, kinds, first_height, blocks, transactions):
    """Write blocks until there are `transactions` of them; return False if the columns are full."""
    # No transaction spends and creates more coins than this, and a refill may precede it.
    maximum = 2 * max(p.max_batch, p.max_sweep, 3 * p.max_join) + 1000
    rewards, finders = mining.rewards, mining.finders
    for b in range(blocks):
        height = first_height + b
        finders[b] = mining.pick[below(book, len(mining.pick))]
        begin(book, height, True)
        rewards[b] = make(book, p.subsidy, mining.owner[finders[b]])
        if b >= p.maturity:
            push(mining.ripe, finders[b - p.maturity], book.after, rewards[b - p.maturity])
        book.count[FEES] = 0
        while book.count[TX] * blocks < transactions * (b + 1):
            if book.count[OUTPUT] + maximum > len(book.output_tx):
                return False
            _transact(book, cast, mining, p, kinds, height)
        # It cannot be spent yet: it matures for a hundred blocks.
        book.output_value[rewards[b]] += book.count[FEES]
    return True
