"""Change: each step decides alone, and doubt names nothing."""

from __future__ import annotations

from typing import Any

import pytest

import coinhaze
from coinhaze.errors import UsageError
from coinhaze.graph.clusters.change import change_clusters, change_outputs
from coinhaze.ledger import CoinLedger

KEY, KEY2, WITNESS = "1" + "a" * 33, "1" + "b" * 33, "bc1q" + "c" * 38
SEEN = {"txid": "s", "inputs": [], "outputs": [{"value": 1, "address": "old"}]}


def ledger_of(outputs: list[tuple[int, str]], *, paid_by: str = KEY) -> CoinLedger:
    spent = {"txid": "x", "vout": 0, "value": 10_000_000, "address": paid_by}
    made = [{"value": v, "address": a} for v, a in outputs]
    return CoinLedger.from_transactions([SEEN, {"txid": "t", "inputs": [spent], "outputs": made}])


@pytest.mark.parametrize(
    ("outputs", "expected"),
    [
        ([(5, "old"), (7, "new")], ["t:1"]),
        ([(5, KEY2), (7, WITNESS)], ["t:0"]),
        ([(500_000, "new"), (1_234_567, "newer")], ["t:1"]),
        ([(500_000, "new"), (700_000, "newer")], []),
        ([(500_001, "new"), (700_001, "newer")], []),
        ([(5, KEY), (7, "new")], []),
        ([(5, "new")], []),
        ([(5, "old"), (7, "new"), (8, "old")], ["t:1"]),
        ([(5, "old"), (7, "new"), (8, "old"), (9, "old")], []),
        ([(500_000, KEY2), (1_234_567, WITNESS)], ["t:0"]),
        ([(5, "old"), (500_000, "new"), (1_234_567, "newer")], []),
    ],
    ids=[
        *("fresh", "type", "uneven", "both-round", "no-round", "itself", "one", "three", "four"),
        *("type-before-uneven", "not-all-others-round"),
    ],
)
def test_change_is_named_or_left_open(outputs: list[tuple[int, str]], expected: list[str]) -> None:
    ledger = ledger_of(outputs)
    assert ledger.output_names(change_outputs(ledger)).to_pylist() == expected


def test_inputs_of_several_types_have_none() -> None:
    spent = [{"txid": "x", "vout": k, "value": 9, "address": a} for k, a in enumerate((KEY, "3s"))]
    made = [{"value": 5, "address": "3new"}, {"value": 7, "address": WITNESS}]
    ledger = CoinLedger.from_transactions([{"txid": "t", "inputs": spent, "outputs": made}])
    assert len(change_outputs(ledger)) == 0


def test_an_address_from_before_the_window_is_not_fresh() -> None:
    late: dict[str, Any] = {
        "txid": "u",
        "inputs": [{"txid": "y", "vout": 0, "value": 9, "address": "new"}],
        "outputs": [{"value": 9, "address": "old"}],
    }
    spent = {"txid": "x", "vout": 0, "value": 50, "address": KEY}
    made = [{"value": 20, "address": "old"}, {"value": 29, "address": "new"}]
    ledger = CoinLedger.from_transactions(
        [SEEN, {"txid": "t", "inputs": [spent], "outputs": made}, late]
    )
    assert len(change_outputs(ledger)) == 0


def test_change_joins_its_payer_in_the_address_view() -> None:
    ledger = ledger_of([(5_000_000, "old"), (4_000_000, "new")])
    assert change_clusters(ledger) == {"new": KEY}
    graph = coinhaze.transaction_graph(ledger, view="address", clusters="change")
    assert graph.names.node("new") == graph.names.node(KEY)
    assert graph.settings["clusters"] == "change"


def test_a_ledger_that_hides_amounts_shows_no_change() -> None:
    hidden = CoinLedger.from_transactions([{"txid": "a", "rings": [["w:0"]], "outputs": 1}])
    with pytest.raises(UsageError, match="recognised by amounts"):
        change_outputs(hidden)
