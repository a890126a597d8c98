"""Simulated weeks of Ethereum, DAI and USDC: 1 to 8 February 2021 in size and mixing.

The source of each number, and how close the weeks come to the paper's: docs/simulated-weeks.md.
"""

from __future__ import annotations

from coinhaze.ledger import AccountLedger
from coinhaze.simulate.weeks.economy import Economy, Ways, simulate_economy

ETHEREUM = Economy(
    unit=10**9,  # amounts are in gwei
    receivers=1_500_000,
    spenders=400_000,
    passers=240_000,
    regulars=500_000,
    partners=2.6,
    repeats=1.2,
    takes=Ways(exchange=0.36, pool=0.05, router=0.12, payer=0.28),
    pays=Ways(exchange=0.20, pool=0.10, router=0.30),
    exchanges=400,
    pools=1_500,
    routers=100,
    bots=600,
    payers=300,
    miners=60,
    blocks=45_503,
    reward=2 * 10**9,
    mints=False,
    median=3e8,
    spread=1.8,
    reserves=18.0,
    unevenness=1.5,
    trades=400_000,
    turnover=4.5,
    pool_trips=0.9,
)

DAI = Economy(
    unit=10**12,  # amounts are in millionths of a DAI
    receivers=16_400,
    spenders=10_500,
    passers=7_500,
    regulars=4_000,
    partners=1.5,
    repeats=1.3,
    takes=Ways(exchange=0.25, pool=0.08, router=0.17, payer=0.05),
    pays=Ways(exchange=0.30, pool=0.10, router=0.18),
    exchanges=40,
    pools=60,
    routers=12,
    bots=60,
    payers=20,
    miners=0,
    blocks=0,
    reward=0,
    mints=True,
    median=500e6,
    spread=2.0,
    reserves=15.0,
    unevenness=1.85,
    trades=36_000,
    turnover=19.0,
    pool_trips=0.5,
)

USDC = Economy(
    unit=1,  # amounts are in millionths of a USDC, its base unit
    receivers=42_000,
    spenders=37_000,
    passers=28_000,
    regulars=13_000,
    partners=1.5,
    repeats=1.3,
    takes=Ways(exchange=0.24, pool=0.09, router=0.22, payer=0.07),
    pays=Ways(exchange=0.30, pool=0.10, router=0.18),
    exchanges=100,
    pools=120,
    routers=20,
    bots=120,
    payers=40,
    miners=0,
    blocks=0,
    reward=0,
    mints=True,
    median=500e6,
    spread=2.0,
    reserves=15.0,
    unevenness=1.65,
    trades=100_000,
    turnover=10.5,
    pool_trips=0.5,
)


def ethereum_week(*, size: float = 1.0, seed: int = 1) -> AccountLedger:
    """Simulate a week of Ethereum in wei; block rewards come from the zero address."""
    return simulate_economy(ETHEREUM, size=size, seed=seed)


def dai_week(*, size: float = 1.0, seed: int = 1) -> AccountLedger:
    """Simulate a week of DAI, 18 decimals; mints and burns are transfers with the zero address."""
    return simulate_economy(DAI, size=size, seed=seed)


def usdc_week(*, size: float = 1.0, seed: int = 1) -> AccountLedger:
    """Simulate a week of USDC, 6 decimals; mints and burns are transfers with the zero address."""
    return simulate_economy(USDC, size=size, seed=seed)
