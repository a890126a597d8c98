from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coinhaze.errors import UsageError
from coinhaze.graph.clusters.coinjoins import CoinJoin, coinjoin_kinds
from coinhaze.ledger import CoinLedger
from coinhaze.observer.coinjoin_links import coinjoin_links
from coinhaze.simulate.intents import COIN, Intents, draw_intents
from coinhaze.simulate.mixing import realise_mixing
from coinhaze.simulate.technologies import TECHNOLOGIES, dash, wasabi, whirlpool
from coinhaze.simulate.technologies.plain import PLAIN
from coinhaze.simulate.technology import Realised, Technology
from coinhaze.simulate.wallets import SimulatedWallets
from simulate.economies import intents_of

COINS = (
    "plain",
    "stealth",
    "confidential",
    "wasabi",
    "wabisabi",
    "whirlpool",
    "joinmarket",
    "dash",
    "shielded",
)
MIXERS = ("wasabi", "wabisabi", "whirlpool", "joinmarket", "dash")


def same_ledger(one: Realised, two: Realised) -> bool:
    left, right = one.ledger.tables(), two.ledger.tables()
    return all(left[name].equals(right[name]) for name in left) and left.keys() == right.keys()


def small(seed: int = 1, people: int = 60, payments: int = 80) -> Intents:
    return draw_intents(people=people, payments=payments, hours=48.0, seed=seed)


def coins(realised: Realised) -> CoinLedger:
    assert isinstance(realised.ledger, CoinLedger)
    return realised.ledger


def kept_by_transactions(ledger: CoinLedger) -> int:
    """Add up what all transactions keep: miners' fees."""
    assert ledger.output_value is not None
    value = np.array(ledger.output_value.ints())
    spent, made = value[ledger.input_output].sum(), value[ledger.inside[ledger.output_tx]].sum()
    return int(spent - made - sum(ledger.flow_into.ints()))


@pytest.mark.parametrize("name", COINS)
@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 10_000), observer=st.integers(0, 1), step=st.integers(0, 9))
def test_everybody_ends_with_what_the_book_says_less_his_fees(
    name: str, seed: int, observer: int, step: int
) -> None:
    technology, intents = TECHNOLOGIES[name], small(seed)
    value = technology.values[step % len(technology.values)]
    seen_by = list(technology.observers)[observer % len(technology.observers)]
    realised = technology.realise(intents, value, observer=seen_by)
    assert realised.held().tolist() == (intents.closing - realised.fees).tolist()
    assert name == "joinmarket" or np.all(realised.fees >= 0)
    assert np.all(realised.fees <= intents.reserve)
    assert realised.transactions == len(realised.ledger) >= len(intents)


@pytest.mark.parametrize("name", [name for name in COINS if name != "confidential"])
def test_what_people_pay_in_fees_is_what_miners_and_coordinators_get(name: str) -> None:
    realised = TECHNOLOGIES[name].realise(small())
    ledger = coins(realised)
    assert ledger.output_value is not None
    owners = ledger.owners.to_pylist()
    mine = [owners[o] == "coordinator" for o in ledger.output_owner.tolist()]
    taken = sum(np.array(ledger.output_value.ints())[mine])
    assert realised.fees.sum() == kept_by_transactions(ledger) + taken
    assert bool(taken > 0) is (name in ("wasabi", "wabisabi", "whirlpool"))


@pytest.mark.parametrize("name", COINS)
def test_where_nobody_adopts_it_the_ledger_is_the_plain_one(name: str) -> None:
    technology, intents = TECHNOLOGIES[name], small(7)
    reuse = 1.0 if name == "stealth" else 0.0
    for observer in technology.observers:
        bare = technology.realise(intents, technology.without, observer=observer)
        plain = PLAIN.realise(intents, reuse, observer="amounts")
        assert same_ledger(bare, plain)
        assert bare.fees.tolist() == plain.fees.tolist()
        assert bare.waiting == 0.0
        if "view" not in bare.settings:
            assert bare.bits().tolist() == plain.bits().tolist()


