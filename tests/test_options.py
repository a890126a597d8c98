"""The options of the API, commands, cache keys and documentation are those of one module."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any, get_type_hints

import pytest

import coinhaze
from coinhaze import options
from coinhaze.cache.layers import LedgerCache, open_cached
from coinhaze.graph.clusters.heuristics import find
from coinhaze.growth.growth import growth
from coinhaze.lab.lab import churn, lab, lab_all
from coinhaze.measures.comparators.side_by_side import compare_measures
from coinhaze.options import (
    GraphOptions,
    GrowthOptions,
    HistoryOptions,
    KnowledgeOptions,
    LabOptions,
    ObserverOptions,
    OriginsOptions,
    ReadOptions,
    RobustnessOptions,
    ScreenOptions,
    SimulateOptions,
    SinceOptions,
    SolveOptions,
    WalletOptions,
)
from coinhaze.options.__main__ import options_page
from coinhaze.report.destinations import explain_forward
from coinhaze.report.origins import explain
from coinhaze.robustness.robustness import robustness
from coinhaze.robustness.sensitivity import sensitivity
from coinhaze.screening.screen import screen
from coinhaze.solve import score_or_reached
from coinhaze.wallet.holdings import exposed_chain
from coinhaze.wallet.suggestion import suggest_coins
from coinhaze.wallet.walk_back import walk_back
from coinhaze.wallet.wallet import weigh_wallet
from coinhaze.wallet.what_if import what_if

SRC = Path(coinhaze.__file__).parent
MODEL = (ReadOptions, GraphOptions, ObserverOptions)
# Every public function with options, and the subjects whose options it takes.
FUNCTIONS: dict[Callable[..., Any], tuple[type, ...]] = {
    coinhaze.read: (ReadOptions,),
    coinhaze.transaction_graph: (GraphOptions,),
    coinhaze.absorbing_chain: (ObserverOptions,),
    coinhaze.score: (*MODEL, SolveOptions),
    coinhaze.plan: (*MODEL, SolveOptions),
    coinhaze.origins: MODEL,
    coinhaze.destinations: MODEL,
    coinhaze.since: (*MODEL, SinceOptions, SolveOptions),
    coinhaze.taint: (ReadOptions, GraphOptions),
    coinhaze.lots: (ReadOptions, GraphOptions, ObserverOptions),
    score_or_reached: (*MODEL, SolveOptions),
    explain: (*MODEL, OriginsOptions),
    explain_forward: (*MODEL, OriginsOptions),
    LedgerCache: MODEL,
    open_cached: MODEL,
    growth: (*MODEL, GrowthOptions, SolveOptions, SimulateOptions),
    robustness: (*MODEL, RobustnessOptions),
    sensitivity: (*MODEL, SolveOptions),
    screen: (ReadOptions, GraphOptions, ScreenOptions),
    churn: (*MODEL, SolveOptions),
    lab: (LabOptions, SimulateOptions),
    lab_all: (LabOptions, SimulateOptions),
    exposed_chain: (ObserverOptions,),
    walk_back: (ObserverOptions, WalletOptions),
    weigh_wallet: (WalletOptions,),
    find: (KnowledgeOptions,),
    compare_measures: (),
    what_if: (),
    suggest_coins: (),
    coinhaze.eliminate: (),
    coinhaze.sweep: (),
    coinhaze.series: (),
    coinhaze.coinjoin_links: (),
    coinhaze.link_matrix: (),
    coinhaze.informed: (SolveOptions,),
    coinhaze.shared: MODEL,
    coinhaze.register_policy: (),
    coinhaze.register_comparator: (),
    coinhaze.Session: MODEL,
    coinhaze.Session.score: (SolveOptions,),
    coinhaze.Session.score_or_reached: (SolveOptions,),
    coinhaze.Session.plan: (SolveOptions,),
    coinhaze.Session.origins: (),
    coinhaze.Session.taint: (),
    coinhaze.History.index: (ReadOptions,),
    coinhaze.History.index_blocks: (),
    coinhaze.History.index_node: (),
    coinhaze.History.score: (SolveOptions, HistoryOptions),
    coinhaze.History.write_transactions: (SolveOptions, HistoryOptions),
    coinhaze.CoinLedger.from_transactions: (),
    coinhaze.CoinLedger.from_columns: (),
    coinhaze.CoinLedger.tables: (),
    coinhaze.AccountLedger.from_columns: (),
    coinhaze.Scores.to_latex: (),
    coinhaze.Scores.plot: (),
    coinhaze.Summary.to_latex: (),
    coinhaze.Since.series: (),
    coinhaze.SharedOrigins.common: (),
    coinhaze.Origins.as_dict: (),
    coinhaze.Destinations.as_dict: (),
    coinhaze.explore.Explorer: (),
    coinhaze.explore.Explorer.origins: (),
    coinhaze.explore.Explorer.group: (),
    coinhaze.compare.ComparedLedger.of: (),
    coinhaze.compare.compared_of: (),
    coinhaze.compare.comparison_rows: (),
    coinhaze.compare.score_ledgers: (),
    coinhaze.compare.write_report: (),
    coinhaze.lab.churn_apart: (),
    coinhaze.screening.screening_json: (),
    coinhaze.screening.screening_sections: (),
    coinhaze.wallet.CoinKnowledge.spend: (),
    coinhaze.wallet.parties_of: (),
    coinhaze.wallet.propose: (),
}
# Where a function's parameter is more, or less, than the option of that name.
OTHERWISE = {
    ("growth", "seed"): "its walks are the same every time",
    ("growth", "accuracy"): "auto is a further word, and the default",
    ("lab", "values"): "the command writes numbers as text",
    ("find", "services"): "the command names a file",
    ("find", "gas_prices"): "the command names a file",
    ("exposed_chain", "names"): "the list itself",
    ("walk_back", "listed"): "the coins to walk back from",
    ("walk_back", "accuracy"): "no word, and a default of its own",
    ("weigh_wallet", "labels"): "the names themselves",
    ("weigh_wallet", "known"): "the parties themselves",
    ("screen", "dust"): "the amount in the smallest unit",
    ("screen", "nodes"): "None is all sinks",
    ("since", "nodes"): "coins of CoinJoins are the default",
}
KEYWORDS = {
    options.ReadKeywords: ReadOptions,
    options.GraphKeywords: GraphOptions,
    options.ObserverKeywords: ObserverOptions,
    options.ScoringKeywords: SolveOptions,
}


@pytest.mark.parametrize("keywords", KEYWORDS, ids=lambda k: str(k.__name__))
def test_keywords_are_the_options_by_name_and_type(keywords: type) -> None:
    subject = KEYWORDS[keywords]
    expected = get_type_hints(subject)
    if subject is SolveOptions:
        del expected["strict"]  # a refusal, not how something is solved: written out
    assert get_type_hints(keywords) == expected


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: str(f.__qualname__))
def test_signatures_are_the_options_by_name_type_and_default(
    function: Callable[..., Any],
) -> None:
    known = {f.name: f for subject in FUNCTIONS[function] for f in fields(subject)}
    taken = set[str]()
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            words = re.fullmatch(r"Unpack\[(\w+)\]", str(parameter.annotation))
            assert words is not None, f"{function.__name__}: **{parameter.name} is not typed"
            taken |= get_type_hints(getattr(options, words[1])).keys()
        elif parameter.name in known and (function.__name__, parameter.name) not in OTHERWISE:
            option = known[parameter.name]
            assert parameter.default == option.default, parameter.name
            written = str(parameter.annotation).replace("OpeningOption", "Opening")
            assert written == option.type, parameter.name
            taken.add(parameter.name)
    assert taken <= known.keys() | {"progress"}, "an option of no subject it is said to have"


def exported() -> dict[str, Any]:
    """Give what the library and its applications export, by name."""
    found = {name: getattr(coinhaze, name) for name in coinhaze.__all__}
    for package, value in list(found.items()):
        if inspect.ismodule(value):
            del found[package]
            found |= {f"{package}.{name}": getattr(value, name) for name in value.__all__}
    return found


def test_every_public_function_and_every_method_with_options_is_among_these() -> None:
    listed = {(f.__module__, f.__qualname__) for f in FUNCTIONS}
    missing = []
    for name, value in exported().items():
        if inspect.isfunction(value):
            missing += [name] * ((value.__module__, value.__qualname__) not in listed)
        elif inspect.isclass(value):
            for word in vars(value):
                method = getattr(value, word)
                if word.startswith("_") or not (
                    inspect.isfunction(method) or inspect.ismethod(method)
                ):
                    continue
                place = (method.__module__, method.__qualname__)
                missing += [f"{name}.{word}"] * (bool(_names(method)) and place not in listed)
    assert len(listed) > 60
    assert not missing


# Objects of libraries that are optional: their types are not there where they are not installed.
FOREIGN = {"ax", "to_polars", "to_pandas", "to_networkx", "plot"}


def test_nothing_public_takes_or_gives_just_anything() -> None:
    routines: list[Any] = [v for v in exported().values() if inspect.isfunction(v)]
    for value in exported().values():
        if inspect.isclass(value):
            routines += [f for k, f in inspect.getmembers(value, inspect.isroutine) if k[0] != "_"]
            routines += [value.__init__] if "__init__" in vars(value) else []
    found = set()
    for routine in routines:
        if not (getattr(routine, "__module__", None) or "").startswith("coinhaze"):
            continue
        for name, written in routine.__annotations__.items():
            word = routine.__name__ if name == "return" else name
            if written == "Any" and word not in FOREIGN:
                found.add(f"{routine.__qualname__}: {name}")
    assert len(routines) > 100
    assert not found


def test_no_public_signature_takes_just_anything() -> None:
    found = []
    for path in SRC.rglob("*.py"):
        if path.is_relative_to(SRC / "cli"):
            continue  # click calls these, with the options a command names
        for name, node in _public(ast.parse(path.read_text())):
            kwarg = node.args.kwarg
            if kwarg is not None and ast.unparse(kwarg.annotation or ast.Name("Any")) == "Any":
                found.append(f"{path.relative_to(SRC)}: {name}")
    assert found == []


def _public(tree: ast.AST, prefix: str = "") -> list[tuple[str, ast.FunctionDef]]:
    found = []
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            found += _public(node, f"{node.name}.")
        if isinstance(node, ast.FunctionDef) and (
            not node.name.startswith("_") or node.name == "__init__"
        ):
            found.append((prefix + node.name, node))
    return found


@pytest.mark.long
def test_a_misspelt_option_of_every_public_function_is_rejected_by_mypy(tmp_path: Path) -> None:
    lines = ["from typing import Any", "thing: Any = None"]
    wrong = {}
    for number, function in enumerate(FUNCTIONS):
        root, *inside = function.__qualname__.split(".")
        name = ".".join((f"f{number}", *inside))
        needed = [
            p for p in inspect.signature(function).parameters.values() if p.default is p.empty
        ]
        given = ["thing" for p in needed if p.kind is p.POSITIONAL_OR_KEYWORD]
        given += [f"{p.name}=thing" for p in needed if p.kind is p.KEYWORD_ONLY]
        known = next(iter(_names(function)), None)
        misspelt = f"{known or 'option'}_misspelt"
        lines.append(f"from {function.__module__} import {root} as f{number}")
        if known is not None:
            lines.append(f"{name}({', '.join([*given, f'{known}=thing'])})")
        lines.append(f"{name}({', '.join([*given, f'{misspelt}=thing'])})")
        wrong[len(lines)] = misspelt
    snippet = tmp_path / "snippet.py"
    snippet.write_text("\n".join(lines) + "\n")
    config = SRC.parent.parent / "pyproject.toml"
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", str(config)]
    done = subprocess.run(
        [*command, str(snippet)], capture_output=True, text=True, cwd=SRC.parent.parent, check=False
    )
    errors = re.findall(r"snippet\.py:(\d+): error: (.*?)(?:  \[|$)", done.stdout, re.MULTILINE)
    told = {int(line): words for line, words in errors}
    assert told.keys() == wrong.keys(), done.stdout
    for line, option in wrong.items():
        assert f'"{option}"' in told[line]


def _names(function: Callable[..., Any]) -> list[str]:
    """Give the names of all keyword arguments of a function."""
    found = []
    for p in inspect.signature(function).parameters.values():
        if p.kind is p.KEYWORD_ONLY and p.default is not p.empty:
            found.append(p.name)
        if p.kind is p.VAR_KEYWORD:
            keywords = getattr(options, str(p.annotation)[len("Unpack[") : -1])
            found += get_type_hints(keywords)
    return found


def test_the_page_of_options_is_what_the_module_gives() -> None:
    page = (SRC.parent.parent / "docs" / "options.md").read_text(encoding="utf-8")
    assert page == options_page(), "python -m coinhaze.options > docs/options.md"


def test_settings_of_the_page_have_the_types_and_defaults_of_the_options() -> None:
    pytest.importorskip("pydantic")
    from coinhaze.explore.query import Settings

    hints = get_type_hints(GraphOptions)
    for name in ("view", "time"):
        found = Settings.model_fields[name]
        assert found.annotation == hints[name]
        assert found.default == getattr(GraphOptions, name)
