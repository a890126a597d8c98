"""A simulated week of Zcash, 1 to 8 February 2021: mining, open payments, shielded pools."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coinhaze.ledger import CoinLedger
from coinhaze.simulate.intents import COIN
from coinhaze.simulate.weeks.coin_columns import CoinChain, new_owners, simulate_coins, zipf_table
from coinhaze.simulate.weeks.coin_kernels import NONE, CoinColumns
from coinhaze.simulate.weeks.zcash_kernels import ZcashMining, run_week

CHAIN = CoinChain(
    transactions=65_000,
    blocks=8_029,
    first_height=1_131_715,
    interval=75,
    kinds=10,
    prefix="t1",
    coins=40,
    flows=3,
)


@dataclass(frozen=True)
class ZcashWeek:
    """The parameters of the week; docs/simulated-weeks.md gives the source of each figure."""

    # The number of each kind, of all transactions except coinbases and refills.
    payments: float = 0.505
    withdrawals: float = 0.20
    sweeps: float = 0.08
    payouts: float = 0.036
    gathers: float = 0.035
    protects: float = 0.02
    shields: float = 0.03
    unshields: float = 0.035
    shielded: float = 0.04
    migrations: float = 0.004
    # Participants.
    exchanges: int = 60
    pools: int = 12
    miners: int = 26_000
    # Amounts, in zatoshi: medians of lognormals that share one spread.
    spread: float = 2.0
    coin_median: float = 1.0 * COIN
    withdrawal_median: float = 1.0 * COIN
    deposit_median: float = 0.3 * COIN
    shielded_median: float = 8.0 * COIN
    payout_mean: float = 0.05 * COIN
    miner_reward: int = 250_000_000
    first_fund: int = 21_875_000
    second_fund: int = 25_000_000
    third_fund: int = 15_625_000
    fee_rate: float = 5.0
    # Destinations of money.
    to_exchange: float = 0.5
    to_cold: float = 0.97
    hot_amount: int = 900 * COIN
    max_hot: int = 300 * COIN
    no_change: float = 0.2
    change_reuse: float = 0.5
    reuse: float = 0.5
    deposit_reuse: float = 0.6
    uses: float = 4.0
    recent: float = 0.6
    sweep_recent: float = 0.6
    data_share: float = 0.0
    wallet: int = 1_100 * COIN
    from_pool: float = 0.02
    from_sprout: float = 0.1
    # Numbers of inputs and outputs: truncated Pareto.
    inputs_exponent: float = 2.0
    max_inputs: int = 50
    min_sweep: int = 3
    sweep_exponent: float = 1.2
    max_sweep: int = 200
    min_payout: int = 100
    payout_exponent: float = 1.5
    max_payout: int = 2_000
    min_gather: int = 40
    gather_exponent: float = 1.3
    max_gather: int = 1_000
    max_protect: int = 50
    maturity: int = 100
    # Before the window.
    shieldings: int = 260_000


def zcash_week(
    *, size: float = 1.0, seed: int = 1, settings: ZcashWeek | None = None
) -> CoinLedger:
    """Simulate that share of a week of Zcash, identical for the same seed.

    A share of the week is a shorter window of the same economy, with as many miners.

    >>> zcash_week(size=0.01).facts()["pools"]
    ['sapling', 'sprout']
    """
    week = settings or ZcashWeek()
    return simulate_coins(CHAIN, week, run_week, _mining, size=size, seed=seed)


def zcash_history(
    *, size: float = 1.0, seed: int = 1, settings: ZcashWeek | None = None
) -> dict[str, list[int]]:
    """Return the values that entered each shielded pool before the week, for `absorbing_chain`.

    A share of the week comes with that share of the history.

    >>> sorted(zcash_history(size=0.001))
    ['sapling', 'sprout']
    """
    week = settings or ZcashWeek()
    rng = np.random.default_rng([seed, 1])
    history = {}
    for pool in ("sapling", "sprout"):
        n = max(2, round(week.shieldings * size))
        values = week.shielded_median * np.exp(week.spread * rng.standard_normal(n))
        history[pool] = [int(v) + 1 for v in values]
    return history


def _mining(week: ZcashWeek, book: CoinColumns, blocks: int) -> ZcashMining:
    """Set up the mining pools, with miners in proportion to their activity, and the funds."""
    busy = np.cumsum(1 / np.arange(1, week.pools + 1))
    first = np.concatenate([[0], np.rint(busy / busy[-1] * week.miners)]).astype(np.int64)
    pools = np.arange(week.pools)
    return ZcashMining(
        pick=zipf_table(week.pools),
        reward_owner=new_owners(book, week.pools) + pools,
        payout_owner=new_owners(book, week.pools) + pools,
        fund_owner=new_owners(book, 3) + np.arange(3),
        ripe=np.full(week.pools, NONE, dtype=np.int64),
        wallet=np.full(week.pools, NONE, dtype=np.int64),
        first=first,
        miner_owner=new_owners(book, week.miners) + np.arange(week.miners),
        miner_coin=np.full(week.miners, NONE, dtype=np.int64),
        rewards=np.empty(blocks, dtype=np.int64),
        finders=np.empty(blocks, dtype=np.int64),
    )
