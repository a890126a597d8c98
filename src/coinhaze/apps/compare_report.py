"""Score files of a comparison -> tables, figures and the page; nothing else is read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from coinhaze import __version__
from coinhaze.apps.compare import SCORES, growth_beside, make_folder
from coinhaze.errors import InputError
from coinhaze.report.comparison_figures import Growths, draw_comparison
from coinhaze.report.comparison_page import comparison_page
from coinhaze.report.comparison_rows import TIMES, comparison_rows
from coinhaze.report.comparison_tables import comparison_grids, write_tables
from coinhaze.report.files import write_whole
from coinhaze.report.grids import Grid
from coinhaze.report.provenance import input_digests
from coinhaze.report.score_files import ScoreFile, read_score_file

MANIFEST = "comparison.json"
TABLES, FIGURES, PAGE = "tables", "figures", "index.html"


@dataclass(frozen=True)
class Report:
    """What a comparison has written, and its tables to be shown."""

    grids: Sequence[Grid]
    written: Sequence[Path]


def write_manifest(folder: Path, scores: Sequence[Path], *, published: bool) -> None:
    """Note which score files make up the comparison, in which order."""
    about = {
        "software": f"coinhaze {__version__}",
        "scores": [path.name for path in scores],
        "published": published,
    }
    text = json.dumps(about, indent=1) + "\n"
    write_whole(folder / MANIFEST, lambda p: p.write_text(text, encoding="utf-8"))


def write_report(folder: Path, *, figures: bool = True) -> Report:
    """Write tables, and figures and the page if asked for, from the score files of a comparison."""
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
        written += _write_page(folder, files, grids, _grown(paths, files))
    else:
        # A page of an earlier comparison would tell of other score files.
        (folder / PAGE).unlink(missing_ok=True)
    return Report(grids, written)


def _write_page(
    folder: Path, files: Sequence[ScoreFile], grids: Sequence[Grid], grown: Growths
) -> list[Path]:
    """Draw the figures and write the page that shows them; the page is named first."""
    make_folder(folder / FIGURES)
    figures = draw_comparison(files, folder / FIGURES, growth=grown)
    text = comparison_page(files, figures, grids, growth=grown, folder=folder.name)
    write_whole(folder / PAGE, lambda p: p.write_text(text, encoding="utf-8"))
    return [folder / PAGE, *(path for figure in figures for path in figure.paths)]


def _grown(paths: Sequence[Path], files: Sequence[ScoreFile]) -> Growths:
    """Read the tables of bits along walks that lie beside the score files."""
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
    return manifest
