"""coinhaze ingest and verify: files or a node into a store, and every rule of it again."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from coinhaze.cli.options import Command, takes, tell_notes
from coinhaze.cli.waiting import wait_counting, wait_for
from coinhaze.options import known
from coinhaze.units import SMALLEST

if TYPE_CHECKING:
    from coinhaze.store.store import Store

LONGEST_WAIT = 60.0  # seconds between attempts to reach a node that does not answer


@click.command("ingest", cls=Command)
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@takes(
    known("output", required=True, metavar="STORE"),
    "format",
    "columns",
    "decimals",
    "first",
    "last",
    "token",
    "follow",
)
def ingest(
    sources: tuple[str, ...],
    output: Path,
    format: str | None,
    columns: str | None,
    decimals: int | None,
    **options: Any,
) -> None:
    """Read dumps and exports, or a node, into a store that can be scored and queried in SQL.

    Example: coinhaze ingest blockchair_bitcoin_*.tsv.gz -o bitcoin.duckdb

    Of a node: coinhaze ingest bitcoin+http://127.0.0.1:8332 --from 800000 -o bitcoin.duckdb
    """
    from coinhaze.errors import CoinhazeError, InputError, UsageError
    from coinhaze.store.ingest import expand
    from coinhaze.store.store import Store
    from coinhaze.store.sync import is_node

    nodes = [s for s in sources if is_node(s)]
    table: dict[str, Any] = {"columns": columns, "decimals": decimals}
    if nodes and (len(sources) > 1 or format or any(v is not None for v in table.values())):
        raise UsageError("a node is a source by itself: name it alone, without a format")
    if not nodes:
        if any(v not in (None, False) for v in options.values()):
            raise UsageError("--from, --to, --token and --follow are for nodes, not for files")
        expand(sources)
    heights = {name: _height(name, options[name]) for name in ("first", "last")}
    made = not output.exists()
    try:
        with Store(output) as store:
            try:
                if nodes:
                    _from_node(nodes[0], store, **options | heights)
                else:
                    _from_files(sources, store, format, **table)
            except KeyboardInterrupt:
                made = False
                again = _again(sources, output, format, options | table)
                click.echo(f"to go on where it stopped: {again}", err=True)
                raise
            except CoinhazeError as error:
                # What is whole is worth keeping; a new store without it would only be in the way.
                refused = not nodes or isinstance(error, UsageError)
                made = made and refused and not any(source.done for source in store.sources())
                raise
    except (InputError, UsageError):
        if made:
            for path in (output, Path(f"{output}.wal")):
                path.unlink(missing_ok=True)
        raise


def _height(name: str, given: str | None) -> int | None:
    """Read --from or --to of a node."""
    from coinhaze.errors import UsageError

    if given is None:
        return None
    if not (given.isascii() and given.isdigit()):
        raise UsageError(f"{known(name).spelling} of a node is a block height, not {given!r}")
    return int(given)


def _again(
    sources: tuple[str, ...], output: Path, format_: str | None, options: dict[str, Any]
) -> str:
    """Give the command that goes on, without what may be secret in a node's address."""
    from coinhaze.nodes.http import shown_url
    from coinhaze.store.sync import is_node

    shown = [shown_url(s) if is_node(s) else s for s in sources]
    more = ["--format", format_] if format_ else []
    for value in ("columns", "decimals", "first", "last", "token"):
        given = options[value]
        more += [known(value).spelling, str(given)] if given is not None else []
    more += ["--follow"] if options["follow"] else []
    command = shlex.join(["coinhaze", "ingest", *shown, "-o", str(output), *more])
    if shown == list(sources):
        return command
    return f"{command}\n(*** stands for a part of the address that may be secret: write it again)"


def _from_files(
    sources: tuple[str, ...],
    store: Any,
    format_: str | None,
    *,
    columns: str | None,
    decimals: int | None,
) -> None:
    from coinhaze.errors import count_words
    from coinhaze.store.ingest import ingest

    done = wait_for(
        "ingesting",
        lambda note: ingest(
            sources,
            store,
            format=format_,
            columns=columns,
            decimals=decimals,
            progress=_share(note),
        ),
    )
    tell_notes(done.notes)
    were = "was" if done.known == 1 else "were"
    known = f"; {count_words(done.known, 'file')} {were} in it already" if done.known else ""
    rows, files = count_words(done.rows, "new row"), count_words(done.files, "file")
    click.echo(f"wrote {store.path}: {rows} from {files}{known}", err=True)


def _from_node(
    source: str,
    store: Any,
    *,
    first: int | None,
    last: int | None,
    token: str | None,
    follow: bool,
) -> None:
    from coinhaze.errors import NotAnswering
    from coinhaze.store.sync import PATIENCE, Followed, catch_up, open_node

    name, node = open_node(source)
    outage = 0  # attempts since the node last answered

    def look(note: Callable[[int, int], None]) -> Followed:
        return catch_up(store, node, name=name, first=first, last=last, token=token, progress=note)

    with closing(node.rpc):
        while True:
            try:
                done = wait_counting("reading blocks", "blocks", look)
            except NotAnswering as error:
                if not follow:
                    raise
                if not outage:
                    click.echo(f"{error}; waiting until it answers again", err=True)
                time.sleep(min(PATIENCE * 2**outage, LONGEST_WAIT))
                outage += 1
                continue
            if outage:
                click.echo(f"{name}: answers again", err=True)
                outage = 0
            if done.rows or done.left_behind or not follow:
                left = f"; {done.left_behind} blocks the chain has left" if done.left_behind else ""
                click.echo(
                    f"wrote {store.path}: {done.rows:,} new rows, up to block {done.last}{left}",
                    err=True,
                )
            if not follow:
                return
            time.sleep(PATIENCE)


def _share(note: Callable[[float], None]) -> Callable[[int, int], None]:
    return lambda done, whole: note(done / max(whole, 1))


@click.command("verify", cls=Command)
@click.argument("store", type=click.Path(path_type=Path))
@takes("complete", "pool", "unit")
def verify(store: Path, complete: bool | None, pool: tuple[str, ...], unit: str | None) -> None:
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
    for line in wait_for("verifying the cache", lambda _: verify_cache(store)):
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
