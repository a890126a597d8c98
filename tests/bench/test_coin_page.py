from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from benchmarks.coin_page import main
from benchmarks.house import PAYMENTS, coin_page, functions_run

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


def test_a_coin_page_runs_no_more_functions_than_it_did(tmp_path: Path) -> None:
    """`python -m benchmarks.house` prints the number; what raises it should be worth it."""
    path = tmp_path / "payments.csv"
    path.write_text(PAYMENTS)
    called, _ = functions_run(lambda: coin_page(path))
    assert {"coin_page", "answer_coin"} & {name for _, name, _ in called}
    assert len(called) <= 1_210
