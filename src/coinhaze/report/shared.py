"""What coins have in common, for a terminal and as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from coinhaze.measures.pairs import FIGURES, NAIVE, FigureInterval, SharedOrigins
from coinhaze.observer.chain import reading_of, reading_words
from coinhaze.report.drawing.flow import short_name
from coinhaze.report.files import made_from

WORDS = {
    "collision": "probability that two walks end in one origin",
    "overlap": "share of origins in common: 1 is all, 0 is none",
    "divergence": "bits that tell the two apart: 0 is nothing, 1 is always",
    "evidence": "bits for a common past, rare origins counting more; null if none is shared",
}
NOT = (
    "A shared origin is no proof of one owner: coins paid out of one exchange share it, and coins "
    "of one owner need share none."
)


def shared_text(found: SharedOrigins, *, limit: int = 5) -> Group:
    """Show two coins to every observer, with the most telling origins; or a matrix of many."""
    if len(found.names) > 2:
        return Group(*(_matrix(found, seen.name) for seen in found.seen), *_last(found))
    one, other = found.names
    parts: list[RenderableType] = [Text(sentence(found))]
    table = Table(title="Shared origins", title_justify="left")
    table.add_column("observer", overflow="fold")
    for name in FIGURES:
        table.add_column(name, justify="right")
    for seen in found.seen:
        figures = found.pair(one, other, seen.name)
        table.add_row(seen.name, *(_words(getattr(figures, name)) for name in FIGURES))
    parts.append(table)
    parts += [Text(f"{name}: {words}") for name, words in WORDS.items()]
    for seen in found.seen:
        rows = found.common(one, other, seen.name, limit=limit).to_pylist()
        if rows:
            parts.append(_common(rows, seen.name))
    return Group(*parts, *_last(found))


def _last(found: SharedOrigins) -> tuple[Text, ...]:
    read = f"Origins by {reading_words(found.settings)}."
    return tuple(Text(words) for words in (NOT, read, found.graph.ledger.completeness.line()))


def sentence(found: SharedOrigins) -> str:
    """Say in one sentence what the first two coins share, and to whom."""
    one, other = found.names[:2]
    naive = found.pair(one, other)
    share = naive.overlap.value or 0.0
    if not naive.overlap.high:
        words = f"{short_name(one)} and {short_name(other)} share no origin"
    else:
        words = f"{short_name(one)} and {short_name(other)} share {share:.1%} of their origins"
        words += f"; two walks back meet in one with probability {naive.collision.value or 0:.3g}"
    informed = found.seen[-1]
    if informed.name != NAIVE:
        seen = found.pair(one, other, informed.name).overlap.value or 0.0
        words += f"; {seen:.1%} to an observer who groups origins by owner ({informed.name})"
    return f"{words}."


def _words(figure: FigureInterval) -> str:
    if figure.value is None or figure.low is None or figure.high is None:
        return "-" if figure.high is None else f"at most {figure.high:.4f}"
    if figure.high - figure.low < 5e-5:
        return f"{figure.value:.4f}"
    return f"{figure.low:.4f}-{figure.high:.4f}"


def _common(rows: list[dict[str, object]], observer: str) -> Table:
    table = Table(title=f"Common origins that tell most ({observer})", title_justify="left")
    table.add_column("origin", overflow="fold")
    for name in ("of first", "of second", "of all openings", "weight"):
        table.add_column(name, justify="right")
    for row in rows:
        figures = list(row.values())[1:]
        cells = ("-" if f is None else f"{float(str(f)):.3%}" for f in figures)
        table.add_row(Text(str(row["origin"])), *cells)
    return table


def _matrix(found: SharedOrigins, observer: str) -> Table:
    table = Table(title=f"Overlap of origins ({observer})", title_justify="left")
    table.add_column("coin", overflow="fold")
    for k in range(len(found.names)):
        table.add_column(str(k + 1), justify="right")
    matrix = found.matrix("overlap", observer)
    for k, name in enumerate(found.names):
        table.add_row(Text(f"{k + 1} {short_name(name)}"), *(f"{v:.2f}" for v in matrix[k]))
    return table


def shared_json(found: SharedOrigins, made_by: Mapping[str, object], *, limit: int = 5) -> str:
    """Give all pairs and, of two coins, the most telling common origins, as JSON text."""
    document: dict[str, object] = {
        "coins": found.names,
        **reading_of(found.settings),
        "pairs": found.rows(),
    }
    if len(found.names) == 2:
        one, other = found.names
        document["common"] = {
            seen.name: found.common(one, other, seen.name, limit=limit).to_pylist()
            for seen in found.seen
        }
    ledger = found.graph.ledger
    document["completeness"] = ledger.completeness.line()
    document["provenance"] = made_from(ledger, made_by, found.notes)
    return json.dumps(document, indent=1, allow_nan=False) + "\n"
