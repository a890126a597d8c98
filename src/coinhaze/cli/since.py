"""coinhaze since and growth: bits over time, as others spend and as money is paid on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from coinhaze.cli.options import (
    SEED,
    Command,
    check_files,
    command_line,
    inputs_of,
    labels_of,
    named_files,
    nodes_of,
    owners_of,
    settings_of,
    show_found,
    takes,
    tell_notes,
    tell_written,
    write_text,
)
from coinhaze.cli.waiting import wait_for
from coinhaze.options import GraphOptions, ReadOptions, known


@click.command("since", cls=Command)
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE... [COIN]")
@takes(ReadOptions, "points", known("nodes", choices=("coinjoins", "all"), default=()))
@takes("owners", "labels", "threads", "figure")
@takes(known("output", metavar="FILE.csv|.parquet"), "strict", "as_json")
def since(
    sources: tuple[str, ...],
    nodes: tuple[str, ...],
    owners: str | None,
    labels: tuple[str, ...],
    figure: Path | None,
    output: Path | None,
    as_json: bool,
    strict: bool,
    **options: Any,
) -> None:
    """Show COIN's bits to observers at later and later moments; or those of all of --nodes.

    Example: coinhaze since month.duckdb --nodes coinjoins --figure since.png
    """
    from coinhaze.errors import UsageError
    from coinhaze.report.files import made_by, made_from, write_table
    from coinhaze.report.since import save_since, since_json, since_text
    from coinhaze.solve.score import refuse_incomplete
    from coinhaze.solve.since import COINJOINS, since

    coins: str | list[str] = list(sources[-1:])
    if nodes:
        coins = COINJOINS if nodes == (COINJOINS,) else nodes_of(nodes)
    files = list(sources if nodes else sources[:-1])
    if not files:
        raise UsageError(
            "name a file and a coin: coinhaze since SOURCE... COIN; or --nodes coinjoins"
        )
    inputs = inputs_of(files, options, labels=labels, owners=owners, nodes=nodes)
    check_files(inputs, output, figure)
    holders, names, settings = owners_of(owners), labels_of(labels), settings_of(options)
    found = wait_for(
        "looking back",
        lambda progress: since(
            files, coins, owners=holders, labels=names, progress=progress, **settings
        ),
    )
    tell_notes(found.notes)
    if strict:
        refuse_incomplete(found.graph)
    about = made_by(inputs=inputs, command=command_line())
    whole = made_from(found.graph.ledger, about, found.notes) | {"settings": found.settings}
    if output is not None:
        tell_written(*write_table(found.to_arrow(), output, whole))
    if figure is not None:
        who = coins if isinstance(coins, str) else ", ".join(coins[:2])
        save_since(found, figure, title=f"{', '.join(Path(f).name for f in files)}: {who}")
        tell_written(figure)
    show_found(
        lambda: since_text(found), lambda: since_json(found, about), as_json=as_json, output=output
    )


@click.command("growth", cls=Command)
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@takes(ReadOptions, GraphOptions, "length", "walks", SEED)
@takes(known("accuracy", choices=("auto", "exact", "preview"), default="auto"), "threads", "memory")
@takes("figure", known("output", metavar="FILE.csv|.json|.parquet"), "as_json")
def growth(
    sources: tuple[str, ...],
    figure: Path | None,
    output: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Say how many bits money has after each payment, walking forward from every source by amount.

    Example: coinhaze growth transfers.csv --time temporal --length 10 --figure growth.png
    """
    from coinhaze.growth.growth import growth
    from coinhaze.report.files import SUFFIXES, made_by, write_table

    inputs: list[str | Path] = [*sources, *named_files(options)]
    check_files(inputs, output, figure, suffixes=SUFFIXES)
    settings = settings_of(options)
    found = wait_for(
        "walking", lambda progress: growth(list(sources), progress=progress, **settings)
    )
    tell_notes(found.notes)
    about = made_by(inputs=inputs, command=command_line()) | found.about()
    title = f"{', '.join(Path(source).name for source in sources)}, {found.settings['time']}"
    document = {"provenance": about, "growth": found.to_arrow().to_pylist()}
    text = json.dumps(document, indent=1, allow_nan=False) + "\n"
    if output is not None and output.suffix == ".json":
        write_text(output, text)
    elif output is not None:
        tell_written(*write_table(found.to_arrow(), output, about))
    if figure is not None:
        from coinhaze.growth.plots import save_growth
        from coinhaze.report.figures import short_labels

        save_growth(found.to_arrow(), figure, title=short_labels([title])[0])
        tell_written(figure)
    if as_json:
        click.echo(text, nl=False)
    elif output is None:
        import pyarrow.compute as pc

        from coinhaze.growth.plots import growth_table
        from coinhaze.report.terminal import show

        rows = found.to_arrow()
        ended = pc.index(rows["share"], 0.0).as_py()  # where no walk goes on, nothing changes
        shown = growth_table(
            rows if ended < 0 else rows[: ended + 1],
            title="Bits as money is paid on",
            caption=found.caption,
        )
        show(shown)
