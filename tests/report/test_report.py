from __future__ import annotations

import csv
import io
import re
from dataclasses import replace
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pyarrow as pa
import pytest
from rich.console import Console

import coinhaze
from coinhaze.errors import ResourceError, UsageError
from coinhaze.report import provenance, write_scores
from coinhaze.report.figures import plot_bits, plot_bits_against_steps
from coinhaze.report.tables import scores_report
from coinhaze.simulate import simulate_hubs, simulate_town

mpl.use("agg")

HOSTILE = "<img src=x onerror=alert(1)>"


def hostile() -> coinhaze.Scores:
    rows = [(HOSTILE, "=1+1", 5), ("b", "=1+1", 3)]
    return coinhaze.score(coinhaze.AccountLedger.from_transfers(rows))


def test_notebook_views_escape_names_and_stay_small() -> None:
    scores = hostile()
    html = scores._repr_html_()
    assert "<img" not in html
    assert "&lt;img" in html
    big = coinhaze.score(simulate_hubs(people=2000))
    assert len(big._repr_html_()) < 50_000
    origins = coinhaze.origins(big.chain, int(big.nodes[big.order()[0]]))
    assert len(origins._repr_html_()) < 50_000
    assert "<img" not in coinhaze.origins(scores.chain, "=1+1")._repr_html_()


def test_notebook_views_show_what_there_is() -> None:
    rows = [("a", "shop", 5), ("b", "shop", 3), ("shop", "carol", 6), ("dave", "carol", 2)]
    scores = coinhaze.score(coinhaze.AccountLedger.from_transfers(rows), time="temporal")
    graph = scores.chain.graph
    for shown in (scores, coinhaze.origins(scores.chain, "carol"), graph):
        html = shown._repr_html_()
        assert len(html) < 50_000
        assert "<svg" in html
        assert "<script" not in html
        assert not re.search("(src|href)=", html)
    assert "46.8750%" in coinhaze.origins(scores.chain, "carol")._repr_html_()
    assert f"<bdi>{scores.bits.max():.6g}</bdi>" in scores._repr_html_()
    assert f"<bdi>{len(graph.tail)}</bdi>" in graph._repr_html_()
    fifo = coinhaze.origins(coinhaze.AccountLedger.from_transfers(rows), "carol", policy="fifo")
    assert "carol" in fifo._repr_html_()
    nothing = coinhaze.score(coinhaze.AccountLedger.from_transfers([]))
    assert "no scored node" in nothing._repr_html_()
    rings = [{"txid": "t", "rings": [["x:0", "y:0"]], "outputs": 1}]
    hidden = coinhaze.transaction_graph(coinhaze.CoinLedger.from_transactions(rings))
    assert "ring" in hidden._repr_html_()


def test_some_rows_of_scores_are_those_rows() -> None:
    scores = coinhaze.score(simulate_hubs(people=50), renyi=[2.0])
    rows = np.array([4, 0, 7])
    assert scores.take(rows).to_arrow() == scores.to_arrow().take(pa.array(rows))
    half = scores.bits > np.median(scores.bits)
    assert scores.take(half).to_arrow() == scores.to_arrow().filter(pa.array(half))


def test_sources_too_many_to_count_are_left_open() -> None:
    scores = coinhaze.score(simulate_hubs(people=50))
    uncounted = replace(scores, sources=np.full(len(scores), np.nan))
    text = io.StringIO()
    Console(file=text, width=100).print(scores_report(uncounted))
    assert "│       - │" in text.getvalue()


def test_csv_is_harmless_in_a_spreadsheet(tmp_path: Path) -> None:
    scores = hostile()
    write_scores(scores, tmp_path / "scores.csv", provenance(scores))
    with open(tmp_path / "scores.csv", newline="") as file:
        assert next(csv.DictReader(file))["node"] == "'=1+1"


def test_a_failed_write_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    scores = hostile()
    path = tmp_path / "scores.parquet"
    write_scores(scores, path, provenance(scores))
    before = path.read_bytes()
    monkeypatch.setattr("pyarrow.parquet.ParquetWriter.write_table", fail)
    with pytest.raises(ResourceError, match="No space left on device; it is as it was"):
        write_scores(scores, path, provenance(scores))
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["scores.parquet"]


def test_an_unknown_suffix_is_refused(tmp_path: Path) -> None:
    scores = hostile()
    with pytest.raises(UsageError, match=r"\.csv, \.json, \.parquet"):
        write_scores(scores, tmp_path / "scores.txt", provenance(scores))


def test_figures_draw_every_coin_once() -> None:
    for scores in (hostile(), coinhaze.score(simulate_town(transactions=300))):
        axes = plot_bits(scores)
        counted = sum(p.get_height() for p in axes.patches)
        assert counted == len(scores)
        assert axes.get_xlabel() == "untraceability (bits)"
        assert plot_bits_against_steps(scores).get_ylabel() == "untraceability (bits)"
    mpl.pyplot.close("all")


def test_summaries_count_burns_and_nulls_apart() -> None:
    zero = "0x" + "0" * 40
    rows = [("a", "b", 4), ("c", "b", 4), ("b", zero, 2), ("x", "y", 1), ("y", "x", 1)]
    scores = coinhaze.score(coinhaze.AccountLedger.from_transfers(rows), nodes="all")
    summary = scores.summary()
    assert (summary.burns, summary.nulls) == (1, 2)
    assert summary.burns_bits_mean == 1
    assert summary.scored == 3
    assert summary.bits_mean == pytest.approx(1 / 3)
    assert summary.bits_variance == pytest.approx(2 / 9)
    assert np.isnan(scores.degree[scores.sources == 1]).all()
