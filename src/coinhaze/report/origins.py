"""One node explained: its origins and flow, for a terminal, as JSON, for Graphviz, as a page."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Unpack

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from coinhaze.graph import TransactionGraph
from coinhaze.graph.find import find_node
from coinhaze.graph.holes import incomplete_notes
from coinhaze.ledger import Ledger
from coinhaze.measures import Origins
from coinhaze.measures.by_owner import OwnerOrigins, observers_sentence, origins_by_owner
from coinhaze.observer.chain import Belief, SourceNames
from coinhaze.observer.owners import ladder
from coinhaze.options import ModelKeywords
from coinhaze.report.drawing.flow import FlowBox, Labelled, Layers, dot, fold_hops, sankey
from coinhaze.report.files import made_from
from coinhaze.report.page import Html, page, section, table
from coinhaze.report.tables import holds_sentence, origins_report, origins_sentence, way_words
from coinhaze.session import Session
from coinhaze.solve.local.hops import hops_of
from coinhaze.solve.local.origins import origins_or_reached
from coinhaze.solve.lots.scores import is_ordered, lots_of
from coinhaze.solve.source import Source, structure_of
from coinhaze.solve.structure.structure import Structure

NOT = (
    "It is not proof that anybody paid anybody, and no grade. It is what this ledger, this window "
    "and this rule of sharing leave open; another rule, a longer window, or somebody who knows "
    "more than the ledger says, gives other shares."
)
A_HOP = (
    "A hop is one step back: to the account that paid, to the transaction that made a coin, or "
    "to a coin that a transaction spent. Money that stays in an account makes no hop."
)


@dataclass(frozen=True, eq=False)
class OriginsReport:
    """Origins, with the information a reader needs beside them."""

    origins: Origins
    labelled: Labelled
    layers: Layers | None  # None under ordered policies, which follow lots
    limit: int = 10
    observers: tuple[OwnerOrigins, ...] = ()  # none where origins are no sources

    @property
    def graph(self) -> TransactionGraph:
        """The graph that the node is in."""
        return self.origins.chain.graph

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know, holes of the ledger included."""
        return (
            *self.origins.notes,
            *incomplete_notes(self.graph, np.array([self.origins.node])),
        )

    @property
    def shortfall(self) -> str | None:
        """Why the accuracy was not reached; None if it was."""
        return self.origins.shortfall

    def labels(self) -> list[str | None]:
        """Return the labels of the sources that are shown."""
        shown = self.origins.outcomes[: self.limit]
        return self.labelled.of_outcomes(self.origins.chain, shown)

    def by_label(self) -> list[tuple[str, int, float]]:
        """Sum sources by label: label, how many, their share; largest first."""
        sums: dict[str, tuple[int, float]] = {}
        if self.labelled.labels:
            found = self.origins
            texts = self.labelled.of_outcomes(found.chain, found.outcomes)
            for text, share in zip(texts, found.probability.tolist(), strict=True):
                if text is not None:
                    count, total = sums.get(text, (0, 0.0))
                    sums[text] = count + 1, total + share
        return sorted(((k, n, p) for k, (n, p) in sums.items()), key=lambda row: (-row[2], row[0]))

    def other(self) -> tuple[int, float]:
        """Return how many sources are not shown, and their share."""
        rest = self.origins.probability[self.limit :]
        return len(rest), float(rest.sum())


def origins_text(found: OriginsReport) -> Group:
    """Return origins formatted for a terminal."""
    report = origins_report(
        found.origins,
        limit=found.limit,
        labels=found.labels(),
        in_short=_observed(found) if found.observers else None,
    )
    parts: list[RenderableType] = [report]
    for title, columns, rows in (_observer_rows(found), _label_rows(found), hop_rows(found.layers)):
        if rows:
            shown = Table(title=title, title_justify="left")
            for k, name in enumerate(columns):
                words = name in ("label", "where it was", "assumes", "confidence")
                shown.add_column(
                    name, justify="left" if words or not k else "right", overflow="fold"
                )
            for row in rows:
                shown.add_row(*(Text(cell) for cell in row))
            parts.append(shown)
    return Group(*parts, Text(found.graph.ledger.completeness.line()))


