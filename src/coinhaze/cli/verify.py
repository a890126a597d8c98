"""coinhaze verify: every rule of a store checked again."""

from __future__ import annotations

from pathlib import Path

import click

from coinhaze.cli.options import Command, takes
from coinhaze.cli.waiting import wait_for


@click.command("verify", cls=Command)
@click.argument("store", type=click.Path(path_type=Path))
@takes("complete", "pool")
def command(store: Path, complete: bool | None, pool: tuple[str, ...]) -> None:
    """Check every rule of a store again, add its money up, and give the digest of what it holds.

    Example: coinhaze verify bitcoin.duckdb
    """
    from coinhaze.cache.layers import verify_cache
    from coinhaze.errors import LedgerError
    from coinhaze.store.store import Store
    from coinhaze.store.verify import verify

    values = dict(_pool_value(given) for given in pool)
    with Store(store, read_only=True) as opened:
        found = wait_for(
            "verifying", lambda _: verify(opened, complete=complete, pool_values=values)
        )
    for line in found:
        click.echo(line)
    for line in wait_for("verifying what is kept", lambda _: verify_cache(store)):
        click.echo(line)
    if found.completeness.failed:
        fix = "ingest what is missing, or from another source"
        raise LedgerError(str(store), found.completeness.line(), fix=fix)


def _pool_value(given: str) -> tuple[str, int]:
    from coinhaze.errors import UsageError

    name, _, value = given.partition("=")
    if not (value.isascii() and value.isdigit()):
        raise UsageError(f"--pool is a name and a whole number: sapling=1000, not {given!r}")
    return name, int(value)
