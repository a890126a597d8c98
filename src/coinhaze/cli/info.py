"""coinhaze info: what a ledger holds."""

from __future__ import annotations

import json
from typing import Any

import click


@click.command("info")
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@click.option("--format", "format_", help="Force the format: folder, transfers, bitcoin-etl.")
@click.option("--complete", is_flag=True, help="The ledger begins with its chain.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON on stdout.")
def command(sources: tuple[str, ...], format_: str | None, complete: bool, as_json: bool) -> None:
    """Say what a ledger holds, after checking every rule.

    Example: coinhaze info transfers.csv
    """
    from coinhaze.ledger import read

    facts = read(list(sources), format=format_, complete=complete).facts()
    if as_json:
        click.echo(json.dumps(facts, indent=1))
        return
    width = max(len(k) for k in facts)
    for name, value in facts.items():
        click.echo(f"{name.replace('_', ' '):<{width}}  {_words(value)}")


def _words(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return "-" if value is None else str(value)
