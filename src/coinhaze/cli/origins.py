"""coinhaze origins: where one coin's money came from."""

from __future__ import annotations

from typing import Any

import click

from coinhaze.cli.options import model_options, settings_of, tell_notes
from coinhaze.cli.waiting import wait_for


@click.command("origins")
@click.argument("sources", nargs=-1, metavar="SOURCE...")
@click.argument("node")
@model_options
@click.option("--accuracy", default="exact", help="exact, or the widest interval in bits.")
@click.option("--top", type=click.IntRange(1), default=10, help="How many sources to show.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON on stdout.")
def command(
    sources: tuple[str, ...], node: str, accuracy: str, top: int, as_json: bool, **options: Any
) -> None:
    """Show the sources of NODE's money, largest first, and the ways it came.

    Example: coinhaze origins transfers.csv alice --time temporal
    """
    from coinhaze.errors import UsageError
    from coinhaze.solve import origins

    if not sources:
        raise UsageError("name a file and a node: coinhaze origins SOURCE... NODE, the node last")

    try:
        width: Any = accuracy if accuracy == "exact" else float(accuracy)
    except ValueError:
        raise UsageError(f"--accuracy is exact or a number of bits, not {accuracy!r}") from None
    settings = settings_of(options)
    found = wait_for("tracing", lambda _: origins(list(sources), node, accuracy=width, **settings))
    tell_notes(found.chain.notes)
    if as_json:
        import json

        click.echo(json.dumps(found.as_dict(most=top), indent=1))
        return
    from rich.console import Console

    from coinhaze.report.tables import origins_report

    Console().print(origins_report(found, most=top))
