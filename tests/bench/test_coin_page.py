from __future__ import annotations

import numpy as np
import pytest
from benchmarks.coin_page import main

import coinhaze
from coinhaze import absorbing_chain, transaction_graph
from coinhaze.simulate import simulate_week


def test_a_small_week_s_coin_pages_take_less_than_300_ms(
    capsys: pytest.CaptureFixture[str],
) -> None:
    chain = absorbing_chain(transaction_graph(simulate_week("bitcoin-week", size=0.005)))
    found = main(chain, coinhaze.score(chain, accuracy="preview"), count=40)
    told = capsys.readouterr().out
    assert "made ready by the first question" in told
    for name in ("coin", "hub", "listed", "opened"):
        assert np.quantile(found[name], 0.95) < 300
    assert np.quantile(found["search"], 0.95) < 50
