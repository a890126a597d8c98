"""coinhaze demo: a made-up town, scored, with a figure."""

from __future__ import annotations

from pathlib import Path

import click

from coinhaze.cli.options import SEED, Command, takes, tell_written
from coinhaze.options import known


@click.command("demo", cls=Command)
@takes(known("output", default=Path("coinhaze-demo"), metavar="FOLDER"), SEED)
def command(output: Path, seed: int) -> None:
    """Make a small ledger of coins on the spot, score it and draw it.

    Example: coinhaze demo --seed 7
    """
    from dataclasses import replace

    from coinhaze.errors import InputError, UsageError
    from coinhaze.graph import transaction_graph
    from coinhaze.observer import absorbing_chain
    from coinhaze.report.figures import save_overview
    from coinhaze.report.files import provenance, write_scores
    from coinhaze.report.tables import origins_report, scores_report
    from coinhaze.report.terminal import show
    from coinhaze.simulate import simulate_town
    from coinhaze.solve import origins, score_or_reached
    from coinhaze.units import UNITS

    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{output}: cannot be made: {error.strerror}") from None
    ledger = replace(simulate_town(seed=seed), unit=UNITS["bitcoin"])
    chain = absorbing_chain(transaction_graph(ledger))
    scores = score_or_reached(chain)
    click.echo(f"A made-up town: {len(ledger):,} transactions, seed {seed}.\n")
    show(scores_report(scores))
    middle = scores.nodes[scores.order()[len(scores) // 2]]
    show("", origins_report(origins(chain, int(middle))))
    figure = output / "bits.png"
    made_by = provenance(scores, command=f"coinhaze demo --seed {seed}")
    written = write_scores(scores, output / "scores.csv", made_by)
    try:
        save_overview(scores, figure, title=f"A made-up town of {len(ledger):,} transactions")
        written.append(figure)
    except UsageError as missing:
        click.echo(f"note: no figure: {missing}", err=True)
    tell_written(*written)
