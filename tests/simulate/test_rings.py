from __future__ import annotations

import numpy as np
import pytest

import coinhaze
from coinhaze.errors import UsageError
from coinhaze.simulate.rings import ring_economy


def test_nothing_is_spent_twice_and_every_ring_holds_its_real_member() -> None:
    economy = ring_economy(blocks=60, ring=4, hops=3, wait=15)
    ledger = economy.ledger
    real = ledger.ring_output[economy.real]
    assert len(np.unique(real)) == len(real) == len(ledger)
    assert ledger.ring_tx[economy.real].tolist() == np.flatnonzero(ledger.inside).tolist()
    names = ledger.output_names().to_pylist()
    spent = [names[r] for r in real]
    for before, after in zip(economy.churned, economy.churned[1:], strict=False):
        at = spent.index(before)
        assert after == f"{ledger.txids[int(ledger.ring_tx[economy.real[at]])].as_py()}:0"


def test_the_same_seed_makes_the_same_economy() -> None:
    one, two, three = (ring_economy(blocks=20, ring=3, seed=s) for s in (1, 1, 2))
    assert one.ledger.tables()["rings"].equals(two.ledger.tables()["rings"])
    assert not one.ledger.tables()["rings"].equals(three.ledger.tables()["rings"])


def test_it_is_scored_like_any_ledger() -> None:
    scores = coinhaze.score(ring_economy(blocks=30, ring=4).ledger)
    assert scores.bits.min() >= 2 - 1e-9


@pytest.mark.parametrize(
    "settings",
    [{"wait": 5}, {"hops": 10, "blocks": 100}, {"ring": 0}],
    ids=["wait", "hops", "ring"],
)
def test_what_does_not_fit_is_refused(settings: dict[str, int]) -> None:
    with pytest.raises(UsageError):
        ring_economy(**settings)  # type: ignore[arg-type]
