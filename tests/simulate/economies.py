"""Economies written by hand."""

from __future__ import annotations

import numpy as np

from coinhaze.simulate.intents import Intents


def intents_of(
    coins: list[tuple[int, int]],
    payments: list[tuple[float, int, int, int]],
    *,
    people: int,
    reserve: int = 0,
    hours: float = 24.0,
    seed: int = 1,
) -> Intents:
    """Write an economy by hand: coins are owner and value, payments time, payer, payee, amount."""
    columns = list(zip(*payments, strict=True)) or [(), (), (), ()]
    return Intents(
        people=people,
        coin_owner=np.array([c[0] for c in coins], dtype=np.int64),
        coin_value=np.array([c[1] for c in coins], dtype=np.int64),
        reserve=np.full(people, reserve, dtype=np.int64),
        time=np.array(columns[0], dtype=np.float64),
        payer=np.array(columns[1], dtype=np.int64),
        payee=np.array(columns[2], dtype=np.int64),
        amount=np.array(columns[3], dtype=np.int64),
        hours=hours,
        seed=seed,
    )
