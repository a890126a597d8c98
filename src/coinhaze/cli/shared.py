"""coinhaze shared: what coins have in common."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from coinhaze.cli.options import (
    Command,
    command_line,
    labels_of,
    named_files,
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
@takes(known("output", metavar="FILE.csv|.parquet"), "as_json")
def command(
    sources: tuple[str, ...],
    nodes: tuple[str, ...],
    owners: str | None,
    labels: tuple[str, ...],
    top: int,
    output: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Compare where two coins came from, FIRST and SECOND; or all of --nodes, two by two.

    Example: coinhaze shared day.duckdb 5f1a...:0 9c02...:1
    """
    from coinhaze.errors import UsageError
    from coinhaze.report.files import check_output, made_by, write_table
    from coinhaze.report.shared import shared_json, shared_text
    from coinhaze.solve import shared

    coins = nodes_of(nodes) if nodes else list(sources[-2:])
    if isinstance(coins, str):
        raise UsageError(f"--nodes {coins} may be millions of coins: name those to compare")
    files = list(sources if nodes else sources[:-2])
    if not files:
        raise UsageError("name a file and two coins: coinhaze shared SOURCE... FIRST SECOND")
    inputs: list[str | Path] = [*files, *named_files(options), *labels]
    inputs += [] if owners is None else [owners]
    inputs += [name for name in nodes if Path(name).is_file()]
    if output is not None:
        check_output(output, inputs, suffixes=(".csv", ".parquet"))
    table, names, settings = owners_of(owners), labels_of(labels), settings_of(options)
    found = wait_for(
        "comparing", lambda _: shared(files, coins, owners=table, labels=names, **settings)
    )
    tell_notes(found.notes)
    about = made_by(inputs=inputs, command=command_line())
    if output is not None:
        tell_written(*write_table(found.to_arrow(), output, about))
    if as_json:
        click.echo(shared_json(found, about, limit=top), nl=False)
    elif output is None:
        from coinhaze.report.terminal import show

        show(shared_text(found, limit=top))
