"""Links with a confidence: a share goes where they say, the rest stays as it was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coinhaze
from coinhaze.errors import InputError, LedgerError
from coinhaze.formats.lists.knowledge import read_gas_prices, read_links
from coinhaze.graph import transaction_graph
from coinhaze.ledger.links import Link
from coinhaze.observer import absorbing_chain


def mixed() -> coinhaze.AccountLedger:
    return coinhaze.AccountLedger.from_transfers(
        [("a", "mix", 5), ("b", "mix", 5), ("mix", "c", 5), ("mix", "c", 1), ("d", "c", 6)]
    )


def row(links: Any, name: str = "c") -> dict[str, float]:
    chain = absorbing_chain(transaction_graph(mixed()), links=links)
    nodes = chain.Q[[chain.graph.names.node(name)]].tocoo()
    names = chain.graph.names.of(nodes.coords[1]).to_pylist()
    return dict(zip(names, nodes.data.tolist(), strict=True))


def test_what_a_link_is_not_sure_of_stays_with_the_ordinary_row() -> None:
    assert row({"2": Link({"a": 1.0}, 0.75)}) == pytest.approx(
        {"a": 5 / 12 * 0.75, "mix": 1 / 12 + 5 / 12 * 0.25, "d": 0.5}
    )


def test_certainty_is_the_default_and_leaves_nothing() -> None:
    both: dict[str, Any] = {"2": {"a": 1.0}, "3": Link({"b": 1.0}, 1.0)}
    assert row(both) == {"a": 5 / 12, "b": 1 / 12, "d": 0.5}


def test_no_confidence_changes_nothing() -> None:
    assert row({"2": Link({"a": 1.0}, 0.0)}) == row(None)


def test_two_unsure_links_on_one_edge_add_up() -> None:
    links = {"2": Link({"a": 0.5, "b": 0.5}, 0.5), "3": Link({"b": 1.0}, 0.1)}
    found = row(links)
    assert found["mix"] == pytest.approx(0.5 - 5 / 12 * 0.5 - 1 / 12 * 0.1)
    assert found["a"] == pytest.approx(5 / 12 * 0.25)
    assert sum(found.values()) == pytest.approx(1)


def test_bits_are_those_of_the_mixture() -> None:
    ledger = coinhaze.AccountLedger.from_transfers(
        [("a", "mix", 5), ("b", "mix", 5), ("mix", "c", 5)]
    )
    scores = coinhaze.score(ledger, nodes=["c"], links={"2": Link({"a": 1.0}, 0.5)})
    p = np.array([0.75, 0.25])
    assert scores.bits[0] == pytest.approx(-(p * np.log2(p)).sum(), abs=1e-9)


@pytest.mark.parametrize(
    ("link", "fault"),
    [
        (Link({"a": 1.0}, -0.5), "confidence -0.5 is no probability"),
        (Link({"a": 1.0}, 1.5), "confidence 1.5 is no probability"),
        (Link({"a": 1.0}, float("nan")), "confidence nan is no probability"),
        (Link({"a": 0.5}), "sum to 0.5, not 1"),
        (Link({}), "sum to 0, not 1"),
    ],
)
def test_links_that_are_no_probabilities_are_refused(link: Link, fault: str) -> None:
    with pytest.raises(InputError, match=fault):
        absorbing_chain(transaction_graph(mixed()), links={"2": link})


def test_links_come_from_a_file_with_or_without_confidence(tmp_path: Path) -> None:
    path = tmp_path / "links.csv"
    path.write_text("payment,node,probability\n2,a,0.25\n2,b,0.75\n")
    assert read_links(path) == {"2": Link({"a": 0.25, "b": 0.75}, 1.0)}
    path.write_text("node,confidence,payment,probability\na,0.5,2,1\nb,0.25,3,1\n")
    assert read_links(path) == {"2": Link({"a": 1.0}, 0.5), "3": Link({"b": 1.0}, 0.25)}


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("2,a,1.5,1", r"links.csv:2: probability is not between 0 and 1: '1.5'"),
        ("2,a,1,2", r"links.csv:2: confidence is not between 0 and 1: '2'"),
        ("2,a,nan,1", r"links.csv:2: probability"),
        ("2,a,0.5,1\n2,a,0.5,1", r"links.csv:3: payment 2 is linked twice to: 'a'"),
        ("2,a,0.5,1\n2,b,0.5,0.9", r"links.csv:3: payment 2 has another confidence than on .*:2"),
        ("3,a,1,1\n2,a,0.5,1\n2,b,0.4,1", r"links.csv:3: probabilities of payment 2 do not add up"),
        ("2,,1,1", r"links.csv:2: an empty field"),
    ],
)
def test_a_fault_in_a_file_of_links_is_named_with_its_line(
    tmp_path: Path, text: str, fault: str
) -> None:
    path = tmp_path / "links.csv"
    path.write_text(f"payment,node,probability,confidence\n{text}\n")
    with pytest.raises(LedgerError, match=fault):
        read_links(path)


def test_gas_prices_are_whole_and_reported_once(tmp_path: Path) -> None:
    path = tmp_path / "prices.csv"
    path.write_text("payment,gas_price\na:1,5000000000\n")
    assert read_gas_prices(path) == {"a:1": 5_000_000_000}
    path.write_text("payment,gas_price\na:1,5\na:1,6\n")
    with pytest.raises(LedgerError, match=r"prices.csv:3: a payment twice: 'a:1'"):
        read_gas_prices(path)