def origins_json(found: OriginsReport, made_by: Mapping[str, object]) -> str:
    """Return origins as JSON text with stable keys."""
    document: dict[str, Any] = found.origins.as_dict(limit=found.limit)
    for row, label in zip(document["sources"], found.labels(), strict=True):
        row["label"] = label
    count, share = found.other()
    document["label"] = found.labelled.of(np.array([found.origins.node]))[0]
    document["other"] = {"sources": count, "probability": share}
    document["labels"] = [
        {"label": text, "sources": n, "probability": p} for text, n, p in found.by_label()
    ]
    document["observers"] = [each.as_dict(limit=found.limit) for each in found.observers]
    layers = found.layers
    document["hops"] = hop_dicts(layers)
    document["earlier"] = None if layers is None else layers.earlier
    ledger = found.graph.ledger
    document["completeness"] = ledger.completeness.line()
    document["provenance"] = made_from(ledger, made_by, found.notes)
    return json.dumps(document, indent=1, allow_nan=False) + "\n"


def origins_dot(found: OriginsReport) -> str:
    """Return the flow by hop for Graphviz."""
    return dot(found.layers, title=f"origins of {found.origins.name}")


def origins_page(found: OriginsReport, made_by: Mapping[str, object]) -> str:
    """Return origins as a page with a drawing of the flow by hop."""
    label = found.labelled.of(np.array([found.origins.node]))[0]
    name = found.origins.name if label is None else f"{label}: {found.origins.name}"
    holds = [sentence] if (sentence := holds_sentence(found.origins)) else []
    lines = [origins_sentence(found.origins), *holds, NOT]
    if found.observers:
        lines.insert(0, _observed(found))
    parts: list[Html] = [section("In short", *lines)]
    if found.layers is not None:
        drawing = sankey(found.layers)
        parts.append(section("Flow by hop", _legend(found.layers), drawing, A_HOP))
    for title, columns, rows in (
        _observer_rows(found),
        _source_rows(found),
        _label_rows(found),
        hop_rows(found.layers),
    ):
        if rows:
            right = [k for k, c in enumerate(columns) if c in _NUMBERS]
            parts.append(section(title, table(columns, rows, right=right)))
    facts = made_table(found.graph.ledger, found.origins.chain.settings, found.notes, made_by)
    parts.append(section("How it was made", facts))
    return page(f"Origins of {name}", parts)


TableRows = tuple[str, tuple[str, ...], list[tuple[str, ...]]]
_NUMBERS = ("share", "sources", "hop", "reached", "ends here", "bits", "owners")


def _observed(found: OriginsReport) -> str:
    observed = [(each.observer.name, each.bits) for each in found.observers]
    return observers_sentence(found.origins.bits, observed)


def _observer_rows(found: OriginsReport) -> TableRows:
    naive: tuple[str, ...]
    naive = ("naive", "nothing", "", f"{found.origins.bits:.4f}", f"{len(found.origins):,}")
    rows: list[tuple[str, ...]]
    rows = [naive]
    rows += [
        (
            each.observer.name,
            each.observer.assumes,
            each.observer.sure(),
            f"{each.bits:.4f}",
            f"{len(each.owners):,}",
        )
        for each in found.observers
    ]
    columns = ("observer", "assumes", "confidence", "bits", "owners")
    return "Observers", columns, rows if found.observers else []


def _source_rows(found: OriginsReport) -> TableRows:
    rows: list[tuple[str, ...]] = []
    shown = found.origins.sources().slice(0, found.limit).to_pylist()
    for rank, (row, label) in enumerate(zip(shown, found.labels(), strict=True)):
        way = way_words(found.origins.way(rank))
        rows.append((row["source"], label or "", f"{row['probability']:.4%}", way))
    count, share = found.other()
    if count:
        rows.append((f"other, {count:,} sources", "", f"{share:.4%}", ""))
    if found.origins.missing > 5e-7:
        rows.append(("not followed to its end", "", f"{found.origins.missing:.4%}", ""))
    columns: tuple[str, ...] = ("source", "label", "share", "likeliest way it came")
    if not found.labelled.labels:
        columns = columns[:1] + columns[2:]
        rows = [row[:1] + row[2:] for row in rows]
    return "Sources", columns, rows


def _label_rows(found: OriginsReport) -> TableRows:
    rows: list[tuple[str, ...]]
    rows = [(text, f"{n:,}", f"{p:.2%}") for text, n, p in found.by_label()[: found.limit]]
    return "By label", ("label", "sources", "share"), rows


