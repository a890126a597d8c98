"""coinhaze merge: scores from the parts that several commands solved."""

from __future__ import annotations

from pathlib import Path

import click

from coinhaze.cli.options import Command, nodes_of, settings_of, takes
from coinhaze.cli.score import exit_short, inputs_of, limits_of, measures_of, show_scores
from coinhaze.cli.waiting import wait_for
from coinhaze.options import known


@click.command("merge", cls=Command)
@click.argument(
    "parts", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="PART..."
)
@takes(known("output", metavar="FILE.csv|.json|.parquet"), "as_json", "memory")
def command(
    parts: tuple[Path, ...], output: Path | None, as_json: bool, memory: str | None
) -> None:
    """Merge what coinhaze score --part solved: the scores of one command, byte for byte.

    PARTs are all parts of one question, each once, in any order. Their ledger is read again.

    Example: coinhaze merge parts/* -o scores.csv
    """
    from coinhaze.report.files import check_output
    from coinhaze.report.part_files import merged, read_parts

    files = read_parts(parts)
    about = files[0].about
    usual = {"nodes": (), "with_": None, "owners": None, "strict": False}
    given = {n: tuple(v) if isinstance(v, list) else v for n, v in about["options"].items()}
    requested = usual | given
    inputs = inputs_of(about["sources"], requested)
    if output is not None:
        check_output(output, [*inputs, *parts])
    measures = measures_of(requested["with_"], requested["owners"])
    options = {name: value for name, value in given.items() if name not in usual}
    settings = settings_of(options | {"memory": memory}) | {"nodes": nodes_of(requested["nodes"])}
    scores = wait_for(
        "merging",
        lambda progress: merged(
            files, settings=settings, inputs=inputs, strict=requested["strict"], progress=progress
        ),
    )
    limits, owners = limits_of(settings), requested["owners"]
    show_scores(scores, inputs, measures, owners, output=output, as_json=as_json, limits=limits)
    exit_short(scores)
