"""coinhaze lab: what privacy technologies gain, and what they cost."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from coinhaze.cli.options import (
    SEED,
    WORKERS,
    Command,
    command_line,
    open_cluster,
    takes,
    tell_written,
)
from coinhaze.cli.waiting import wait_for
from coinhaze.options import LabOptions, known

if TYPE_CHECKING:
    from coinhaze.lab.lab import ParameterScan
    from coinhaze.solve.progress import Progress

ALL = "all"


@click.command("lab", cls=Command)
@click.argument("scenario", required=False)
@takes(LabOptions, "seeds", SEED, "threads", *WORKERS)
@takes(known("output", metavar="FOLDER"), "as_json")
def command(
    scenario: str | None,
    list_: bool,
    all_: bool,
    values: str | None,
    observer: str | None,
    output: Path | None,
    as_json: bool,
    **settings: Any,
) -> None:
    """Try a privacy technology: the same payments with and without it, bits gained and the cost.

    SCENARIO is a technology of --list, or all.

    Example: coinhaze lab deposit-pool --values 0,0.1,0.25,0.5 --seeds 20 -o pool
    """
    if list_:
        _tell_all()
        return
    from coinhaze.errors import UsageError

    if scenario is None and not all_:
        raise UsageError("name a technology, or all; coinhaze lab --list tells which there are")
    together = all_ or scenario == ALL
    if together and (values or observer or scenario not in (None, ALL)):
        raise UsageError(
            "all technologies take their usual values and observers: name one for more"
        )

    from coinhaze.lab.lab import lab, lab_all

    requested = None if values is None else _values(values)

    def run(progress: Progress) -> tuple[ParameterScan, ...]:
        given = {name: value for name, value in settings.items() if name not in WORKERS}
        given |= {"workers": cluster, "progress": progress}
        if together:
            return lab_all(**given)
        return (lab(str(scenario), values=requested, observer=observer, **given),)

    with open_cluster(settings) as cluster:
        sweeps = wait_for("in the lab", run, by=cluster)
    _show(sweeps, output, as_json)


def _show(sweeps: Any, output: Path | None, as_json: bool) -> None:
    from coinhaze.lab.report import lab_grids, lab_json, lab_provenance, write_lab

    made_by = lab_provenance(sweeps, command_line())
    if output is not None:
        tell_written(*write_lab(sweeps, output, made_by))
    if as_json:
        click.echo(lab_json(sweeps, made_by), nl=False)
        return
    from coinhaze.report.terminal import show

    bits, costs = lab_grids(sweeps)
    show(bits.rich(), "", costs.rich())


def _values(text: str) -> list[float]:
    from coinhaze.errors import UsageError

    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise UsageError(f"--values is numbers with commas between, not {text!r}") from None


def _tell_all() -> None:
    from coinhaze.simulate.technologies import TECHNOLOGIES

    for technology in TECHNOLOGIES.values():
        click.echo(f"{technology.name}: {technology.says}")
        values = ", ".join(f"{v:g}" for v in technology.values)
        click.echo(f"  turned: {technology.parameter} ({values}; usual {technology.usual:g})")
        for observer, sees in technology.observers.items():
            click.echo(f"  observer {observer}: {sees}")
