"""coinhaze robustness: how bits fall as an observer learns more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from coinhaze.cli.options import (
    FIGURES,
    SEED,
    Command,
    named_files,
    nodes_of,
    settings_of,
    takes,
    tell_written,
)
from coinhaze.cli.waiting import wait_for
from coinhaze.options import GraphOptions, ObserverOptions, ReadOptions, RobustnessOptions, known


@click.command("robustness", cls=Command)
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@takes(ReadOptions, GraphOptions, ObserverOptions, "nodes", RobustnessOptions)
@takes(known("seeds", default=5), SEED, "figure", "as_json")
def command(
    sources: tuple[str, ...],
    learn: int,
    nodes: tuple[str, ...],
    world: str | None,
    seeds: int,
    seed: int,
    tries: int,
    figure: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Say how bits fall as an observer learns where more payments came from.

    Example: coinhaze robustness transfers.csv --time temporal --learn 5
    """
    from coinhaze.errors import UsageError
    from coinhaze.formats.lists.knowledge import read_links
    from coinhaze.report.files import check_output
    from coinhaze.robustness.robustness import robustness

    if figure is not None:
        check_output(figure, [*sources, *named_files(options)], suffixes=FIGURES)
    settings = settings_of(options)
    named = nodes_of(nodes)
    if named == "all" or (len(named) != 1 and named != "sinks"):
        raise UsageError("--nodes: robustness is about the mean of all sinks, or about one node")
    coin = None if named == "sinks" else named[0]
    truth = None if world is None else read_links(world)
    found = wait_for(
        "learning",
        lambda progress: robustness(
            list(sources), learn=learn, coin=coin, world=truth, seeds=seeds, seed=seed,
            tries=tries, progress=progress, **settings,
        ),
    )  # fmt: skip
    falls = found.to_arrow()
    if figure is not None:
        from coinhaze.robustness.report import save_falls

        save_falls(falls, figure, title=found.of)
        tell_written(figure)
    if as_json:
        import json

        about = {"of": found.of, "doubtful": found.doubtful, "tried": found.tried}
        about |= {"sampled": found.sampled, "falls": falls.to_pylist()}
        click.echo(json.dumps(about, indent=1))
        return
    from coinhaze.report.terminal import show
    from coinhaze.robustness.report import falls_table

    caption = (
        f"links of {found.tried:,} of {found.doubtful:,} payments in doubt; {seeds} random orders"
    )
    if found.sampled:
        caption += "; chosen by a sample, solved for all"
    show(falls_table(falls, title=f"Bits: {found.of}", caption=caption))