def test_addresses_make_no_difference_to_who_follows_coins() -> None:
    fresh, mixed, again = (
        PLAIN.realise(small(), reuse, observer="amounts") for reuse in (0, 0.5, 1)
    )
    assert fresh.bits().tolist() == mixed.bits().tolist() == again.bits().tolist()
    assert len(coins(again).owners) < len(coins(mixed).owners) < len(coins(fresh).owners)


@pytest.mark.parametrize("name", COINS)
def test_the_same_seed_makes_the_same_ledger_for_every_observer(name: str) -> None:
    technology = TECHNOLOGIES[name]
    first = technology.realise(small(5))
    for observer in technology.observers:
        assert same_ledger(first, technology.realise(small(5), observer=observer))
    assert not same_ledger(first, technology.realise(small(6)))


@pytest.mark.parametrize("name", COINS)
def test_columns_are_the_transactions_noted_one_by_one(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[SimulatedWallets] = []
    closing = SimulatedWallets.realised

    def remember(purses: SimulatedWallets, **how: object) -> Realised:
        made.append(purses)
        return closing(purses, **how)  # type: ignore[arg-type]

    monkeypatch.setattr(SimulatedWallets, "realised", remember)
    TECHNOLOGIES[name].realise(small(2))
    (purses,) = made
    twin = CoinLedger.from_transactions(purses.transactions)
    fast = purses.record.ledger()
    assert fast.facts() == twin.facts()
    assert _spends(fast) == _spends(twin)
    assert sorted(fast.output_names().to_pylist()) == sorted(twin.output_names().to_pylist())
    assert fast.flow_into.ints() == twin.flow_into.ints()
    assert fast.heights.drop_null().equals(twin.heights.drop_null())


def _spends(ledger: CoinLedger) -> list[tuple[object, ...]]:
    assert ledger.output_value is not None
    names, txids = ledger.output_names().to_pylist(), ledger.txids.to_pylist()
    value, owners = ledger.output_value.ints(), ledger.owners.to_pylist()
    return [
        (txids[tx], names[coin], value[coin], owners[ledger.output_owner[coin]])
        for tx, coin in zip(ledger.input_tx.tolist(), ledger.input_output.tolist(), strict=True)
    ]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("wasabi", CoinJoin.wasabi1),
        ("wabisabi", CoinJoin.wasabi2),
        ("whirlpool", CoinJoin.whirlpool),
        ("joinmarket", CoinJoin.joinmarket),
    ],
    ids=["wasabi", "wabisabi", "whirlpool", "joinmarket"],
)
def test_joint_transactions_look_like_those_of_their_wallet(name: str, kind: CoinJoin) -> None:
    realised = TECHNOLOGIES[name].realise(small(people=80), 0.5)
    ledger = coins(realised)
    kinds = coinjoin_kinds(ledger)[ledger.inside]
    payers = [set() for _ in range(len(ledger.txids))]  # type: list[set[str]]
    owners = ledger.owners.to_pylist()
    for tx, coin in zip(ledger.input_tx.tolist(), ledger.input_output.tolist(), strict=True):
        payers[tx].add(owners[ledger.output_owner[coin]].partition(".")[0])
    joint = np.array([len(p) > 1 for p in payers])[ledger.inside]
    alone = ~joint
    if kind == CoinJoin.wasabi2:  # told from ten coins on
        joint &= np.bincount(ledger.input_tx, minlength=len(ledger.txids))[ledger.inside] >= 10
    assert joint.sum() >= 2
    assert np.mean(kinds[joint] == kind) > 0.9
    assert not np.any(kinds[alone] == kind)


@pytest.mark.parametrize("name", [*MIXERS, "shielded"])
def test_people_who_adopt_gain_and_who_knows_more_lacks_less(name: str) -> None:
    technology, intents = TECHNOLOGIES[name], small(people=80)
    bits = []
    for observer in technology.observers:
        with_it = technology.realise(intents, observer=observer)
        without = technology.realise(intents, technology.without, observer=observer)
        who = with_it.adopters
        bits.append(float(np.mean(with_it.bits()[who])))
        assert bits[-1] > float(np.mean(without.bits()[who])) + 1
    # No law, but so it is: who is told the rest is left with equal coins. Where all coins are
    # equal, up to the fee that new ones bring, there is nothing to tell.
    if name in ("whirlpool", "dash"):
        assert bits[1] == pytest.approx(bits[0], abs=1e-3)
    elif len(bits) > 1:
        assert bits[1] < bits[0]


