"""Models of a screening: the statement as data, as sections to read, and as a file."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from coinhaze.explore.models.values import Number
from coinhaze.explore.query import Id, Model, ScreenQuery

# Amounts are digits of the smallest unit, and may be larger than any machine's integers.
Value = str | bool | int | float | None


class ListedName(Model):
    """A name of the list that is in the ledger, and what the list says of it."""

    name: str
    entity: str | None
    programme: str | None


class ScreenPath(Model):
    """One path from a listed source to a node, and the share of its money that came that way."""

    node: str
    source: str
    names: tuple[str, ...]
    share: float
    listed: float


class ScreenAnswer(Model):
    """A screening statement, as `coinhaze screen --json` prints it."""

    provenance: dict[str, Any]
    match: bool
    verdict: tuple[str, ...]
    limit: Number
    above_limit: tuple[str, ...] | None
    dust: int
    listed: tuple[ListedName, ...]
    view: str
    time: str | None
    policy: tuple[str, ...]
    completeness: str
    totals: tuple[dict[str, Value], ...]
    nodes: tuple[dict[str, Value], ...]
    paths: tuple[ScreenPath, ...]


class StatementSection(Model):
    """A part of a statement: sentences, and a table under them."""

    title: str
    lines: tuple[str, ...]
    warnings: tuple[str, ...]
    columns: tuple[tuple[str, Literal["left", "right"]], ...]  # heading, and on which side
    rows: tuple[tuple[str, ...], ...]
    annex: bool  # behind the page to read


class StatementAnswer(Model):
    """A statement to read."""

    ledger: Id
    query: ScreenQuery
    title: str
    match: bool
    above: bool = Field(description="whether anything is above the limit")
    sections: tuple[StatementSection, ...]


class StatementFile(Model):
    """A statement to hand over: a file's name, its type, and what is in it."""

    name: str
    media: str
    text: str
