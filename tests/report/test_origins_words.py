"""Origins told as text, JSON, Graphviz and a page: valid, escaped, small, and adding up."""

from __future__ import annotations

import itertools
import json
import re
import xml.etree.ElementTree as ET

import pytest

import coinhaze
from coinhaze.errors import UsageError
from coinhaze.report.drawing.flow import LINE, ROOM, Layers, sankey
from coinhaze.report.drawing.layout import lay_out
from coinhaze.report.origins import OriginsReport, explain, origins_dot, origins_json, origins_page
from coinhaze.report.tables import scores_report
from coinhaze.report.terminal import written
from coinhaze.simulate import simulate_hubs

HOSTILE = '<script>alert("1")</script> \\N "&'
SVG = "{http://www.w3.org/2000/svg}"


def hostile() -> OriginsReport:
    rows = [(HOSTILE, "shop", 3), ("b", "shop", 1), ("shop", "carol", 4)]
    ledger = coinhaze.AccountLedger.from_transfers(rows)
    return explain(ledger, "carol", labels={"b": "<i>bank</i>"})


def busy() -> OriginsReport:
    ledger = simulate_hubs(people=2000)
    scores = coinhaze.score(ledger)
    name = scores.chain.graph.names.of(scores.nodes[scores.order()[:1]])[0].as_py()
    return explain(ledger, name)


def layers_of(told: OriginsReport) -> Layers:
    assert told.layers is not None
    return told.layers


@pytest.mark.parametrize("make", [hostile, busy], ids=["hostile", "busy"])
def test_folded_hops_lose_nothing(make: object) -> None:
    assert callable(make)
    layers = layers_of(make())
    absorbed = 0.0
    for hop, boxes in enumerate(layers.boxes):
        reached = sum(box.share for box in boxes)
        assert reached == pytest.approx(1 - absorbed, abs=1e-12)
        absorbed += sum(box.ended for box in boxes)
        for box in boxes:
            came = sum(b.share for b in layers.bands if b.after == box.id)
            if hop + 1 < len(layers.boxes):
                assert came == pytest.approx(box.share - box.ended, abs=1e-12)
            left = sum(b.share for b in layers.bands if b.before == box.id)
            if hop:
                assert left == pytest.approx(box.share, abs=1e-12)
    assert layers.earlier == pytest.approx(1 - absorbed, abs=1e-12)


def test_the_bucket_counts_what_is_not_shown() -> None:
    rows = [(f"a{k}", "shop", k + 1) for k in range(20)] + [("shop", "carol", 210)]
    told = explain(coinhaze.AccountLedger.from_transfers(rows), "carol", limit=5)
    last = layers_of(told).boxes[2]
    assert [box.name for box in last[:6]] == ["a19", "a18", "a17", "a16", "a15", "a14"]
    assert last[6].folded
    assert last[6].nodes == 14
    assert last[6].share == pytest.approx(105 / 210)
    assert last[6].words() == "other (14, 50.00%)"
    count, share = told.other()
    assert count == 15
    assert share == pytest.approx(120 / 210)


def test_nodes_of_one_label_are_one_box() -> None:
    rows = [("a", "shop", 1), ("b", "shop", 2), ("c", "shop", 1), ("shop", "carol", 4)]
    ledger = coinhaze.AccountLedger.from_transfers(rows)
    told = explain(ledger, "carol", labels={"a": "bank", "b": "bank", "shop": "kiosk"})
    boxes = layers_of(told).boxes
    assert [(box.label, box.nodes, box.share) for box in boxes[2]] == [
        ("bank", 2, 0.75), (None, 1, 0.25),
    ]  # fmt: skip
    assert boxes[1][0].words() == "kiosk 100.00%"
    assert told.by_label() == [("bank", 2, 0.75)]


def test_a_coin_has_the_label_of_its_address_and_a_mint_its_owners() -> None:
    ledger = coinhaze.CoinLedger.from_transactions([
        {"txid": "m", "outputs": [{"value": 5, "address": "pool"}]},
        {"txid": "t", "inputs": [{"txid": "m", "vout": 0},
                                 {"txid": "old", "vout": 1, "value": 5, "address": "x"}],
         "outputs": [{"value": 10}]},
    ])  # fmt: skip
    told = explain(ledger, "t:0", labels={"pool": "a pool", "x": "an exchange"})
    assert sorted(told.by_label()) == [("a pool", 1, 0.5), ("an exchange", 1, 0.5)]


def test_json_has_keys_that_stay() -> None:
    document = json.loads(origins_json(hostile(), {"software": "s"}))
    assert sorted(document) == [
        "assumed", "balance", "bits", "bits_high", "bits_low", "completeness", "earlier", "flow",
        "hops", "label", "labels",
        "lower_bound", "missing", "node", "observers", "other", "policy", "provenance",
        "sources", "steps", "time", "unit", "view",
    ]  # fmt: skip
    assert [sorted(row) for row in document["sources"]] == [
        ["label", "probability", "source", "way"]
    ] * 2
    assert document["sources"][0]["source"] == HOSTILE
    assert [sorted(hop) for hop in document["hops"]] == [
        ["ended", "hop", "nodes", "other", "reached"]
    ] * 3
    assert document["hops"][2]["nodes"][1] == {
        "node": "b", "nodes": 1, "label": "<i>bank</i>", "share": 0.25, "ended": 0.25,
    }  # fmt: skip
    assert document["hops"][2]["other"] == {"nodes": 0, "share": 0.0, "ended": 0.0}


