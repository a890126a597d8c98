"""coinhaze info: what a ledger holds."""

from __future__ import annotations

import json
from typing import Any

import click

from coinhaze.cli.options import Command, settings_of, takes, tell_notes


@click.command("info", cls=Command)
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@takes("complete", "format", "first", "last", "token", "unit", "as_json")
def command(sources: tuple[str, ...], as_json: bool, **options: Any) -> None:
    """Say what a ledger holds, after checking every rule, and what became of its columns.

    Example: coinhaze info transfers.csv
    """
    from coinhaze.formats.money import MONEY_FACTS, unit_of
    from coinhaze.readers import read
    from coinhaze.units import NOT_KNOWN

    ledger = read(list(sources), **settings_of(options))
    tell_notes(ledger.notes)
    unit = unit_of(ledger)
    facts: dict[str, object] = ledger.facts() | {"unit": unit.spelling}
    facts |= {f"columns_{kind}": list(names) for kind, names in ledger.columns.items()}
    if as_json:
        click.echo(json.dumps(facts | {"completeness": ledger.completeness.record()}, indent=1))
        return
    width = max(len(k) for k in facts)
    for name, value in facts.items():
        words = (
            unit.words(value) if name in MONEY_FACTS and isinstance(value, int) else _words(value)
        )
        click.echo(f"{name.replace('_', ' '):<{width}}  {words}")
    if not unit.is_known and facts.get("amounts") != "hidden":
        click.echo(NOT_KNOWN)
    click.echo(ledger.completeness.line())
    for check in ledger.completeness.checks:
        click.echo(f"  {check.words()}")


def _words(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "-"
    return "-" if value is None else str(value)
