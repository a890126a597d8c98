"""The shapes scientists expect: rows by name, tables for every library, sparse matrices, HTML."""

from __future__ import annotations

import inspect
import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import coinhaze
from coinhaze import errors

TRANSFERS = [("a", "c", 1), ("b", "c", 3), ("c", "carol", 2), ("b", "d_1", 1)]
LEDGER = coinhaze.AccountLedger.from_transfers(TRANSFERS)
COINS = coinhaze.CoinLedger.from_transactions(
    [
        {
            "txid": "t",
            "inputs": [{"txid": "x", "vout": 0, "value": 5, "address": "xavier"}],
            "outputs": [{"value": 3, "address": "shop"}, {"value": 2}],
        },
        {"txid": "u", "inputs": [{"txid": "t", "vout": 0}], "outputs": [{"value": 3}]},
    ]
)
GRAPH = coinhaze.transaction_graph(LEDGER)
CHAIN = coinhaze.absorbing_chain(GRAPH)
SCORES = coinhaze.score(CHAIN)
ORIGINS = coinhaze.origins(CHAIN, "carol")


def test_every_error_is_exported() -> None:
    found = {
        name
        for name, kind in inspect.getmembers(errors, inspect.isclass)
        if issubclass(kind, coinhaze.CoinhazeError)
    }
    assert found <= set(coinhaze.__all__)
    assert all(getattr(coinhaze, name) is getattr(errors, name) for name in found)


def test_scores_are_found_by_name_and_come_one_by_one() -> None:
    carol = SCORES["carol"]
    assert carol.bits == pytest.approx(-(0.25 * np.log2(0.25) + 0.75 * np.log2(0.75)))
    assert (carol.top_source, carol.top_probability) == ("b", 0.75)
    assert len(list(SCORES)) == len(SCORES)
    rows = SCORES.to_arrow().to_pylist()
    for score, row in zip(SCORES, rows, strict=True):
        for name in ("node", "bits", "bits_low", "steps", "sources", "top_source"):
            assert getattr(score, name) == row[name], name
    with pytest.raises(coinhaze.UnknownName, match=r"a was not scored: .*nodes=\['a'\]"):
        SCORES["a"]
    with pytest.raises(coinhaze.UnknownName, match="nobody"):
        SCORES["nobody"]


@pytest.mark.parametrize("value", [SCORES, ORIGINS, GRAPH, LEDGER, COINS], ids=repr)
def test_tables_are_arrow_streams(value: Any) -> None:
    table = value.to_arrow()
    assert isinstance(table, pa.Table)
    stream = pa.RecordBatchReader.from_stream(value).read_all()
    assert stream.to_pylist() == table.to_pylist()
    assert isinstance(value.notes, tuple)


def test_a_ledger_of_coins_is_a_table_of_coins() -> None:
    rows = {row["coin"]: row for row in COINS.to_arrow().to_pylist()}
    assert set(rows) == {"x:0", "t:0", "t:1", "u:0"}
    assert (rows["t:0"]["value"], rows["t:0"]["spent_by"], rows["t:0"]["address"]) == (
        3,
        "u",
        "shop",
    )
    assert (rows["t:1"]["spent_by"], rows["t:1"]["address"]) == (None, None)


@pytest.mark.parametrize("package", ["polars", "pandas"])
def test_frames_have_the_columns_and_rows_of_the_scores(package: str) -> None:
    frame = getattr(SCORES, f"to_{package}")()
    table = SCORES.to_arrow()
    assert list(frame.columns) == table.column_names
    assert list(frame["bits"]) == table["bits"].to_pylist()


def test_graphs_become_networkx_graphs() -> None:
    graph = GRAPH.to_networkx()
    assert graph.edges["b", "c"]["amount"] == 3
    assert graph.nodes["carol"]["sink"]
    assert graph.number_of_nodes() == len(GRAPH)


@pytest.mark.parametrize(
    ("thing", "package"), [(SCORES, "polars"), (SCORES, "pandas"), (GRAPH, "networkx")], ids=str
)
def test_a_missing_package_is_named(
    thing: object, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)  # imports of it now fail
    with pytest.raises(coinhaze.UsageError, match=f"to_{package} needs {package}: pip install"):
        getattr(thing, f"to_{package}")()


def test_matrices_are_sparse_and_those_of_the_paper() -> None:
    amounts = GRAPH.adjacency()
    node = GRAPH.names.node
    assert amounts[node("b"), node("c")] == 3
    assert amounts.sum() == sum(amount for _, _, amount in TRANSFERS)
    n, outcomes = len(GRAPH), len(CHAIN.outcomes)
    p = CHAIN.P
    assert p.shape == (n + outcomes, n + outcomes)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_array_equal(p[:n, :n].toarray(), CHAIN.Q.toarray())
    np.testing.assert_array_equal(p[:n, n:].toarray(), CHAIN.R.toarray())
    np.testing.assert_array_equal(p[n:, n:].toarray(), np.eye(outcomes))
    absorbed = np.linalg.matrix_power(p.toarray(), 64)[node("carol"), n:]
    assert sorted(absorbed.tolist())[-2:] == [0.25, 0.75]


@pytest.mark.parametrize(
    "value", [LEDGER, COINS, GRAPH, CHAIN, SCORES.summary(), SCORES, ORIGINS], ids=repr
)
def test_values_show_themselves_in_a_line_and_in_a_notebook(value: Any) -> None:
    assert len(repr(value)) < 300
    assert "\n" not in repr(value)
    assert value._repr_html_().startswith("<div")


def test_scores_are_set_in_latex_and_drawn() -> None:
    text = SCORES.to_latex(label="tab:mine")
    assert r"\label{tab:mine}" in text
    assert r"d\_1" in text
    assert r"carol & 0.8113" in text
    pytest.importorskip("matplotlib")
    ax = SCORES.plot()
    (line,) = ax.lines
    assert line.get_xdata().tolist() == [0.0, *sorted({score.bits for score in SCORES})]
    assert line.get_ydata()[-1] == 1.0


@pytest.mark.parametrize(
    "package", ["compare", "explore", "growth", "lab", "robustness", "screening", "wallet"]
)
def test_applications_are_public(package: str) -> None:
    found = getattr(coinhaze, package)
    assert found.__all__
    for name in found.__all__:
        assert getattr(found, name).__doc__, name
