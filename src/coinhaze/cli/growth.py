"""coinhaze growth: bits as money is paid on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from coinhaze.cli.options import (
    FIGURES,
    SEED,
    Command,
    command_line,
    named_files,
    settings_of,
    takes,
    tell_notes,
    tell_written,
    write_text,
)
from coinhaze.cli.waiting import wait_for
from coinhaze.options import GraphOptions, ReadOptions, known


@click.command("growth", cls=Command)
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@takes(ReadOptions, GraphOptions, "length", "walks", SEED)
@takes(known("accuracy", choices=("auto", "exact", "preview"), default="auto"), "threads", "memory")
@takes("figure", known("output", metavar="FILE.csv|.json|.parquet"), "as_json")
def command(
    sources: tuple[str, ...],
    figure: Path | None,
    output: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Say how many bits money has after each payment, walking forward from every source by amount.

    Example: coinhaze growth transfers.csv --time temporal --length 10 --figure growth.png
    """
    from coinhaze.growth.growth import growth
    from coinhaze.report.files import check_output, made_by, write_table

    inputs: list[str | Path] = [*sources, *named_files(options)]
    if output is not None:
        check_output(output, inputs)
    if figure is not None:
        check_output(figure, inputs, suffixes=FIGURES)
    settings = settings_of(options)
    found = wait_for(
        "walking", lambda progress: growth(list(sources), progress=progress, **settings)
    )
    tell_notes(found.notes)
    about = made_by(inputs=inputs, command=command_line()) | found.about()
    title = f"{', '.join(Path(source).name for source in sources)}, {found.settings['time']}"
    document = {"provenance": about, "growth": found.to_arrow().to_pylist()}
    text = json.dumps(document, indent=1, allow_nan=False) + "\n"
    if output is not None and output.suffix == ".json":
        write_text(output, text)
    elif output is not None:
        tell_written(*write_table(found.to_arrow(), output, about))
    if figure is not None:
        from coinhaze.growth.plots import save_growth
        from coinhaze.report.figures import short_labels

        save_growth(found.to_arrow(), figure, title=short_labels([title])[0])
        tell_written(figure)
    if as_json:
        click.echo(text, nl=False)
    elif output is None:
        import pyarrow.compute as pc

        from coinhaze.growth.plots import growth_table
        from coinhaze.report.terminal import show

        rows = found.to_arrow()
        ended = pc.index(rows["share"], 0.0).as_py()  # where no walk goes on, nothing changes
        shown = growth_table(
            rows if ended < 0 else rows[: ended + 1],
            title="Bits as money is paid on",
            caption=found.caption,
        )
        show(shown)
