"""coinhaze score: bits of every sink of a ledger."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from coinhaze.cli.options import (
    Command,
    command_line,
    named_files,
    nodes_of,
    settings_of,
    takes,
    tell_notes,
    tell_written,
    warn,
)
from coinhaze.cli.waiting import wait_for
from coinhaze.options import (
    GraphOptions,
    MeasureOptions,
    ObserverOptions,
    ReadOptions,
    SolveOptions,
    known,
)

if TYPE_CHECKING:
    from coinhaze.measures import Scores
    from coinhaze.solve.progress import Progress

COUNTED = frozenset({"possible-sources", "degree"})  # measures that need the number of sources


@click.command("score", cls=Command)
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@takes(ReadOptions, GraphOptions, ObserverOptions, SolveOptions, MeasureOptions)
@takes("dry_run", "keep", known("output", metavar="FILE.csv|.json|.parquet"), "as_json")
def command(
    sources: tuple[str, ...],
    nodes: tuple[str, ...],
    dry_run: bool,
    keep: bool,
    output: Path | None,
    as_json: bool,
    with_: str | None,
    owners: str | None,
    strict: bool,
    **options: Any,
) -> None:
    """Score a ledger: how many bits an observer lacks to tell where money came from.

    Example: coinhaze score transfers.csv --time temporal -o scores.csv
    """
    from coinhaze.errors import AccuracyError, ResourceError
    from coinhaze.measures.scores import reached
    from coinhaze.report.files import check_output, provenance, scores_json, write_scores
    from coinhaze.solve import plan, score

    inputs: list[str | Path] = [*sources, *named_files(options), *([owners] if owners else [])]
    inputs += [name for name in nodes if Path(name).is_file()]
    if output is not None:
        check_output(output, inputs)
    measures = [] if with_ is None else [name.strip() for name in with_.split(",")]
    if measures:
        from coinhaze.measures.comparators.registry import check_measures

        check_measures(measures, owners=owners is not None)
    settings = settings_of(options) | {"nodes": nodes_of(nodes)}
    if COUNTED.intersection(measures) and settings.get("accuracy") != "preview":
        settings["count_sources"] = True
    if dry_run:
        planned = wait_for("planning", lambda _: plan(list(sources), **settings))
        click.echo(planned.to_json() if as_json else "\n".join(planned.lines()))
        return
    not_cached = None
    if keep:
        scores, not_cached = _cached(list(sources), settings, strict=strict)
    else:

        def solve(progress: Progress) -> Scores:
            return score(list(sources), progress=progress, strict=strict, **settings)

        scores = wait_for("scoring", solve if strict else lambda note: reached(lambda: solve(note)))
    if measures:
        scores = wait_for("comparing", lambda _: _compared(scores, measures, owners))
    tell_notes(replace(scores, shortfall=None).notes)
    if scores.shortfall is not None:
        warn(scores.shortfall)
    made_by = provenance(scores, inputs=inputs, command=command_line())
    if output is not None:
        tell_written(*write_scores(scores, output, made_by))
    if as_json:
        click.echo(scores_json(scores, made_by), nl=False)
    elif output is None:
        from rich.console import Console

        from coinhaze.report.tables import scores_report

        Console().print(scores_report(scores))
        click.echo(scores.completeness.line())
        if scores.comparators:
            from coinhaze.report.tables import comparison_report

            Console().print(comparison_report(scores))
    else:
        click.echo(scores.summary().line(), err=True)
    if output is not None:
        click.echo(scores.completeness.line(), err=True)
    if not_cached is not None:
        raise ResourceError(f"scored, but not kept: {not_cached}")
    if scores.shortfall is not None:
        raise click.exceptions.Exit(AccuracyError.exit_code)


def _cached(
    sources: list[str], settings: dict[str, Any], *, strict: bool
) -> tuple[Scores, str | None]:
    """Score and keep; also say why, if it could not be kept."""
    from coinhaze.cache.layers import MODEL_SETTINGS, LedgerCache

    model = {name: value for name, value in settings.items() if name in MODEL_SETTINGS}
    scoring = {name: value for name, value in settings.items() if name not in MODEL_SETTINGS}
    keeper = LedgerCache(sources, **model)
    keeper.check(**scoring)
    cached = wait_for(
        "scoring", lambda progress: keeper.build(progress=progress, strict=strict, **scoring)
    )
    if not cached.is_cached:
        return cached.scores, cached.notes[-1]
    tell_notes(cached.notes)
    click.echo(f"kept in {keeper.place()}", err=True)
    return cached.scores, None


def _compared(scores: Scores, measures: list[str], owners: str | None) -> Scores:
    from coinhaze.formats.lists.knowledge import read_clusters
    from coinhaze.measures.comparators.side_by_side import compare_measures

    known = None if owners is None else read_clusters(owners)
    return compare_measures(scores, measures, owners=known)
