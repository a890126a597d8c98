"""coinhaze compare: the paper's tables and figures for any ledgers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from coinhaze.cli.options import flag_options, some_options, strict_option, warn
from coinhaze.cli.waiting import wait_for

if TYPE_CHECKING:
    from coinhaze.compare.ledgers import ComparedLedger


@click.command("compare")
@click.argument("ledgers", nargs=-1, metavar="[LEDGER...]")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), required=True, help="A folder for it all."
)
@click.option(
    "--settings", type=click.Path(path_type=Path), help="A FILE.toml: ledgers and their settings."
)
@click.option("--add", is_flag=True, help="Add the ledgers to the report that is there.")
@click.option("--replace", is_flag=True, help="With --add: take the place of those of that name.")
@click.option("--weeks", is_flag=True, help="Add the paper's five weeks, made up.")
@click.option("--size", type=float, default=1.0, show_default=True, help="Part of a made-up week.")
@click.option("--seed", type=int, default=1, show_default=True, help="Which made-up week.")
@click.option("--again", is_flag=True, help="Score nothing: make the rest from the score files.")
@click.option("--figures/--no-figures", default=True, help="Figures and the page, or tables only.")
@click.option("--published", is_flag=True, help="The paper's own figures beside its weeks.")
@click.option(
    "--conventions", type=click.Choice(["ours", "paper"]), default="ours",
    help="Whose rules make the graphs. [default: ours]",
)  # fmt: skip
@some_options(
    "--format",
    "--from",
    "--to",
    "--token",
    "--unknown",
    "--view",
    "--time",
    "--opening",
    "--mint",
    "--pools",
    "--clusters",
    "--policy",
    "--links",
)
@flag_options
@strict_option
@click.option("--listed", help="A FILE with one name a line: exposure to these beside the bits.")
@click.option("--history", multiple=True, help="NAME=FILE: what entered a ledger's pools before.")
@click.option(
    "--mean-error", type=click.FloatRange(0, min_open=True), default=0.05, show_default=True,
    help="Bits that a mean may err by.",
)  # fmt: skip
@click.option(
    "--seconds", type=click.FloatRange(0), default=60.0, show_default=True,
    help="Seconds of one core for exact or proven scores; else draws.",
)  # fmt: skip
@click.option(
    "--walks", type=click.IntRange(0), default=10_000, show_default=True,
    help="Walks forward from sources; 0 for none.",
)  # fmt: skip
@click.option("--threads", type=click.IntRange(1), help="How many threads to use.")
@click.option("--memory", help="The most the process may take, such as 8GB.")
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
    from coinhaze.cli.options import option_kinds

    names = [name.replace("-", "_") for name in option_kinds() if name != "history"]
    given = {name: options[name] for name in names}
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
                f"--history is NAME=FILE, NAME one of {', '.join(named)}, not {text!r}"
            )
        compared[named[name]] = replace(compared[named[name]], history=Path(file))
    return compared


def _asking(options: dict[str, Any]) -> Any:
    from coinhaze.compare.run import CONVENTIONS, ScoringSettings
    from coinhaze.solve.pool.limits import Budget, bytes_of

    memory = options["memory"]
    return ScoringSettings(
        settings=CONVENTIONS[options["conventions"]],
        budget=Budget(options["threads"], None if memory is None else bytes_of(memory)),
        **{name: options[name] for name in ("mean_error", "seconds", "walks", "strict")},
    )
