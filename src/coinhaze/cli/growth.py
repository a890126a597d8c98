"""coinhaze growth: bits as money is paid on."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from coinhaze.cli.options import FIGURES, SEED, Command, named_files, settings_of, takes, tell_notes
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
    from coinhaze.report.files import check_output
    from coinhaze.report.provenance import made_by

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
    about = made_by(inputs=inputs, command=" ".join(["coinhaze", *sys.argv[1:]])) | found.about()
    title = f"{', '.join(Path(source).name for source in sources)}, {found.settings['time']}"
    for path in _write(found, about, output, figure, title):
        click.echo(f"wrote {path}", err=True)
    if as_json:
        click.echo(_json(found, about), nl=False)
    elif output is None:
        from rich.console import Console

        from coinhaze.growth.plots import growth_table

        shown = growth_table(
            found.to_arrow(), title="Bits as money is paid on", caption=found.caption
        )
        Console().print(shown)


def _json(found: Any, about: dict[str, object]) -> str:
    import json

    document = {"provenance": about, "growth": found.to_arrow().to_pylist()}
    return json.dumps(document, indent=1, allow_nan=False) + "\n"


def _write(
    found: Any, about: dict[str, object], output: Path | None, figure: Path | None, title: str
) -> list[Path]:
    from coinhaze.report.files import write_table, write_whole

    written = []
    if output is not None and output.suffix == ".json":
        text = _json(found, about)
        write_whole(output, lambda path: path.write_text(text, encoding="utf-8"))
        written.append(output)
    elif output is not None:
        written += write_table(found.to_arrow(), output, about)
    if figure is not None:
        from coinhaze.growth.plots import save_growth
        from coinhaze.report.drawing import short_labels

        save_growth(found.to_arrow(), figure, title=short_labels([title])[0])
        written.append(figure)
    return written
