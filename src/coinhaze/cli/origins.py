"""coinhaze origins: where one coin's money came from."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from coinhaze.cli.options import (
    accuracy_of,
    model_options,
    named_files,
    settings_of,
    strict_option,
    tell_notes,
)
from coinhaze.cli.waiting import wait_for

FORMS = ("text", "json", "dot", "html")


@click.command("origins")
@click.argument("sources", nargs=-1, metavar="SOURCE...")
@click.argument("node")
@model_options
@click.option("--accuracy", default="exact", help="exact, or the widest interval in bits.")
@strict_option
@click.option("--top", type=click.IntRange(1), default=10, help="How many sources to show.")
@click.option("--hops", type=click.IntRange(1), default=6, help="Steps back to show. [default: 6]")
@click.option("--labels", help="A FILE of addresses and what you call them: CSV, JSON, TagPack.")
@click.option("--as", "form", type=click.Choice(FORMS), help="How to tell it. [default: text]")
@click.option("--json", "as_json", is_flag=True, help="The same as --as json.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write to a file.")
def command(
    sources: tuple[str, ...],
    node: str,
    accuracy: str,
    strict: bool,
    top: int,
    hops: int,
    labels: str | None,
    form: str | None,
    as_json: bool,
    output: Path | None,
    **options: Any,
) -> None:
    """Show the sources of NODE's money, largest first, the ways it came, and its flow by hop.

    Example: coinhaze origins transfers.csv alice --time temporal
    """
    import numpy as np

    from coinhaze.errors import UsageError
    from coinhaze.explore.explain import explain
    from coinhaze.formats.lists.labels import read_labels
    from coinhaze.graph.holes import incomplete_notes
    from coinhaze.report.files import check_place
    from coinhaze.report.provenance import made_by
    from coinhaze.solve.score import refuse_incomplete

    if not sources:
        raise UsageError("name a file and a node: coinhaze origins SOURCE... NODE, the node last")
    if as_json and form not in (None, "json"):
        raise UsageError(f"--json and --as {form} ask for two things")
    width = accuracy_of(accuracy, "exact")
    inputs: list[str | Path] = [*sources, *named_files(options), *([labels] if labels else [])]
    if output is not None:
        check_place(output, inputs)
    known = {} if labels is None else read_labels(labels).names
    settings = settings_of(options) | {"accuracy": width}
    told = wait_for(
        "tracing",
        lambda _: explain(list(sources), node, labels=known, hops=hops, most=top, **settings),
    )
    chain = told.origins.chain
    if strict:
        refuse_incomplete(chain.graph)
    missing = incomplete_notes(chain.graph, np.array([told.origins.node]))
    tell_notes((*chain.notes, *missing))
    form = "json" if as_json else form or "text"
    about = made_by(inputs=inputs, command=" ".join(["coinhaze", *sys.argv[1:]]))
    _tell(told, form, about, output)


def _tell(told: Any, form: str, about: dict[str, object], output: Path | None) -> None:
    from coinhaze.report import origins as report

    if form == "text" and output is None:
        from rich.console import Console

        Console().print(report.told_text(told))
        return
    if form == "json":
        text = report.told_json(told, about)
    elif form == "dot":
        text = report.told_dot(told)
    elif form == "html":
        text = report.told_page(told, about)
    else:
        from io import StringIO

        from rich.console import Console

        console = Console(file=StringIO(), width=100)
        console.print(report.told_text(told))
        text = console.file.getvalue()  # type: ignore[attr-defined]
    if output is None:
        click.echo(text, nl=False)
        return
    from coinhaze.report.files import write_whole

    write_whole(output, lambda path: path.write_text(text, encoding="utf-8"))
    click.echo(f"wrote {output}", err=True)
