"""coinhaze screen: how much of what nodes hold came from a list."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from coinhaze.cli.options import LateHelp, graph_options, named_files, settings_of, strict_option
from coinhaze.cli.waiting import wait_for
from coinhaze.observer.policies import taint_policies

SUFFIXES = (".html", ".csv", ".json", ".parquet")


def _policy_words() -> str:
    return f"Some of {','.join(policy.column for policy in taint_policies())}. [default: all]"


@click.command("screen")
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@click.option("--listed", required=True, help="A FILE with the names to look for; see the docs.")
@click.option("--policy", cls=LateHelp, words=_policy_words)
@click.option("--nodes", multiple=True, help="A node, address or FILE of them. [default: sinks]")
@click.option("--top", type=click.IntRange(1), default=10, help="How many nodes to show.")
@click.option("--paths", type=click.IntRange(0), default=3, help="Paths for each of the largest.")
@graph_options
@strict_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON on stdout.")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="A .html, .csv, .json or .parquet."
)
def command(
    sources: tuple[str, ...],
    listed: str,
    policy: str | None,
    nodes: tuple[str, ...],
    top: int,
    paths: int,
    as_json: bool,
    output: Path | None,
    strict: bool,
    **options: Any,
) -> None:
    """Screen a ledger: what share of each balance came from a list, by every rule side by side.

    Example: coinhaze screen transfers.csv --listed list.txt -o statement.html
    """
    from coinhaze.errors import InputError
    from coinhaze.formats.lists.knowledge import read_listed
    from coinhaze.formats.registry import digest_of
    from coinhaze.report.files import check_output
    from coinhaze.report.provenance import made_by
    from coinhaze.screening.report import ListFile
    from coinhaze.screening.screen import screen
    from coinhaze.solve.score import refuse_incomplete

    inputs: list[str | Path] = [*sources, *named_files(options)]
    if output is not None:
        check_output(output, [*inputs, listed], suffixes=SUFFIXES)
    names = read_listed(listed)
    if not names:
        raise InputError(f"{listed}: the list names nothing")
    asked = None if policy is None else [word.strip() for word in policy.split(",")]
    found = wait_for(
        "screening",
        lambda _: screen(
            list(sources), names, policies=asked, nodes=_nodes(nodes), paths=paths,
            **settings_of(options),
        ),
    )  # fmt: skip
    if strict:
        refuse_incomplete(found.graph)
    listing = ListFile(Path(listed).name, digest_of(Path(listed)))
    about = made_by(inputs=inputs, command=" ".join(["coinhaze", *sys.argv[1:]]))
    if output is not None:
        for path in _write(found, listing, about, output, top):
            click.echo(f"wrote {path}", err=True)
    if as_json:
        from coinhaze.screening.report import screening_json

        click.echo(screening_json(found, listing, about), nl=False)
    elif output is None:
        _show(found, listing, about, top)


def _nodes(given: tuple[str, ...]) -> list[str] | None:
    from coinhaze.formats.lists.knowledge import read_listed

    names: list[str] = []
    for name in given:
        names += read_listed(name) if Path(name).is_file() else [name]
    return names if given else None


def _show(found: Any, listing: Any, about: dict[str, object], top: int) -> None:
    from rich.console import Console

    from coinhaze.report.sections import sections_text
    from coinhaze.screening.report import screening_sections

    sections = screening_sections(found, listing, about, most=top)
    Console().print(sections_text(f"Money from {listing.name}", sections))


def _write(
    found: Any, listing: Any, about: dict[str, object], output: Path, top: int
) -> list[Path]:
    from coinhaze.report.files import write_table, write_whole
    from coinhaze.report.sections import sections_page
    from coinhaze.screening import report as report

    if output.suffix in (".csv", ".parquet"):
        made = report.provenance_of(found, listing, about)
        return write_table(found.to_arrow(), output, made)
    if output.suffix == ".html":
        sections = report.screening_sections(found, listing, about, most=max(top, 100))
        text = sections_page(f"Money from {listing.name}", sections)
    else:
        text = report.screening_json(found, listing, about)
    write_whole(output, lambda path: path.write_text(text, encoding="utf-8"))
    return [output]
