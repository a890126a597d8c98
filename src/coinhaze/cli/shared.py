"""coinhaze shared: what coins have in common."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from coinhaze.cli.options import (
    Command,
    command_line,
    inputs_of,
    labels_of,
    nodes_of,
    owners_of,
    settings_of,
    takes,
    tell_notes,
    tell_written,
)
from coinhaze.cli.waiting import wait_for
from coinhaze.options import GraphOptions, ObserverOptions, ReadOptions, known


@click.command("shared", cls=Command)
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE... [FIRST SECOND]")
@takes(ReadOptions, GraphOptions, ObserverOptions, known("accuracy", choices=("exact",)))
@takes(known("nodes", choices=(), default=()), "owners", "labels", known("top", default=5))
@takes(known("output", metavar="FILE.csv|.parquet"), "strict", "as_json")
def command(
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
    from coinhaze.report.files import check_output, made_by, made_from, write_table
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
    if output is not None:
        check_output(output, inputs, suffixes=(".csv", ".parquet"))
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
    if as_json:
        click.echo(shared_json(found, about, limit=top), nl=False)
    elif output is None:
        from coinhaze.report.terminal import show

        show(shared_text(found, limit=top))
