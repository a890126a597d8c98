"""A simulated week of Bitcoin: 1 to 8 February 2021 in size, kinds of payment and mixing."""

from __future__ import annotations

from dataclasses import astuple, dataclass

import numpy as np

from coinhaze.ledger import CoinLedger
from coinhaze.simulate.intents import COIN
from coinhaze.simulate.weeks.bitcoin_kernels import BitcoinMining, run_week
from coinhaze.simulate.weeks.coin_columns import (
    block_times,
    empty_book,
    exchanges_and_others,
    finished_ledger,
    new_owners,
    settings_record,
    share_table,
    zipf_table,
)
from coinhaze.simulate.weeks.coin_kernels import NONE

TRANSACTIONS = 1_900_000
BLOCKS = 1_066
FIRST_HEIGHT = 668_548


@dataclass(frozen=True)
class BitcoinWeek:
    """The parameters of the week; docs/simulated-weeks.md gives the source of each figure."""

    # The number of each kind, of all transactions except coinbases and refills.
    payments: float = 0.64
    withdrawals: float = 0.10
    batches: float = 0.08
    sweeps: float = 0.08
    peels: float = 0.097
    payouts: float = 0.002
    joins: float = 0.001
    # Participants.
    exchanges: int = 400
    pools: int = 15
    peel_chains: int = 4000
    # Amounts, in satoshi: medians of lognormals that share one spread.
    spread: float = 2.0
    coin_median: float = 0.02 * COIN
    withdrawal_median: float = 0.01 * COIN
    deposit_median: float = 0.003 * COIN
    peel_median: float = 10.0 * COIN
    subsidy: int = 625_000_000
    fee_rate: float = 60.0
    # Destinations of money.
    to_exchange: float = 0.45
    to_cold: float = 0.62
    hot_amount: int = 5 * COIN
    max_hot: int = 60 * COIN
    no_change: float = 0.1
    change_reuse: float = 0.2
    reuse: float = 0.2
    deposit_reuse: float = 0.4
    uses: float = 4.0
    recent: float = 0.7
    sweep_recent: float = 0.4
    data_share: float = 0.03
    peel_share: float = 0.05
    peel_length: float = 30.0
    # Numbers of inputs and outputs: truncated Pareto.
    inputs_exponent: float = 1.6
    max_inputs: int = 50
    min_batch: int = 4
    batch_exponent: float = 1.1
    max_batch: int = 300
    payout_exponent: float = 0.5
    min_sweep: int = 6
    sweep_exponent: float = 1.2
    max_sweep: int = 500
    min_join: int = 5
    join_exponent: float = 1.0
    max_join: int = 100
    join_amount: int = COIN // 10
    maturity: int = 100


def bitcoin_week(
    *, size: float = 1.0, seed: int = 1, settings: BitcoinWeek | None = None
) -> CoinLedger:
    """Simulate that share of a week of Bitcoin, identical for the same seed.

    A share of the week is a shorter window of the same economy: fewer blocks, with as many
    transactions in each.

    >>> len(bitcoin_week(size=0.001))
    1900
    """
    week = settings or BitcoinWeek()
    rng = np.random.default_rng(seed)
    transactions, blocks = max(1, round(TRANSACTIONS * size)), max(1, round(BLOCKS * size))
    book = empty_book(
        transactions=transactions + 10,
        coins=12 * transactions + 20_000,
        dice=int(rng.integers(1 << 63)),
    )
    cast = exchanges_and_others(
        book, week.exchanges, to_cold=week.to_cold, reused=transactions / week.uses
    )
    mining = _mining(week, blocks, new_owners(book, week.pools))
    times = block_times(blocks, interval=600, rng=rng)
    kinds = share_table(astuple(week)[:7])
    enough = run_week(
        book, cast, mining, settings_record(week), kinds, FIRST_HEIGHT, blocks, transactions
    )
    assert enough, "the book is too small for these settings"
    return finished_ledger(book, block_times=times, seed=seed, prefix="bc1q")


def _mining(week: BitcoinWeek, blocks: int, first_owner: int) -> BitcoinMining:
    """Set up the mining pools and the peel chains."""
    return BitcoinMining(
        pick=zipf_table(week.pools),
        owner=first_owner + np.arange(week.pools),
        ripe=np.full(week.pools, NONE, dtype=np.int64),
        rewards=np.empty(blocks, dtype=np.int64),
        finders=np.empty(blocks, dtype=np.int64),
        tips=np.full(week.peel_chains, NONE, dtype=np.int64),
    )
