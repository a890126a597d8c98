"""A transaction by itself: its kind, what heuristics say, and the matrix of links."""

from __future__ import annotations

from typing import Any

import pytest

import coinhaze
from coinhaze.coinjoin.link_matrix import link_matrix
from coinhaze.explore.explorer import Explorer
from coinhaze.explore.models import TransactionFacts
from coinhaze.graph.clusters.heuristics import heuristic
from coinhaze.simulate import simulate_town


def spent(name: str, value: int, address: str | None = None) -> dict[str, Any]:
    return {"txid": name, "vout": 0, "value": value, "address": address or name}


def facts(inputs: list[dict[str, Any]], outputs: list[dict[str, Any]]) -> TransactionFacts:
    ledger = coinhaze.CoinLedger.from_transactions(
        [{"txid": "t", "inputs": inputs, "outputs": outputs}]
    )
    found = Explorer(ledger).group("transaction", "t").transaction
    assert found is not None
    return found


def test_equal_amounts_are_one_row_and_cells_are_those_of_the_link_matrix() -> None:
    ins, outs = [10, 10, 4], [8, 2, 3, 7, 4]
    found = facts([spent(f"i{k}", v) for k, v in enumerate(ins)], [{"value": v} for v in outs])
    matrix = link_matrix(ins, outs)
    links = found.links
    assert links.interpretations == str(matrix.interpretations)
    assert links.bits == pytest.approx(matrix.bits)
    assert [(each.amount.smallest, each.count) for each in links.inputs] == [("10", 2), ("4", 1)]
    assert [each.amount.smallest for each in links.outputs] == ["8", "2", "3", "7", "4"]
    for row, of_output in zip(links.probabilities, matrix.probabilities.tolist(), strict=True):
        assert row == pytest.approx([of_output[0], of_output[2]])
    assert found.fee is not None
    assert found.fee.smallest == "0"


def test_a_mix_is_named_and_its_inputs_are_not_joined() -> None:
    ins = [spent(name, 100_000) for name in "vwxy"] + [spent("z", 100_300)]
    found = facts(ins, [{"value": 100_000}] * 5)
    assert found.coinjoin == "Whirlpool"
    assert "several people paid together" in found.sentence
    assert [each.name for each in found.findings] == ["whirlpool"]
    assert found.findings[0].confidence == heuristic("whirlpool").confidence


def test_a_consolidation_is_one_person_s_to_most_observers() -> None:
    found = facts([spent(f"i{k}", 50) for k in range(200)], [{"value": 9_000}, {"value": 1_000}])
    assert found.coinjoin is None
    assert "There is no sign of a CoinJoin: to most observers one person paid it." in found.sentence
    assert [each.name for each in found.findings] == ["common-input-no-coinjoins"]


def test_change_is_named_by_its_output() -> None:
    ledger = coinhaze.CoinLedger.from_transactions(
        [
            {"txid": "a", "inputs": [], "outputs": [{"value": 9, "address": "shop"}]},
            {"txid": "b", "inputs": [spent("x", 50, "me")],
             "outputs": [{"value": 20, "address": "shop"}, {"value": 29, "address": "new"}]},
        ]
    )  # fmt: skip
    explorer = Explorer(ledger)
    found = explorer.group("transaction", "b").transaction
    assert found is not None
    assert [each.says for each in found.findings] == [
        "output 1 is probably change: it went back to the payer"
    ]
    made = explorer.group("transaction", "a").transaction
    assert made is not None
    assert made.links.refused == "it spends nothing: its coins were made here"
    assert made.sentence == "1 output made here: it spends no coin."


def test_what_cannot_be_counted_or_drawn_says_why() -> None:
    many = [spent(f"i{k}", 10_007 + 37 * k * k) for k in range(60)]
    found = facts(many, [{"value": 5_003 + 41 * k * k} for k in range(55)])
    assert found.links.refused is not None
    assert found.links.probabilities == ()


def test_informed_bits_are_those_of_the_api_s_scores_and_sort_the_table() -> None:
    ledger = simulate_town(transactions=120, people=20)
    explorer = Explorer(ledger)
    scores = coinhaze.informed(coinhaze.score(ledger))
    names = scores.chain.graph.names.of(scores.nodes).to_pylist()
    at = {name: k for k, name in enumerate(names)}
    from coinhaze.explore.query import TableQuery

    rows = explorer.table(TableQuery(sort="-informed", limit=1000)).rows
    for row in rows:
        assert row.informed == {
            name: pytest.approx(float(each.bits[at[row.name]]), abs=1e-9)
            for name, each in scores.informed.items()
        }
    last = [round(row.informed["change"] or 0.0, 9) for row in rows]
    assert last == sorted(last, reverse=True)
    coin = explorer.coin(rows[0].name)
    assert {o.observer: o.bits for o in coin.observers} == {
        name: pytest.approx(bits, abs=1e-9) for name, bits in rows[0].informed.items()
    }
    assert coin.observed == explorer.comparators(rows[0].name).observed
