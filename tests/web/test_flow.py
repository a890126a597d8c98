"""The drawn flow: what is conserved, what is folded, and that no words lie on each other."""

from __future__ import annotations

import re
import time
from collections import defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coinhaze.explore.models import (
    Flow,
    FlowBand,
    FlowColumn,
    FlowNode,
)
from coinhaze.report.drawing.layout import Canvas, Layout, lay_out
from coinhaze.report.drawing.svg import fit_text, text_width
from coinhaze.web.drawing.flow import (
    Picture,
    draw_flow,
    draw_narrow,
    draw_wide,
    thread_ribbons,
    thread_shares,
)
from coinhaze.web.drawing.flow_columns import MAX_COLUMNS, fold_flow, order_by_time
from coinhaze.web.pages.coin import flow_table, legend
from web.drawn import crowded_flow, example_flow, flow_of, one_origin_flow, straight_flow
from web.made import HOSTILE

ROOM = Canvas(352.0, 7.0, 16.0)
FLOWS = {
    "example": example_flow(),
    "crowd": crowded_flow(),
    "one": one_origin_flow(),
    "time": order_by_time(example_flow(by="time")),
    "narrow": fold_flow(crowded_flow(), per_column=4),
    "straight": straight_flow([("mined", "a", 0.5), ("listed", "b", 0.3), ("other", "c", 0.2)]),
}
every_flow = pytest.mark.parametrize("flow", FLOWS.values(), ids=FLOWS.keys())


@st.composite
def flows(draw: st.DrawFn) -> Flow:
    """Give a flow of any shape: each box passes all it holds on to newer columns."""
    depth = draw(st.integers(1, 5))
    columns: list[list[str]] = [["c"]]
    share: dict[str, float] = {"c": 1.0}
    bands: dict[tuple[str, str], float] = defaultdict(float)
    due = {"c": 1.0}  # what is still to be told where it came from
    for column in range(1, depth + 1):
        here = [f"n{column}x{k}" for k in range(draw(st.integers(1, 6)))]
        columns.append(here)
        for newer, rest in list(due.items()):
            # All of it at the last column, else all or half of it now, the rest from further back.
            part = rest if column == depth or draw(st.booleans()) else rest / 2
            weights = [draw(st.integers(0, 4)) for _ in here]
            total = sum(weights) or 1
            weights = weights if sum(weights) else [1, *weights[1:]]
            for name, weight in zip(here, weights, strict=True):
                if weight:
                    bands[name, newer] += part * weight / total
            due[newer] = rest - part
        for name in here:
            share[name] = sum(s for (a, _), s in bands.items() if a == name)
            if share[name] > 0:
                due[name] = share[name]
        due = {name: rest for name, rest in due.items() if rest > 1e-12}
    nodes = [
        FlowNode(id=n, column=c, kind="transaction", name=n, words=n, share=min(share[n], 1.0))
        for c, names in enumerate(columns)
        for n in names
        if share[n] > 0
    ]
    drawn = [FlowBand(before=a, after=b, share=min(s, 1.0)) for (a, b), s in bands.items()]
    heads = [FlowColumn(title=str(c), hop=c, reached=1.0) for c in range(len(columns))]
    return flow_of(heads, nodes, drawn)


def sums_by_column(flow: Flow) -> list[float]:
    """Give for each column but the coin's the money that crosses into it, or began nearer."""
    column = {node.id: node.column for node in flow.nodes}
    reached = {band.after for band in flow.bands}
    return [
        sum(b.share for b in flow.bands if column[b.before] >= c > column[b.after])
        + sum(n.share for n in flow.nodes if n.id not in reached and 0 < n.column < c)
        for c in range(1, max(column.values()) + 1)
    ]


def overlaps(flow: Flow, layout: Layout, minimum: float) -> list[tuple[str, str]]:
    """Find boxes of one column whose room, words included, is shared."""
    found = []
    for a in flow.nodes:
        for b in flow.nodes:
            if a.id < b.id and a.column == b.column:
                one, two = layout.boxes[a.id], layout.boxes[b.id]
                gap = abs((one.at + one.width / 2) - (two.at + two.width / 2))
                if gap < (max(one.width, minimum) + max(two.width, minimum)) / 2 - 1e-6:
                    found.append((a.id, b.id))
    return found


