"""Origins walked back over the tape, places among unspent coins, and tables of them."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

import coinhaze
from coinhaze import CoinLedger, History, UnknownName
from coinhaze.errors import InputError, UsageError
from coinhaze.history.scores.table import history_table
from coinhaze.simulate import simulate_week
from coinhaze.simulate.history import bitcoin_history
from history.test_tape import pool


@pytest.fixture
def week(tmp_path: Path) -> tuple[CoinLedger, History]:
    ledger = simulate_week("bitcoin-week", size=0.004)
    assert isinstance(ledger, CoinLedger)
    return ledger, History.index(tmp_path / "x.history", ledger, piece_rows=1000)


def test_origins_are_those_of_the_solver(week: tuple[CoinLedger, History]) -> None:
    ledger, history = week
    assert len(history.manifest.pieces) > 1
    scores = history.score(accuracy="exact")
    names = scores.to_arrow()["node"].to_pylist()
    order = np.argsort(scores.bits)
    graph = coinhaze.transaction_graph(ledger)
    for k in order[:: len(order) // 12].tolist():
        ours = history.origins(names[k])
        theirs = coinhaze.origins(graph, names[k])
        expected = theirs.sources()
        wanted = dict(
            zip(expected["source"].to_pylist(), expected["probability"].to_pylist(), strict=True)
        )
        found = {o.source: o.probability for o in ours.origins}
        assert found == pytest.approx(wanted, abs=1e-12)
        assert ours.bits == pytest.approx(scores.bits[k], abs=1e-9)
        assert ours.bits_low <= scores.bits_high[k]
        assert ours.bits_high >= scores.bits_low[k]
        assert ours.steps == pytest.approx(scores.steps[k])
        assert ours.rank == int((scores.bits > scores.bits[k]).sum()) + 1
        assert ours.unspent == len(scores)


def test_origins_of_a_deep_past_are_exact(tmp_path: Path) -> None:
    history = History.index_blocks(tmp_path / "x.history", bitcoin_history(60), piece_rows=3000)
    assert len(history.manifest.pieces) > 2
    scores = history.score(accuracy="exact")
    names = scores.to_arrow()["node"].to_pylist()
    for k in np.argsort(scores.bits)[:: len(names) // 40].tolist():
        found = history.origins(names[k])
        assert found.bits == pytest.approx(scores.bits[k], abs=1e-9)
        assert found.bits_low <= scores.bits_high[k]
        assert found.bits_high >= scores.bits_low[k]
        assert found.bits_high - found.bits_low < 1e-9
        assert sum(o.probability for o in found.origins) == pytest.approx(1.0, abs=1e-12)
        assert len({o.source for o in found.origins}) == len(found.origins) <= found.rows


def test_a_coin_without_scores_has_no_place(tmp_path: Path) -> None:
    ledger = CoinLedger.from_transactions(pool(400), complete=True)
    history = History.index(tmp_path / "x.history", ledger, piece_rows=100)
    found = history.origins("p399:0")
    assert (found.rank, found.unspent, found.balance) == (None, 1, 40_000)
    assert found.bits == pytest.approx(np.log2(400))
    assert history.origins("p9:0").bits == pytest.approx(np.log2(10))  # spent long ago
    assert history.origins("p9:0").balance is None


def test_names_that_are_not_there_are_refused(week: tuple[CoinLedger, History]) -> None:
    _, history = week
    for name in ("nobody:0", "00" * 32 + ":0", "00" * 32, "x", ":", "zz" * 32 + ":0"):
        with pytest.raises(UnknownName, match="name it txid:vout"):
            history.origins(name)


def test_a_table_groups_every_coin_once(week: tuple[CoinLedger, History]) -> None:
    _, history = week
    with pytest.raises(InputError, match="is not scored"):
        history.table()
    scores = history.score(accuracy="exact")
    for group in ("year", "month", "height", "value", "age"):
        table = history_table(scores, group)
        coins, value = table["coins"].to_numpy(), table["value"].to_numpy()
        assert coins.sum() == len(scores)
        assert value.sum() == scores.coins.value.sum()
        mean = (table["bits_mean"].to_numpy() * coins).sum() / coins.sum()
        assert mean == pytest.approx(scores.bits.mean())
        by_value = (table["bits_by_value"].to_numpy() * value).sum() / value.sum()
        assert by_value == pytest.approx((scores.bits * scores.coins.value).sum() / value.sum())
        certain = (table["certain"].to_numpy() * coins).sum()
        assert certain == pytest.approx((scores.bits == 0).sum())
    with pytest.raises(UsageError, match="group by year, month, height, value, age"):
        history_table(scores, "colour")  # type: ignore[arg-type]


def test_months_are_those_of_the_calendar(tmp_path: Path) -> None:
    history = History.index_blocks(tmp_path / "x.history", bitcoin_history(300))
    scores = history.score(draws=64, seed=1)
    _, times = scores.placed
    months = [f"{datetime.fromtimestamp(t, UTC):%Y-%m}" for t in times.tolist()]
    table = history.table("month")
    found = dict(zip(table["group"].to_pylist(), table["coins"].to_pylist(), strict=True))
    assert found == Counter(months)
    assert list(found) == sorted(found)
    assert len(found) > 100


def test_what_a_source_does_not_tell_cannot_be_grouped_by(tmp_path: Path) -> None:
    bare = [{k: v for k, v in t.items() if k != "height"} for t in pool(5)]
    history = History.index(tmp_path / "x.history", CoinLedger.from_transactions(bare))
    history.score(seed=1)
    with pytest.raises(InputError, match="give no times"):
        history.table("year")
    with pytest.raises(InputError, match="give no heights"):
        history.table("height")
    assert history.table("value")["coins"].to_pylist() == [1]
    assert history.scores().to_arrow()["height"].to_pylist() == [None]
