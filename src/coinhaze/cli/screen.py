"""coinhaze screen: how much of what nodes hold came from a list."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from coinhaze.cli.options import (
    Command,
    command_line,
    named_files,
    nodes_of,
    settings_of,
    takes,
    tell_notes,
    tell_written,
    write_text,
)
from coinhaze.cli.waiting import wait_for
from coinhaze.options import GraphOptions, ReadOptions, known
from coinhaze.units import Unit

if TYPE_CHECKING:
    from coinhaze.screening.screen import Screening
    from coinhaze.screening.statement import ListFile, Statement

# Several, with commas between or one after another: they are shown side by side.
_POLICY = known(
    "policy",
    registry="coinhaze.observer.policies:taint_policies",
    several=True,
    default_words="all",
)
_LIMIT = known("limit", default=None, default_words="none")
ABOVE_LIMIT = 10  # the exit code
SUFFIXES = (".html", ".csv", ".json", ".parquet")


@click.command("screen", cls=Command)
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@takes(known("listed", required=True), _POLICY, "nodes", "top", "paths", "dust", _LIMIT)
@takes("case", "analyst")
@takes(ReadOptions, GraphOptions, known("time", default_words="temporal"))
@takes("strict", "as_json", known("output", metavar="FILE.html|.csv|.json|.parquet"))
def command(
    sources: tuple[str, ...],
    listed: str,
    policy: tuple[str, ...],
    nodes: tuple[str, ...],
    top: int,
    paths: int,
    as_json: bool,
    output: Path | None,
    strict: bool,
    dust: str | None,
    limit: float | None,
    case: str | None,
    analyst: str | None,
    **options: Any,
) -> None:
    """Screen a ledger: what share of each balance came from a list, by every rule side by side.

    A list that matches nothing is a result. With --limit, exit code 10 says that something is
    above it.

    Example: coinhaze screen transfers.csv --listed list.txt -o statement.html
    """
    from coinhaze.errors import InputError, UsageError
    from coinhaze.formats.lists.knowledge import read_listed
    from coinhaze.formats.money import unit_of
    from coinhaze.report.files import check_output, made_by, today
    from coinhaze.screening.screen import screen
    from coinhaze.screening.statement import ListFile, Statement, notes_of, verdict_words
    from coinhaze.solve.score import refuse_incomplete

    inputs: list[str | Path] = [*sources, *named_files(options)]
    if output is not None:
        check_output(output, [*inputs, listed], suffixes=SUFFIXES)
    names = read_listed(listed)
    if not names:
        raise InputError(f"{listed}: the list names nothing")
    requested = [name.strip() for names in policy for name in names.split(",")] or None
    named = nodes_of(nodes)
    if named == "all":
        raise UsageError("--nodes all: sinks are screened, or nodes that are named")
    chosen = None if named == "sinks" else named
    found = wait_for(
        "screening",
        lambda _: screen(
            list(sources), names, policies=requested, nodes=chosen, paths=paths,
            **settings_of(options),
        ),
    )  # fmt: skip
    if strict:
        refuse_incomplete(found.graph)
    shown_in = unit_of(found.graph.ledger)
    if dust is not None:
        found = replace(found, dust=shown_in.read(dust))
    listing = ListFile.read(Path(listed))
    about = made_by(inputs=inputs, command=command_line())
    statement = Statement(today(), case, analyst, limit)
    if output is not None or as_json:  # what is shown has them
        tell_notes(notes_of(found))
    if output is not None:
        _write(found, listing, about, statement, output, top, shown_in)
        for line in verdict_words(found, statement):
            click.echo(line, err=True)
        click.echo(found.graph.ledger.completeness.line(), err=True)
    if as_json:
        from coinhaze.screening.statement import screening_json

        click.echo(screening_json(found, listing, about, statement), nl=False)
    elif output is None:
        _show(found, listing, about, statement, top, shown_in)
    if limit is not None and len(found.above(limit)):
        raise click.exceptions.Exit(ABOVE_LIMIT)


def _show(
    found: Screening,
    listing: ListFile,
    about: dict[str, object],
    statement: Statement,
    top: int,
    unit: Unit,
) -> None:
    from coinhaze.report.grids import sections_text
    from coinhaze.report.terminal import show
    from coinhaze.screening.report import screening_sections
    from coinhaze.screening.statement import title_of

    sections = screening_sections(found, listing, about, statement, limit=top, unit=unit)
    show(sections_text(title_of(found, listing), sections))


def _write(
    found: Screening,
    listing: ListFile,
    about: dict[str, object],
    statement: Statement,
    output: Path,
    top: int,
    unit: Unit,
) -> None:
    from coinhaze.report.files import write_table
    from coinhaze.screening.report import screening_page
    from coinhaze.screening.statement import provenance_of, screening_json

    if output.suffix in (".csv", ".parquet"):
        made = provenance_of(found, listing, about, statement)
        tell_written(*write_table(found.to_arrow(), output, made))
    elif output.suffix == ".html":
        page = screening_page(found, listing, about, statement, top=top, unit=unit)
        write_text(output, page)
    else:
        write_text(output, screening_json(found, listing, about, statement))
