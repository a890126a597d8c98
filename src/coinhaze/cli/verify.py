"""coinhaze verify: every rule of a store checked again."""

from __future__ import annotations

from pathlib import Path

import click

from coinhaze.cli.waiting import wait_for


@click.command("verify")
@click.argument("store", type=click.Path(path_type=Path))
def command(store: Path) -> None:
    """Check every rule of a store again, and give the digest of what it holds.

    Example: coinhaze verify bitcoin.duckdb
    """
    from coinhaze.ledger.store import Store
    from coinhaze.ledger.verify import verify

    with Store(store, read_only=True) as opened:
        for line in wait_for("verifying", lambda _: verify(opened)):
            click.echo(line)
