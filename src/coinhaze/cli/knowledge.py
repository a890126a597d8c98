"""coinhaze knowledge: what our heuristics guess of a ledger, as files other commands read."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from coinhaze.cli.options import Command, takes
from coinhaze.cli.waiting import wait_for
from coinhaze.errors import UsageError
from coinhaze.options import KnowledgeOptions, known

if TYPE_CHECKING:
    from coinhaze.ledger import Ledger


@click.command("knowledge", cls=Command)
@click.argument("sources", nargs=-1, metavar="[SOURCE...]")
@takes(KnowledgeOptions, "format", "first", "last", "token", known("output", metavar="FILE.csv"))
def command(sources: tuple[str, ...], by: str | None, output: Path | None, **options: Any) -> None:
    """List our heuristics; count what those find that are on; or write what one of them finds.

    Clusters go into --clusters of other commands, links into --links.

    Example: coinhaze knowledge transfers.csv --by pay-outs --services hubs.txt -o links.csv
    """
    if not sources:
        if by is not None:
            raise UsageError("--by needs a SOURCE to look at")
        _list()
        return
    if by is None:
        if output is not None:
            raise UsageError("-o writes what one heuristic finds: name it with --by")
        _count(list(sources), options)
        return
    rows = wait_for("looking", lambda _: _found(_read(sources, options), by, options))
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    if output is None:
        sys.stdout.write(text.getvalue())
        return
    from coinhaze.report.files import check_output, write_text

    check_output(output, sources)
    write_text(output, text.getvalue())
    click.echo(f"wrote {output}: {len(rows) - 1:,} rows", err=True)


def _read(sources: Sequence[str], options: dict[str, Any]) -> Ledger:
    from coinhaze.readers import read

    window = {k: v for k, v in options.items() if k in ("first", "last", "token") and v is not None}
    return read(list(sources), format=options["format"], **window)


def _found(ledger: Ledger, name: str, options: dict[str, Any]) -> list[tuple[object, ...]]:
    from coinhaze.formats.lists.knowledge import read_gas_prices, read_listed
    from coinhaze.graph.clusters.heuristics import find

    services, prices = options["services"], options["gas_prices"]
    return find(
        ledger,
        name,
        services=None if services is None else read_listed(services),
        gas_prices=None if prices is None else read_gas_prices(prices),
        last=options["latest"],
        fee=options["fee"],
        confidence=options["confidence"],
    )


def _count(sources: Sequence[str], options: dict[str, Any]) -> None:
    """Show how much the heuristics that are on find."""
    from rich.table import Table

    from coinhaze.graph.clusters.heuristics import HEURISTICS
    from coinhaze.ledger import CoinLedger
    from coinhaze.report.terminal import show

    ledger = wait_for("reading", lambda _: _read(sources, options))
    if not isinstance(ledger, CoinLedger):
        raise UsageError("no heuristic for accounts is on unasked: name one with --by")
    table = Table(title="What the heuristics find that are on", title_justify="left")
    for column in ("name", "found", "confidence"):
        table.add_column(column, justify="left" if column == "name" else "right")
    for h in HEURISTICS:
        if h.on:
            found = len(_found(ledger, h.name, options)) - 1
            words = "addresses merged" if h.gives == "clusters" else "transactions"
            table.add_row(h.name, f"{found:,} {words}", f"{h.confidence:.3f}")
    show(table)


def _list() -> None:
    from rich.table import Table

    from coinhaze.graph.clusters.heuristics import HEURISTICS
    from coinhaze.report.terminal import show

    table = Table(title="Heuristics", title_justify="left")
    for column in ("name", "gives", "what it assumes", "confidence", "origin", "default"):
        table.add_column(column, overflow="fold")
    for h in HEURISTICS:
        on = "on" if h.on else "off"
        table.add_row(h.name, h.gives, h.assumes, f"{h.confidence:.3f}", h.origin, on)
    show(table)
