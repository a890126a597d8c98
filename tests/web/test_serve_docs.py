"""What docs/serve.md tells of codes and limits is what the server has."""

from __future__ import annotations

import re
from pathlib import Path

from coinhaze.explore.query import MAX_COINS, MAX_NODES, MAX_ROWS
from coinhaze.web.answers import Answers
from coinhaze.web.app import make_inner
from coinhaze.web.jobs import MAX_QUEUED, PATIENCE
from coinhaze.web.schema import CODES
from coinhaze.web.security.guard import Limits
from web.made import MadeRegistry

PAGE = (Path(__file__).parents[2] / "docs/serve.md").read_text()


def test_every_status_has_its_codes_on_the_page() -> None:
    rows = dict(re.findall(r"^\| (\d{3}) \| (.*) \|$", PAGE, re.MULTILINE))
    told = {int(status): tuple(re.findall(r"`([\w-]+)`", codes)) for status, codes in rows.items()}
    assert told == CODES


def test_the_limits_are_those_the_server_has() -> None:
    limits = Limits()
    for line in (
        f"| body, headers | {limits.body >> 20} MiB, {limits.headers >> 10} KiB |",
        f"| {MAX_ROWS:,}, {MAX_NODES}, {MAX_COINS} |",
        f"| an answer | {PATIENCE:g} s, then a job |",
        f"| answered at once, waiting | {limits.concurrent}, {limits.waiting}; then 429 |",
        f"| connections | {limits.connections}; then the oldest without the token is closed |",
        f"| the code of a printed address | once, within {limits.code_within / 60:g} minutes |",
        f"| answers being worked out | {MAX_QUEUED}, then 429 |",
        f"{limits.requests:,.0f} requests a second, {limits.changes:g} of them",
        f"within {limits.headers_within:g} s, {limits.body_within:g} s, {limits.sent_within:g} s",
    ):
        assert line in PAGE, line


def test_every_address_of_the_api_is_on_the_page() -> None:
    paths = make_inner(Answers(MadeRegistry())).openapi()["paths"]
    assert len(paths) >= 20
    for path in paths:
        last = re.sub(r"/\{\w+\}$", "", path.removeprefix("/api/v1")).rsplit("/", 1)[-1]
        assert f"/{last}" in PAGE, path


def test_every_operation_names_all_errors_it_may_give() -> None:
    for path, operations in make_inner(Answers(MadeRegistry())).openapi()["paths"].items():
        for method, operation in operations.items():
            named = set(operation["responses"])
            assert {"400", "401", "403", "429", "431", "500"} <= named, (method, path)
            assert "HTTPValidationError" not in str(operation)
