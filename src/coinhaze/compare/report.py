"""Score files of a comparison -> tables, figures and the page; nothing else is read."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq

from coinhaze import __version__
from coinhaze.compare.figures import Growths, draw_comparison, notes_by_ledger
from coinhaze.compare.ledgers import ComparedLedger, check_names
from coinhaze.compare.page import comparison_page
from coinhaze.compare.rows import TIMES, comparison_rows
from coinhaze.compare.run import SCORES, growth_beside, make_folder
from coinhaze.compare.tables import comparison_grids, write_tables
from coinhaze.errors import InputError, UsageError
from coinhaze.report.files import input_digests, write_text
from coinhaze.report.grids import Grid
from coinhaze.report.score_files import (
    FORMAT,
    ScoreFile,
    check_format,
    read_about,
    read_score_file,
)

MANIFEST = "comparison.json"
TABLES, FIGURES, PAGE = "tables", "figures", "index.html"


@dataclass(frozen=True)
class Report:
    """The files a comparison has written, and its tables to be shown."""

    grids: Sequence[Grid]
    written: Sequence[Path]
    notes: Sequence[str] = ()  # with the names of the ledgers they are about
    shortfalls: Sequence[str] = ()  # ledgers whose accuracy was not reached, and why


def write_manifest(folder: Path, scores: Sequence[Path], *, published: bool) -> None:
    """Write the list of score files that make up the comparison, in order."""
    about = {
        "format": FORMAT,
        "software": f"coinhaze {__version__}",
        "scores": [path.name for path in scores],
        "published": published,
    }
    write_text(folder / MANIFEST, json.dumps(about, indent=1) + "\n")


def with_added(folder: Path, added: Sequence[ComparedLedger], *, replace: bool = False) -> Merge:
    """Return how score files of further ledgers join those of the comparison in a folder.

    A ledger whose name is already there raises an error, or with `replace` is replaced.
    """
    manifest = _manifest(folder)
    there: dict[str, list[Path]] = {}
    for path in (folder / SCORES / name for name in manifest["scores"]):
        there.setdefault(read_about(path)["name"], []).append(path)
    new = {one.name for one in added}
    twice = [name for name in there if name in new]
    if twice and not replace:
        raise UsageError(
            f"{folder} has a ledger called {twice[0]!r} already: give the new one another name, as "
            "NAME=LEDGER, or put it in its place with --replace"
        )
    check_names([*(ComparedLedger(name, ()) for name in there if name not in new), *added])

    def merge(scores: Sequence[Path]) -> list[Path]:
        """Insert score files of the new ledgers where they belong."""
        made: dict[str, list[Path]] = {}
        for path in scores:
            made.setdefault(read_about(path)["name"], []).append(path)
        return [path for paths in (there | made).values() for path in paths]

    return Merge(merge, published=bool(manifest["published"]))


class Merge(NamedTuple):
    """How new score files join a comparison, and whether it includes the paper's figures."""

    scores: Callable[[Sequence[Path]], list[Path]]
    published: bool


def write_report(folder: Path, *, figures: bool = True) -> Report:
    """Write tables, and optionally figures and the page, from the score files of a comparison."""
    manifest = _manifest(folder)
    paths = [folder / SCORES / name for name in manifest["scores"]]
    files = [read_score_file(path) for path in paths]
    about: dict[str, object] = {
        "software": f"coinhaze {__version__}",
        "inputs": input_digests(paths),
    }
    make_folder(folder / TABLES)
    grids, written = [], []
    for time in TIMES:
        rows = comparison_rows(files, time, published=manifest["published"])
        if rows:
            grids += comparison_grids(rows, time)
            written += write_tables(rows, time, folder / TABLES, about)
    if figures:
        grown = _grown(paths, files)
        written += _write_page(folder, files, grids, grown, published=manifest["published"])
    else:
        # A page of an earlier comparison would describe other score files.
        (folder / PAGE).unlink(missing_ok=True)
    short = [f"{f.label}: {f.about['shortfall']}" for f in files if f.about.get("shortfall")]
    return Report(grids, written, notes_by_ledger(files), short)


def _write_page(
    folder: Path,
    files: Sequence[ScoreFile],
    grids: Sequence[Grid],
    grown: Growths,
    *,
    published: bool,
) -> list[Path]:
    """Draw the figures and write the page that shows them; the page's path comes first."""
    make_folder(folder / FIGURES)
    figures = draw_comparison(files, folder / FIGURES, growth=grown)
    text = comparison_page(
        files, figures, grids, growth=grown, folder=folder.name, published=published
    )
    return [write_text(folder / PAGE, text), *(path for figure in figures for path in figure.paths)]


def _grown(paths: Sequence[Path], files: Sequence[ScoreFile]) -> Growths:
    """Read the tables of bits along walks beside the score files."""
    found = {}
    for path, file in zip(paths, files, strict=True):
        beside = growth_beside(path)
        if beside.exists():
            try:
                found[file.name, file.time] = pq.read_table(beside)
            except (OSError, ValueError) as error:
                raise InputError(f"{beside}: cannot be read: {error}") from None
    return found


def _manifest(folder: Path) -> dict[str, Any]:
    path = folder / MANIFEST
    try:
        manifest: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        names, published = manifest["scores"], manifest["published"]
    except FileNotFoundError:
        raise InputError(
            f"{path}: no such file: coinhaze compare LEDGER... -o {folder} makes a comparison"
        ) from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}: does not say what was compared: {error!r}") from None
    sound = isinstance(names, list) and all(isinstance(n, str) and "/" not in n for n in names)
    if not sound or not isinstance(published, bool):
        raise InputError(f"{path}: does not say what was compared: {manifest!r}")
    check_format(manifest, path)
    return manifest
