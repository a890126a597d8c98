from __future__ import annotations

import numpy as np
import pytest

from coinhaze.desiderata import APPROACHES, PAPER, WISHES, Finding, try_approaches
from coinhaze.errors import UsageError
from coinhaze.simulate import small_worlds
from coinhaze.simulate.small_worlds import COIN_WORLDS, RING_WORLDS, UNIT, World

ALL_SIX = ("bits", "min-entropy", "effective-sources", "haircut")


@pytest.fixture(scope="module")
def found() -> dict[tuple[str, str], Finding]:
    return {(f.approach, f.wish): f for f in try_approaches(seeds=6)}


@pytest.mark.parametrize("approach", ALL_SIX)
def test_the_walks_own_measures_do_all_six(
    found: dict[tuple[str, str], Finding], approach: str
) -> None:
    assert [found[approach, wish].holds for wish in WISHES] == [True] * 6


def test_every_comparator_we_have_is_tried(found: dict[tuple[str, str], Finding]) -> None:
    from coinhaze.measures.comparators.registry import COMPARATORS
    from coinhaze.observer.policies import taint_policies

    assert {*COMPARATORS.names(), *(p.column for p in taint_policies()), "bits"} <= {
        approach for approach, _ in found
    }
    assert set(PAPER) <= set(APPROACHES)
    assert all(len(claims) == len(WISHES) for claims in PAPER.values())


def test_every_cross_has_figures(found: dict[tuple[str, str], Finding]) -> None:
    for finding in found.values():
        if finding.wish in ("decay", "tamper-resistant") and not finding.holds:
            assert " comes " in finding.shown, finding
        assert any(c.isdigit() for c in finding.shown)


# By hand: what each of these says of the worked case that its cross stands for.
@pytest.mark.parametrize(
    ("approach", "before", "after"),
    [("k-anonymity", 4, 1), ("boltzmann", np.log2(131), 0), ("wasabi", 4, 1), ("link-bits", 2, 0)],
)
def test_a_coin_of_a_mix_sent_on_once_is_forgotten_by_measures_of_one_transaction(
    approach: str, before: float, after: float
) -> None:
    mix, sent = COIN_WORLDS.sent_on()[0]
    measure = APPROACHES[approach].measure
    assert measure(mix)[0] == pytest.approx(before)
    assert measure(sent)[0] == pytest.approx(after)


def test_an_owner_alone_makes_a_crowd_for_k_anonymity_and_boltzmann_not_for_bits() -> None:
    for before, after in COIN_WORLDS.split_alone():
        bits = APPROACHES["bits"].measure
        assert bits(after) == pytest.approx(np.full(4, bits(before)[0]), abs=1e-12)
    before, after = COIN_WORLDS.split_alone()[1]
    assert APPROACHES["k-anonymity"].measure(before)[0] == 1
    assert APPROACHES["k-anonymity"].measure(after)[0] == 4
    assert APPROACHES["boltzmann"].measure(after)[0] == pytest.approx(np.log2(131))


def test_tampering_moves_the_one_coins_money_alone() -> None:
    for seed in range(20):
        before, after = small_worlds.tampered(seed)
        coin = before.scored[0]
        value = _values(before)
        made = sum(_values(after)[name] for name in after.scored)
        assert made == value[coin]


def test_worlds_of_rings_ask_what_worlds_of_coins_ask() -> None:
    for worlds in (COIN_WORLDS, RING_WORLDS):
        bits = APPROACHES["bits"].measure
        assert bits(worlds.certain())[0] == 0
        assert bits(worlds.mix(8))[0] == pytest.approx(3, abs=1e-12)
        assert bits(worlds.uneven(3))[0] == pytest.approx(0.8112781244591328, abs=1e-12)
        before, told = worlds.informed()
        assert bits(before)[0] == pytest.approx(2, abs=1e-12)
        assert bits(told[0])[0] == pytest.approx(0, abs=1e-12)


def test_a_lasting_mix_is_found_by_any_seed() -> None:
    one, other = (small_worlds.before_and_after(3)[1].records for _ in range(2))
    assert one == other
    assert small_worlds.before_and_after(4)[1].records != one


def test_an_unknown_approach_is_refused() -> None:
    with pytest.raises(UsageError, match="no approach 'entropy': one of bits, "):
        try_approaches(["entropy"])


def _values(world: World) -> dict[str, int]:
    return {
        f"{record['txid']}:{k}": output["value"]
        for record in world.records
        for k, output in enumerate(record["outputs"])
    }


def test_a_perfect_mix_has_log2_k_bits() -> None:
    for k in (2, 3, 7, 50):
        assert APPROACHES["bits"].measure(small_worlds.mixed([UNIT] * k)) == pytest.approx(
            np.full(k, np.log2(k)), abs=1e-12
        )
