"""The statement of a screening for a page or program, made as `coinhaze screen` makes it."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from coinhaze.errors import UsageError
from coinhaze.explore.cache import progress
from coinhaze.explore.models import (
    ScreenAnswer,
    StatementAnswer,
    StatementFile,
    StatementSection,
)
from coinhaze.explore.query import FileKind, ScreenQuery
from coinhaze.formats.lists.knowledge import parse_listed
from coinhaze.formats.money import unit_of
from coinhaze.graph import TransactionGraph
from coinhaze.report.files import made_by, table_csv, today
from coinhaze.screening.report import paper_sections, screening_page
from coinhaze.screening.screen import Screening, screen
from coinhaze.screening.statement import (
    ListFile,
    Statement,
    screening_document,
    screening_json,
    title_of,
)
from coinhaze.solve.planner import thresholds
from coinhaze.units import Unit

MAX_NODES = 500  # named in one screening
PASTED = "pasted list"
_MEDIA: dict[FileKind, str] = {
    "html": "text/html; charset=utf-8",
    "csv": "text/csv; charset=utf-8",
    "json": "application/json",
}


@dataclass(frozen=True, eq=False)
class MadeStatement:
    """A screening with all that its statement says of it."""

    found: Screening
    listing: ListFile
    made_by: dict[str, object]
    about: Statement
    unit: Unit

    def answer(self) -> ScreenAnswer:
        """Give it as data."""
        document = screening_document(self.found, self.listing, self.made_by, self.about)
        return ScreenAnswer.model_validate(document)

    def page(self, ledger: str, query: ScreenQuery) -> StatementAnswer:
        """Give it as sections to read."""
        parts = paper_sections(self.found, self.listing, self.made_by, self.about, unit=self.unit)
        limit = self.about.limit
        return StatementAnswer(
            ledger=ledger,
            query=query,
            title=title_of(self.found, self.listing),
            match=self.found.is_match,
            above=limit is not None and len(self.found.above(limit)) > 0,
            sections=tuple(StatementSection(**asdict(part)) for part in parts),
        )

    def file(self, ledger: str, kind: FileKind) -> StatementFile:
        """Give it as the file that `coinhaze screen -o` writes."""
        about = (self.found, self.listing, self.made_by, self.about)
        if kind == "html":
            text = screening_page(*about, unit=self.unit)
        elif kind == "json":
            text = screening_json(*about)
        else:
            text = table_csv(self.found.to_arrow())
        return StatementFile(name=f"{ledger}-screening.{kind}", media=_MEDIA[kind], text=text)


def make_statement(
    graph: TransactionGraph,
    query: ScreenQuery,
    *,
    unit: Unit,
    inputs: Sequence[Path],
    list_file: Callable[[str], tuple[Sequence[str], ListFile]],
) -> MadeStatement:
    """Screen a graph; `inputs` are the ledger's files, `list_file` reads a list by its name."""
    names, listing = _list_of(query, list_file)
    nodes = _nodes_of(query.nodes)
    if nodes is None and len(graph.kinds) > thresholds.MAX_VIEW_NODES:
        raise UsageError(
            f"a ledger of {len(graph.kinds):,} nodes: name those to screen, or screen all of them "
            "with coinhaze screen"
        )
    if unit != unit_of(graph.ledger):  # it was named when the ledger was served
        graph = replace(graph, ledger=replace(graph.ledger, unit=unit))
    dust = 0 if query.dust is None else unit.read(query.dust)
    progress()(0.0)
    found = screen(graph, names, nodes=nodes, dust=dust)
    about = Statement(today(), query.case, query.analyst, query.limit)
    made = made_by(inputs=inputs, command=_command(query, listing, nodes, inputs))
    return MadeStatement(found, listing, made, about, unit)


def _list_of(
    query: ScreenQuery, list_file: Callable[[str], tuple[Sequence[str], ListFile]]
) -> tuple[Sequence[str], ListFile]:
    """Give the names of the list, and what its statement calls it."""
    # Browsers send the ends of lines as two characters.
    text = query.listed.replace("\r\n", "\n")
    if query.list is not None and text.strip():
        raise UsageError("two lists: choose a list that is loaded, or paste names, not both")
    if query.list is not None:
        return list_file(query.list)
    if not text.strip():
        raise UsageError("no list: choose one that is loaded, or paste its names, one per line")
    return parse_listed(text, PASTED), ListFile(PASTED, hashlib.sha256(text.encode()).hexdigest())


def _nodes_of(text: str) -> list[str] | None:
    """Read names that were pasted, one per line, each once; none is named by an empty text."""
    lines = (line.strip() for line in text.splitlines())
    names = list(dict.fromkeys(line for line in lines if line and not line.startswith("#")))
    if len(names) > MAX_NODES:
        raise UsageError(
            f"{len(names):,} names: a page screens up to {MAX_NODES:,}; more with coinhaze screen "
            "--nodes FILE"
        )
    return names or None


def _command(
    query: ScreenQuery, listing: ListFile, nodes: list[str] | None, inputs: Sequence[Path]
) -> str:
    """Write the command that makes the same statement."""
    words = ["coinhaze", "screen", *(path.name for path in inputs), "--listed", listing.name]
    for name in nodes or ():
        words += ["--nodes", name]
    given: dict[str, Any] = query.model_dump(
        include={"view", "time", "limit", "dust", "case", "analyst"}, exclude_none=True
    )
    for option, value in given.items():
        words += [f"--{option}", str(value)]
    return f"on its page; the same: {shlex.join(words)}"
