"""coinhaze origins: where one coin's money came from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import click

from coinhaze.cli.options import (
    Command,
    F,
    command_line,
    form_of,
    inputs_of,
    labels_of,
    owners_of,
    settings_of,
    takes,
    tell_notes,
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


@dataclass(frozen=True)
class ReportOfNode(Generic[Report]):
    """How a report on one node is made, and written in each form."""

    make: Callable[..., Report]
    text: Callable[[Report], Any]
    json: Callable[[Report, Mapping[str, object]], str]
    dot: Callable[[Report], str]
    html: Callable[[Report, Mapping[str, object]], str]

    def written(self, report: Report, form: str, about: Mapping[str, object]) -> str:
        """Return a report in one form."""
        if form == "json":
            return self.json(report, about)
        if form == "dot":
            return self.dot(report)
        if form == "html":
            return self.html(report, about)
        from coinhaze.report.terminal import written

        return written(self.text(report), width=100)


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
    kind: ReportOfNode[Report],
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
    """Make a report on one node, and show or write it; exit 5 if the accuracy was not reached."""
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
        lambda _: kind.make(
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
    if output is not None:
        write_text(output, kind.written(report, form, about))
    elif form == "text":
        from coinhaze.report.terminal import show

        show(kind.text(report))
    else:
        click.echo(kind.written(report, form, about), nl=False)
    if report.shortfall is not None:
        raise click.exceptions.Exit(AccuracyError.exit_code)


@click.command("origins", cls=Command)
@takes_node
def command(**given: Any) -> None:
    """Show the sources of NODE's money, largest first, the ways it came, and its flow by hop.

    Example: coinhaze origins transfers.csv alice --time temporal
    """
    from coinhaze.report import origins as words

    kind = ReportOfNode(
        words.explain,
        text=words.origins_text,
        json=words.origins_json,
        dot=words.origins_dot,
        html=words.origins_page,
    )
    report_on_node(kind, "origins", "tracing", **given)
