"""A simulated week of Bitcoin: 1 to 8 February 2021 in size, kinds of payment and mixing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coinhaze.ledger import CoinLedger
from coinhaze.simulate.intents import COIN
from coinhaze.simulate.weeks.bitcoin_kernels import BitcoinMining, run_week
from coinhaze.simulate.weeks.coin_columns import CoinChain, new_owners, simulate_coins, zipf_table
from coinhaze.simulate.weeks.coin_kernels import NONE, CoinColumns

CHAIN = CoinChain(
    transactions=1_900_000,
    blocks=1_066,
    first_height=668_548,
    interval=600,
    kinds=7,
    prefix="bc1q",
    coins=12,
)


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
    return simulate_coins(CHAIN, week, run_week, _mining, size=size, seed=seed)


def _mining(week: BitcoinWeek, book: CoinColumns, blocks: int) -> BitcoinMining:
    """Set up the mining pools and the peel chains."""
    return BitcoinMining(
        pick=zipf_table(week.pools),
        owner=new_owners(book, week.pools) + np.arange(week.pools),
        ripe=np.full(week.pools, NONE, dtype=np.int64),
        rewards=np.empty(blocks, dtype=np.int64),
        finders=np.empty(blocks, dtype=np.int64),
        tips=np.full(week.peel_chains, NONE, dtype=np.int64),
    )
