"""Simulated weeks: the same for the same seed, valid, of the size asked for, near the paper's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from benchmarks.calibration import ALLOWED, FIGURES, PAPER, PAPER_GRAPH, calibrate

from coinhaze import AccountLedger, score, transaction_graph
from coinhaze.amounts import Ints
from coinhaze.errors import UsageError
from coinhaze.ledger.parquet import read_folder, write_folder
from coinhaze.simulate import simulate_week
from coinhaze.simulate.weeks.accounts import DAI, ETHEREUM, USDC
from coinhaze.simulate.weeks.economy import Economy, PaymentRecord, Town

ACCOUNT_WEEKS = {"dai-week": DAI, "ethereum-week": ETHEREUM, "usdc-week": USDC}
SMALL = {"dai-week": 0.05, "ethereum-week": 0.002, "usdc-week": 0.02}

every_week = pytest.mark.parametrize("name", ACCOUNT_WEEKS)


def week(name: str, *, size: float | None = None, seed: int = 1) -> AccountLedger:
    ledger = simulate_week(name, size=size or SMALL[name], seed=seed)
    assert isinstance(ledger, AccountLedger)
    return ledger


def balances(ledger: AccountLedger) -> list[int]:
    """Add up in Python what each account took in and paid."""
    net = [0] * len(ledger.accounts)
    rows = zip(ledger.sender, ledger.receiver, ledger.amounts.ints(), strict=True)
    for sender, receiver, amount in rows:
        net[sender] -= amount
        net[receiver] += amount
    return net


@every_week
def test_a_week_is_the_same_for_the_same_seed_and_another_for_another(name: str) -> None:
    one, again, other = week(name), week(name), week(name, seed=2)
    assert one.tables()["transfers"].equals(again.tables()["transfers"])
    assert not one.tables()["transfers"].equals(other.tables()["transfers"])


@every_week
def test_a_week_is_a_valid_ledger_that_survives_its_folder(name: str, tmp_path: Path) -> None:
    ledger = week(name)
    transfers = ledger.tables()["transfers"]
    back = read_folder(write_folder(ledger, tmp_path / "week")).tables()["transfers"]
    # Parquet has no whole seconds: times come back in a finer unit.
    assert back.cast(transfers.schema).equals(transfers)
    assert len(set(ledger.accounts.to_pylist())) == len(ledger.accounts)
    assert min(ledger.amounts.ints()) > 0
    assert not np.any(ledger.sender == ledger.receiver)


@every_week
def test_payments_come_in_order_of_time_within_one_week(name: str) -> None:
    times = week(name).times
    assert times is not None
    seconds = times.cast("int64").to_numpy()
    assert np.all(np.diff(seconds) >= 0)
    assert seconds[-1] - seconds[0] <= 7 * 24 * 3600


@every_week
def test_size_scales_people_and_payments_in_proportion(name: str) -> None:
    small, large = week(name), week(name, size=4 * SMALL[name])
    assert len(large) / len(small) == pytest.approx(4, rel=0.1)
    assert len(large.accounts) / len(small.accounts) == pytest.approx(4, rel=0.1)


@every_week
@pytest.mark.parametrize("size", [1e-6, 1e-4])
def test_the_smallest_weeks_are_scored_too(name: str, size: float) -> None:
    scores = score(week(name, size=size))
    assert len(scores) > 0
    assert not np.isnan(scores.bits).any()


def test_amounts_are_in_the_smallest_unit_of_each_ledger() -> None:
    # Millionths of a DAI and gwei are as fine as the economy reckons; the rest is zeros.
    for name, unit in (("dai-week", 10**12), ("ethereum-week", 10**9)):
        amounts = week(name).amounts.ints()
        assert all(a % unit == 0 for a in amounts)
        assert any(a % (10 * unit) for a in amounts)
        assert max(amounts) > 2**63


@pytest.fixture(params=ACCOUNT_WEEKS)
def town(request: pytest.FixtureRequest) -> Town:
    economy: Economy = ACCOUNT_WEEKS[request.param]
    made = Town(economy, SMALL[request.param], np.random.default_rng(1))
    made.make_week()
    return made


def net_of(book: PaymentRecord, accounts: Ints) -> Ints:
    return book.surplus(book.accounts)[accounts]


def test_routers_bots_and_deposit_addresses_keep_nothing(town: Town) -> None:
    assert not net_of(town.book, town.routers).any()
    assert not net_of(town.book, town.bots).any()
    assert not net_of(town.book, np.arange(town.regulars[-1] + 1, town.book.accounts)).any()


def test_passers_pay_on_all_they_are_paid_and_only_then(town: Town) -> None:
    assert not net_of(town.book, town.passers).any()
    paid, pays = (np.full(town.book.accounts, np.inf) for _ in range(2))
    for sender, receiver, _, moment in town.book.parts:
        np.minimum.at(pays, sender, moment)
        np.minimum.at(paid, receiver, moment)
    assert np.all(paid[town.passers] <= pays[town.passers])


def test_receivers_only_take_and_spenders_only_pay(town: Town) -> None:
    senders = np.concatenate([part[0] for part in town.book.parts])
    receivers = np.concatenate([part[1] for part in town.book.parts])
    assert not np.isin(senders, town.receivers).any()
    assert not np.isin(receivers, town.spenders).any()
    assert np.isin(town.receivers, receivers).all()
    assert np.isin(town.spenders, senders).all()


def test_half_of_the_hubs_pay_out_of_reserves_and_half_keep_money(town: Town) -> None:
    surplus = net_of(town.book, town.hubs)
    assert abs(int((surplus > 0).sum()) - int((surplus < 0).sum())) <= 2


def test_miners_pay_out_what_they_earned_and_no_more() -> None:
    town = Town(ETHEREUM, 0.01, np.random.default_rng(1))
    town.make_week()
    surplus = net_of(town.book, town.miners)
    assert len(town.miners) == 6
    # Rounding down leaves each miner less than one unit a payment.
    assert surplus.max() <= 0
    assert -surplus.min() < 10_000
    assert net_of(town.book, np.array([0]))[0] == 455 * ETHEREUM.reward


@every_week
def test_money_is_neither_made_nor_lost(name: str) -> None:
    ledger = week(name)
    net = balances(ledger)
    assert sum(net) == 0
    graph = transaction_graph(ledger, **PAPER_GRAPH)
    assert graph.opening is not None
    assert graph.closing is not None
    assert sum(graph.opening.ints()) == sum(graph.closing.ints()) == -sum(n for n in net if n < 0)
    assert int(graph.sinks.sum()) == sum(n > 0 for n in net)


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("dai-week", "exact"),
        ("usdc-week", "exact"),
        ("ethereum-week", "2048 walks from each of 500 sinks"),
    ],
)
def test_whole_weeks_come_near_the_papers(name: str, how: str) -> None:
    ours, _ = calibrate(name, sample=500)
    published = dict(zip(FIGURES, PAPER[name], strict=True))
    for figure, allowed in ALLOWED.items():
        off = 100 * abs(ours.figures[figure] / published[figure] - 1)
        assert off <= allowed, (figure, off)
    assert ours.how == how


@pytest.mark.parametrize(
    ("name", "size", "seed"),
    [("gold-week", 1, 1), ("dai-week", 0, 1), ("dai-week", float("nan"), 1), ("dai-week", 1, -1)],
)
def test_a_week_that_cannot_be_made_is_refused(name: str, size: float, seed: int) -> None:
    with pytest.raises(UsageError):
        simulate_week(name, size=size, seed=seed)
