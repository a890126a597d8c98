"""coinhaze desiderata: what measures of traceability should do, and which ones do it."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from coinhaze.cli.options import Command, takes
from coinhaze.cli.waiting import wait_for
from coinhaze.options import known


@click.command("desiderata", cls=Command)
@click.argument("approaches", nargs=-1, metavar="[APPROACH]...")
@takes(known("seeds", default=30), "as_json")
def command(approaches: tuple[str, ...], seeds: int, as_json: bool) -> None:
    """Try what the paper wishes of a measure of traceability on ours and on others.

    Each wish is one experiment on small made-up ledgers; a cross comes with the case it stands for.

    Example: coinhaze desiderata bits boltzmann
    """
    from coinhaze.desiderata.approaches import APPROACHES
    from coinhaze.desiderata.cases import try_approaches

    requested = approaches or tuple(APPROACHES)
    found = wait_for("trying", lambda _: try_approaches(requested, seeds=seeds))
    if as_json:
        click.echo(json.dumps([asdict(finding) for finding in found], indent=1))
        return
    from coinhaze.desiderata.cases import desiderata_report
    from coinhaze.report.terminal import show

    show(desiderata_report(found))
