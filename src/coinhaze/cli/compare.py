"""coinhaze compare: the paper's tables and figures for any ledgers."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from coinhaze.cli.options import (
    SEED,
    WORKERS,
    Command,
    ledger_settings,
    open_cluster,
    say_replaced,
    takes,
    warn,
)
from coinhaze.cli.waiting import wait_for
from coinhaze.options import CompareOptions, GraphOptions, Option, ReadOptions, known

if TYPE_CHECKING:
    from coinhaze.compare.ledgers import ComparedLedger, ScoringSettings
    from coinhaze.solve.pool import WorkerCluster

# What a ledger of a settings file is, beside the options that say how it is read.
_PLACE = {"ledger", "size", "seed"}
_FORMER = {"history": "pool-history"}


@click.command("compare", cls=Command)
@click.argument("ledgers", nargs=-1, metavar="[LEDGER...]")
@takes(known("output", required=True, metavar="FOLDER"), CompareOptions, "size", SEED, "figures")
@takes("preset", ReadOptions, GraphOptions, known("time", default_words="both"))
@takes("policy", "links", "listed")
@takes(known("history", several=True, metavar="NAME=FILE"), "strict")
@takes(known("accuracy", choices=(), default=0.05), known("seconds", default=60.0))
@takes(known("walks", default=10_000, default_words=""), "threads", *WORKERS, "memory")
def command(
    ledgers: tuple[str, ...],
    output: Path,
    settings: Path | None,
    add: bool,
    replace: bool,
    weeks: bool,
    size: float,
    seed: int,
    again: bool,
    figures: bool,
    published: bool,
    **options: Any,
) -> None:
    """Compare ledgers: the paper's tables and figures, with what it takes to check them.

    LEDGER is what coinhaze score reads, and week:dai (bitcoin, ethereum, usdc, zcash) is a made-up
    week. NAME=LEDGER gives it another name; files with one NAME, one after another, are one ledger.
    Options are for every ledger named; a settings file has those of each by itself. A run that was
    stopped goes on where it stopped.

    Example: coinhaze compare week:dai mine=transfers.csv --size 0.1 -o report
    """
    from coinhaze.compare.report import with_added, write_manifest, write_report
    from coinhaze.compare.run import score_ledgers
    from coinhaze.errors import AccuracyError, UsageError
    from coinhaze.report.terminal import show

    if again == bool(ledgers or weeks or settings):
        raise UsageError(
            "name ledgers to compare, --weeks or --settings; or --again, alone, for a folder"
        )
    if (again and add) or (replace and not add):
        raise UsageError("--add takes ledgers to add, and --replace belongs to --add")
    if not again:
        asking = _asking(options)
        own = _own_settings(options)
        compared = _compared(ledgers, weeks, options["history"], own, size=size, seed=seed)
        if settings is not None:
            compared += read_settings(settings, own, size=size, seed=seed)
        there = with_added(output, compared, replace=replace) if add else None
        with open_cluster(options) as cluster:
            scores = score_ledgers(
                compared,
                output,
                asking if cluster is None else _by(cluster, asking),
                do=partial(wait_for, by=cluster),
                tell=_tell,
            )
        if there is not None:
            scores, published = there.scores(scores), published or there.published
        write_manifest(output, scores, published=published)
    # Not in a thread of its own, where some of matplotlib's backends cannot draw.
    report = write_report(output, figures=figures)
    for grid in report.grids:
        show(grid.rich(), "")
    for path in report.written:
        if path.suffix in (".csv", ".html"):
            _tell(f"wrote {path}")
    for line in report.shortfalls:
        warn(line)
    if report.shortfalls:
        raise click.exceptions.Exit(AccuracyError.exit_code)


def _by(cluster: WorkerCluster, asking: ScoringSettings) -> ScoringSettings:
    """Let workers solve, in place of threads."""
    from dataclasses import replace

    budget = replace(asking.budget, threads=cluster.count, backend=cluster.open)
    return replace(asking, budget=budget)


def _tell(line: str) -> None:
    click.echo(line, err=True)


def _own_settings(options: dict[str, Any]) -> dict[str, str | bool]:
    """Give the options that are settings of each ledger, as they were written."""
    given = {
        name.replace("-", "_"): options[option.name]
        for name, option in ledger_settings().items()
        if option.name != "history"
    }
    return {name: value for name, value in given.items() if value not in (None, False)}


def _compared(
    ledgers: tuple[str, ...],
    weeks: bool,
    histories: tuple[str, ...],
    settings: dict[str, str | bool],
    *,
    size: float,
    seed: int,
) -> list[ComparedLedger]:
    from dataclasses import replace

    from coinhaze.compare.ledgers import all_weeks, compared_of
    from coinhaze.errors import UsageError

    compared = compared_of(ledgers, size=size, seed=seed)
    compared += all_weeks(size=size, seed=seed) if weeks else []
    compared = [replace(one, settings=settings) for one in compared]
    named = {one.name: k for k, one in enumerate(compared)}
    for text in histories:
        name, equals, file = text.partition("=")
        if not equals or name not in named:
            raise UsageError(
                f"--pool-history is NAME=FILE, NAME one of {', '.join(named)}, not {text!r}"
            )
        compared[named[name]] = replace(compared[named[name]], history=Path(file))
    return compared


def _asking(options: dict[str, Any]) -> Any:
    from coinhaze.compare.ledgers import CONVENTIONS, ScoringSettings
    from coinhaze.errors import UsageError
    from coinhaze.solve.pool.limits import Budget, bytes_of

    if not options["accuracy"] > 0:
        raise UsageError(f"--accuracy is above 0 bits, not {options['accuracy']}")
    memory = options["memory"]
    return ScoringSettings(
        settings=CONVENTIONS[options["preset"] or "ours"],
        budget=Budget(options["threads"], None if memory is None else bytes_of(memory)),
        mean_error=options["accuracy"],
        **{name: options[name] for name in ("seconds", "walks", "strict")},
    )


def read_settings(
    path: Path, defaults: Mapping[str, str | bool], *, size: float, seed: int
) -> list[ComparedLedger]:
    """Read the ledgers a settings file names, each with its settings; name all that is wrong.

    Paths are taken from the folder the file lies in. `defaults` are settings of every ledger that
    has no others.
    """
    from coinhaze.compare.ledgers import problems_of
    from coinhaze.errors import UsageError

    wrong: list[str] = []
    found = []
    for name, table in _tables(path).items():
        one, problems = _compared_by(path.parent, name, table, defaults, size=size, seed=seed)
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


def _compared_by(
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
    there = ledger_settings()
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
        key.replace("-", "_"): str(folder / value) if _is_file(there.get(key), value) else value
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