def hop_rows(layers: Layers | None) -> TableRows:
    """Give a table of the flow by hop: title, columns, rows; no rows where there is no flow."""
    rows: list[tuple[str, ...]] = []
    for hop, boxes in enumerate(() if layers is None else layers.boxes):
        figures = (sum(b.share for b in boxes), sum(b.ended for b in boxes))
        words = "; ".join(box.words() for box in boxes)
        rows.append((str(hop), *(f"{v:.2%}" for v in figures), words))
    if layers is not None and layers.earlier > 5e-5:
        rows.append(
            ("…", f"{layers.earlier:.2%}", "", "further on" if layers.forward else "further back")
        )
    return "By hop", ("hop", "reached", "ends here", "where it was"), rows


def hop_dicts(layers: Layers | None) -> list[dict[str, object]]:
    """Give the flow by hop as plain values, for JSON."""
    return [] if layers is None else [_hop(k, boxes) for k, boxes in enumerate(layers.boxes)]


def _hop(number: int, boxes: tuple[FlowBox, ...]) -> dict[str, object]:
    shown = [box for box in boxes if not box.folded]
    rest = [box for box in boxes if box.folded]
    return {
        "hop": number,
        "reached": sum(box.share for box in boxes),
        "ended": sum(box.ended for box in boxes),
        "nodes": [
            {"node": b.name, "nodes": b.nodes, "label": b.label, "share": b.share, "ended": b.ended}
            for b in shown
        ],
        "other": {
            "nodes": sum(box.nodes for box in rest),
            "share": sum((box.share for box in rest), 0.0),
            "ended": sum((box.ended for box in rest), 0.0),
        },
    }


def _legend(layers: Layers) -> str:
    rest = f" {layers.earlier:.2%} comes from further back." if layers.earlier > 5e-7 else ""
    return (
        "Time runs from left to right; the width of a band is the share of the node's money that "
        f"came along it. The second colour marks what ends at a source.{rest}"
    )


def made_table(
    ledger: Ledger,
    settings: Mapping[str, object],
    notes: Sequence[str],
    made_by: Mapping[str, object],
) -> Html:
    """Say what made a report: software, command, files, completeness, settings and notes."""
    rows: list[tuple[object, object]] = [("software", made_by.get("software", ""))]
    if made_by.get("command"):
        rows.append(("command", made_by["command"]))
    inputs: Any = made_by.get("inputs", ())
    rows += [(f"file {i['file']}", f"sha256 {i['sha256']}") for i in inputs]
    rows.append(("completeness", ledger.completeness.line().removeprefix("completeness: ")))
    rows += [(name, value) for name, value in settings.items() if value is not None]
    rows += [("note", note) for note in notes]
    return table(("what", "value"), rows)


def explain(
    source: Source,
    node: str,
    *,
    labels: Mapping[str, str] | None = None,
    owners: Mapping[str, str] | None = None,
    hops: int = 6,
    limit: int = 10,
    accuracy: Literal["exact"] | float = "exact",
    **settings: Unpack[ModelKeywords],
) -> OriginsReport:
    """Find a node's origins and flow by hop, with what its past is called.

    `source` and settings are those of `origins`; `labels` are names of addresses, `owners` who
    addresses belong to; both also tell informed observers whose origins are one person's. Where the
    accuracy is not reached, what was is explained: its `shortfall` says so.

    >>> import coinhaze
    >>> ledger = coinhaze.AccountLedger.from_transfers([("a", "c", 1), ("b", "c", 3)])
    >>> explain(ledger, "c", labels={"b": "the bank"}).by_label()
    [('the bank', 1, 0.75)]
    """
    belief: Belief | Structure
    if is_ordered(source, settings):
        belief = lots_of(source, settings)
    else:
        belief = structure_of(source, **settings)
    graph = belief.chain.graph if isinstance(belief, Structure) else belief.graph
    start = find_node(graph, node)
    found = origins_or_reached(belief, start, accuracy=accuracy)
    labelled = Labelled(graph, labels or {})
    layers = None
    if isinstance(belief, Structure):
        layers = fold_hops(hops_of(belief, start, limit=hops), labelled)
    observers: tuple[OwnerOrigins, ...] = ()
    if type(found.chain.outcomes) is SourceNames:
        inferred = source.inferences if isinstance(source, Session) else None
        known = ladder(graph.ledger, owners=owners, labels=labels, inferred=inferred)
        observers = origins_by_owner(found, known)
    return OriginsReport(found, labelled, layers, limit, observers)
