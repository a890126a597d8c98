"""Where one node's money went: for a terminal, as JSON, for Graphviz, as a page."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Unpack

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from coinhaze.formats.money import unit_of
from coinhaze.graph import TransactionGraph
from coinhaze.ledger import CoinLedger
from coinhaze.measures.destinations import (
    BALANCE,
    BURNED,
    ELSEWHERE,
    FEE,
    LISTED,
    NONE,
    UNSPENDABLE,
    UNSPENT,
    Destinations,
)
from coinhaze.observer.chain import reading_words
from coinhaze.observer.owners import Observer, ladder
from coinhaze.observer.policies import is_ordered
from coinhaze.options import ModelKeywords
from coinhaze.report.drawing.flow import Labelled, Layers, dot, fold_hops, sankey
from coinhaze.report.files import made_from
from coinhaze.report.origins import TableRows, hop_dicts, hop_rows, made_table
from coinhaze.report.page import Html, page, section, table
from coinhaze.report.tables import way_words
from coinhaze.solve.local.destinations import (
    destinations_along,
    destinations_or_reached,
    forward_graph,
    forward_structure,
)
from coinhaze.solve.local.hops import hops_of
from coinhaze.solve.source import Source
from coinhaze.units import NOT_KNOWN

NOT = (
    "It is not proof that anybody paid anybody. It is where this rule of sharing sends the money, "
    "up to the end of this ledger: what is unspent here may have moved since."
)
A_HOP = (
    "A hop is one step on: to the account that was paid, to the transaction that spent a coin, or "
    "to a coin that a transaction made. Money that stays in an account makes no hop."
)
_WORDS = {
    UNSPENT: ("{share} is in {count} unspent coin", "s"),
    BALANCE: ("{share} is in {count} balance", "s"),
    LISTED: ("{share} reached {count} listed name", "s"),
    ELSEWHERE: ("{share} did not reach the list", ""),
    FEE: ("{share} was paid as fees", ""),
    UNSPENDABLE: ("{share} can never be spent", ""),
    BURNED: ("{share} was burned", ""),
}
_NUMBERS = ("share", "amount", "destinations", "hop", "reached", "ends here")


@dataclass(frozen=True, eq=False)
class DestinationsReport:
    """Destinations, with the information a reader needs beside them."""

    found: Destinations
    labelled: Labelled
    layers: Layers | None  # None under ordered policies, which follow lots
    observer: Observer | None  # who groups holders; None: nobody, each address is a holder
    limit: int = 10

    @property
    def graph(self) -> TransactionGraph:
        """The graph that the node is in."""
        return self.found.graph

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know."""
        return self.found.notes

    @property
    def shortfall(self) -> str | None:
        """Why the accuracy was not reached; None if it was."""
        return self.found.shortfall

    def sentence(self) -> str:
        """Say in short where the money is."""
        found = self.found
        unit = unit_of(found.graph.ledger)
        more = "" if unit.is_known else f" {NOT_KNOWN}"
        totals = {kind: (found.total(kind), found.count(kind)) for kind in _WORDS}
        said = f"{where_words(totals, found.missing)} ({reading_words(found.settings)})"
        return f"Of {unit.words(found.held)} that it had, {said}.{more}"


def where_words(
    totals: Mapping[str, tuple[float, int]],
    missing: float = 0.0,
    share_words: Callable[[float], str] = "{:.2%}".format,
) -> str:
    """Say of each kind of destination how much is there, and in how many.

    >>> where_words({"unspent": (0.9, 2), "fee": (0.1, 1)})
    '90.00% is in 2 unspent coins; 10.00% was paid as fees'
    """
    parts = []
    for kind, (words, many) in _WORDS.items():
        share, count = totals.get(kind, (0.0, 0))
        if count:
            said = words.format(share=share_words(share), count=f"{count:,}")
            parts.append(said + (many if count != 1 else ""))
    if missing > 5e-5:
        parts.append(f"{share_words(missing)} was not followed to its end")
    return "; ".join(parts)


def explain_forward(
    source: Source,
    node: str,
    *,
    labels: Mapping[str, str] | None = None,
    owners: Mapping[str, str] | None = None,
    hops: int = 6,
    limit: int = 10,
    accuracy: Literal["exact"] | float = "exact",
    **settings: Unpack[ModelKeywords],
) -> DestinationsReport:
    """Find where a node's money went, hop by hop, and who holds it now.

    Options are those of `explain`. Holders are grouped as the best informed observer does.

    >>> import coinhaze
    >>> ledger = coinhaze.AccountLedger.from_transfers([("a", "b", 4), ("b", "c", 3)])
    >>> explain_forward(ledger, "a").sentence()[:53]
    'Of 4 that it had, 100.00% is in 2 balances (account v'
    """
    graph = forward_graph(source, **settings)
    policy, listed = settings.get("policy"), settings.get("listed")
    labelled, layers = Labelled(graph, labels or {}), None
    if is_ordered(policy):
        found = destinations_or_reached(graph, node, policy=policy)
    else:
        structure = forward_structure(graph, policy=policy, listed=listed)
        found = destinations_along(structure, graph, node, accuracy=accuracy)
        layers = fold_hops(hops_of(structure, found.node, limit=hops), labelled)
    observers: tuple[Observer, ...] = ()
    if isinstance(graph.ledger, CoinLedger) and graph.settings.get("view") == "coin":
        observers = ladder(graph.ledger, owners=owners, labels=labels)
    return DestinationsReport(found, labelled, layers, observers[-1] if observers else None, limit)


