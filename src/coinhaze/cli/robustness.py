"""coinhaze robustness: how bits fall as an observer learns more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from coinhaze.cli.options import model_options, settings_of
from coinhaze.cli.waiting import wait_for


@click.command("robustness")
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@model_options
@click.option("--learn", type=click.IntRange(1), default=10, help="Links to learn. [default: 10]")
@click.option("--coin", help="The bits of this coin or account, not the mean of all sinks.")
@click.option("--world", help="A FILE payment,node,probability with the truth; else one is drawn.")
@click.option("--seeds", type=click.IntRange(1), default=5, help="Random orders. [default: 5]")
@click.option("--seed", type=int, default=1, help="Another seed, another world. [default: 1]")
@click.option("--tries", type=click.IntRange(1), default=200, help="Links to choose from, at most.")
@click.option("--figure", type=click.Path(path_type=Path), help="Draw it: a .png, .svg or .pdf.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON on stdout.")
def command(
    sources: tuple[str, ...],
    learn: int,
    coin: str | None,
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
    from coinhaze.formats.lists.knowledge import read_links
    from coinhaze.robustness.robustness import robustness

    settings = settings_of(options)
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
        click.echo(f"wrote {figure}", err=True)
    if as_json:
        import json

        about = {"of": found.of, "doubtful": found.doubtful, "tried": found.tried}
        about |= {"sampled": found.sampled, "falls": falls.to_pylist()}
        click.echo(json.dumps(about, indent=1))
        return
    from rich.console import Console

    from coinhaze.robustness.report import falls_table

    caption = (
        f"links of {found.tried:,} of {found.doubtful:,} payments in doubt; {seeds} random orders"
    )
    if found.sampled:
        caption += "; chosen by a sample, solved for all"
    Console().print(falls_table(falls, title=f"Bits: {found.of}", caption=caption))
