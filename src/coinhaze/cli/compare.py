"""coinhaze compare: the paper's tables and figures for any ledgers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from coinhaze.cli.options import SEED, Command, ledger_settings, takes, warn
from coinhaze.cli.waiting import wait_for
from coinhaze.options import CompareOptions, GraphOptions, ReadOptions, known

if TYPE_CHECKING:
    from coinhaze.compare.ledgers import ComparedLedger


@click.command("compare", cls=Command)
@click.argument("ledgers", nargs=-1, metavar="[LEDGER...]")
@takes(known("output", required=True, metavar="FOLDER"), CompareOptions, "size", SEED, "figures")
@takes("preset", ReadOptions, GraphOptions, known("time", default_words="both"))
@takes("policy", "links", "listed")
@takes(known("history", several=True, metavar="NAME=FILE"), "strict")
@takes(known("accuracy", choices=(), default=0.05), known("seconds", default=60.0))
@takes(known("walks", default=10_000, default_words=""), "threads", "memory")
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
    from rich.console import Console

    from coinhaze.compare.report import with_added, write_manifest, write_report
    from coinhaze.compare.run import score_ledgers
    from coinhaze.errors import AccuracyError, UsageError

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
            from coinhaze.cli.compare_settings import read_settings

            compared += read_settings(settings, own, size=size, seed=seed)
        there = with_added(output, compared, replace=replace) if add else None
        scores = score_ledgers(compared, output, asking, do=wait_for, tell=_tell)
        if there is not None:
            scores, published = there.scores(scores), published or there.published
        write_manifest(output, scores, published=published)
    # Not in a thread of its own, where some of matplotlib's backends cannot draw.
    report = write_report(output, figures=figures)
    for grid in report.grids:
        Console().print(grid.rich(), "")
    for path in report.written:
        if path.suffix in (".csv", ".html"):
            _tell(f"wrote {path}")
    for line in report.shortfalls:
        warn(line)
    if report.shortfalls:
        raise click.exceptions.Exit(AccuracyError.exit_code)


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
    from coinhaze.compare.run import CONVENTIONS, ScoringSettings
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
