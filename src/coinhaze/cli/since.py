"""coinhaze since: bits of coins as later spends tell more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from coinhaze.cli.options import (
    FIGURES,
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
from coinhaze.options import ReadOptions, known


@click.command("since", cls=Command)
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE... [COIN]")
@takes(ReadOptions, "points", known("nodes", choices=("coinjoins", "all"), default=()))
@takes("owners", "labels", "threads", "figure")
@takes(known("output", metavar="FILE.csv|.parquet"), "strict", "as_json")
def command(
    sources: tuple[str, ...],
    nodes: tuple[str, ...],
    owners: str | None,
    labels: tuple[str, ...],
    figure: Path | None,
    output: Path | None,
    as_json: bool,
    strict: bool,
    **options: Any,
) -> None:
    """Show COIN's bits to observers at later and later moments; or those of all of --nodes.

    Example: coinhaze since month.duckdb --nodes coinjoins --figure since.png
    """
    from coinhaze.errors import UsageError
    from coinhaze.report.files import check_output, made_by, made_from, write_table
    from coinhaze.report.since import save_since, since_json, since_text
    from coinhaze.solve.score import refuse_incomplete
    from coinhaze.solve.since import COINJOINS, since

    coins: str | list[str] = list(sources[-1:])
    if nodes:
        coins = COINJOINS if nodes == (COINJOINS,) else nodes_of(nodes)
    files = list(sources if nodes else sources[:-1])
    if not files:
        raise UsageError(
            "name a file and a coin: coinhaze since SOURCE... COIN; or --nodes coinjoins"
        )
    inputs = inputs_of(files, options, labels=labels, owners=owners, nodes=nodes)
    if output is not None:
        check_output(output, inputs, suffixes=(".csv", ".parquet"))
    if figure is not None:
        check_output(figure, inputs, suffixes=FIGURES)
    holders, names, settings = owners_of(owners), labels_of(labels), settings_of(options)
    found = wait_for(
        "looking back",
        lambda progress: since(
            files, coins, owners=holders, labels=names, progress=progress, **settings
        ),
    )
    tell_notes(found.notes)
    if strict:
        refuse_incomplete(found.graph)
    about = made_by(inputs=inputs, command=command_line())
    whole = made_from(found.graph.ledger, about, found.notes) | {"settings": found.settings}
    if output is not None:
        tell_written(*write_table(found.to_arrow(), output, whole))
    if figure is not None:
        who = coins if isinstance(coins, str) else ", ".join(coins[:2])
        save_since(found, figure, title=f"{', '.join(Path(f).name for f in files)}: {who}")
        tell_written(figure)
    if as_json:
        click.echo(since_json(found, about), nl=False)
    elif output is None:
        from coinhaze.report.terminal import show

        show(since_text(found))
