"""Every option, once: its type, default, choices, help text and spelling on the command line.

One frozen dataclass for each subject. Keyword arguments of the public functions, options of the
commands, the settings in a cache key, the settings of the web page and the page of options in the
documentation are made from these fields, or compared with them by a test.

>>> [option.spelling for option in options_of(ReadOptions)][:3]
['--format', '--complete', '--from']
>>> known("view").choices
('coin', 'address', 'account')
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, Union, Unpack, get_args, get_origin, get_type_hints

from coinhaze.options.commands import CompareOptions as CompareOptions
from coinhaze.options.commands import GrowthOptions as GrowthOptions
from coinhaze.options.commands import HistoryOptions as HistoryOptions
from coinhaze.options.commands import IngestOptions as IngestOptions
from coinhaze.options.commands import KnowledgeOptions as KnowledgeOptions
from coinhaze.options.commands import LabOptions as LabOptions
from coinhaze.options.commands import OriginsOptions as OriginsOptions
from coinhaze.options.commands import RobustnessOptions as RobustnessOptions
from coinhaze.options.commands import ScreenOptions as ScreenOptions
from coinhaze.options.commands import ServeOptions as ServeOptions
from coinhaze.options.commands import SimulateOptions as SimulateOptions
from coinhaze.options.commands import SinceOptions as SinceOptions
from coinhaze.options.commands import WalletOptions as WalletOptions
from coinhaze.options.keywords import GraphKeywords as GraphKeywords
from coinhaze.options.keywords import HistoryKeywords as HistoryKeywords
from coinhaze.options.keywords import HistoryScoreKeywords as HistoryScoreKeywords
from coinhaze.options.keywords import LedgerKeywords as LedgerKeywords
from coinhaze.options.keywords import ModelKeywords as ModelKeywords
from coinhaze.options.keywords import NamedScoreKeywords as NamedScoreKeywords
from coinhaze.options.keywords import ObserverKeywords as ObserverKeywords
from coinhaze.options.keywords import ReadKeywords as ReadKeywords
from coinhaze.options.keywords import ScoreKeywords as ScoreKeywords
from coinhaze.options.keywords import ScoringKeywords as ScoringKeywords
from coinhaze.options.keywords import SolveKeywords as SolveKeywords
from coinhaze.options.library import Accuracy as Accuracy
from coinhaze.options.library import Clustering as Clustering
from coinhaze.options.library import Device as Device
from coinhaze.options.library import GraphOptions as GraphOptions
from coinhaze.options.library import Grouping as Grouping
from coinhaze.options.library import MeasureOptions as MeasureOptions
from coinhaze.options.library import Method as Method
from coinhaze.options.library import Nodes as Nodes
from coinhaze.options.library import ObserverOptions as ObserverOptions
from coinhaze.options.library import Opening as Opening
from coinhaze.options.library import OutputOptions as OutputOptions
from coinhaze.options.library import Over as Over
from coinhaze.options.library import PolicyLike as PolicyLike
from coinhaze.options.library import Preset as Preset
from coinhaze.options.library import ReadOptions as ReadOptions
from coinhaze.options.library import SolveOptions as SolveOptions
from coinhaze.options.library import Time as Time
from coinhaze.options.library import Unknown as Unknown
from coinhaze.options.library import View as View
from coinhaze.options.option import About as About
from coinhaze.options.option import Option as Option
from coinhaze.options.option import option as option

SUBJECTS: tuple[type, ...] = (
    ReadOptions,
    GraphOptions,
    ObserverOptions,
    SolveOptions,
    OutputOptions,
    MeasureOptions,
    OriginsOptions,
    SimulateOptions,
    GrowthOptions,
    SinceOptions,
    RobustnessOptions,
    ScreenOptions,
    WalletOptions,
    KnowledgeOptions,
    LabOptions,
    CompareOptions,
    IngestOptions,
    HistoryOptions,
    ServeOptions,
)
# What changes no score: the same question with another of these has the same answer.
LIMITS = frozenset({"threads", "workers", "tls_ca", "tls_cert", "tls_key", "memory", "seconds"})
# Their options reach the library only where they are given.
MODEL = (ReadOptions, GraphOptions, ObserverOptions)
PASSED_ON = (*MODEL, SolveOptions)


# Former spellings by command, and what replaced them. They are understood until version 2.
FORMER: Mapping[str, Mapping[str, str]] = {
    "score": {"--all": "--nodes all", "--history": "--pool-history"},
    "origins": {"--history": "--pool-history", "--as json": "--json"},
    "wallet": {
        "--coins": "--nodes",
        "--exposed": "--listed",
        "--width": "--accuracy",
        "--most": "--max-transactions",
        "--history": "--pool-history",
        "--as json": "--json",
    },
    "compare": {
        "--mean-error": "--accuracy",
        "--conventions ours": "",
        "--conventions": "--preset",
        "--history": "--pool-history",
    },
    "robustness": {"--coin": "--nodes", "--history": "--pool-history"},
    "sensitivity": {"--history": "--pool-history"},
    "serve": {"--list": "--listed"},
}


@cache
def options_of(subject: type) -> tuple[Option, ...]:
    """Give the options of a subject, with all that its fields tell."""
    assert is_dataclass(subject)
    hints = get_type_hints(subject)
    made = []
    for each in fields(subject):
        about: Option = each.metadata["option"]
        kind, words, several, other = _described(hints[each.name])
        made.append(
            replace(
                about,
                name=each.name,
                subject=subject,
                spelling=about.spelling or "--" + each.name.strip("_").replace("_", "-"),
                kind=kind,
                choices=about.choices or words,
                only_choices=about.only_choices or bool(words and not other),
                several=about.several or several,
                default=each.default,
                passed_on=about.passed_on or subject in PASSED_ON,
            )
        )
    return tuple(made)


def _described(hint: Any) -> tuple[type, tuple[str, ...], bool, bool]:
    """Tell from a type what kind a value is, its words, if there are several, and other values."""
    parts = [p for p in _parts(hint) if p is not type(None)]
    words = tuple(w for p in parts if get_origin(p) is Literal for w in get_args(p))
    others = [p for p in parts if get_origin(p) is not Literal]
    several = any(get_origin(p) is tuple for p in others)
    kinds = [p for p in others if p in (bool, int, float, Path)]
    kind = kinds[0] if len(others) == 1 and kinds else str
    return kind, words, several, bool(others)


def _parts(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)


def names_of(*subjects: type) -> frozenset[str]:
    """Give the names of the options of subjects."""
    return frozenset(option.name for subject in subjects for option in options_of(subject))


def known(name: str, **changes: Unpack[About]) -> Option:
    """Give an option by its name; `changes` are what is different in one command.

    >>> known("seconds", default=120.0).help_text()
    'How many seconds one solve may take. [default: 120]'
    """
    found = next(o for subject in SUBJECTS for o in options_of(subject) if o.name == name)
    if "default" in changes:  # the command has its own, whatever the library's
        found = replace(found, passed_on=False)
    return replace(found, **changes)
