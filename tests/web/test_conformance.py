"""The API does what its document says, asked in thousands of ways that schemathesis makes up."""

from __future__ import annotations

import re
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode, HookContext

from coinhaze.web.answers import Answers
from coinhaze.web.app import make_app
from coinhaze.web.jobs import JobQueue
from coinhaze.web.registry import LedgerRegistry
from coinhaze.web.security.guard import Guard, Limits
from coinhaze.web.security.headers import Hosts
from web.asking import BEARER, PATIENCE, TOKEN

FEW, MANY = 4, 130  # cases of each operation and kind: of 22 x 2 many make above 5,000
ROWS = ("from,to,value", "alice,carol,3", "bob,carol,5", "carol,shop,2", "alice,x/y,4")
KNOWN = ("carol", "shop", "alice", "x%2Fy", "none")


def conforming_app(folder: Path) -> Guard:
    """Serve a small ledger with no limit on how often it is asked."""
    ledger = folder / "town.csv"
    ledger.write_text("\n".join(ROWS) + "\n")
    listed = folder / "list.txt"
    listed.write_text("alice\n")
    registry = LedgerRegistry([ledger, folder / "lost.csv"], lists={"bad": listed}, labels=())
    often = 1e9
    limits = Limits(requests=often, changes=often, bad_tokens=often)
    hosts = Hosts(names=["testserver"])  # as the test client calls it
    answers = Answers(registry, jobs=JobQueue(patience=PATIENCE))
    return make_app(answers, token=TOKEN, hosts=hosts, limits=limits)


def known_names(context: HookContext, path_parameters: dict[str, Any] | None) -> Any:
    """Let half of the names that could be in a ledger be names that are."""
    found = dict(path_parameters or {})
    ledger, name = found.get("ledger"), found.get("name")
    if isinstance(ledger, str) and re.fullmatch(r"[a-z0-9_-]{1,64}", ledger):
        found["ledger"] = _some(ledger, ("town", "town", "town", "lost", ledger))
    if isinstance(name, str) and re.fullmatch(r"[A-Za-z0-9]{1,64}", name):
        found["name"] = _some(name, KNOWN)
    return found or path_parameters


def _some(text: str, choices: tuple[str, ...]) -> str:
    return choices[zlib.crc32(text.encode()) % len(choices)]


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Any:
    app = conforming_app(tmp_path_factory.mktemp("conforming"))
    schema = schemathesis.openapi.from_asgi("/api/v1/openapi.json", app, headers=BEARER)
    schema.config.update(headers=BEARER)  # else leaving it out would count as a wrong question
    # What is well said but does not fit the ledger, such as addresses of one of accounts, gets 422.
    accepted = schema.config.checks.positive_data_acceptance
    accepted.expected_statuses = [*accepted.expected_statuses, "422"]
    # A wrong question that is too large besides is refused for that, before anybody reads it.
    refused = schema.config.checks.negative_data_rejection
    refused.expected_statuses = [*refused.expected_statuses, "413", "431"]
    schema.hook("map_path_parameters")(known_names)
    return schema


def ask_all(api: Any, examples: int) -> Counter[int]:
    """Ask every operation with right and wrong questions; give the answers' statuses."""
    seen: Counter[int] = Counter()
    for found in api.get_all_operations():
        operation = found.ok()
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
            _ask_operation(operation, mode, examples, seen)
    return seen


def _ask_operation(operation: Any, mode: Any, examples: int, seen: Counter[int]) -> None:
    @settings(
        max_examples=examples,
        derandomize=True,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(mode))
    def ask(case: Any) -> None:
        response = case.call(headers=BEARER)
        seen[response.status_code] += 1
        case.validate_response(response, headers=BEARER)

    try:
        ask()
    except Unsatisfiable:
        # Nothing wrong can be asked where there is nothing to say.
        assert mode is GenerationMode.NEGATIVE
        assert not operation.body
        assert {p.name for p in operation.iter_parameters()} == {"Authorization"}


def test_every_answer_is_as_the_document_says(api: Any) -> None:
    seen = ask_all(api, FEW)
    assert {200, 400, 404, 409} <= set(seen)
    assert not [status for status in seen if status >= 500 and status != 503]


@pytest.mark.long
def test_so_are_five_thousand(api: Any) -> None:
    seen = ask_all(api, MANY)
    assert seen.total() >= 5_000
    assert not [status for status in seen if status >= 500 and status != 503]
