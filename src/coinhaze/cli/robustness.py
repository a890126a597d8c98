"""coinhaze robustness, sensitivity, desiderata: what a result depends on, and what it must do."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from coinhaze.cli.options import (
    SEED,
    Command,
    check_files,
    command_line,
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
def robustness(
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
    from coinhaze.robustness.robustness import robustness

    check_files([*sources, *named_files(options)], None, figure)
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


@click.command("sensitivity", cls=Command)
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@takes(ReadOptions, GraphOptions, ObserverOptions, known("seconds", default=120.0))
@takes("figure", known("output", metavar="FILE.csv|.parquet"), "as_json")
def sensitivity(
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
    from coinhaze.report.files import made_by, write_table
    from coinhaze.robustness.sensitivity import sensitivity
    from coinhaze.solve.source import READ_SETTINGS, only

    inputs: list[str | Path] = [*sources, *named_files(options)]
    check_files(inputs, output, figure)
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


@click.command("desiderata", cls=Command)
@click.argument("approaches", nargs=-1, metavar="[APPROACH]...")
@takes(known("seeds", default=30), "as_json")
def desiderata(approaches: tuple[str, ...], seeds: int, as_json: bool) -> None:
    """Try what the paper wishes of a measure of traceability on ours and on others.

    Each wish is one experiment on small made-up ledgers; a cross comes with the case it stands for.

    Example: coinhaze desiderata bits boltzmann
    """
    from coinhaze.desiderata import APPROACHES, try_approaches

    requested = approaches or tuple(APPROACHES)
    found = wait_for("trying", lambda _: try_approaches(requested, seeds=seeds))
    if as_json:
        click.echo(json.dumps([asdict(finding) for finding in found], indent=1))
        return
    from coinhaze.desiderata import desiderata_report
    from coinhaze.report.terminal import show

    show(desiderata_report(found))
