"""A settings file of `coinhaze compare`: a table for each ledger, read whole before any work."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coinhaze.cli.options import ledger_settings, say_replaced

if TYPE_CHECKING:
    from coinhaze.compare.ledgers import ComparedLedger
    from coinhaze.options import Option

# What a ledger is, beside the options of `coinhaze score` that say how it is read.
_PLACE = {"ledger", "size", "seed"}
_FORMER = {"history": "pool-history"}


def read_settings(
    path: Path, defaults: Mapping[str, str | bool], *, size: float, seed: int
) -> list[ComparedLedger]:
    """Read the ledgers a settings file names, each with its settings; name all that is wrong.

    Paths are taken from the folder the file lies in. `defaults` are settings of every ledger that
    has no others.
    """
    from coinhaze.compare.settings import problems_of
    from coinhaze.errors import UsageError

    wrong: list[str] = []
    found = []
    for name, table in _tables(path).items():
        one, problems = _compared(path.parent, name, table, defaults, size=size, seed=seed)
        if one is not None and not problems:
            problems = problems_of(one)
        wrong += [f"{path}: [{name}] {problem}" for problem in problems]
        found += [] if one is None else [one]
    if wrong:
        raise UsageError("\n".join(wrong))
    return found


def _tables(path: Path) -> dict[str, Any]:
    from coinhaze.errors import UsageError

    try:
        with open(path, "rb") as file:
            tables = tomllib.load(file)
    except (OSError, ValueError) as error:  # ValueError: not TOML, or not UTF-8
        why = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"{path}: cannot be read as TOML: {why}") from None
    if not tables:
        raise UsageError(f"{path}: names no ledger: write [NAME] and below it ledger = 'FILE'")
    return tables


def _compared(
    folder: Path,
    name: str,
    table: Any,
    defaults: Mapping[str, str | bool],
    *,
    size: float,
    seed: int,
) -> tuple[ComparedLedger | None, list[str]]:
    """Understand one table; give its ledger if it names one, and what is wrong."""
    from coinhaze.compare.ledgers import ComparedLedger, Week, week_of
    from coinhaze.errors import UsageError

    if not isinstance(table, dict):
        return None, [f"is {table!r}, not a table of settings: write [NAME] above a ledger's own"]
    for key in _FORMER.keys() & table.keys():
        say_replaced(key, _FORMER[key])
    table = {_FORMER.get(key, key): value for key, value in table.items()}
    known = ledger_settings()
    problems = _wrong_values(table)
    given = table.get("ledger")
    places = [given] if isinstance(given, str) else given
    if not isinstance(places, list) or not places or not all(isinstance(p, str) for p in places):
        return None, [*problems, "ledger: write a file, a list of files, or week:NAME"]
    source: tuple[Path, ...] | Week | None = None
    try:
        if len(places) == 1:
            source = week_of(places[0], table.get("size", size), table.get("seed", seed))
    except (UsageError, TypeError) as error:
        return None, [*problems, str(error)]
    if source is None:
        source = tuple(folder / place for place in places)
        problems += [f"ledger: {p}: no such file or folder" for p in source if not p.exists()]
        problems += [
            f"{key}: only made-up weeks have it" for key in ("size", "seed") if key in table
        ]
    settings = {
        key.replace("-", "_"): str(folder / value) if _is_file(known.get(key), value) else value
        for key, value in table.items()
        if key not in _PLACE and value is not False
    }
    history = settings.pop("pool_history", None)
    merged = {key: value for key, value in defaults.items() if key not in table} | settings
    merged = {key: value if value is True else str(value) for key, value in merged.items()}
    one = ComparedLedger(name, source, None if history is None else Path(str(history)), merged)
    return one, problems


def _is_file(option: Option | None, value: object) -> bool:
    """Tell whether an option's value names a file, and is none of the words it may be."""
    names = option is not None and option.is_file and value not in option.choices
    return names and isinstance(value, str)


def _wrong_values(table: Mapping[str, Any]) -> list[str]:
    options = ledger_settings()
    wrong = []
    for key, value in table.items():
        if key in _PLACE:
            continue
        option = options.get(key)
        if option is None:
            wrong.append(
                f"{key}: no such setting; there are {', '.join(sorted(_PLACE | {*options}))}"
            )
        elif option.kind is bool:
            wrong += [] if isinstance(value, bool) else [f"{key}: is true or false, not {value!r}"]
        elif option.only_choices:
            choices = option.all_choices()
            listed = ", ".join(choices)
            wrong += [] if value in choices else [f"{key}: is one of {listed}, not {value!r}"]
        elif not isinstance(value, str) and not (key in ("from", "to") and type(value) is int):
            wrong.append(f"{key}: is text, not {value!r}")
    return wrong
