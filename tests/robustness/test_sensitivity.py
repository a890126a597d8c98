from __future__ import annotations

import numpy as np
import pytest

import coinhaze
from coinhaze import AccountLedger, CoinLedger
from coinhaze.ledger.window import last_part
from coinhaze.robustness.report import plot_sensitivity, sensitivity_table
from coinhaze.robustness.sensitivity import Variation, choices_for, sensitivity
from coinhaze.simulate import simulate_town, simulate_week
from coinhaze.simulate.small_worlds import random_coins


@pytest.fixture(scope="module")
def town() -> CoinLedger:
    return simulate_town(transactions=200, people=20)


def test_every_choice_is_what_scoring_with_it_gives(town: CoinLedger) -> None:
    found = sensitivity(town, view="address")
    by_name = {one.choice.name: one.summary for one in found.varied}
    assert found.base == coinhaze.score(town, view="address").summary()
    twins = {
        "coin": coinhaze.score(town),
        "address, temporal": coinhaze.score(town, view="address", time="temporal"),
        "observed": coinhaze.score(town, view="address", opening="observed"),
        "uniform": coinhaze.score(town, view="address", policy="uniform"),
        "series, published rule": coinhaze.score(town, view="address", method="published"),
        "the paper's conventions": coinhaze.score(town, view="address", preset="paper"),
        "last 25%": coinhaze.score(last_part(town, 0.25), view="address"),
    }
    for name, twin in twins.items():
        assert by_name[name] == twin.summary(), name
    assert not any(one.refused for one in found.varied if one.choice.group != "policy")


def test_dust_leaves_the_smallest_out_of_the_table(town: CoinLedger) -> None:
    found = sensitivity(town, choices=[Variation("dust", "half", dust=0.5)])
    scores = coinhaze.score(town)
    closing = scores.chain.graph.closing
    assert closing is not None
    worth = np.array(closing.take(scores.nodes).ints(), dtype=float)
    kept = scores.bits[worth > np.quantile(worth, 0.5)]
    (one,) = found.varied
    assert one.summary is not None
    assert one.summary.scored == len(kept)
    assert one.summary.bits_mean == pytest.approx(kept.mean(), abs=1e-12)
    assert found.moved(one) == pytest.approx(kept.mean() - scores.bits.mean(), abs=1e-12)


def test_what_is_chosen_already_is_no_choice() -> None:
    ledger = AccountLedger.from_transfers([("a", "b", 1)])
    settings = coinhaze.score(ledger).chain.settings
    names = [choice.name for choice in choices_for(ledger, settings)]
    assert "temporal" in names
    assert "stationary" not in names
    assert "one mint" not in names  # nothing is minted here


def test_ledgers_of_every_kind_have_choices() -> None:
    kinds = {
        "accounts": simulate_week("dai-week", size=0.01),
        "pools": simulate_week("zcash-week", size=0.001),
        "rings": CoinLedger.from_transactions(
            [
                {"txid": "a", "rings": [["x:0", "y:0"]], "outputs": 1},
                {"txid": "b", "rings": [["a:0", "z:0"]], "outputs": 1},
            ]
        ),
    }
    for kind, ledger in kinds.items():
        found = sensitivity(ledger, seconds=60)
        groups = {one.choice.group for one in found.varied if one.summary is not None}
        assert "window" in groups, kind
        assert ("pools" in groups) == (kind == "pools")
        table = found.to_arrow()
        assert table["bits_mean"][0].as_py() == found.base.bits_mean
        sensitivity_table(table)


def test_a_solve_that_takes_too_long_is_stopped_and_says_so() -> None:
    ledger = simulate_week("dai-week", size=0.05)
    rule = Variation("method", "published", {"method": "published"})
    (one,) = sensitivity(ledger, choices=[rule], seconds=1e-9).varied
    assert one.summary is None
    assert one.refused.startswith("stopped after")


def test_bars_are_as_long_as_the_mean_moves() -> None:
    coins, _ = random_coins(3)
    ledger = CoinLedger.from_transactions(coins.records)
    found = sensitivity(ledger)
    ax = plot_sensitivity(found.to_arrow())
    drawn = [bar.get_width() for bar in ax.patches]
    assert drawn == [found.moved(one) for one in found.varied if one.summary is not None]