@every_flow
def test_every_column_carries_all_the_money(flow: Flow) -> None:
    assert sums_by_column(flow) == pytest.approx([1.0] * len(sums_by_column(flow)), abs=1e-9)


@every_flow
def test_no_box_or_word_of_a_column_lies_on_another(flow: Flow) -> None:
    assert overlaps(flow, lay_out(flow, ROOM), ROOM.box) == []


@settings(max_examples=60, deadline=None)
@given(flows())
def test_any_flow_is_laid_out_true_to_its_shares(flow: Flow) -> None:
    layout = lay_out(flow, ROOM)
    assert overlaps(flow, layout, ROOM.box) == []
    for ribbon in layout.ribbons:
        band = flow.bands[ribbon.band]
        assert ribbon.width == pytest.approx(band.share * layout.scale)
        older, newer = layout.boxes[band.before], layout.boxes[band.after]
        for end, box in ((ribbon.stops[0], older), (ribbon.stops[-1], newer)):
            assert box.at - 1e-6 <= end.at
            assert end.at + ribbon.width <= box.at + box.width + 1e-6
    for box in layout.boxes.values():
        assert box.at >= -1e-6
        assert box.at + box.width <= layout.across + 1e-6


@settings(max_examples=60, deadline=None)
@given(flows())
def test_no_band_runs_under_a_box(flow: Flow) -> None:
    layout = lay_out(flow, ROOM)
    for ribbon in layout.ribbons:
        for lane in ribbon.stops[1:-1]:
            for node in flow.nodes:
                box = layout.boxes[node.id]
                if node.column == lane.column:
                    apart = lane.at + lane.width <= box.at + 1e-6
                    assert apart or box.at + box.width <= lane.at + 1e-6


@settings(max_examples=40, deadline=None)
@given(flows())
def test_threads_bring_every_origin_whole_to_the_coin(flow: Flow) -> None:
    reached = {band.after for band in flow.bands}
    into_coin = [b for b, band in enumerate(flow.bands) if band.after == "c"]
    for node in flow.nodes:
        if node.id not in reached and node.column > 0:
            carried = thread_shares(flow, node.id)
            lost = 5e-4 * len(into_coin)  # threads too thin to be drawn
            arrived = sum(carried.get(b, 0.0) for b in into_coin)
            assert node.share - lost <= arrived + 1e-9
            assert arrived <= node.share + 1e-9


def test_a_thread_stays_inside_its_bands() -> None:
    flow = example_flow()
    layout = lay_out(flow, ROOM)
    by_band = {r.band: r for r in layout.ribbons}
    listed = {b: band.listed for b, band in enumerate(flow.bands) if band.listed}
    for thread in thread_ribbons(flow, layout, listed):
        for inner, outer in zip(thread.stops, by_band[thread.band].stops, strict=True):
            assert outer.at - 1e-6 <= inner.at
            assert inner.at + inner.width <= outer.at + outer.width + 1e-6


@settings(max_examples=60, deadline=None)
@given(flows())
def test_folding_keeps_all_money_and_the_cap(flow: Flow) -> None:
    folded = fold_flow(flow, per_column=4)
    assert sums_by_column(folded) == pytest.approx(sums_by_column(flow), abs=1e-9)
    reached = {band.after for band in folded.bands}
    for column in range(1, len(flow.columns)):
        inner = [n for n in folded.nodes if n.column == column and n.id in reached]
        assert len(inner) <= 4


def test_a_narrow_drawing_of_100000_origins_has_26_boxes() -> None:
    flow = crowded_flow()
    assert len(flow.nodes) <= 40
    assert len(fold_flow(flow, per_column=4).nodes) <= 26
    drawn = draw_narrow(fold_flow(flow, per_column=4), Picture())
    assert drawn.count('class="nd ') <= 26
    assert draw_wide(flow, Picture()).count('class="nd ') == len(flow.nodes)


def test_no_band_leads_backwards_in_time() -> None:
    flow = order_by_time(example_flow(by="time"))
    column = {node.id: node.column for node in flow.nodes}
    assert all(column[band.before] > column[band.after] for band in flow.bands)
    assert len(flow.columns) <= MAX_COLUMNS
    by_column = sorted(flow.nodes, key=lambda n: n.column)
    newest = [n.time for n in by_column if n.column and n.time is not None]
    assert newest == sorted(newest, reverse=True)


