"""coinhaze history: a chain of coins from its first block, and the bits of every unspent coin."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from coinhaze.cli.options import (
    FIGURES,
    WORKERS,
    Command,
    command_line,
    open_cluster,
    settings_of,
    takes,
    tell_notes,
    tell_written,
    write_text,
)
from coinhaze.cli.waiting import wait_counting, wait_for
from coinhaze.options import Grouping, ReadOptions, known

if TYPE_CHECKING:
    from coinhaze.history import HistoryScores


PAUSE = 0.1  # seconds between looks at a node
LONGEST_WAIT = 60.0  # seconds between attempts to reach a node that does not answer


@click.group("history")
def command() -> None:
    """Score every unspent coin of a chain since its first block.

    Example: coinhaze history index chain.history blocks/*.json --complete
    """


@command.command("index", cls=Command)
@click.argument("history", type=click.Path(path_type=Path))
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@takes(ReadOptions)
def index(history: Path, sources: tuple[str, ...], **options: Any) -> None:
    """Read blocks into HISTORY, a folder; or append what comes after its last block.

    Example: coinhaze history index chain.history chain.duckdb --complete
    """
    from coinhaze.history import History

    settings = settings_of(options)
    made = wait_counting(
        "indexing",
        "transactions",
        lambda note: History.index(history, list(sources), progress=note, **settings),
    )
    about = made.manifest
    tell_notes(about.notes)
    click.echo(
        f"{history}: {about.transactions:,} transactions, {about.rows:,} rows, {about.terms:,} "
        f"terms, {about.sources:,} sources, {about.coins:,} "
        f"{about.scored_words}; {_span(made)}"
    )
    click.echo(made.completeness.line())


@command.command("score", cls=Command)
@click.argument("history", type=click.Path(path_type=Path))
@takes(known("accuracy", default="preview"), "draws", "miss", "simultaneous", "seed")
@takes("threads", *WORKERS, "memory")
@takes(
    known("output", metavar="FILE.csv|.json|.parquet"),
    "as_json",
    "top_sources",
    "transactions",
    "over_time",
)
def score(
    history: Path,
    output: Path | None,
    as_json: bool,
    accuracy: Any,
    transactions: Path | None,
    over_time: bool,
    **options: Any,
) -> None:
    """Score every unspent coin of HISTORY, and keep the scores there.

    Example: coinhaze history score chain.history --draws 1024 -o scores.parquet
    """
    from coinhaze.history import History
    from coinhaze.history.scores.transactions import refuse_used
    from coinhaze.report.files import check_output

    if output is not None:
        check_output(output)
    if transactions is not None:
        refuse_used(transactions)
    chosen = {name: value for name, value in options.items() if value is not None}
    settings = {name: value for name, value in chosen.items() if name not in WORKERS}
    opened = History.open(history)
    with open_cluster(options) as cluster:
        settings |= {"accuracy": accuracy, "workers": cluster}
        scores = wait_for(
            "scoring",
            lambda progress: opened.score(over_time=over_time, progress=progress, **settings),
        )
        if transactions is not None:
            settings |= {"seed": scores.about["seed"]} if "seed" in scores.about else {}
            folder = transactions
            written = wait_for(
                "scoring transactions",
                lambda progress: opened.write_transactions(folder, progress=progress, **settings),
            )
            click.echo(
                f"wrote {folder}: {len(opened):,} transactions in {len(written)} files", err=True
            )
    if output is not None:
        _write(scores, output, _about(opened))
    if as_json:
        click.echo(_json(scores, _about(opened)), nl=False)
    tell_notes(opened.manifest.notes)
    for line in (scores.line(), opened.completeness.line()):
        click.echo(line, err=output is not None or as_json)


@command.command("show", cls=Command)
@click.argument("history", type=click.Path(path_type=Path))
@click.argument("coin", metavar="TXID:VOUT")
@takes("top", "as_json")
def show(history: Path, coin: str, top: int, as_json: bool) -> None:
    """Show one coin of HISTORY: its bits, its place among unspent coins, and its origins.

    Example: coinhaze history show chain.history TXID:0
    """
    from coinhaze.history import History

    opened = History.open(history)
    found = wait_for("walking back", lambda _: opened.origins(coin))
    tell_notes(opened.manifest.notes)
    if as_json:
        document = {"provenance": _about(opened), **found.as_dict(top)}
        click.echo(json.dumps(document, indent=1, allow_nan=False))
        return
    from coinhaze.history.scores.table import origins_grid
    from coinhaze.report import terminal

    terminal.show(origins_grid(found, top, opened).rich())


@command.command("table", cls=Command)
@click.argument("history", type=click.Path(path_type=Path))
@takes("group", "over_time", "figure")
@takes(known("output", metavar="FILE.csv|.json|.parquet"), "as_json")
def table(
    history: Path,
    group: Grouping,
    over_time: bool,
    figure: Path | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """Show bits of the unspent coins of HISTORY by year, month, height, value, age or script
    type.

    Example: coinhaze history table chain.history --group-by age --figure age.png
    """
    from coinhaze.history import History
    from coinhaze.history.scores.table import (
        months_grid,
        save_months,
        save_table,
        table_grid,
        words_of,
    )
    from coinhaze.report.files import check_output, write_table

    if output is not None:
        check_output(output)
    if figure is not None:
        check_output(figure, suffixes=FIGURES)
    opened = History.open(history)
    scores = opened.scores()
    made = opened.over_time() if over_time else opened.table(group)
    shown = "at the end of each month" if over_time else f"by {words_of(group)}"
    title = f"{history.name}: {opened.manifest.scored_words} {shown}"
    document = {"provenance": _about(opened), "table": made.to_pylist()}
    text = json.dumps(document, indent=1, allow_nan=False) + "\n"
    if output is not None and output.suffix == ".json":
        write_text(output, text)
    elif output is not None:
        tell_written(*write_table(made, output, _about(opened)))
    if figure is not None:
        if over_time:
            save_months(made, figure, title=title)
        else:
            save_table(made, group, figure, title=title)
        tell_written(figure)
    tell_notes(opened.manifest.notes)
    if as_json:
        click.echo(text, nl=False)
    elif output is None:
        from coinhaze.report import terminal

        captions = (scores.line(), opened.completeness.line())
        grid = (
            months_grid(made, title, captions, opened.unit)
            if over_time
            else table_grid(made, group, title, captions, opened.unit)
        )
        terminal.show(grid.rich())


@command.command("follow", cls=Command)
@click.argument("history", type=click.Path(path_type=Path))
@takes(known("node", required=True), "watch", "post", known("draws", default=64), "miss", "seed")
@takes("memory")
def follow(
    history: Path,
    node: str,
    watch: Path | None,
    post: str | None,
    draws: int,
    miss: float | None,
    seed: int | None,
    memory: str | None,
) -> None:
    """Keep HISTORY up to date with a node, block by block, until interrupted.

    Example: coinhaze history follow chain.history --node bitcoin+http://127.0.0.1:8332
    """
    from contextlib import ExitStack, closing

    from coinhaze.errors import UsageError
    from coinhaze.history.follow import Follower
    from coinhaze.history.node import Watch
    from coinhaze.nodes.best_chain import ChainNode
    from coinhaze.nodes.http import Connection
    from coinhaze.solve.pool.limits import bytes_of
    from coinhaze.store.sync import open_node

    if post is not None and watch is None:
        raise UsageError("--post says where to post what --watch sees: give both")
    watched = None if watch is None else Watch.read(watch)
    with ExitStack() as stack:
        hook = None if post is None else stack.enter_context(Connection(post, retries=1))
        name, opened = open_node(node)
        stack.enter_context(closing(opened.rpc))
        if not isinstance(opened, ChainNode):
            raise UsageError(f"{name}: not a node of Bitcoin's family: a history is of its coins")
        _index_old(history, opened)
        follower = wait_for(
            "opening",
            lambda _: Follower(
                history,
                draws=draws,
                miss=miss,
                seed=seed,
                memory=None if memory is None else bytes_of(memory),
            ),
        )
        stack.enter_context(follower)
        _follow(follower, opened, name, watched, hook)


def _index_old(history: Path, node: Any) -> None:
    """Index the blocks of a node that it will hardly leave again, if they are many."""
    from coinhaze.history import History
    from coinhaze.history.files import is_history
    from coinhaze.history.follow import COMMIT_AFTER, RETAINED

    tip, _ = node.tip()
    last = max(tip - RETAINED, 0)
    have = History.open(history).manifest.last_height if is_history(history) else -1
    if have < 0 or last - have > COMMIT_AFTER:
        wait_counting(
            "indexing",
            "transactions",
            lambda note: History.index_node(history, node, last, progress=note),
        )


def _follow(follower: Any, node: Any, name: str, watched: Any, hook: Any) -> None:
    from coinhaze.errors import NotAnswering
    from coinhaze.history.follow import BlockFigures
    from coinhaze.history.node import NodeFollower

    def tell_watched() -> None:
        for coin, figures in watched.changes(follower) if watched is not None else ():
            document: dict[str, object] = {"height": follower.height, "node": coin}
            document |= {"unspent": False} if figures is None else {"unspent": True}
            document |= {} if figures is None else vars(figures) | {"unit": follower.unit}
            text = json.dumps(document, allow_nan=False)
            click.echo(text)
            if hook is not None:
                _post(hook, text)

    def added(figures: BlockFigures, seconds: float) -> None:
        bits = "no new rows" if figures.bits is None else f"{figures.bits:.3f} bits on average"
        click.echo(
            f"block {figures.height}: {figures.transactions:,} transactions, {figures.rows:,} new "
            f"rows, {bits}; {figures.coins:,} unspent coins; "
            f"within {1000 * seconds:.0f} ms"
        )
        tell_watched()

    def left(height: int, blocks: int) -> None:
        click.echo(f"the chain has left {blocks} blocks: back to block {height}")
        tell_watched()

    followed = NodeFollower(follower, node, added, left)
    click.echo(f"{follower.path}: at block {follower.height}, following {name}", err=True)
    tell_watched()
    outage = 0
    while True:
        try:
            came = followed.step()
        except NotAnswering as error:
            if not outage:
                click.echo(f"{error}; waiting until it answers again", err=True)
            time.sleep(min(2.0**outage, LONGEST_WAIT))
            outage += 1
            continue
        if outage:
            click.echo(f"{name}: answers again", err=True)
            outage = 0
        if not came:
            time.sleep(PAUSE)


def _post(hook: Any, text: str) -> None:
    from coinhaze.errors import SourceUnreachable

    try:
        reply = hook.send(text.encode())
    except SourceUnreachable as error:
        click.echo(f"not posted: {error}", err=True)
        return
    if reply.status >= 400:
        click.echo(f"not posted: {hook.node} answered {reply.status}", err=True)


def _about(history: Any) -> dict[str, object]:
    from coinhaze.report.files import made_by

    about = history.manifest
    return made_by(command=command_line()) | {
        "history": history.path.name,
        "blocks": [about.first_height, about.last_height],
        "tip": about.tip,
        "complete": about.complete,
        "transactions": about.transactions,
        "scored": dict(about.scored),
        "settings": about.settings,
        "unit": history.unit.spelling,
        "completeness": history.completeness.record(),
        "notes": list(about.notes),
    }


def _span(history: Any) -> str:
    about = history.manifest
    known = about.first_height >= 0
    span = f"blocks {about.first_height} to {about.last_height}" if known else "no heights"
    if about.accounts:
        return "accounts in the order of time"
    begins = "from the first block" if about.complete else "a window: earlier coins are sources"
    return f"{span}, {begins}"


def _json(scores: HistoryScores, about: dict[str, object]) -> str:
    document = {"provenance": about, "scores": scores.to_arrow().to_pylist()}
    return json.dumps(document, indent=1, allow_nan=False) + "\n"


def _write(scores: HistoryScores, output: Path, about: dict[str, object]) -> None:
    from coinhaze.history.scores.table import write_coins

    if output.suffix == ".json":
        write_text(output, _json(scores, about))
        return
    tell_written(*write_coins(scores, output, about))
