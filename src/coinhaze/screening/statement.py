"""What a screening states: its list, its verdict, the window it is about, and all of it as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc

from coinhaze.errors import count_words, first_few
from coinhaze.formats.lists.knowledge import is_label_list
from coinhaze.formats.lists.labels import read_labels
from coinhaze.formats.money import unit_of
from coinhaze.formats.registry import digest_of
from coinhaze.graph.holes import incomplete_notes
from coinhaze.ledger import CoinLedger
from coinhaze.observer.chain import reading_of
from coinhaze.report.files import moment_words
from coinhaze.screening.screen import Screening
from coinhaze.units import Unit

MANY_DIGITS = 10**15


@dataclass(frozen=True)
class ListFile:
    """The file a list was read from, so that a reader can check whether theirs is the same."""

    name: str
    sha256: str
    entities: Mapping[str, str] = field(default_factory=dict)  # address -> whom it belongs to
    programmes: Mapping[str, str] = field(default_factory=dict)  # address -> why it is listed

    @classmethod
    def read(cls, path: Path) -> ListFile:
        """Read what a list says of its names beside them."""
        if not is_label_list(path):
            return cls(path.name, digest_of(path))
        labels = read_labels(path)
        return cls(path.name, digest_of(path), labels.names, labels.programmes)

    def words(self, address: str) -> str:
        """Return an address with the entity and the programme that the list gives.

        >>> ListFile("l", "", {"0x1": "A Group"}, {"0x1": "CYBER2"}).words("0x1")
        'A Group (CYBER2): 0x1'
        """
        entity, programme = self.entities.get(address), self.programmes.get(address)
        if entity is None and programme is None:
            return address
        return f"{entity or 'listed'}{f' ({programme})' if programme else ''}: {address}"


@dataclass(frozen=True)
class Statement:
    """What a statement is for: a case, who makes it and when, and above which exposure to act."""

    date: str
    case: str | None = None
    analyst: str | None = None
    limit: float | None = None


def verdict_words(found: Screening, about: Statement) -> Iterator[str]:
    """Say whether there is a match, and whether it is above the limit."""
    nodes = count_words(len(found), "node")
    listed = len(found.found) + len(found.missing)
    if not found.found:
        one = "the listed name is not"
        none = f"none of the {listed:,} listed names is" if listed != 1 else one
        yield (
            f"No match: {none} in this ledger, so no money of the "
            f"{nodes} screened came from the list, by any rule. {_covered(found)}"
        )
    elif not found.is_match:
        none = f"none of the {nodes}" if len(found) != 1 else "the one node"
        what = "holds or held" if len(found) != 1 else "neither holds nor held"
        yield f"No match: {none} screened {what} money from the list. {_covered(found)}"
    else:
        count = int(found.reached().sum())
        hold = "holds" if count == 1 else "hold"
        yield (
            f"Match: {count:,} of {nodes} screened {hold} or held money from the list by some rule."
        )
    if about.limit is not None:
        above = found.above(about.limit)
        names = first_few(found.graph.names.of(found.taint.nodes[above]).to_pylist())
        yield (
            f"Above the limit of {about.limit:.2%} by {found.limited_by}: {len(above):,} ({names})."
            if len(above)
            else f"Nothing is above the limit of {about.limit:.2%} by {found.limited_by}."
        )


def _covered(found: Screening) -> str:
    """Say what a screening without a match has looked at."""
    ledger, window = found.graph.ledger, window_of(found)
    coins = isinstance(ledger, CoinLedger)
    count = int(ledger.facts()["transactions" if coins else "transfers"])  # type: ignore[call-overload]
    known = [
        window_words(window, what)
        for what in ("height", "time")
        if window[f"first_{what}"] is not None
    ]
    some = f"{count:,} {'transaction' if coins else 'transfer'}{'' if count == 1 else 's'}"
    span = f" ({'; '.join(known)})" if known else ""
    return f"This covers the {some} of this ledger{span}, and nothing before or outside of them."


def title_of(found: Screening, listing: ListFile) -> str:
    """Name a statement by its list and its result."""
    return f"Screening against {listing.name}: {'a match' if found.is_match else 'no match'}"


def screening_json(
    found: Screening, listing: ListFile, made_by: Mapping[str, object], about: Statement
) -> str:
    """Return the statement as JSON text with stable keys."""
    document = screening_document(found, listing, made_by, about)
    return json.dumps(document, indent=1, allow_nan=False) + "\n"


def screening_document(
    found: Screening, listing: ListFile, made_by: Mapping[str, object], about: Statement
) -> dict[str, Any]:
    """Return the statement as the object that JSON has."""
    names = found.graph.names.of(found.taint.nodes)
    above = None if about.limit is None else found.above(about.limit)
    return {
        "provenance": provenance_of(found, listing, made_by, about),
        "match": found.is_match,
        "verdict": list(verdict_words(found, about)),
        "limit": about.limit,
        "above_limit": None if above is None else [names[k].as_py() for k in above.tolist()],
        "dust": found.dust,
        "listed": [
            {
                "name": name,
                "entity": listing.entities.get(name),
                "programme": listing.programmes.get(name),
            }
            for name in found.found
        ],
        **reading_of(found.graph.settings),
        "policy": list(found.policies),
        "completeness": found.graph.ledger.completeness.line(),
        "totals": found.totals(),
        "nodes": found.to_arrow().to_pylist(),
        "paths": [route.__dict__ | {"names": list(route.names)} for route in found.routes],
    }


def provenance_of(
    found: Screening, listing: ListFile, made_by: Mapping[str, object], about: Statement
) -> dict[str, object]:
    """Return the provenance of a screening: software, inputs, list, window, settings, accuracy."""
    return dict(made_by) | {
        "date": about.date,
        "case": about.case,
        "analyst": about.analyst,
        "list": {
            "file": listing.name,
            "sha256": listing.sha256,
            "names_found": len(found.found),
            "names_not_found": len(found.missing),
        },
        "window": window_of(found),
        "unit": unit_of(found.graph.ledger).spelling,
        "settings": found.graph.settings,
        "policies": list(found.policies),
        "undefined": dict(found.undefined),
        "haircut_margin": found.half_width(),
        "completeness": found.graph.ledger.completeness.record(),
        "notes": list(notes_of(found)),
    }


def notes_of(found: Screening) -> tuple[str, ...]:
    """Say what readers of the figures must know: about the graph, and what the ledger lacks."""
    return (*found.graph.notes, *incomplete_notes(found.graph, found.taint.nodes))


def window_of(found: Screening) -> dict[str, object]:
    """Return the first and last height and time of the ledger, None where it has none."""
    ledger = found.graph.ledger
    heights = ledger.block_heights if isinstance(ledger, CoinLedger) else None
    columns = {"height": heights, "time": ledger.times}
    window: dict[str, object] = {}
    for name, column in columns.items():
        ends = {"min": None, "max": None} if column is None else pc.min_max(column).as_py()
        window |= {f"first_{name}": ends["min"], f"last_{name}": ends["max"]}
    return {k: v if v is None or isinstance(v, int) else str(v) for k, v in window.items()}


def window_words(window: Mapping[str, object], name: str) -> str:
    """Say which heights or times a window has."""
    first, last = window[f"first_{name}"], window[f"last_{name}"]
    if first is None:
        return f"{name}s not known"
    if name == "time" and isinstance(first, int) and isinstance(last, int):
        return f"times {moment_words(first)} to {moment_words(last)}"
    return f"{name}s {first} to {last}"


def shown_amount(value: float, unit: Unit) -> str:
    """Format an amount; beyond 15 digits it is rounded, while files have every digit."""
    if isinstance(value, float) and np.isnan(value):
        return "-"
    if unit.decimals:  # shares of amounts are rounded to the smallest unit
        return unit.words(round(value), significant=6 if abs(value) >= MANY_DIGITS else None)
    if abs(value) >= MANY_DIGITS:
        return f"{value:.6g} {unit.symbol}".rstrip()
    number = f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"
    return f"{number} {unit.symbol}".rstrip()
