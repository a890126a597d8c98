"""Transfers of one token in a history: the scores of `coinhaze.score` in the order of time."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import coinhaze
from coinhaze import AccountLedger, CoinLedger, History, LedgerError, UnknownName
from coinhaze.graph.graph import Kind
from coinhaze.simulate import simulate_week
from properties.comparison import profile

ZERO = "0x" + "0" * 40
LARGEST = 2**63 - 1


def compare(ledger: AccountLedger, path: Path, *, piece_rows: int = 1 << 20) -> History:
    """Hold a history against `coinhaze.score`: bits, steps, names, balances, intervals."""
    history = History.index(path, ledger, piece_rows=piece_rows)
    exact = history.score(accuracy="exact")
    drawn = history.score(draws=64, seed=5)
    table = exact.to_arrow().to_pydict()
    scores = coinhaze.score(ledger, time="temporal")
    graph = scores.chain.graph
    held = graph.kinds[scores.nodes] != Kind.burn
    nodes = scores.nodes[held]
    names = graph.names.of(nodes).to_pylist()
    assert sorted(table["node"]) == sorted(names)
    at = np.array([table["node"].index(name) for name in names], dtype=np.int64)
    assert graph.closing is not None
    assert [table["balance"][k] for k in at] == graph.closing.take(nodes).ints()
    np.testing.assert_allclose(exact.bits[at], scores.bits[held], rtol=0, atol=1e-9)
    np.testing.assert_allclose(exact.steps[at], scores.steps[held], rtol=1e-9)
    assert np.all(drawn.bits_low <= exact.bits_high)
    assert np.all(drawn.bits_high >= exact.bits_low)
    return history


ACCOUNTS = st.sampled_from(["a", "b", "c", "d", "e", ZERO])
TRANSFERS = st.lists(
    st.tuples(ACCOUNTS, ACCOUNTS, st.sampled_from([0, 1, 2, 3, 5, 8, 10**12])), max_size=30
)


@profile(150)
@given(TRANSFERS, st.sampled_from([2, 5, 1 << 20]))
def test_random_transfers(transfers: list[tuple[str, str, int]], piece_rows: int) -> None:
    with TemporaryDirectory() as home:
        ledger = AccountLedger.from_transfers(transfers)
        compare(ledger, Path(home) / "x.history", piece_rows=piece_rows)


def test_a_simulated_week(tmp_path: Path) -> None:
    ledger = simulate_week("usdc-week", size=0.002)
    assert isinstance(ledger, AccountLedger)
    history = compare(ledger, tmp_path / "x.history", piece_rows=200)
    assert len(history.manifest.pieces) > 1
    graph = coinhaze.transaction_graph(ledger, time="temporal")
    names = history.scores().to_arrow()["node"].to_pylist()
    for name in names[:: len(names) // 8]:
        expected = coinhaze.origins(graph, name).sources()
        wanted = dict(
            zip(expected["source"].to_pylist(), expected["probability"].to_pylist(), strict=True)
        )
        found = history.origins(name)
        assert {o.source: o.probability for o in found.origins} == pytest.approx(wanted, abs=1e-12)
        assert found.balance is not None


TRADE = [(ZERO, "a", 5), ("x", "a", 7), ("a", "b", 3), ("b", "c", 3), ("c", "a", 1), ("a", ZERO, 2)]


def test_sources_are_mints_and_openings(tmp_path: Path) -> None:
    history = compare(AccountLedger.from_transfers(TRADE), tmp_path / "x.history")
    found = history.origins("c")
    assert {o.source: o.probability for o in found.origins} == pytest.approx(
        {"mint:0": 5 / 12, "x:0": 7 / 12}
    )
    assert found.balance == 2
    assert history.origins("c:1").origins == found.origins
    assert history.origins("b:1").balance is None  # it has passed all of it on
    with pytest.raises(UnknownName, match="no account 'z'"):
        history.origins("z")


def timed(transfers: list[tuple[str, str, int]]) -> AccountLedger:
    senders, receivers, amounts = zip(*transfers, strict=True)
    times = pa.array(np.arange(len(transfers)) * 86_400 * 200, pa.int64()).cast(pa.timestamp("s"))
    return AccountLedger.from_columns(senders, receivers, amounts, times=times)


def test_a_longer_ledger_goes_on_where_a_shorter_one_ended(tmp_path: Path) -> None:
    History.index(tmp_path / "a", timed(TRADE[:4]), piece_rows=2)
    grown = History.index(tmp_path / "a", timed(TRADE), piece_rows=2)
    whole = compare(timed(TRADE), tmp_path / "b")
    assert grown.manifest.tip == whole.manifest.tip
    assert grown.score(accuracy="exact").to_arrow() == whole.score(accuracy="exact").to_arrow()
    assert [row["group"] for row in whole.table("year").to_pylist()] == ["1972"]


@pytest.mark.parametrize(
    "later",
    [
        [("c", "b", 9)],  # what c holds must have been more from the start
        [("b", "d", 1)],  # b had passed on all it had
    ],
)
def test_a_later_transfer_that_changes_openings_is_refused(
    tmp_path: Path, later: list[tuple[str, str, int]]
) -> None:
    before = History.index(tmp_path / "a", timed(TRADE))
    with pytest.raises(LedgerError, match="had more from the start"):
        History.index(tmp_path / "a", timed(TRADE + later))
    assert History.open(tmp_path / "a").manifest == before.manifest


def test_a_longer_ledger_shows_that_less_than_everything_was_burnt(tmp_path: Path) -> None:
    """The same transactions with other amounts behind them, all of one name and number."""
    shorter = [("c", ZERO, 5), ("a", "b", 7), ("b", "a", 2)]
    History.index(tmp_path / "a", timed(shorter))
    with pytest.raises(LedgerError, match="had more from the start"):
        History.index(tmp_path / "a", timed([*shorter, ("c", "b", 1)]))


def test_a_longer_ledger_with_an_earlier_transfer_changed_is_refused(tmp_path: Path) -> None:
    shorter = [("c", "a", 50), ("c", "b", 60), ("a", "b", 7), ("b", "a", 2)]
    History.index(tmp_path / "a", timed(shorter))
    changed = [("c", "a", 50), ("c", "b", 61), ("a", "b", 7), ("b", "a", 2), ("a", "d", 1)]
    with pytest.raises(LedgerError, match="other transfers are in it"):
        History.index(tmp_path / "a", timed(changed))


@pytest.mark.parametrize(
    ("transfers", "words"),
    [
        ([("a", "b", 2**63)], "above 2\\^63 - 1"),
        ([("a", "b", LARGEST), ("c", "b", 1)], "more than 2\\^63 - 1"),
        ([("a", "b", LARGEST), ("a", "c", LARGEST), ("a", "d", LARGEST)], "more than 2\\^63 - 1"),
        ([("c", "a", 9), ("a", "b", LARGEST), ("c", "a", LARGEST)], "more than 2\\^63 - 1"),
    ],
)
def test_more_than_a_history_holds_is_refused(
    tmp_path: Path, transfers: list[tuple[str, str, int]], words: str
) -> None:
    with pytest.raises(LedgerError, match=words):
        History.index(tmp_path / "a", AccountLedger.from_transfers(transfers))


def test_transfers_with_fees_are_refused(tmp_path: Path) -> None:
    ledger = AccountLedger.from_columns(["a", "b"], ["b", "c"], [5, 3], fees=[0, 1])
    with pytest.raises(LedgerError, match="transfers with fees"):
        History.index(tmp_path / "a", ledger)


def test_coins_and_accounts_do_not_mix(tmp_path: Path) -> None:
    coins = CoinLedger.from_transactions(
        [{"txid": "a", "inputs": [], "outputs": [{"value": 5}], "height": 3, "time": 3}],
        complete=True,
    )
    History.index(tmp_path / "a", AccountLedger.from_transfers(TRADE))
    with pytest.raises(LedgerError, match="a ledger of coins: the history is of accounts"):
        History.index(tmp_path / "a", coins)
