from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("matplotlib")

from coinhaze.lab.report import (
    plot_against,
    plot_gain_for_fees,
    plot_gains,
    plot_technologies,
    save_scan,
    save_technologies,
)
from coinhaze.report.figures import drawing, pyplot

WORDS = {"title": "t", "says": "s", "measured": "m"}


def row(name: str = "pool", **given: Any) -> dict[str, Any]:
    gained = given.get("gained_bits", 2.0)
    usual = {
        "technology": name, "observer": "amounts", "parameter": "share", "value": 0.5,
        "gained_bits": gained, "gained_low": gained - 0.5, "gained_high": gained + 0.5,
        "others_gained_bits": None,
        "others_gained_low": None, "others_gained_high": None, "fees": 0.001, "transactions": 0.5,
        "waiting": 3.0,
    }  # fmt: skip
    return usual | given


def table_of(rows: list[dict[str, Any]]) -> pa.Table:
    words = ("technology", "observer", "parameter")
    kinds = {k: pa.string() if k in words else pa.float64() for k in rows[0]}
    return pa.Table.from_pylist(rows, schema=pa.schema(list(kinds.items())))


def sweep() -> pa.Table:
    shares = (0.0, 0.1, 0.3)
    return table_of(
        [
            row(value=s, gained_bits=s * 4, gained_low=s * 3, gained_high=s * 5, fees=s / 100,
                others_gained_bits=s, others_gained_low=s / 2, others_gained_high=s * 2)
            for s in shares
        ]
    )  # fmt: skip


def crowded() -> pa.Table:
    fees = (0.0, 0.0, 0.0001, 0.0001, 0.00011, 0.002, 0.002, 0.0021, 0.007, 0.012, 0.012)
    return table_of(
        [
            row(f"technology-{k}", fees=fee, gained_bits=6 + 0.1 * (k % 3), gained_low=5.9,
                gained_high=6.4 + 0.1 * (k % 3))
            for k, fee in enumerate(fees)
        ]
        + [row("none", fees=0.0, gained_bits=0.0, gained_low=0.0, gained_high=0.0)]
    )  # fmt: skip


def test_bands_are_drawn_where_the_table_has_them() -> None:
    ax = plot_gains(sweep())
    bands = [c.get_datalim(ax.transData) for c in ax.collections]
    assert [(b.x0, b.x1, b.y0, b.y1) for b in bands] == [
        pytest.approx((0.0, 0.3, 0.0, 1.5)),
        pytest.approx((0.0, 0.3, 0.0, 0.6)),
    ]
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["adopters", "others"]
    pyplot().close(ax.figure)


def test_where_everybody_adopts_only_adopters_are_drawn() -> None:
    ax = plot_gains(table_of([row(value=v) for v in (1.0, 16.0, 128.0)]))
    assert len(ax.collections) == 1
    assert ax.get_legend() is None
    assert ax.get_xscale() == "log"
    pyplot().close(ax.figure)


def test_costs_are_reported_in_percent_and_hours() -> None:
    for cost, maximum in (("fees", 0.3), ("waiting", 3.0)):
        ax = plot_against(sweep(), cost)
        assert ax.lines[0].get_xdata().max() == pytest.approx(maximum)
        pyplot().close(ax.figure)


def test_names_beside_marks_hide_neither_each_other_nor_the_frame() -> None:
    with drawing() as plt:
        figure, ax = plt.subplots(figsize=(6.8, 3.0), layout="constrained")
        plot_gain_for_fees(crowded(), ax=ax)
        figure.canvas.draw()
        renderer = figure.canvas.get_renderer()
        boxes = [text.get_window_extent(renderer) for text in ax.texts]
    assert len(boxes) == 12
    for one, two in combinations(boxes, 2):
        assert not one.overlaps(two)
    for box in boxes:
        assert box.x0 > ax.bbox.x0
        assert box.x1 < figure.bbox.x1
    pyplot().close(figure)


def test_the_sharpest_observer_s_gain_stands_against_fees() -> None:
    rows = [row("join", observer="amounts"), row("join", observer="told", gained_bits=1.0)]
    ax = plot_gain_for_fees(table_of(rows))
    assert [t.get_text() for t in ax.texts] == ["join"]
    assert ax.lines[-1].get_ydata().tolist() == [1.0]
    pyplot().close(ax.figure)


def test_technologies_stand_in_order_of_what_they_gain() -> None:
    with drawing() as plt:
        figure, axes = plt.subplots(1, 4, sharey=True)
        rows = [row("a", gained_bits=1.0), row("b", gained_bits=-1.0), row("c", gained_bits=0.5)]
        plot_technologies(table_of(rows), axes)
    assert [t.get_text() for t in axes[0].get_yticklabels()] == ["b", "c", "a"]
    pyplot().close(figure)


def test_costs_that_are_none_have_no_panel(tmp_path: Path) -> None:
    free = table_of([row(value=v, fees=0.0, transactions=0.0, waiting=0.0) for v in (0.0, 1.0)])
    sizes = []
    for name, table in (("free", free), ("all", sweep())):
        figure = save_scan(table, tmp_path, name, **WORDS)
        assert [p.suffix for p in figure.paths] == [".png", ".svg", ".pdf"]
        sizes.append(figure.svg.count("axes_"))
    assert sizes[0] < sizes[1]


@pytest.mark.parametrize("rows", [1, 3, 30])
def test_few_and_many_technologies_are_drawn(rows: int, tmp_path: Path) -> None:
    table = table_of([row(f"t{k}", gained_bits=float(k), fees=k / 1000) for k in range(rows)])
    assert save_technologies(table, tmp_path, "x", **WORDS).paths[0].stat().st_size > 5000
