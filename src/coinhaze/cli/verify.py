"""coinhaze verify: every rule of a store checked again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from coinhaze.cli.options import Command, takes
from coinhaze.cli.waiting import wait_for
from coinhaze.units import SMALLEST

if TYPE_CHECKING:
    from coinhaze.store.store import Store


@click.command("verify", cls=Command)
@click.argument("store", type=click.Path(path_type=Path))
@takes("complete", "pool", "unit")
def command(store: Path, complete: bool | None, pool: tuple[str, ...], unit: str | None) -> None:
    """Check every rule of a store again, add its money up, and give the digest of what it holds.

    Example: coinhaze verify bitcoin.duckdb
    """
    from coinhaze.cache.layers import verify_cache
    from coinhaze.errors import LedgerError
    from coinhaze.store.store import Store
    from coinhaze.store.verify import verify

    with Store(store, read_only=True) as opened:
        values = _pool_values(opened, pool, unit)
        found = wait_for(
            "verifying", lambda _: verify(opened, complete=complete, pool_values=values, unit=unit)
        )
    for line in found:
        click.echo(line)
    for line in wait_for("verifying what is kept", lambda _: verify_cache(store)):
        click.echo(line)
    if found.completeness.failed:
        fix = "ingest what is missing, or from another source"
        raise LedgerError(str(store), found.completeness.line(), fix=fix)


def _pool_values(store: Store, given: tuple[str, ...], unit: str | None) -> dict[str, int]:
    from coinhaze.errors import UsageError
    from coinhaze.store.read import unit_of_coins

    counted_in = unit_of_coins(store, unit=unit) if given and store.kind == "coins" else SMALLEST
    values = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"--pool is a name and an amount: sapling=0.5 ZEC, not {text!r}")
        # Digits alone are smallest units: whole coins have their name after them.
        whole = value.isascii() and value.isdigit()
        values[name] = int(value) if whole else counted_in.read(value)
    return values
