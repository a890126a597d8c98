"""Hot loops of simulated weeks of coins: the columns transactions are written to, and payments.

Slow twin in the tests: tests/simulate/test_coin_weeks.py reads the finished ledger back one
transaction at a time through `CoinLedger.from_transactions`, which checks every rule. In payments,
`p` are the settings of the week, by name.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from coinhaze import kernels
from coinhaze.solve.sketch.kernels import mix

# Indices into CoinColumns.count.
TX, OUTPUT, INPUT, OWNER, EARLIER, EARLIER_VOUT, FLOW, VOUT, FEES = range(9)
NONE = -1
DUST = 546  # less is not worth spending, and is not relayed (Bitcoin Core's relay policy)

# Kernels pass dozens of arrays to one another. Counting references to each at every call takes most
# of the time (6 us per transaction instead of 0.8), and nothing here allocates, so it is off.
kernel = kernels.kernel(_nrt=False)
# As plain Python a transaction takes as long as so many entries of arrays: 0.3 ms.
_STEPS = 50


def _steps(book, cast, mining, p, kinds, first_height, blocks, transactions):
    return _STEPS * transactions


def _coins(book, number):
    return int(book.count[OUTPUT] + book.count[INPUT])


# Those that write a week: columns have room for more, and tables are drawn from.
week_kernel = kernels.kernel(_nrt=False, entries=_steps)


class CoinColumns(NamedTuple):
    """Columns of a ledger under construction, longer than needed; `count` says how much is filled.

    Earlier transactions are numbered -1, -2, ... until the ledger is finished. `after` links the
    coins of one holder into a stack: the coin below this one.
    """

    count: np.ndarray
    dice: np.ndarray  # state of the random number generator
    tx_height: np.ndarray
    tx_coinbase: np.ndarray
    output_tx: np.ndarray
    output_vout: np.ndarray
    output_value: np.ndarray
    output_owner: np.ndarray
    after: np.ndarray
    input_tx: np.ndarray
    input_output: np.ndarray
    flow_tx: np.ndarray
    flow_pool: np.ndarray
    flow_into: np.ndarray


@kernel
def uniform(book):
    """Draw a number from [0, 1): splitmix64, a state of one word (Steele, Lea & Flood 2014)."""
    # numpy's generators cost 100 ns per call in compiled code, more than the rest of a payment.
    z = book.dice[0] + np.uint64(0x9E3779B97F4A7C15)
    book.dice[0] = z
    return np.float64(mix(z) >> np.uint64(11)) * 2.0**-53


@kernel
def below(book, n):
    """Draw an integer from 0 .. n-1."""
    return int(uniform(book) * n)


@kernel
def normal(book):
    """Draw from the normal distribution (Box & Muller 1958)."""
    return math.sqrt(-2.0 * math.log(1.0 - uniform(book))) * math.cos(2.0 * math.pi * uniform(book))


@kernel
def begin(book, height, coinbase):
    """Begin the next transaction."""
    tx = book.count[TX]
    book.tx_height[tx] = height
    book.tx_coinbase[tx] = coinbase
    book.count[TX] = tx + 1
    book.count[VOUT] = 0


@kernel
def new_owner(book):
    """Return a fresh address."""
    owner = book.count[OWNER]
    book.count[OWNER] = owner + 1
    return owner


@kernel
def _write_output(book, tx, vout, value, owner):
    coin = book.count[OUTPUT]
    book.output_tx[coin] = tx
    book.output_vout[coin] = vout
    book.output_value[coin] = value
    book.output_owner[coin] = owner
    book.after[coin] = NONE
    book.count[OUTPUT] = coin + 1
    return coin


@kernel
def make(book, value, owner):
    """Create a coin in the current transaction; an owner NONE marks a data output."""
    vout = book.count[VOUT]
    book.count[VOUT] = vout + 1
    return _write_output(book, book.count[TX] - 1, vout, value, owner)


@kernel
def spend(book, coin):
    """Spend a coin in the current transaction; return its value."""
    k = book.count[INPUT]
    book.input_tx[k] = book.count[TX] - 1
    book.input_output[k] = coin
    book.count[INPUT] = k + 1
    return book.output_value[coin]


@kernel
def earlier_coin(book, value, owner):
    """Add a coin created before the window; every second one shares the last one's transaction."""
    if book.count[EARLIER] > 0 and uniform(book) < 0.5:
        vout = book.count[EARLIER_VOUT] + 1
    else:
        book.count[EARLIER] += 1
        vout = 0
    book.count[EARLIER_VOUT] = vout
    return _write_output(book, -book.count[EARLIER], vout, value, owner)


