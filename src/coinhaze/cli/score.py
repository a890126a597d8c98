"""coinhaze score and merge: bits of every sink of a ledger, solved at once or in parts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from coinhaze.cli.options import (
    WORKERS,
    Command,
    command_line,
    inputs_of,
    labels_of,
    nodes_of,
    open_cluster,
    owners_of,
    settings_of,
    takes,
    tell_notes,
    tell_written,
    warn,
    write_text,
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
    from collections.abc import Mapping, Sequence

    from coinhaze.measures import Scores
    from coinhaze.solve.pool import Budget, WorkerCluster
    from coinhaze.solve.progress import Progress


@click.command("score", cls=Command)
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@takes(ReadOptions, GraphOptions, ObserverOptions, SolveOptions, MeasureOptions)
@takes("dry_run", "part", "keep", known("output", metavar="FILE.csv|.json|.parquet"), "as_json")
@takes("labels", "labels_out")
def score(
    sources: tuple[str, ...],
    nodes: tuple[str, ...],
    dry_run: bool,
    part: str | None,
    keep: bool,
    output: Path | None,
    as_json: bool,
    with_: str | None,
    owners: str | None,
    observers: bool,
    strict: bool,
    labels: tuple[str, ...],
    labels_out: Path | None,
    **options: Any,
) -> None:
    """Score a ledger: how many bits an observer lacks to tell where money came from.

    Example: coinhaze score transfers.csv --time temporal -o scores.csv
    """
    from coinhaze.errors import ResourceError, UsageError
    from coinhaze.measures.scores import reached
    from coinhaze.report.files import check_output, check_place, score_labels
    from coinhaze.solve import informed, plan, score

    requested = options | {"nodes": nodes, "with_": with_, "owners": owners, "strict": strict}
    inputs = [*inputs_of(sources, requested, owners=owners, nodes=nodes), *labels]
    if labels_out is not None:
        if part is not None or dry_run:
            raise UsageError("--labels-out takes no --part and no --dry-run")
        check_place(labels_out, inputs)
    if output is not None and part is None:
        check_output(output, inputs)
    measures = measures_of(with_, owners)
    settings = settings_of(options) | {"nodes": nodes_of(nodes)}
    if needs_count(measures) and settings.get("accuracy") != "preview":
        settings["count_sources"] = True
    if part is not None:
        if output is None or dry_run or keep or as_json or observers:
            raise UsageError(
                "--part takes -o FILE, and no --dry-run, --keep, --json or --observers"
            )
        _write_part(part, output, sources, settings, requested, inputs)
        return
    not_cached = None
    with open_cluster(settings) as cluster:
        settings = {name: value for name, value in settings.items() if name not in WORKERS}
        if cluster is not None:
            settings["workers"] = cluster
        if dry_run:
            planned = wait_for("planning", lambda _: plan(list(sources), **settings))
            click.echo(planned.to_json() if as_json else "\n".join(planned.lines()))
            return
        if keep:
            scores, not_cached = _cached(list(sources), settings, strict=strict, by=cluster)
        else:

            def solve(progress: Progress) -> Scores:
                return score(list(sources), progress=progress, strict=strict, **settings)

            wanted = solve if strict else lambda note: reached(lambda: solve(note))
            scores = wait_for("scoring", wanted, by=cluster)
    if observers:
        table, threads = owners_of(owners), settings.get("threads")
        scores = wait_for(
            "observing",
            lambda note: informed(scores, owners=table, threads=threads, progress=note),
        )
    limits = limits_of(settings)
    show_scores(scores, inputs, measures, owners, output=output, as_json=as_json, limits=limits)
    if labels_out is not None:
        write_text(labels_out, score_labels(scores, labels_of(labels)))
    if not_cached is not None:
        raise ResourceError(f"scored, but not cached: {not_cached}")
    exit_short(scores)


def measures_of(with_: str | None, owners: str | None) -> list[str]:
    """Read --with: measures that can be put beside bits."""
    if with_ is None:
        return []
    from coinhaze.measures.comparators.registry import check_measures

    measures = [name.strip() for name in with_.split(",")]
    check_measures(measures, owners=owners is not None)
    return measures


def needs_count(measures: Sequence[str]) -> bool:
    """Tell whether a measure uses the number of possible sources."""
    from coinhaze.measures.comparators.registry import COMPARATORS

    return any("count" in COMPARATORS[name].needs for name in measures)


def show_scores(
    scores: Scores,
    inputs: Sequence[str | Path],
    measures: list[str],
    owners: str | None,
    *,
    output: Path | None,
    as_json: bool,
    limits: Budget,
) -> None:
    """Write and print scores, with other measures beside them."""
    from coinhaze.report.files import provenance, scores_json, write_scores

    if measures:
        scores = wait_for("comparing", lambda _: _compared(scores, measures, owners))
    tell_notes(replace(scores, shortfall=None).notes)
    if scores.shortfall is not None:
        warn(scores.shortfall)
    made_by = provenance(scores, inputs=inputs, command=command_line())
    if output is not None:
        tell_written(*write_scores(scores, output, made_by, budget=limits))
    if as_json:
        click.echo(scores_json(scores, made_by), nl=False)
    elif output is None:
        from coinhaze.report.tables import scores_report
        from coinhaze.report.terminal import show

        show(scores_report(scores))
        if scores.informed:
            from coinhaze.report.tables import observers_report

            show(observers_report(scores))
        click.echo(scores.completeness.line())
        if scores.comparators:
            from coinhaze.report.tables import comparison_report

            show(comparison_report(scores))
    else:
        click.echo(scores.summary().line(), err=True)
    if output is not None:
        click.echo(scores.completeness.line(), err=True)


def limits_of(settings: Mapping[str, Any]) -> Budget:
    """Give the threads and the memory that a command may take."""
    from coinhaze.solve.pool import Budget
    from coinhaze.solve.pool.limits import bytes_of

    memory = settings.get("memory")
    return Budget(settings.get("threads"), None if memory is None else bytes_of(memory))


def exit_short(scores: Scores) -> None:
    """End with the exit code of an accuracy that was not reached, if it was not."""
    from coinhaze.errors import AccuracyError

    if scores.shortfall is not None:
        raise click.exceptions.Exit(AccuracyError.exit_code)


def _write_part(
    text: str,
    output: Path,
    sources: tuple[str, ...],
    settings: dict[str, Any],
    requested: Mapping[str, Any],
    inputs: list[str | Path],
) -> None:
    """Solve one part and write it."""
    from coinhaze.options import LIMITS
    from coinhaze.report.files import check_place
    from coinhaze.report.part_files import write_part
    from coinhaze.solve.pool.parts import Part

    part = Part.read(text)
    check_place(output, inputs)
    options = {
        name: value for name, value in requested.items() if _is_given(value) and name not in LIMITS
    }
    pieces = wait_for(
        f"solving part {part}",
        lambda progress: write_part(
            sources,
            part,
            output,
            settings=settings,
            options=options,
            inputs=inputs,
            progress=progress,
        ),
    )
    if not pieces:
        click.echo(f"note: there are fewer pieces than parts, and none for {part}", err=True)
    tell_written(output)


def _is_given(value: object) -> bool:
    """Tell a 0 that was given from nothing."""
    return value is not None and value is not False and value != ()


def _cached(
    sources: list[str], settings: dict[str, Any], *, strict: bool, by: WorkerCluster | None
) -> tuple[Scores, str | None]:
    """Score and cache; also say why, if it could not be cached."""
    from coinhaze.cache.layers import MODEL_SETTINGS, LedgerCache

    model = {name: value for name, value in settings.items() if name in MODEL_SETTINGS}
    scoring = {name: value for name, value in settings.items() if name not in MODEL_SETTINGS}
    cache = LedgerCache(sources, **model)
    cache.check(**scoring)
    cached = wait_for(
        "scoring",
        lambda progress: cache.build(progress=progress, strict=strict, **scoring),
        by=by,
    )
    if not cached.is_cached:
        return cached.scores, cached.notes[-1]
    tell_notes(cached.notes)
    click.echo(f"cached in {cache.place()}", err=True)
    return cached.scores, None


def _compared(scores: Scores, measures: list[str], owners: str | None) -> Scores:
    from coinhaze.measures.comparators.side_by_side import compare_measures

    return compare_measures(scores, measures, owners=owners_of(owners))


@click.command("merge", cls=Command)
@click.argument(
    "parts", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="PART..."
)
@takes(known("output", metavar="FILE.csv|.json|.parquet"), "as_json", "memory")
def merge(parts: tuple[Path, ...], output: Path | None, as_json: bool, memory: str | None) -> None:
    """Merge what coinhaze score --part solved: the scores of one command, byte for byte.

    PARTs are all parts of one question, each once, in any order. Their ledger is read again.

    Example: coinhaze merge parts/* -o scores.csv
    """
    from coinhaze.report.files import check_output
    from coinhaze.report.part_files import merged, read_parts

    files = read_parts(parts)
    about = files[0].about
    usual = {"nodes": (), "with_": None, "owners": None, "strict": False}
    given = {n: tuple(v) if isinstance(v, list) else v for n, v in about["options"].items()}
    requested = usual | given
    inputs = inputs_of(
        about["sources"], requested, owners=requested["owners"], nodes=requested["nodes"]
    )
    if output is not None:
        check_output(output, [*inputs, *parts])
    measures = measures_of(requested["with_"], requested["owners"])
    options = {name: value for name, value in given.items() if name not in usual}
    settings = settings_of(options | {"memory": memory}) | {"nodes": nodes_of(requested["nodes"])}
    scores = wait_for(
        "merging",
        lambda progress: merged(
            files, settings=settings, inputs=inputs, strict=requested["strict"], progress=progress
        ),
    )
    limits, owners = limits_of(settings), requested["owners"]
    show_scores(scores, inputs, measures, owners, output=output, as_json=as_json, limits=limits)
    exit_short(scores)
