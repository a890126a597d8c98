"""coinhaze info: what a ledger holds."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from coinhaze.cli.options import Command, settings_of, takes, tell_notes
from coinhaze.ledger.completeness import Check
from coinhaze.units import NOT_KNOWN, SMALLEST, Unit


@click.command("info", cls=Command)
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@takes("complete", "format", "first", "last", "token", "columns", "decimals", "unit", "as_json")
def command(sources: tuple[str, ...], as_json: bool, **options: Any) -> None:
    """Say what a file is, what its ledger holds, and which command to run next.

    Every rule of the ledger is checked, and what became of its columns is listed.

    Example: coinhaze info transfers.csv
    """
    from coinhaze.formats.money import unit_of
    from coinhaze.readers import read

    settings = settings_of(options)
    beside = None
    if not settings:
        beside = _history(sources) or _snapshot(sources) or _beside(sources)
    if beside is not None:
        _tell(beside, as_json)
        return
    ledger = read(list(sources), **settings)
    tell_notes(ledger.notes)
    unit = unit_of(ledger)
    facts: dict[str, object] = {"format": _format(sources, settings)}
    facts |= ledger.facts() | {"unit": unit.spelling}
    facts |= {f"columns_{kind}": list(names) for kind, names in ledger.columns.items()}
    facts["next"] = _next(sources)
    if as_json:
        click.echo(json.dumps(facts | {"completeness": ledger.completeness.record()}, indent=1))
        return
    _tell(facts, unit=unit)
    if not unit.is_known and facts.get("amounts") != "hidden":
        click.echo(NOT_KNOWN)
    click.echo(ledger.completeness.line())
    for line in _check_lines(ledger.completeness.checks):
        click.echo(f"  {line}")


def _check_lines(checks: Sequence[Check]) -> list[str]:
    """Say what came of each check; a reason why several could not be made is said once."""
    unknown = "not checkable"
    because: dict[str, list[str]] = {}
    for check in checks:
        if check.status == unknown:
            because.setdefault(check.detail, []).append(check.name)
    lines = [
        check.words()
        for check in checks
        if check.status != unknown or len(because[check.detail]) == 1
    ]
    return lines + [
        f"{unknown}, since {why}: {'; '.join(names)}"
        for why, names in because.items()
        if len(names) > 1
    ]


def _tell(facts: Mapping[str, object], as_json: bool = False, *, unit: Unit = SMALLEST) -> None:
    from coinhaze.formats.money import MONEY_FACTS

    if as_json:
        click.echo(json.dumps(facts, indent=1))
        return
    width = max(len(k) for k in facts)
    for name, value in facts.items():
        money = name in MONEY_FACTS and isinstance(value, int)
        words = unit.words(value) if money else _words(value)  # type: ignore[arg-type]
        click.echo(f"{name.replace('_', ' '):<{width}}  {words}")


def _format(sources: Sequence[str], settings: Mapping[str, Any]) -> str:
    """Name what the sources are."""
    from coinhaze.formats.registry import format_named, head_of, is_store, recognise

    path = Path(sources[0])
    if is_store(path):
        return "a store"
    if path.is_dir():
        return "a ledger folder"
    named = settings.get("format") or ("transfers" if settings.get("columns") else None)
    entry = recognise(path, head_of(path)) if named is None else format_named(named)
    return f"{entry.name}: {entry.description}"


def _next(sources: Sequence[str]) -> str:
    """Give the command to run next: the same sources and options, scored."""
    import shlex
    import sys

    words = sys.argv[2:] if sys.argv[1:2] == ["info"] else list(sources)
    return shlex.join(["coinhaze", "score", *(word for word in words if word != "--json")])


def _history(sources: Sequence[str]) -> dict[str, object] | None:
    """Describe a history; nothing if it is another folder or a file."""
    from coinhaze.history.files import is_history
    from coinhaze.history.history import History

    path = Path(sources[0])
    if len(sources) > 1 or not path.is_dir() or not is_history(path):
        return None
    facts: dict[str, object] = {"format": "a history of all coins"}
    about = History.open(path).manifest
    facts |= {
        "transactions": about.transactions,
        "sources": about.sources,
        about.scored_words.replace(" ", "_"): about.coins,
        "first_height": about.first_height,
        "last_height": about.last_height,
        "complete": about.complete,
        "unit": about.unit or SMALLEST.spelling,
    }
    return facts | {"next": f"coinhaze history score {path}"}


def _snapshot(sources: Sequence[str]) -> dict[str, object] | None:
    """Describe a UTXO snapshot, which goes with blocks; nothing if it is another file."""
    from coinhaze.formats.bitcoin_raw.snapshot import read_header, recognises
    from coinhaze.formats.registry import format_named, head_of

    path = Path(sources[0])
    if len(sources) > 1 or not path.is_file() or not recognises(head_of(path)):
        return None
    entry = format_named("utxo-snapshot")
    facts: dict[str, object] = {"format": f"{entry.name}: {entry.description}"}
    return facts | read_header(path).facts() | {"next": f"coinhaze score blk*.dat {path}"}


def _beside(sources: Sequence[str]) -> dict[str, object] | None:
    """Describe a file that goes with a ledger and is none; nothing if it is another."""
    from coinhaze.errors import InputError
    from coinhaze.formats.descriptors import refuse_private
    from coinhaze.formats.lists.coins import read_coin_list
    from coinhaze.formats.lists.recognise import list_of_names, side_file
    from coinhaze.formats.registry import head_of, looks_stored, recognise

    path = Path(sources[0])
    if len(sources) > 1 or not path.is_file():
        return None
    head = head_of(path)
    found = side_file(head)
    if looks_stored(head):
        return None
    try:
        recognise(path, head)
    except InputError:
        text = head.decode("utf-8-sig", "replace")
        refuse_private(text, str(path))
        found = found or list_of_names(text)
        if found is None:
            return None
        facts: dict[str, object] = {"format": found.what}
        if found.has_coins:
            listed = read_coin_list(path)
            facts["coins"] = sum(entry.coin is not None for entry in listed)
            facts["addresses"] = sum(entry.address is not None for entry in listed)
            facts["keys"] = sum(bool(entry.keys) for entry in listed)
        return facts | {"next": found.command.format(file=path)}
    return None


def _words(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "-"
    return "-" if value is None else str(value)
