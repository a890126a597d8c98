"""A simulated history of Bitcoin, streamed block by block, of any length.

Block k of N has the shape of the real chain at height 900,000 k / N. The shape is measured on two
stretches of real blocks, 100000 to 104000 (2011, 24,194 transactions) and 560062 to 560069 (2019,
20,988), and interpolated by height; it stays as it is beyond them:

- transactions per block: 1 at height 0, 6.05 beside the coinbase in 2011, 2,623.5 in 2019;
- inputs and outputs per transaction: the shares with 1, 2, 3 and 4 as measured, and a Pareto tail
  from 5 on with the measured mean;
- outputs that can never be spent: none in 2011, 5.0 % in 2019;
- types of scripts that payments pay to: p2pkh in 2011; of 49,866 outputs in 2019, 0.28 % p2pk,
  46.15 % p2pkh, 47.95 % p2sh, 5.47 % p2wpkh, 0.15 % p2wsh and none p2tr, which came later;
- of coinbases, assumed: p2pk in 2011, as the first miners wrote them (the data have addresses, and
  these do not tell it from p2pkh), and in 2019 the shares of payments;
- ages of coins when they are spent, counted in coins made since: log-uniform up to a tenth of all
  coins made, as in 2011, where 200 is the median; the least age grows so that a quarter of inputs
  spend coins of the same four blocks, as in 2019.

What a transaction spends is drawn coin by coin: nobody owns coins, so inputs have less in common
than those of real transactions, and rows mix more. Coins of more than 2^26 coins ago stay unspent.
Every coin is worth at least 546 satoshi, the least output that nodes relay: one that is worth too
little for the outputs of a transaction is spent only beside another. Outputs that can never be
spent are worth nothing. Fees are zero, so every transaction makes what it spends. The subsidy
halves every 210,000 heights; a block of a shorter history stands for several heights, and pays the
subsidies of all of them.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from coinhaze.amounts import Floats, Ints
from coinhaze.errors import UsageError
from coinhaze.ledger.coin_blocks import CoinBlocks
from coinhaze.simulate.history_kernels import (
    COINS,
    MAX_INPUTS,
    MAX_OUTPUTS,
    draw_scripts,
    make_blocks,
)

NAME = "bitcoin-history"
HEIGHTS = 900_000
MAX_BLOCKS = HEIGHTS
FIRST_TIME, APART = 1_231_006_505, 600  # of the first block, and seconds between blocks
_RING = 1 << 26
_AT_ONCE = 1 << 16  # transactions
# At heights of measured blocks: transactions per block, ...
_AT = (0.0, 102_000.0, 560_065.0)
_SIZE = (1.0, 7.05, 2623.5)
# ... shares of transactions with 1, 2, 3 and 4 inputs and the slope of the tail, then of outputs.
_INS = (
    (0.8994, 0.0466, 0.0187, 0.0100, 1.51),
    (0.7450, 0.1620, 0.0382, 0.0160, 1.33),
)
_OUTS = (
    (0.3533, 0.6467, 0.0, 0.0, 1.33),
    (0.1188, 0.7678, 0.0678, 0.0159, 1.33),
)
# Of all outputs, 2.501 a transaction in 2019; the first can always be spent.
_LOST = (0.0, 0.0497 * 2.501 / 1.501)
_OLDER = 0.03
# Shares of outputs by the type of their script: p2pk, p2pkh, p2sh, p2wpkh, p2wsh.
_LATE = (0.0028, 0.4615, 0.4795, 0.0547, 0.0015)
_PAID = ((0.0, 1.0, 0.0, 0.0, 0.0), _LATE)
_MINED = ((1.0, 0.0, 0.0, 0.0, 0.0), _LATE)


def bitcoin_history(blocks: int, *, seed: int = 1) -> Iterator[CoinBlocks]:
    """Simulate a history of so many blocks, identical for the same seed.

    >>> sum(len(part) for part in bitcoin_history(20)) > 1000
    True
    """
    check_history(blocks, seed)
    heights = HEIGHTS * np.arange(blocks) // blocks
    sizes = np.round(np.interp(heights, _AT, _SIZE)).astype(np.int64)
    subsidy = (5_000_000_000 >> np.minimum(heights // 210_000, 32)) * (HEIGHTS // blocks)
    state = np.zeros(2, dtype=np.int64)
    expected = int(sizes.sum() * 3)
    ring = min(_RING, 1 << max(12, expected.bit_length()))
    coins = (
        np.zeros(ring, dtype=np.int64),
        np.zeros(ring, dtype=np.int64),
        np.zeros(ring, dtype=np.int32),
        np.ones(ring, dtype=np.bool_),
    )
    after = np.cumsum(sizes)
    first = 0
    while first < blocks:
        before = int(after[first - 1]) if first else 0
        last = min(blocks, int(np.searchsorted(after, before + _AT_ONCE)) + 1)
        part = slice(first, last)
        yield _part(
            first, heights[part], sizes[part].copy(), subsidy[part], state, coins, seed, expected
        )
        first = last


def check_history(blocks: int, seed: int) -> None:
    """Raise an error for a history that cannot be simulated."""
    if not 1 <= blocks <= MAX_BLOCKS:
        raise UsageError(f"blocks are 1 to {MAX_BLOCKS:,}, not {blocks!r}")
    if not 0 <= seed < 2**31:
        raise UsageError(f"seed is a whole number from 0 to 2^31 - 1, not {seed!r}")


def _part(
    first: int,
    heights: Ints,
    sizes: Ints,
    subsidy: Ints,
    state: Ints,
    coins: tuple[np.ndarray, ...],
    seed: int,
    expected: int,
) -> CoinBlocks:
    share = np.clip((heights - _AT[1]) / (_AT[2] - _AT[1]), 0.0, 1.0)
    n = int(sizes.sum())
    room_in, room_out = 4 * n + MAX_INPUTS * 64, 5 * n + MAX_OUTPUTS * 64
    ids = np.empty((n, 4), dtype=np.uint64)
    inputs, outputs = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    spent_ids = np.empty((room_in, 4), dtype=np.uint64)
    spent_vouts, spent_values = (np.empty(room_in, dtype=np.int64) for _ in range(2))
    made_values, made_vouts = (np.empty(room_out, dtype=np.int64) for _ in range(2))
    spendable = np.empty(room_out, dtype=np.bool_)
    made = float(max(state[COINS], 1))
    # The least age grows with the coins there are, as on the real chain over as many blocks.
    low = np.full(len(sizes), max(1.0, min(2000.0, made / expected * 2000.0)))
    high = np.full(len(sizes), max(50.0, made / 10.0))
    ages = np.stack([low, np.maximum(high, 4 * low), np.full(len(sizes), _OLDER)], axis=1)
    t, i, o = make_blocks(
        sizes,
        subsidy,
        _between(_INS, share),
        _between(_OUTS, share),
        _LOST[1] * share,
        ages,
        seed,
        state,
        *coins,
        ids,
        inputs,
        outputs,
        spent_ids,
        spent_vouts,
        spent_values,
        made_values,
        made_vouts,
        spendable,
        np.random.default_rng([seed, first]),
    )
    scripts = np.empty(o, dtype=np.uint8)
    paid, mined = (np.cumsum(_between(ends, share), axis=1) for ends in (_PAID, _MINED))
    draw_scripts(sizes, outputs, ids, paid, mined, scripts)
    numbers = np.arange(first, first + len(sizes))
    coinbase = np.zeros(t, dtype=np.bool_)
    coinbase[np.concatenate([[0], np.cumsum(sizes)[:-1]])] = True
    return CoinBlocks(
        heights=numbers,
        times=FIRST_TIME + APART * (HEIGHTS // MAX_BLOCKS) * heights,
        sizes=sizes,
        ids=ids[:t].view(np.uint8),
        coinbase=coinbase,
        inputs=inputs[:t],
        outputs=outputs[:t],
        spent_ids=spent_ids[:i].view(np.uint8),
        spent_vouts=spent_vouts[:i],
        spent_values=spent_values[:i],
        made_vouts=made_vouts[:o],
        made_values=made_values[:o],
        made_spendable=spendable[:o],
        made_scripts=scripts,
    )


def _between(ends: tuple[tuple[float, ...], tuple[float, ...]], share: Floats) -> Floats:
    early, late = np.array(ends[0]), np.array(ends[1])
    found: Floats = early + share[:, None] * (late - early)
    return found