def test_hidden_amounts_are_nowhere_in_the_ledger() -> None:
    realised = TECHNOLOGIES["confidential"].realise(small())
    assert coins(realised).output_value is None
    assert realised.settings == {"policy": "uniform"}
    assert np.all(np.isfinite(realised.bits()))


def test_dash_sessions_are_of_one_denomination_and_three_to_twenty_people() -> None:
    ledger = coins(TECHNOLOGIES["dash"].realise(small(people=100, payments=40), 2))
    assert ledger.output_value is not None
    value, owners = ledger.output_value.ints(), ledger.owners.to_pylist()
    spent: dict[int, list[tuple[int, str]]] = {}
    for tx, coin in zip(ledger.input_tx.tolist(), ledger.input_output.tolist(), strict=True):
        owner = owners[ledger.output_owner[coin]].partition(".")[0]
        spent.setdefault(tx, []).append((value[coin], owner))
    sessions = [s for s in spent.values() if len({owner for _, owner in s}) > 1]
    assert len(sessions) > 10
    for session in sessions:
        (amount,) = {v for v, _ in session}
        brought = Counter(owner for _, owner in session)
        assert amount in dash.DENOMINATIONS
        assert 3 <= len(brought) <= 20
        assert max(brought.values()) <= 9


def test_money_waits_for_rounds_and_a_payment_does_not() -> None:
    assert TECHNOLOGIES["joinmarket"].realise(small(), 0.5).waiting == 0.0
    # Sixteen coins wait an hour for the first round; one of them is paid with at five.
    brought = [(who, COIN * 15 // 100) for who in range(16)]
    payment = (5.0, 3, 16, COIN // 20)
    intents = intents_of(brought, [payment], people=17, reserve=COIN // 50)
    assert wasabi.WASABI.make(intents, 1.0, "amounts").waiting == wasabi.HOURS


def test_what_is_reported_of_a_mix_is_what_its_interpretations_say() -> None:
    intents = draw_intents(people=12, payments=0, hours=2.0)
    everybody = intents.adopters(1.0)
    realised = realise_mixing(
        intents, everybody, "told", name="x", interval=1.0, make_round=whirlpool.mix
    )
    told = {coin: row for names, row in realised.settings["policy"].rows for coin in names}
    found = coinjoin_links(coins(realised)).links
    assert len(found) > 10
    # Extra for the fee makes no difference to who can have brought which coin.
    for coin, origins in found.items():
        if len(origins) == 5:  # more have other interpretations, by their new coins' extra
            assert told[coin].keys() == origins.keys()
            assert list(told[coin].values()) == pytest.approx([1 / 5] * 5)


@pytest.mark.parametrize(
    ("value", "observer"),
    [(0.6, None), (-0.1, None), (float("nan"), None), (0.1, "nobody")],
    ids=["above", "below", "nan", "observer"],
)
def test_what_does_not_fit_is_refused(value: float, observer: str | None) -> None:
    with pytest.raises(UsageError, match=r"^wasabi: "):
        TECHNOLOGIES["wasabi"].realise(small(), value, observer=observer)


def test_rounds_are_whole_numbers() -> None:
    with pytest.raises(UsageError, match="whole number"):
        TECHNOLOGIES["dash"].realise(small(), 2.5)


def test_fees_that_would_eat_a_payment_are_refused_not_left_out() -> None:
    intents = intents_of([(0, 20_000)], [(1.0, 0, 1, 19_999)], people=2)
    for name in COINS:
        with pytest.raises(UsageError, match="too little to pay 19999"):
            TECHNOLOGIES[name].realise(intents, TECHNOLOGIES[name].without)


def test_every_technology_says_what_it_does_and_its_values_fit() -> None:
    for name in COINS:
        technology: Technology = TECHNOLOGIES[name]
        assert technology.name == name
        for value in (*technology.values, technology.usual, technology.without):
            assert technology.minimum <= value <= technology.maximum
        assert technology.without in technology.values
        assert len(technology.says) < 100
