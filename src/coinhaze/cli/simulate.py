"""coinhaze simulate and demo: made-up ledgers, one of them scored at once."""

from __future__ import annotations

from pathlib import Path

import click

from coinhaze.cli.options import SEED, Command, takes, tell_written
from coinhaze.cli.waiting import wait_counting, wait_for
from coinhaze.options import known


@click.command("simulate", cls=Command)
@click.argument("name")
@takes(known("output", required=True, metavar="FOLDER"), "size", "blocks", SEED)
def simulate(name: str, output: Path, size: float, blocks: int, seed: int) -> None:
    """Make up a week of a ledger: bitcoin-, dai-, ethereum-, usdc- or zcash-week.

    Or a bitcoin-history of so many blocks, from the first: a folder for `coinhaze history`.

    Example: coinhaze simulate dai-week --size 0.01 --seed 1 -o dai
    """
    from coinhaze.simulate.history import NAME

    if name == NAME:
        _history(output, blocks, seed)
        return
    from coinhaze.ledger import Ledger
    from coinhaze.ledger.parquet import check_folder, write_folder
    from coinhaze.simulate.weeks import check_week, simulate_week

    check_week(name, size, seed)
    check_folder(output)

    ledger: Ledger = wait_for(
        f"simulating {name}", lambda _: simulate_week(name, size=size, seed=seed)
    )
    # Not in a thread of its own: Ctrl-C here takes away what is half-written.
    write_folder(ledger, output)
    click.echo(f"wrote {output}: {len(ledger):,} {_rows(ledger)}", err=True)
    if name == "zcash-week":
        history = _write_history(output, size=size, seed=seed)
        click.echo(f"wrote {history}: what entered its pools before, for --pool-history", err=True)


def _history(output: Path, blocks: int, seed: int) -> None:
    from coinhaze.history import History
    from coinhaze.simulate.history import bitcoin_history, check_history

    check_history(blocks, seed)
    made = wait_counting(
        "simulating",
        "transactions",
        lambda note: History.index_blocks(
            output,
            bitcoin_history(blocks, seed=seed),
            where="simulated blocks",
            unit="BTC",
            progress=note,
        ),
    )
    about = made.manifest
    click.echo(
        f"wrote {output}: {about.transactions:,} transactions, {about.coins:,} unspent coins",
        err=True,
    )


def _write_history(output: Path, *, size: float, seed: int) -> Path:
    from coinhaze.report.files import write_text
    from coinhaze.simulate.weeks.zcash import zcash_history

    lines = ["pool,value"]
    for pool, values in zcash_history(size=size, seed=seed).items():
        lines += [f"{pool},{value}" for value in values]
    path = output.with_name(f"{output.name}.history.csv")
    return write_text(path, "\n".join(lines) + "\n")


def _rows(ledger: object) -> str:
    from coinhaze.ledger import AccountLedger

    return "transfers" if isinstance(ledger, AccountLedger) else "transactions"


@click.command("demo", cls=Command)
@takes(known("output", default=Path("coinhaze-demo"), metavar="FOLDER"), SEED)
def demo(output: Path, seed: int) -> None:
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
