"""A session holds what is made of one ledger, makes each thing once, and changes no answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import coinhaze
from coinhaze.errors import UsageError
from coinhaze.solve.structure.structure import Structure
from solve.economies import random_transfers

SETTINGS: list[dict[str, Any]] = [
    {},
    {"time": "temporal"},
    {"policy": "uniform"},
    {"policy": "fifo"},
    {"listed": ["p1", "p2"]},
]


def ledger_of() -> coinhaze.AccountLedger:
    return random_transfers(12, 60, seed=3)


def listed_of(ledger: coinhaze.AccountLedger) -> list[str]:
    return [str(name) for name in ledger.accounts.to_pylist()[:2]]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_answers_are_those_of_the_bare_ledger(settings: dict[str, Any]) -> None:
    ledger = ledger_of()
    if "listed" in settings:
        settings = {"listed": listed_of(ledger)}
    session = coinhaze.Session(ledger, **settings)
    alone, held = coinhaze.score(ledger, **settings), coinhaze.score(session)
    for name in ("bits", "bits_low", "bits_high", "steps", "top"):
        assert getattr(alone, name).tobytes() == getattr(held, name).tobytes()
    assert session.score().bits.tobytes() == alone.bits.tobytes()
    name = str(alone.chain.graph.names.of(alone.nodes[:1])[0].as_py())
    one, other = coinhaze.origins(ledger, name, **settings), coinhaze.origins(session, name)
    assert one.sources().equals(other.sources())
    assert session.origins(name).sources().equals(one.sources())


def test_taint_knows_time_as_that_of_a_ledger_does() -> None:
    ledger = ledger_of()
    listed = listed_of(ledger)
    session = coinhaze.Session(ledger)
    assert session.graph.settings["time"] == "stationary"
    found = session.taint(listed).to_arrow()
    assert found.equals(coinhaze.taint(ledger, listed).to_arrow())
    assert session.graph_in_time is session.graph_in_time


def test_each_thing_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    session = coinhaze.Session(ledger_of())
    structure = session.structure
    assert session.chain is coinhaze.score(session).chain is session.chain
    first = structure._latest
    coinhaze.score(session, method="eliminate")
    assert structure._latest is first  # the same rows were lumped before
    assert session.score(threads=1) is session.score(threads=2)
    assert session.score(renyi=[2]) is session.score(renyi=(2,)) is not session.score()
    assert structure.local is structure.local


def test_a_path_a_graph_and_a_chain_make_sessions(tmp_path: Path) -> None:
    path = tmp_path / "transfers.csv"
    path.write_text("from,to,amount\na,c,1\nb,c,3\n")
    bits = coinhaze.score(path).bits.tobytes()
    session = coinhaze.Session(path, format="transfers")
    for source in (path, session.ledger, session.graph, session.chain, Structure(session.chain)):
        again = coinhaze.Session(source)
        assert again.score().bits.tobytes() == bits
        assert len(again.ledger) == 2


def test_settings_of_what_is_made_are_refused() -> None:
    session = coinhaze.Session(ledger_of())
    with pytest.raises(UsageError, match="policy cannot be set any more: a session is given"):
        coinhaze.score(session, policy="uniform")
    with pytest.raises(UsageError, match="view cannot be set any more: a graph is given"):
        coinhaze.Session(session.graph, view="account")
    with pytest.raises(UsageError, match="format cannot be set any more: a ledger is given"):
        coinhaze.Session(ledger_of(), format="transfers")
    with pytest.raises(UsageError, match="polcy"):
        coinhaze.Session(ledger_of(), polcy="uniform")  # type: ignore[call-arg]
    with pytest.raises(UsageError, match="a session is given already"):
        coinhaze.Session(session)


def test_a_session_chooses_its_backend() -> None:
    with pytest.raises(UsageError, match=r"unknown backend 'moon'"):
        coinhaze.Session(ledger_of(), backend="moon").score()