QUOTED = r'"(?:[^"\\]|\\.)*"'
WORD = r"[A-Za-z_][A-Za-z_0-9]*|-?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)"


@pytest.mark.parametrize("make", [hostile, busy], ids=["hostile", "busy"])
def test_graphviz_text_follows_the_grammar(make: object) -> None:
    """Statements of graphviz.org/doc/info/lang.html, of which these are all we use."""
    assert callable(make)
    text = origins_dot(make())
    value = f"(?:{QUOTED}|{WORD})"
    attributes = rf"\[{WORD}={value}(?:, {WORD}={value})*\]"
    statement = "|".join(
        [
            rf"digraph {QUOTED} {{",
            rf"{WORD}={value};",
            rf"node {attributes};",
            r"{ rank=same;",
            rf"{QUOTED} (?:-> {QUOTED} )?{attributes};",
            r"}",
        ]
    ).replace(f"{WORD}=", f"(?:{WORD})=")
    for line in text.splitlines():
        assert re.fullmatch(rf"\s*(?:{statement})", line), line
    assert text.count("{") == text.count("}")


def test_graphviz_names_stand_for_themselves() -> None:
    text = origins_dot(hostile())
    assert r'tooltip="<script>alert(\"1\")</script> \\N \"&"' in text
    held = explain(coinhaze.AccountLedger.from_transfers([("a", "b", 1)]), "b", policy="fifo")
    with pytest.raises(UsageError, match="follows lots"):
        origins_dot(held)


def test_a_page_runs_nothing_and_says_what_it_is_not() -> None:
    text = origins_page(hostile(), {"software": "coinhaze", "command": "<x>", "inputs": []})
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    assert "<i>" not in text
    assert "default-src 'none'" in text
    assert "prefers-color-scheme: dark" in text
    assert "It is not proof" in text
    assert not re.search(r"(src|href)=|url\(|@import", text)


def test_a_page_of_a_busy_past_stays_small() -> None:
    text = origins_page(busy(), {})
    assert len(text.encode()) < 200_000
    assert "other (" in text


def test_a_page_of_lots_has_no_drawing() -> None:
    ledger = coinhaze.AccountLedger.from_transfers([("a", "c", 1), ("b", "c", 1), ("c", "d", 1)])
    text = origins_page(explain(ledger, "d", policy="fifo"), {})
    assert "<svg" not in text
    assert "a:0" in text


@pytest.mark.parametrize("make", [hostile, busy], ids=["hostile", "busy"])
def test_the_drawing_is_well_formed_and_nothing_overlaps(make: object) -> None:
    assert callable(make)
    layers = layers_of(make())
    places = lay_out(layers, ROOM).boxes
    assert len(places) == sum(map(len, layers.boxes))
    for hop, boxes in enumerate(layers.boxes):
        rows = sorted((places[box.id] for box in boxes), key=lambda place: place.at)
        assert {place.column for place in rows} == {hop}
        for upper, lower in itertools.pairwise(rows):
            assert lower.at >= upper.at + max(upper.width, LINE)
    svg = ET.fromstring(re.search(r"<svg.*</svg>", sankey(layers), re.DOTALL)[0])  # type: ignore[index]
    _, _, width, height = map(float, svg.attrib["viewBox"].split())
    for box in svg.iter(f"{SVG}rect"):
        x, y, wide, tall = (float(box.attrib[k]) for k in ("x", "y", "width", "height"))
        assert x >= 0
        assert x + wide <= width
        assert y >= 0
        assert y + tall <= height
    assert len(list(svg.iter(f"{SVG}path"))) == len(layers.bands)
    assert len(list(svg.iter(f"{SVG}g"))) == sum(map(len, layers.boxes))


@pytest.mark.parametrize(
    ("node", "balance", "assumed"), [("a", "7", "5"), ("a:0", "0", "0"), ("b", "5", "0")]
)
def test_an_assumed_opening_balance_is_called_so(node: str, balance: str, assumed: str) -> None:
    """a paid 5 before it received 7: that it had 5 at the start is not in the ledger."""
    ledger = coinhaze.AccountLedger.from_transfers([("a", "b", 5), ("c", "a", 7)])
    document = json.loads(origins_json(explain(ledger, node, time="temporal"), {}))
    assert (document["balance"], document["assumed"]) == (balance, assumed)
    given = explain(ledger, node, time="temporal", opening={"a": 5, "c": 7})
    assert given.origins.assumed == 0
    hidden = coinhaze.CoinLedger.from_transactions([{"txid": "r", "outputs": 1}])
    assert coinhaze.origins(hidden, "r:0").assumed is None


def test_a_balance_that_is_in_part_assumed_is_marked_in_tables() -> None:
    ledger = coinhaze.AccountLedger.from_transfers([("a", "b", 5), ("c", "a", 7)])
    text = written(scores_report(coinhaze.score(ledger, time="temporal")), width=100)
    rows = {cells[0]: cells[1] for cells in _cells(text) if len(cells) > 1}
    assert (rows["a"], rows["b"]) == ("7*", "5")
    assert "* with money assumed to have been there before the window" in " ".join(text.split())
    whole = written(scores_report(coinhaze.score(ledger)), width=100)
    assert "*" not in whole


def _cells(text: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("│").split("│")] for line in text.splitlines()]
