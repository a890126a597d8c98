"""coinhaze origins: where one coin's money came from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from coinhaze.cli.options import (
    Command,
    command_line,
    form_of,
    labels_of,
    named_files,
    owners_of,
    settings_of,
    takes,
    tell_notes,
    warn,
    write_text,
)
from coinhaze.cli.waiting import wait_for
from coinhaze.options import GraphOptions, ObserverOptions, ReadOptions, known

SUFFIXES = {".json": "json", ".dot": "dot", ".html": "html", ".htm": "html"}  # others: text


@click.command("origins", cls=Command)
@click.argument("sources", nargs=-1, metavar="SOURCE...")
@click.argument("node")
@takes(ReadOptions, GraphOptions, ObserverOptions, known("accuracy", choices=("exact",)), "strict")
@takes(
    "top",
    "hops",
    "labels",
    "owners",
    "form",
    "as_json",
    known("output", metavar="FILE.txt|.json|.html|.dot"),
)
def command(
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
    """Show the sources of NODE's money, largest first, the ways it came, and its flow by hop.

    Example: coinhaze origins transfers.csv alice --time temporal
    """
    import numpy as np

    from coinhaze.errors import AccuracyError, UsageError
    from coinhaze.graph.holes import incomplete_notes
    from coinhaze.report.files import check_place, made_by
    from coinhaze.report.origins import explain
    from coinhaze.solve.score import refuse_incomplete

    if not sources:
        raise UsageError("name a file and a node: coinhaze origins SOURCE... NODE, the node last")
    form = form_of(form, as_json)
    inputs: list[str | Path] = [*sources, *named_files(options), *labels]
    inputs += [] if owners is None else [owners]
    if output is not None:
        check_place(output, inputs)
    names, table = labels_of(labels), owners_of(owners)
    settings = settings_of(options)
    explained = wait_for(
        "tracing",
        lambda _: explain(
            list(sources), node, labels=names, owners=table, hops=hops, limit=top, **settings
        ),
    )
    chain = explained.origins.chain
    shortfall = explained.origins.shortfall
    if strict:
        refuse_incomplete(chain.graph)
        if shortfall is not None:
            raise AccuracyError(shortfall)
    missing = incomplete_notes(chain.graph, np.array([explained.origins.node]))
    tell_notes((*chain.notes, *missing))
    if shortfall is not None:
        warn(shortfall)
    suffix = "" if output is None else output.suffix.lower()
    form = form or SUFFIXES.get(suffix, "text")
    about = made_by(inputs=inputs, command=command_line())
    _tell(explained, form, about, output)
    if shortfall is not None:
        raise click.exceptions.Exit(AccuracyError.exit_code)


def _tell(explained: Any, form: str, about: dict[str, object], output: Path | None) -> None:
    from coinhaze.report import origins as report

    if form == "text" and output is None:
        from coinhaze.report.terminal import show

        show(report.origins_text(explained))
        return
    if form == "json":
        text = report.origins_json(explained, about)
    elif form == "dot":
        text = report.origins_dot(explained)
    elif form == "html":
        text = report.origins_page(explained, about)
    else:
        from coinhaze.report.terminal import written

        text = written(report.origins_text(explained), width=100)
    if output is None:
        click.echo(text, nl=False)
        return
    write_text(output, text)
