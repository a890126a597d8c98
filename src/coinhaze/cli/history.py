"""coinhaze history: a chain of coins from its first block, and the bits of every unspent coin."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from coinhaze.cli.options import (
    FIGURES,
    Command,
    command_line,
    settings_of,
    takes,
    tell_notes,
    tell_written,
    write_text,
)
from coinhaze.cli.waiting import wait_counting, wait_for
from coinhaze.options import Grouping, ReadOptions, known

if TYPE_CHECKING:
    from coinhaze.history import HistoryScores


@click.group("history")
def command() -> None:
    """Score every unspent coin of a chain since its first block.

    Example: coinhaze history index chain.history blocks/*.json --complete
    """


@command.command("index", cls=Command)
@click.argument("history", type=click.Path(path_type=Path))
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@takes(ReadOptions)
def index(history: Path, sources: tuple[str, ...], **options: Any) -> None:
    """Read blocks into HISTORY, a folder; or append what comes after its last block.

    Example: coinhaze history index chain.history chain.duckdb --complete
    """
    from coinhaze.history import History

    settings = settings_of(options)
    made = wait_counting(
        "indexing",
        "transactions",
        lambda note: History.index(history, list(sources), progress=note, **settings),
    )
    about = made.manifest
    tell_notes(about.notes)
    click.echo(
        f"{history}: {about.transactions:,} transactions, {about.rows:,} rows, {about.terms:,} "
        f"terms, {about.sources:,} sources, {about.coins:,} unspent coins; {_span(made)}"
    )
    click.echo(made.completeness.line())


@command.command("score", cls=Command)
@click.argument("history", type=click.Path(path_type=Path))
@takes(known("accuracy", default="preview"), "draws", "miss", "simultaneous", "seed")
@takes("threads", "memory", known("output", metavar="FILE.csv|.json|.parquet"), "as_json")
def score(history: Path, output: Path | None, as_json: bool, accuracy: Any, **options: Any) -> None:
    """Score every unspent coin of HISTORY, and keep the scores there.

    Example: coinhaze history score chain.history --draws 1024 -o scores.parquet
    """
    from coinhaze.history import History
    from coinhaze.report.files import check_output

    if output is not None:
        check_output(output)
    settings = {name: value for name, value in options.items() if value is not None}
    opened = History.open(history)
    scores = wait_for(
        "scoring",
        lambda progress: opened.score(accuracy=accuracy, progress=progress, **settings),
    )
    if output is not None:
        _write(scores, output, _about(opened))
    if as_json:
        click.echo(_json(scores, _about(opened)), nl=False)
    click.echo(scores.line(), err=output is not None or as_json)


@command.command("show", cls=Command)
@click.argument("history", type=click.Path(path_type=Path))
@click.argument("coin", metavar="TXID:VOUT")
@takes("top", "as_json")
def show(history: Path, coin: str, top: int, as_json: bool) -> None:
    """Show one coin of HISTORY: its bits, its place among unspent coins, and its origins.

    Example: coinhaze history show chain.history TXID:0
    """
    from coinhaze.history import History

    opened = History.open(history)
    found = wait_for("walking back", lambda _: opened.origins(coin))
    if as_json:
        document = {"provenance": _about(opened), **found.as_dict(top)}
        click.echo(json.dumps(document, indent=1, allow_nan=False))
        return
    from coinhaze.history.table import origins_grid
    from coinhaze.report import terminal

    terminal.show(origins_grid(found, top, opened.unit).rich())


@command.command("table", cls=Command)
@click.argument("history", type=click.Path(path_type=Path))
@takes("group", "figure", known("output", metavar="FILE.csv|.json|.parquet"), "as_json")
def table(
    history: Path, group: Grouping, figure: Path | None, output: Path | None, as_json: bool
) -> None:
    """Show bits of the unspent coins of HISTORY by year, height, value or age.

    Example: coinhaze history table chain.history --group-by age --figure age.png
    """
    from coinhaze.history import History
    from coinhaze.history.table import save_table, table_grid
    from coinhaze.report.files import check_output, write_table

    if output is not None:
        check_output(output)
    if figure is not None:
        check_output(figure, suffixes=FIGURES)
    opened = History.open(history)
    scores = opened.scores()
    made = opened.table(group)
    title = f"{history.name}: unspent coins by {group}"
    document = {"provenance": _about(opened), "table": made.to_pylist()}
    text = json.dumps(document, indent=1, allow_nan=False) + "\n"
    if output is not None and output.suffix == ".json":
        write_text(output, text)
    elif output is not None:
        tell_written(*write_table(made, output, _about(opened)))
    if figure is not None:
        save_table(made, group, figure, title=title)
        tell_written(figure)
    if as_json:
        click.echo(text, nl=False)
    elif output is None:
        from coinhaze.report import terminal

        terminal.show(table_grid(made, group, title, scores.line(), opened.unit).rich())


def _about(history: Any) -> dict[str, object]:
    from coinhaze.report.files import made_by

    about = history.manifest
    return made_by(command=command_line()) | {
        "history": history.path.name,
        "blocks": [about.first_height, about.last_height],
        "tip": about.tip,
        "complete": about.complete,
        "transactions": about.transactions,
        "scored": dict(about.scored),
        "unit": history.unit.spelling,
        "completeness": history.completeness.record(),
        "notes": list(about.notes),
    }


def _span(history: Any) -> str:
    about = history.manifest
    known = about.first_height >= 0
    span = f"blocks {about.first_height} to {about.last_height}" if known else "no heights"
    begins = "from the first block" if about.complete else "a window: earlier coins are sources"
    return f"{span}, {begins}"


def _json(scores: HistoryScores, about: dict[str, object]) -> str:
    document = {"provenance": about, "scores": scores.to_arrow().to_pylist()}
    return json.dumps(document, indent=1, allow_nan=False) + "\n"


def _write(scores: HistoryScores, output: Path, about: dict[str, object]) -> None:
    from coinhaze.history.table import write_coins

    if output.suffix == ".json":
        write_text(output, _json(scores, about))
        return
    tell_written(*write_coins(scores, output, about))
