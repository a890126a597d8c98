"""coinhaze ingest: files of the real world into one store."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from coinhaze.cli.waiting import wait_for


@click.command("ingest")
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), required=True,
    help="The store to make, or to add to.",
)  # fmt: skip
@click.option("--format", "format_", help="Force the format of all files.")
def command(sources: tuple[str, ...], output: Path, format_: str | None) -> None:
    """Read dumps and exports into a store that scores can be made of, and SQL can ask.

    Example: coinhaze ingest blockchair_bitcoin_*.tsv.gz -o bitcoin.duckdb
    """
    from coinhaze.ledger.ingest import Ingested, expand, ingest
    from coinhaze.ledger.store import Store

    expand(sources)
    with Store(output) as store:

        def work(note: object) -> Ingested:
            def progress(done: int, whole: int) -> None:
                note(done / max(whole, 1))  # type: ignore[operator]

            return ingest(sources, store, format=format_, progress=progress)

        try:
            done = wait_for("ingesting", work)
        except KeyboardInterrupt:
            again = shlex.join(["coinhaze", "ingest", *sources, "-o", str(output)])
            click.echo(f"to go on where it stopped: {again}", err=True)
            raise
    click.echo(
        f"wrote {output}: {done.rows:,} new rows from {done.files} files"
        + (f"; {done.known} files were in it already" if done.known else ""),
        err=True,
    )
