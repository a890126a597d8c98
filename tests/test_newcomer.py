"""How little a newcomer touches: one file outside the package, and everything knows it.

A policy and a comparator lie in tests/newcomers, a file each. Each is registered by one call, and
appears in the help of commands, in the Python functions, on the page and in the HTTP schema.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import coinhaze
from coinhaze import registry
from coinhaze.errors import UsageError
from coinhaze.explore.query import Settings
from coinhaze.formats.registry import format_names
from coinhaze.ledger import write_folder
from coinhaze.measures.comparators.registry import COMPARATORS
from coinhaze.observer.policies import POLICIES
from coinhaze.solve.progress import silent
from coinhaze.web.answers import Answers
from coinhaze.web.app import make_app
from coinhaze.web.jobs import JobQueue
from coinhaze.web.registry import LedgerRegistry
from coinhaze.web.security.guard import Guard
from web.asking import TOKEN, ask

NEWCOMERS = Path(__file__).with_name("newcomers")
SOURCE = Path(coinhaze.__file__).parent
PLUGINS = ",".join(str(NEWCOMERS / name) for name in ("largest_input.py", "outputs.py"))


@pytest.fixture
def newcomers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv(registry.PLUGINS, PLUGINS)
    yield
    POLICIES.remove("largest")
    COMPARATORS.remove("outputs")
    registry._loaded.clear()


@pytest.fixture
def mix() -> coinhaze.CoinLedger:
    return coinhaze.CoinLedger.from_transactions(
        [
            {
                "txid": "join",
                "inputs": [
                    {"txid": "x", "vout": 0, "value": 10, "address": "xavier"},
                    {"txid": "y", "vout": 0, "value": 14, "address": "yves"},
                ],
                "outputs": [{"value": 10}, {"value": 10}, {"value": 4}],
            },
            {
                "txid": "shop",
                "inputs": [{"txid": "z", "vout": 0, "value": 5}, {"txid": "join", "vout": 0}],
                "outputs": [{"value": 12}, {"value": 3}],
            },
        ]
    )


@pytest.fixture
def folder(tmp_path: Path, mix: coinhaze.CoinLedger, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    write_folder(mix, tmp_path / "mix")
    return tmp_path / "mix"


def run(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "coinhaze", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.usefixtures("newcomers")
def test_the_python_functions_take_a_new_policy_and_a_new_comparator(
    mix: coinhaze.CoinLedger,
) -> None:
    scores = coinhaze.score(mix, policy="largest")
    # Every coin has one largest input, so that all of it comes from one source: 14 of y.
    assert scores.bits.tolist() == [0.0] * 4
    assert set(scores.to_arrow()["top_source"].to_pylist()) == {"y:0"}
    assert coinhaze.origins(mix, "shop:0", policy="largest").probability.tolist() == [1.0]
    assert scores.chain.settings["policy"] == "largest"
    compared = coinhaze.compare_measures(scores, ["outputs"])
    names = scores.to_arrow()["node"].to_pylist()
    found = dict(zip(names, compared.comparators["outputs"].tolist(), strict=True))
    assert found == {"join:1": 3, "join:2": 3, "shop:0": 2, "shop:1": 2}
    with pytest.raises(
        UsageError, match="proportional, uniform, poison, fifo, lifo, tiho, largest"
    ):
        coinhaze.score(mix, policy="nothing-of-the-kind")


@pytest.mark.usefixtures("newcomers")
def test_the_commands_know_them(folder: Path) -> None:
    for command in ("score", "origins", "compare"):
        assert "lifo|largest]" in "".join(run(command, "--help").stdout.split()), command
    shown = " ".join(run("score", "--help").stdout.split())
    assert "mint-centrality, outputs, possible-sources" in shown
    done = run("score", str(folder), "--policy", "largest", "--with", "outputs", "--json")
    assert done.returncode == 0, done.stderr
    assert '"policy": "largest"' in done.stdout
    assert '"outputs"' in done.stdout


@pytest.mark.usefixtures("newcomers")
def test_the_page_and_its_schema_know_them(folder: Path) -> None:
    served = LedgerRegistry([folder])
    served.prepare("mix", Settings(), silent)
    app = make_app(Answers(served, jobs=JobQueue(patience=600)), token=TOKEN)
    page = text_of(app, "/l/mix/coin/shop:0?policy=largest")
    assert 'id="rule-largest"' in page
    assert "Largest input" in page
    assert "takes all value to come from the largest input" in page
    assert "all of it from the largest input" in page
    coin = json_of(app, "/ledgers/mix/coins/shop:0?policy=largest")
    assert coin["settings"]["policy"] == "largest"
    assert coin["bits"] == pytest.approx(0.0, abs=1e-12)
    beside = json_of(app, "/ledgers/mix/coins/shop:0/comparators")
    assert {m["name"]: m["value"] for m in beside["measures"]}["outputs"] == 2
    assert {r["policy"]: r["bits"] for r in beside["rules"]}["largest"] == pytest.approx(
        0.0, abs=1e-12
    )
    enum = json_of(app, "/openapi.json")["components"]["schemas"]["Settings"]
    assert "largest" in enum["properties"]["policy"]["enum"]
    refused = ask(app, "/api/v1/ledgers/mix/coins/shop:0?policy=nothing")
    assert refused.status_code == 400


def text_of(app: Guard, path: str) -> str:
    answer = ask(app, path)
    assert answer.status_code == 200, answer.text[:300]
    return answer.text


def json_of(app: Guard, path: str) -> Any:
    """Give an answer: a job, which is no answer yet, is a failure that says so."""
    return json.loads(text_of(app, f"/api/v1{path}"))


def test_a_plugin_that_fails_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(registry.PLUGINS, "no_such_module")
    with pytest.raises(UsageError, match="no_such_module cannot be imported: ModuleNotFoundError"):
        POLICIES.names()
    registry._loaded.clear()


def test_names_are_taken_once_and_are_plain() -> None:
    with pytest.raises(UsageError, match="already a policy called 'haircut'"):
        coinhaze.register_policy("haircut", words="is another")(lambda graph: None)
    with pytest.raises(UsageError, match="already a measure called 'degree'"):
        coinhaze.register_comparator("degree", words="is another")(lambda compared: None)
    for register in (coinhaze.register_policy, coinhaze.register_comparator):
        with pytest.raises(UsageError, match="letters, digits"):
            register("a b", words="has a space")


# Words of a registry that also name something else.
ALSO = {
    "uniform": ("observer/decoys.py",),  # how rings choose decoys
    "wasabi": ("simulate/technologies/wasabi.py",),  # the wallet, as a technology
}
HOMES = ("observer/policies.py", "measures/comparators/")


def test_policies_and_comparators_are_named_in_their_registries_alone() -> None:
    words = {name for p in POLICIES for name in (p.name, *p.aliases)} | {*COMPARATORS.names()}
    found = [
        f"{where}:{line}: {word!r}"
        for path in sorted(SOURCE.rglob("*.py"))
        if not (where := path.relative_to(SOURCE).as_posix()).startswith(HOMES)
        for line, word in literals(path)
        if word in words and where not in ALSO.get(word, ())
    ]
    assert not found, "\n".join(found)


# Formats that are known by name outside the registry, and why. "transfers" is also a table.
FORMATS = {
    "plain": {
        "readers.py",  # columns that are plain may be those of transfers
        "store/ingest.py",
        "store/read.py",
        "simulate/technologies/plain.py",  # a technology
    },
    "esplora": {"nodes/servers.py"},  # a kind of server
    "bitcoin-blocks": {"history/index/sources.py"},  # read without making a ledger of them first
    "utxo-snapshot": {"cli/info.py", "store/snapshot.py"},  # not a ledger
}


def test_formats_are_named_in_their_registry_alone() -> None:
    found = {
        (word, where)
        for path in sorted(SOURCE.rglob("*.py"))
        if (where := path.relative_to(SOURCE).as_posix()) != "formats/registry.py"
        for _, word in literals(path)
        if word in format_names() and word != "transfers"
    }
    assert found == {(word, w) for word, places in FORMATS.items() for w in places}


def literals(path: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value
