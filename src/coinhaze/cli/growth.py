"""coinhaze growth: bits as money is paid on."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from coinhaze.cli.options import (
    FIGURES,
    accuracy_of,
    graph_options,
    named_files,
    settings_of,
    tell_notes,
)
from coinhaze.cli.waiting import wait_for


@click.command("growth")
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@graph_options
@click.option("--length", type=click.IntRange(1), default=30, help="Payments. [default: 30]")
@click.option("--walks", type=click.IntRange(1), help="Draw so many walks. [default: weigh all]")
@click.option("--seed", type=click.IntRange(0), default=1, help="Other walks. [default: 1]")
@click.option(
    "--accuracy", default="auto",
    help="auto, exact, preview, or the widest interval in bits. [default: auto]",
)  # fmt: skip
@click.option("--threads", type=click.IntRange(1), help="How many threads to use.")
@click.option("--memory", help="The most the process may take, such as 4GB.")
@click.option("--figure", type=click.Path(path_type=Path), help="Draw it: a .png, .svg or .pdf.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="A .csv, .json or .parquet.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON on stdout.")
def command(
    sources: tuple[str, ...],
    accuracy: str,
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
    settings = settings_of(options) | {
        "accuracy": accuracy_of(accuracy, "auto", "exact", "preview")
    }
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