def destinations_text(report: DestinationsReport) -> Group:
    """Return destinations formatted for a terminal."""
    parts: list[RenderableType] = [
        Text(report.found.name, style="bold"),
        Text(report.sentence()),
    ]
    for title, columns, rows in _tables(report):
        if rows:
            shown = Table(title=title, title_justify="left")
            for name in columns:
                shown.add_column(
                    name, justify="right" if name in _NUMBERS else "left", overflow="fold"
                )
            for row in rows:
                shown.add_row(*(Text(cell) for cell in row))
            parts.append(shown)
    return Group(*parts, Text(report.found.graph.ledger.completeness.line()))


def destinations_json(report: DestinationsReport, made_by: Mapping[str, object]) -> str:
    """Return destinations as JSON text with stable keys."""
    document: dict[str, Any] = report.found.as_dict(limit=report.limit)
    document["observer"] = None if report.observer is None else report.observer.name
    document["holders"] = _holders(report)
    document["hops"] = hop_dicts(report.layers)
    document["later"] = None if report.layers is None else report.layers.earlier
    ledger = report.found.graph.ledger
    document["completeness"] = ledger.completeness.line()
    document["provenance"] = made_from(ledger, made_by, report.found.notes)
    return json.dumps(document, indent=1, allow_nan=False) + "\n"


def destinations_dot(report: DestinationsReport) -> str:
    """Return the flow by hop for Graphviz."""
    return dot(report.layers, title=f"destinations of {report.found.name}")


def destinations_page(report: DestinationsReport, made_by: Mapping[str, object]) -> str:
    """Return destinations as a page with a drawing of the flow by hop."""
    found = report.found
    label = report.labelled.of(np.array([found.node]))[0]
    name = found.name if label is None else f"{label}: {found.name}"
    parts: list[Html] = [section("In short", report.sentence(), NOT)]
    if report.layers is not None:
        parts.append(section("Flow by hop", _legend(report.layers), sankey(report.layers), A_HOP))
    for title, columns, rows in _tables(report):
        if rows:
            right = [k for k, c in enumerate(columns) if c in _NUMBERS]
            parts.append(section(title, table(columns, rows, right=right)))
    facts = made_table(found.graph.ledger, found.settings, found.notes, made_by)
    parts.append(section("How it was made", facts))
    return page(f"Destinations of {name}", parts)


def _tables(report: DestinationsReport) -> tuple[TableRows, ...]:
    return _rows(report), _holder_rows(report), hop_rows(report.layers)


def _rows(report: DestinationsReport) -> TableRows:
    found, unit = report.found, unit_of(report.found.graph.ledger)
    rows: list[tuple[str, ...]] = []
    whole = found.whole_amounts
    for rank, row in enumerate(found.to_arrow().slice(0, report.limit).to_pylist()):
        node = found.nodes[rank : rank + 1]
        label = None if node[0] == NONE else report.labelled.of(node)[0]
        name = row["destination"] if label is None else f"{label}: {row['destination']}"
        amount = unit.words(whole[rank])
        rows.append((name, row["kind"], f"{row['share']:.2%}", amount, way_words(found.way(rank))))
    rest = len(found) - len(rows)
    if rest:
        share = float(found.share[len(rows) :].sum())
        units = round(share * found.held) if found.units is None else sum(whole[len(rows) :])
        words = unit.words(units)
        rows.append((f"other, {rest:,} destinations", "", f"{share:.2%}", words, ""))
    if found.missing > 5e-5:
        rows.append(("not followed to its end", "", f"{found.missing:.2%}", "", ""))
    columns = ("destination", "kind", "share", "amount", "likeliest way it went")
    return "Destinations", columns, rows


def _holders(report: DestinationsReport) -> list[dict[str, Any]]:
    persons = None if report.observer is None else report.observer.persons
    rows: list[dict[str, Any]] = report.found.holders(persons).slice(0, report.limit).to_pylist()
    return rows


def _holder_rows(report: DestinationsReport) -> TableRows:
    if report.observer is None:
        return "By holder", (), []
    unit = unit_of(report.found.graph.ledger)
    rows: list[tuple[str, ...]]
    rows = [
        (
            row["holder"],
            row["kind"],
            f"{row['destinations']:,}",
            f"{row['share']:.2%}",
            unit.words(round(row["amount"])),
        )
        for row in _holders(report)
    ]
    title = f"By holder, as {report.observer.name} sees them"
    return title, ("holder", "kind", "destinations", "share", "amount"), rows


def _legend(layers: Layers) -> str:
    rest = f" {layers.earlier:.2%} goes further on." if layers.earlier > 5e-7 else ""
    return (
        "Time runs from left to right; the width of a band is the share of the node's money that "
        f"went along it. The second colour marks what stayed there.{rest}"
    )
