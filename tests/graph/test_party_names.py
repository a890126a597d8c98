"""Names made on demand against a plain list of all of them."""

from typing import Any

import numpy as np
import pytest

from coinhaze.graph import TransactionGraph, transaction_graph
from coinhaze.ledger import AccountLedger, CoinLedger, Ledger
from coinhaze.simulate import simulate_town

ZERO = "0x" + "0" * 40


def odd_coins() -> CoinLedger:
    """Names that look like others: an address called like a coin, a txid with a colon."""
    return CoinLedger.from_transactions(
        [
            {"txid": "a", "outputs": [{"value": 5, "address": "b:0"}, {"value": 5}]},
            {"txid": "a:0", "inputs": [{"txid": "a", "vout": 0}], "outputs": [{"value": 4}]},
            {"txid": "b", "outputs": [{"value": 3, "address": "tx:a"}, {"value": 3, "vout": 12}]},
        ]
    )


def mints() -> AccountLedger:
    return AccountLedger.from_transfers([(ZERO, "a", 5), ("a", "b", 3), ("b", ZERO, 1)])


CASES: dict[str, tuple[Any, dict[str, Any]]] = {
    "town": (lambda: simulate_town(transactions=60, people=8), {}),
    "town by address": (lambda: simulate_town(transactions=60, people=8), {"view": "address"}),
    "odd coins": (odd_coins, {}),
    "odd coins by address": (odd_coins, {"view": "address"}),
    "mints": (mints, {"time": "temporal"}),
}


def build(case: str) -> tuple[Ledger, TransactionGraph]:
    make, settings = CASES[case]
    ledger = make()
    return ledger, transaction_graph(ledger, **settings)


@pytest.mark.parametrize("case", CASES)
def test_every_party_is_found_by_its_name_the_first_of_equal_ones(case: str) -> None:
    parties = build(case)[1].names.parties
    names = parties.to_pylist()
    assert len(names) == len(parties)
    for row, name in enumerate(names):
        assert parties[row].as_py() == name
        assert parties.find(name) == names.index(name)
    mixed = np.random.default_rng(1).permutation(np.repeat(np.arange(len(names)), 2))
    assert parties.take(mixed).to_pylist() == [names[k] for k in mixed]
    assert len(parties.take(np.zeros(0, dtype=np.int64))) == 0


@pytest.mark.parametrize(
    "name", ["", ":", "a:", "a:00", "a:7", "a:-1", "a:1e0", "tx:", "tx:q", "é"]
)
@pytest.mark.parametrize("case", CASES)
def test_what_is_no_name_finds_nothing(case: str, name: str) -> None:
    assert build(case)[1].names.parties.find(name) == -1


def test_an_owner_means_all_its_coins() -> None:
    ledger, graph = build("town")
    assert isinstance(ledger, CoinLedger)
    owners = ledger.owners.take(ledger.output_owner).to_pylist()
    for owner in set(owners):
        rows = [k for k, o in enumerate(owners) if o == owner]
        assert graph.names.others.parties(owner).tolist() == rows
