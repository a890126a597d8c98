"""coinhaze sensitivity: how much each choice moves the table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from coinhaze.cli.options import (
    FIGURES,
    Command,
    command_line,
    named_files,
    settings_of,
    takes,
    tell_written,
)
from coinhaze.cli.waiting import wait_for
from coinhaze.options import GraphOptions, ObserverOptions, ReadOptions, known


@click.command("sensitivity", cls=Command)
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@takes(ReadOptions, GraphOptions, ObserverOptions, known("seconds", default=120.0))
@takes("figure", known("output", metavar="FILE.csv|.parquet"), "as_json")
def command(
    sources: tuple[str, ...],
    seconds: float,
    figure: Path | None,
    output: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Say how the table would read had one thing been chosen otherwise: window, view, policy, ...

    Example: coinhaze sensitivity transfers.csv --figure sensitivity.png
    """
    from coinhaze.readers import read
    from coinhaze.report.files import check_output, made_by, write_table
    from coinhaze.robustness.sensitivity import sensitivity
    from coinhaze.solve.source import READ_SETTINGS, only

    inputs: list[str | Path] = [*sources, *named_files(options)]
    if output is not None:
        check_output(output, inputs, suffixes=(".csv", ".parquet"))
    if figure is not None:
        check_output(figure, inputs, suffixes=FIGURES)
    settings = settings_of(options)
    ledger = wait_for("reading", lambda _: read(list(sources), **only(settings, READ_SETTINGS)))
    shape = {name: value for name, value in settings.items() if name not in READ_SETTINGS}
    found = wait_for(
        "scoring",
        lambda progress: sensitivity(ledger, progress=progress, seconds=seconds, **shape),
    )
    table = found.to_arrow()
    about = made_by(inputs=inputs, command=command_line())
    if output is not None:
        tell_written(*write_table(table, output, about))
    if figure is not None:
        from coinhaze.robustness.report import save_sensitivity

        save_sensitivity(table, figure, title=Path(sources[0]).name)
        tell_written(figure)
    if as_json:
        import json

        document = {"provenance": about, "choices": table.to_pylist()}
        click.echo(json.dumps(document, indent=1, allow_nan=False))
    else:
        from coinhaze.report.terminal import show
        from coinhaze.robustness.report import sensitivity_table

        show(sensitivity_table(table))
