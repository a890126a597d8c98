"""Origins by owner: worked cases, an exact twin, and the laws of the ladder."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import coinhaze
from coinhaze.observer.owners import by_owner, ladder, persons
from coinhaze.simulate import small_worlds
from vectors import coins, load


def test_worked_cases() -> None:
    ledger, case = coins("utxo"), load("owners")
    chain = coinhaze.absorbing_chain(coinhaze.transaction_graph(ledger))
    answers = case["answers"]
    naive = coinhaze.score(chain, nodes=list(answers))
    address = by_owner(chain, persons(ledger))
    cluster = by_owner(chain, persons(ledger, case["clusters"]))
    by_address = coinhaze.score(address, nodes=list(answers))
    by_cluster = coinhaze.score(cluster, nodes=list(answers))
    for row, (node, answer) in enumerate(answers.items()):
        assert naive.bits[row] == pytest.approx(answer["bits"], abs=1e-12)
        assert by_address.bits[row] == pytest.approx(answer["bits_by_address"], abs=1e-12)
        assert by_cluster.bits[row] == pytest.approx(answer["bits_by_cluster"], abs=1e-12)
        found = coinhaze.origins(cluster, node).sources().to_pylist()
        shares = {each["source"]: each["probability"] for each in found}
        exact = {name: float(Fraction(share[0])) for name, share in answer["by_cluster"].items()}
        assert shares == pytest.approx(exact, abs=1e-12)