def test_one_origin_draws_one_band() -> None:
    drawn = draw_wide(one_origin_flow(), Picture())
    assert drawn.count('class="ln ') == 1
    assert "100 %" in drawn


def test_repeats_are_tagged_and_tied() -> None:
    drawn = draw_wide(example_flow(cycles=True), Picture())
    assert drawn.count('data-t="p1"') == 2
    assert "↻ also at hop" in drawn


def test_poison_draws_no_percent() -> None:
    drawn = draw_flow(straight_flow([("listed", "1HxF", 1.0)]), Picture(shares=False))
    assert not re.search(r"\d %", drawn)
    assert "%" not in flow_table(straight_flow([("listed", "1HxF", 1.0)]), shares=False)


@every_flow
def test_the_table_has_a_row_for_every_band(flow: Flow) -> None:
    assert flow_table(flow).count("<tr>") == len(flow.bands) + 1
    assert draw_wide(flow, Picture()).count('class="ln ') == len(flow.bands)


def test_hostile_names_stay_text_in_the_drawing() -> None:
    flow = straight_flow([("service", HOSTILE, 1.0)])
    for drawn in (draw_flow(flow, Picture()), flow_table(flow), legend(flow)):
        assert "<img" not in drawn


def test_the_legend_names_the_thread_of_a_list_whose_box_is_folded() -> None:
    plain = straight_flow([("earlier", "older", 0.6), ("other", "others", 0.4)])
    assert "on a list" not in legend(plain)
    bands = tuple(band.model_copy(update={"listed": band.share / 2}) for band in plain.bands)
    assert "on a list" in legend(plain.model_copy(update={"bands": bands}))


def test_the_legend_names_kinds_that_are_there() -> None:
    assert "CoinJoin" in legend(example_flow())
    assert "CoinJoin" not in legend(one_origin_flow())


@every_flow
def test_a_flow_has_one_tab_stop(flow: Flow) -> None:
    assert draw_wide(flow, Picture()).count('tabindex="0"') == 1


def test_the_same_flow_is_drawn_the_same() -> None:
    assert draw_flow(crowded_flow(), Picture()) == draw_flow(crowded_flow(), Picture())


def test_an_origin_keeps_its_own_name_where_what_it_came_through_does_not_fit() -> None:
    words = "alice, through somebody with a very long name on the list"
    drawn = draw_wide(straight_flow([("listed", words, 0.6), ("mined", "b", 0.4)]), Picture())
    assert re.findall(r'class="lb halo"[^>]*>([^<]*) <tspan', drawn)[0].strip() == "⚑ alice"


def slow_fit(text: str, width: float, size: float) -> str:
    """Shorten a letter at a time."""
    if text_width(text, size) <= width:
        return text
    for kept in range(len(text) - 1, 1, -1):
        tail = min(4, kept // 2)
        short = f"{text[: kept - tail].rstrip()}…{text[len(text) - tail :]}"
        if text_width(short, size) <= width:
            return short
    return ""


@given(st.text("i w.Wfé漢", max_size=60), st.floats(-5, 300), st.sampled_from([10.0, 12.5]))
def test_text_is_shortened_as_a_letter_at_a_time(text: str, width: float, size: float) -> None:
    assert fit_text(text, width, size) == slow_fit(text, width, size)


LONG = {"word": "w" * 100_000, "words": "ab " * 33_333, "blanks": "a" + " " * 99_995 + "bcde"}


@pytest.mark.parametrize("name", LONG.values(), ids=LONG.keys())
def test_a_name_of_100000_letters_takes_no_time(name: str) -> None:
    begun = time.process_time()
    assert text_width(fit_text(name, 150, 12.5), 12.5) <= 150
    assert time.process_time() - begun < 0.05


@pytest.mark.parametrize("label", [False, True], ids=["name", "label"])
@pytest.mark.parametrize("name", LONG.values(), ids=LONG.keys())
def test_long_names_are_drawn_at_once(name: str, label: bool) -> None:
    flow = straight_flow([("mined", name, 0.5), ("listed", name, 0.5)])
    if label:
        nodes = tuple(node.model_copy(update={"label": name}) for node in flow.nodes)
        flow = flow.model_copy(update={"nodes": nodes})
    begun = time.process_time()
    draw_flow(flow, Picture())
    assert time.process_time() - begun < 0.5
