"""coinhaze origins, destinations, shared: where money of coins came from, and where it went."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from coinhaze.cli.options import (
    Command,
    F,
    check_files,
    command_line,
    form_of,
    inputs_of,
    labels_of,
    nodes_of,
    owners_of,
    settings_of,
    show_found,
    takes,
    tell_notes,
    tell_written,
    warn,
    write_text,
)
from coinhaze.cli.waiting import wait_for
from coinhaze.options import GraphOptions, ObserverOptions, ReadOptions, known

if TYPE_CHECKING:
    from coinhaze.report.destinations import DestinationsReport
    from coinhaze.report.origins import OriginsReport

Report = TypeVar("Report", "OriginsReport", "DestinationsReport")
SUFFIXES = {".json": "json", ".dot": "dot", ".html": "html", ".htm": "html"}  # others: text


def takes_node(function: F) -> F:
    """Give a command the arguments and options of a report on one node."""
    for add in (
        takes(
            "top",
            "hops",
            "labels",
            "owners",
            "form",
            "as_json",
            known("output", metavar="FILE.txt|.json|.html|.dot"),
        ),
        takes(
            ReadOptions,
            GraphOptions,
            ObserverOptions,
            known("accuracy", choices=("exact",)),
            "strict",
        ),
        click.argument("node"),
        click.argument("sources", nargs=-1, metavar="SOURCE..."),
    ):
        function = add(function)
    return function


def report_on_node(
    make: Callable[..., Report],
    text: Callable[[Report], Any],
    forms: Mapping[str, Callable[[Report, Mapping[str, object]], str]],
    command: str,
    doing: str,
    *,
    sources: tuple[str, ...],
    node: str,
    strict: bool,
    top: int,
    hops: int,
    labels: tuple[str, ...],
    owners: str | None,
    form: str | None,
    as_json: bool,
    output: Path | None,
    **options: Any,
) -> None:
    """Make a report on one node, and show or write it; exit 5 if the accuracy was not reached.

    `forms` are what it is written as beside text, by what --json and the output's name say.
    """
    from coinhaze.errors import AccuracyError, UsageError
    from coinhaze.report.files import check_place, made_by
    from coinhaze.solve.score import refuse_incomplete

    if not sources:
        raise UsageError(
            f"name a file and a node: coinhaze {command} SOURCE... NODE, the node last"
        )
    form = form_of(form, as_json)
    inputs = inputs_of(sources, options, labels=labels, owners=owners)
    if output is not None:
        check_place(output, inputs)
    names, holders = labels_of(labels), owners_of(owners)
    settings = settings_of(options)
    report = wait_for(
        doing,
        lambda _: make(
            list(sources), node, labels=names, owners=holders, hops=hops, limit=top, **settings
        ),
    )
    if strict:
        refuse_incomplete(report.graph)
        if report.shortfall is not None:
            raise AccuracyError(report.shortfall)
    tell_notes(tuple(note for note in report.notes if note != report.shortfall))
    if report.shortfall is not None:
        warn(report.shortfall)
    suffix = "" if output is None else output.suffix.lower()
    form = form or SUFFIXES.get(suffix, "text")
    about = made_by(inputs=inputs, command=command_line())
    from coinhaze.report import terminal

    if output is None and form == "text":
        terminal.show(text(report))
    elif output is not None and form == "text":
        write_text(output, terminal.written(text(report), width=100))
    elif output is None:
        click.echo(forms[form](report, about), nl=False)
    else:
        write_text(output, forms[form](report, about))
    if report.shortfall is not None:
        raise click.exceptions.Exit(AccuracyError.exit_code)


@click.command("origins", cls=Command)
@takes_node
def origins(**given: Any) -> None:
    """Show the sources of NODE's money, largest first, the ways it came, and its flow by hop.

    Example: coinhaze origins transfers.csv alice --time temporal
    """
    from coinhaze.report import origins as words

    forms = {
        "json": words.origins_json,
        "dot": lambda report, _: words.origins_dot(report),
        "html": words.origins_page,
    }
    report_on_node(words.explain, words.origins_text, forms, "origins", "tracing", **given)


@click.command("destinations", cls=Command)
@takes_node
def destinations(**given: Any) -> None:
    """Show where NODE's money went, largest share first, who holds it, and its flow by hop.

    Example: coinhaze destinations transfers.csv alice
    """
    from coinhaze.report import destinations as words

    forms = {
        "json": words.destinations_json,
        "dot": lambda report, _: words.destinations_dot(report),
        "html": words.destinations_page,
    }
    report_on_node(
        words.explain_forward, words.destinations_text, forms, "destinations", "following", **given
    )


@click.command("shared", cls=Command)
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE... [FIRST SECOND]")
@takes(ReadOptions, GraphOptions, ObserverOptions, known("accuracy", choices=("exact",)))
@takes(known("nodes", choices=(), default=()), "owners", "labels", known("top", default=5))
@takes(known("output", metavar="FILE.csv|.parquet"), "strict", "as_json")
def shared(
    sources: tuple[str, ...],
    nodes: tuple[str, ...],
    owners: str | None,
    labels: tuple[str, ...],
    top: int,
    output: Path | None,
    as_json: bool,
    strict: bool,
    **options: Any,
) -> None:
    """Compare where two coins came from, FIRST and SECOND; or all of --nodes, two by two.

    Example: coinhaze shared day.duckdb 5f1a...:0 9c02...:1
    """
    from coinhaze.errors import UsageError
    from coinhaze.report.files import made_by, made_from, write_table
    from coinhaze.report.shared import shared_json, shared_text
    from coinhaze.solve import shared
    from coinhaze.solve.score import refuse_incomplete

    coins = nodes_of(nodes) if nodes else list(sources[-2:])
    if isinstance(coins, str):
        raise UsageError(f"--nodes {coins} may be millions of coins: name those to compare")
    files = list(sources if nodes else sources[:-2])
    if not files:
        raise UsageError("name a file and two coins: coinhaze shared SOURCE... FIRST SECOND")
    inputs = inputs_of(files, options, labels=labels, owners=owners, nodes=nodes)
    check_files(inputs, output)
    table, names, settings = owners_of(owners), labels_of(labels), settings_of(options)
    found = wait_for(
        "comparing", lambda _: shared(files, coins, owners=table, labels=names, **settings)
    )
    tell_notes(found.notes)
    if strict:
        refuse_incomplete(found.graph)
    about = made_by(inputs=inputs, command=command_line())
    whole = made_from(found.graph.ledger, about, found.notes) | {"settings": found.settings}
    if output is not None:
        tell_written(*write_table(found.to_arrow(), output, whole))
    show_found(
        lambda: shared_text(found, limit=top),
        lambda: shared_json(found, about, limit=top),
        as_json=as_json, output=output,
    )  # fmt: skip
