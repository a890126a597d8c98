from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coinhaze.errors import UsageError
from coinhaze.simulate.intents import draw_intents
from simulate.economies import intents_of


@given(seed=st.integers(0, 10_000), people=st.integers(2, 40), payments=st.integers(0, 100))
def test_every_payment_can_be_made_and_no_money_is_lost(
    seed: int, people: int, payments: int
) -> None:
    intents = draw_intents(people=people, payments=payments, seed=seed)
    assert intents.opening.sum() == intents.closing.sum()
    assert np.all(intents.closing >= intents.reserve)
    assert np.all(np.diff(intents.time) >= 0)
    assert len(intents) <= payments


def test_the_same_seed_draws_the_same_economy() -> None:
    one, two, three = (draw_intents(people=20, payments=50, seed=s) for s in (3, 3, 4))
    assert one.amount.tolist() == two.amount.tolist()
    assert one.amount.tolist() != three.amount.tolist()


def test_more_adopters_are_the_same_and_others() -> None:
    intents = draw_intents(people=50, payments=0)
    shares = [0.0, 0.1, 0.5, 1.0]
    counts = [int(intents.adopters(s).sum()) for s in shares]
    assert counts == [0, 5, 25, 50]
    for fewer, more in pairwise(shares):
        assert np.all(intents.adopters(fewer) <= intents.adopters(more))


def test_dice_of_two_purposes_differ_and_those_of_one_do_not() -> None:
    intents = draw_intents(people=5, payments=5)
    assert intents.dice("a").random() == intents.dice("a").random()
    assert intents.dice("a").random() != intents.dice("b").random()


@pytest.mark.parametrize(
    "payment",
    [(1.0, 0, 0, 5), (1.0, 0, 1, 0), (1.0, 0, 1, 11), (1.0, 1, 0, 1)],
    ids=["to-oneself", "nothing", "of-the-reserve", "without-money"],
)
def test_a_payment_nobody_can_make_is_refused(payment: tuple[float, int, int, int]) -> None:
    with pytest.raises(UsageError, match="payment 0: person"):
        intents_of([(0, 12), (1, 2)], [payment], people=2, reserve=2)


def test_payments_out_of_order_are_refused() -> None:
    with pytest.raises(UsageError, match="order of time"):
        intents_of([(0, 12)], [(2.0, 0, 1, 1), (1.0, 0, 1, 1)], people=2)


@pytest.mark.parametrize(
    "settings",
    [{"people": 1}, {"payments": -1}, {"hours": 0.0}, {"hours": float("nan")}, {"seed": -1}],
    ids=["people", "payments", "hours", "hours-nan", "seed"],
)
def test_an_economy_that_cannot_be_is_refused(settings: dict[str, float]) -> None:
    with pytest.raises(UsageError):
        draw_intents(**settings)  # type: ignore[arg-type]