@kernel
def flow(book, pool, into):
    """Let value cross into a pool (positive) or out of it (negative) in this transaction."""
    k = book.count[FLOW]
    book.flow_tx[k] = book.count[TX] - 1
    book.flow_pool[k] = pool
    book.flow_into[k] = into
    book.count[FLOW] = k + 1


@kernel
def push(top, k, after, coin):
    """Push a coin onto stack k."""
    after[coin] = top[k]
    top[k] = coin


@kernel
def pop(top, k, after):
    """Pop the topmost coin of stack k, NONE if it is empty."""
    coin = top[k]
    if coin != NONE:
        top[k] = after[coin]
    return coin


@kernel
def address(book, slots, first, last, reuse):
    """Return a fresh address or, with probability `reuse`, one of the table's, low ones more often.

    The index is the square of a uniform number: half of the uses fall on a quarter of the table.
    """
    if uniform(book) >= reuse or last <= first:
        return new_owner(book)
    u = uniform(book)
    place = first + int((last - first) * u * u)
    if slots[place] == NONE:
        slots[place] = new_owner(book)
    return slots[place]


@kernel
def fee_of(book, total, inputs, outputs, rate):
    """Charge a fee for a transaction's size, at most a quarter of what it spends."""
    # Virtual bytes of a segwit payment: 68 per input, 31 per output, 11 in addition (BIP 141).
    requested = int(rate * math.exp(0.5 * normal(book)) * (11 + 68 * inputs + 31 * outputs))
    fee = min(total, max(1, min(requested, total // 4)))
    book.count[FEES] += fee
    return fee


@kernel
def heavy(book, median, spread):
    """Draw a heavy-tailed amount above dust: lognormal by median and spread of its logarithm."""
    return DUST + int(median * math.exp(spread * normal(book)))


@kernel
def many(book, minimum, maximum, exponent):
    """Draw a heavy-tailed count: Pareto from `minimum`, truncated at `maximum`."""
    return min(maximum, int(minimum * uniform(book) ** (-1.0 / exponent)))


@kernels.kernel(_nrt=False, entries=_coins)
def settle(book, number):
    """Number transactions from the earliest on, and addresses in order of use; return their count.

    `number` has an entry for every address, all NONE. Outputs that hold data retain NONE.
    """
    before = book.count[EARLIER]
    met = 0
    for k in range(book.count[OUTPUT]):
        tx = book.output_tx[k]
        book.output_tx[k] = -1 - tx if tx < 0 else tx + before
        owner = book.output_owner[k]
        if owner != NONE:
            if number[owner] == NONE:
                number[owner] = met
                met += 1
            book.output_owner[k] = number[owner]
    for k in range(book.count[INPUT]):
        book.input_tx[k] += before
    for k in range(book.count[FLOW]):
        book.flow_tx[k] += before
    return met


@kernel
def write_names(text, at, digits, seed, digit):
    """Write `digits` digits from column `at` on into every row: words of splitmix64, high first."""
    words = (digits + 15) // 16
    for row in range(len(text)):
        for word in range(words):
            z = mix((np.uint64(row * words + word) + seed) * np.uint64(0x9E3779B97F4A7C15))
            for k in range(min(16, digits - 16 * word)):
                text[row, at + 16 * word + k] = digit[(z >> np.uint64(60 - 4 * k)) & np.uint64(15)]


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
    inputs = many(book, 1, p.max_inputs, p.inputs_exponent)
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
    inputs = many(book, p.min_sweep, p.max_sweep, p.sweep_exponent)
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
    stays = min(int(rest * (1.0 - cast.cold_share[x])), p.max_hot)
    if rest > stays:
        make(book, rest - stays, new_owner(book))
    if stays > 0:
        push(cast.hot, x, book.after, make(book, stays, cast.hot_owner[x]))
