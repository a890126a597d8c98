"""Hot loops of open payments: everybody pays everybody, exchanges receive and pay out.

Slow twin in the tests: see coin_kernels.py. `p` are the settings of the week, by name.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coinhaze.simulate.weeks.coin_kernels import (
    DUST,
    NONE,
    address,
    begin,
    below,
    earlier_coin,
    fee_of,
    heavy,
    kernel,
    make,
    many,
    new_owner,
    pop,
    push,
    spend,
    uniform,
)


class Cast(NamedTuple):
    """Participants in open payments: exchanges, and everybody else with loose coins."""

    pick_exchange: np.ndarray  # table for drawing an exchange by size
    slots: np.ndarray  # reused addresses, by exchange, then everybody else's
    slot_start: np.ndarray
    hot_owner: np.ndarray  # the address of each exchange's hot wallet ...
    cold_owner: np.ndarray  # ... and of the cold wallet that refills it
    cold_share: np.ndarray  # share of swept money moved to cold storage
    hot: np.ndarray  # topmost coin of its hot wallet
    deposits: np.ndarray  # topmost deposit not yet swept
    loose: np.ndarray  # coins of everybody else, drawn at random
    n_loose: np.ndarray
    amounts: np.ndarray  # scratch space for the amounts of one transaction


@kernel
def _pay_user(book, cast, p, value):
    """Pay somebody other than an exchange."""
    first = cast.slot_start[len(cast.hot)]
    owner = address(book, cast.slots, first, len(cast.slots), p.reuse)
    keep(cast, make(book, value, owner))


@kernel
def keep(cast, coin):
    """Add a coin to the loose ones."""
    cast.loose[cast.n_loose[0]] = coin
    cast.n_loose[0] += 1


@kernel
def _deposit_address(book, cast, p, x):
    return address(book, cast.slots, cast.slot_start[x], cast.slot_start[x + 1], p.deposit_reuse)


@kernel
def pay(book, cast, p, value):
    """Pay somebody: an exchange's deposit address or anybody else."""
    if uniform(book) < p.to_exchange:
        x = cast.pick_exchange[below(book, len(cast.pick_exchange))]
        coin = make(book, value, _deposit_address(book, cast, p, x))
        push(cast.deposits, x, book.after, coin)
    else:
        _pay_user(book, cast, p, value)


@kernel
def spend_loose(book, cast, p):
    """Spend a coin of somebody other than an exchange: one of this window, or an earlier one."""
    n = cast.n_loose[0]
    if n > 0 and uniform(book) < p.recent:
        k = below(book, n)
        coin = cast.loose[k]
        cast.loose[k] = cast.loose[n - 1]
        cast.n_loose[0] = n - 1
    else:
        first = cast.slot_start[len(cast.hot)]
        owner = address(book, cast.slots, first, len(cast.slots), p.reuse)
        coin = earlier_coin(book, heavy(book, p.coin_median, p.spread), owner)
    return coin, spend(book, coin)


@kernel
def pay_somebody(book, cast, p, height):
    """Pay part of some coins to somebody, the rest back to the payer."""
    begin(book, height, False)
    inputs = many(book, 1, p.most_inputs, p.inputs_exponent)
    total = 0
    first = NONE
    for k in range(inputs):
        coin, value = spend_loose(book, cast, p)
        total += value
        if k == 0:
            first = book.output_owner[coin]
    rest = total - fee_of(book, total, inputs, 2, p.fee_rate)
    change = 0
    if uniform(book) >= p.no_change:
        change = int(rest * uniform(book))
    if change < DUST:
        change = 0
    pay(book, cast, p, rest - change)
    if change > 0:
        owner = first if uniform(book) < p.change_reuse else new_owner(book)
        keep(cast, make(book, change, owner))
    if uniform(book) < p.data_share:
        make(book, 0, NONE)


@kernel
def _refill(book, cast, p, x, height, wanted):
    """Move what is needed now and a working amount from the cold wallet to the hot one."""
    begin(book, height, False)
    value = wanted * 4 // 3 + p.hot_amount
    total = spend(book, earlier_coin(book, value, cast.cold_owner[x]))
    fee = fee_of(book, total, 1, 1, p.fee_rate)
    push(cast.hot, x, book.after, make(book, total - fee, cast.hot_owner[x]))


@kernel
def withdraw(book, cast, p, height, outputs):
    """Pay customers of an exchange from its hot wallet; the rest goes back there."""
    x = cast.pick_exchange[below(book, len(cast.pick_exchange))]
    amounts = cast.amounts
    wanted = 2
    for k in range(outputs):
        amounts[k] = heavy(book, p.withdrawal_median, p.spread)
        wanted += amounts[k] * 4 // 3 + 1  # a fee is at most a quarter of what is spent
    held = 0
    coin = cast.hot[x]
    while coin != NONE and held < wanted:
        held += book.output_value[coin]
        coin = book.after[coin]
    if held < wanted:
        _refill(book, cast, p, x, height, wanted)
    begin(book, height, False)
    total = 0
    inputs = 0
    while total < wanted:
        total += spend(book, pop(cast.hot, x, book.after))
        inputs += 1
    rest = total - fee_of(book, total, inputs, outputs + 1, p.fee_rate)
    for k in range(outputs):
        pay(book, cast, p, amounts[k])
        rest -= amounts[k]
    if rest > 0:
        push(cast.hot, x, book.after, make(book, rest, cast.hot_owner[x]))


@kernel
def sweep(book, cast, p, height):
    """Gather deposits of an exchange; move a part to a cold wallet, the rest to the hot one."""
    x = cast.pick_exchange[below(book, len(cast.pick_exchange))]
    begin(book, height, False)
    inputs = many(book, p.sweep_least, p.sweep_most, p.sweep_exponent)
    total = 0
    for _ in range(inputs):
        coin = NONE
        if uniform(book) < p.sweep_recent:
            coin = pop(cast.deposits, x, book.after)
        if coin == NONE:
            owner = _deposit_address(book, cast, p, x)
            coin = earlier_coin(book, heavy(book, p.deposit_median, p.spread), owner)
        total += spend(book, coin)
    rest = total - fee_of(book, total, inputs, 2, p.fee_rate)
    kept = min(int(rest * (1.0 - cast.cold_share[x])), p.hot_most)
    if rest > kept:
        make(book, rest - kept, new_owner(book))
    if kept > 0:
        push(cast.hot, x, book.after, make(book, kept, cast.hot_owner[x]))
