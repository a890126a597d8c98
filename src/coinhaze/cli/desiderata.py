"""coinhaze desiderata: what measures of traceability should do, and which ones do it."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from coinhaze.cli.waiting import wait_for


@click.command("desiderata")
@click.argument("approaches", nargs=-1, metavar="[APPROACH]...")
@click.option(
    "--seeds",
    type=click.IntRange(1),
    default=30,
    show_default=True,
    help="On how many random ledgers.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON on stdout.")
def command(approaches: tuple[str, ...], seeds: int, as_json: bool) -> None:
    """Try what the paper wishes of a measure of traceability on ours and on others.

    Each wish is one experiment on small made-up ledgers; a cross comes with the case it stands for.

    Example: coinhaze desiderata bits boltzmann
    """
    from coinhaze.desiderata.approaches import APPROACHES
    from coinhaze.desiderata.cases import try_approaches

    asked = approaches or tuple(APPROACHES)
    found = wait_for("trying", lambda _: try_approaches(asked, seeds=seeds))
    if as_json:
        click.echo(json.dumps([asdict(finding) for finding in found], indent=1))
        return
    from rich.console import Console

    from coinhaze.desiderata.report import desiderata_report

    Console().print(desiderata_report(found))
