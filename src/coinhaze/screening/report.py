"""A screening as a formal statement: what was found, by which policy, how certain, what it is not.

The same sections are shown on a terminal and on a page.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from coinhaze.amounts import Ints
from coinhaze.errors import first_few
from coinhaze.graph.opening import assumed_words
from coinhaze.ledger import CoinLedger
from coinhaze.measures.intervals import at_least
from coinhaze.observer.chain import reading_words
from coinhaze.observer.policies import POLICIES, PROPORTIONAL
from coinhaze.options import OutputOptions
from coinhaze.report.grids import LEFT, RIGHT, Section, sections_page
from coinhaze.report.tables import way_words
from coinhaze.screening.screen import Route, Screening
from coinhaze.screening.statement import (
    MANY_DIGITS,
    ListFile,
    Statement,
    notes_of,
    shown_amount,
    title_of,
    verdict_words,
    window_of,
    window_words,
)
from coinhaze.units import NOT_KNOWN, SMALLEST, Unit

IS_NOT = (
    "It is no proof that the holder of a node did anything, knew anything, or ever met anybody on "
    "the list: it says where money came from, not who moved it.",
    "It is no grade and no probability of wrongdoing. A share of 2% means that 2% of the money "
    "came from the list by that rule.",
    "No rule is the true one: money of a ledger has no serial number. Where rules differ, the "
    "difference is how much the answer depends on the rule.",
    "It knows nothing of what happened outside this ledger and window: other chains, exchanges' "
    "books, cash.",
)
CHANGES = (
    "another list, or another version of it: compare its SHA-256;",
    "another rule: the columns show by how much;",
    "another window: money that was there before it counts as not listed, unless its holder is on "
    "the list;",
    "knowing which addresses belong together (--clusters), or another view of the same payments "
    "(--view, --time).",
)

ASSUMED = (
    "Assumed: money taken to have been there before the window, the least that lets the node pay "
    "what it paid; no payment shows it, and none of it counts as listed unless the node is. Give "
    "a table of balances with --opening to know it."
)

FIRST_PAGE, ANNEX = 5, 100  # nodes on the page to read, and in its annex
HOW_SURE = "How sure it is"
MAX_NAMED = 3  # nodes described in the summary
MAX_LISTED = 50  # listed names shown with their entities


def screening_sections(
    found: Screening,
    listing: ListFile,
    made_by: Mapping[str, object],
    about: Statement,
    *,
    limit: int = 10,
    annex: int = 0,
    unit: Unit = SMALLEST,
) -> list[Section]:
    """Return the sections of the statement, with amounts in `unit`: one page, then the annex.

    `limit` nodes are shown first; `annex` of them in the annex, where there are more.
    """
    more = len(found.order()) > limit and annex > limit
    first = [
        _short(found, about, unit),
        _statement(found, listing, about, made_by),
        _found(found, limit, unit),
    ]
    rest = [
        *([_found(found, annex, unit, title="All that was found")] if more else []),
        *([_rules(found, unit)] if found.is_match else []),
        *([_ways(found, listing)] if found.routes else []),
        *([_listed(found, listing)] if found.found else []),
        Section(HOW_SURE, _certainty(found)),
        Section("What would change it", CHANGES),
        Section("What it is not", IS_NOT),
        _made(found, listing, made_by),
    ]
    return [*first, *(replace(part, annex=True) for part in rest)]


def paper_sections(
    found: Screening,
    listing: ListFile,
    made_by: Mapping[str, object],
    about: Statement,
    *,
    top: int = OutputOptions.top,
    unit: Unit = SMALLEST,
) -> list[Section]:
    """Return the sections of a statement to hand over: one page to read, then the annex."""
    return screening_sections(
        found, listing, made_by, about, limit=min(top, FIRST_PAGE), annex=max(top, ANNEX), unit=unit
    )


def screening_page(
    found: Screening,
    listing: ListFile,
    made_by: Mapping[str, object],
    about: Statement,
    *,
    top: int = OutputOptions.top,
    unit: Unit = SMALLEST,
) -> str:
    """Return the statement as an HTML file of its own, made for printing."""
    sections = paper_sections(found, listing, made_by, about, top=top, unit=unit)
    return sections_page(title_of(found, listing), sections)


def _statement(
    found: Screening, listing: ListFile, about: Statement, made_by: Mapping[str, object]
) -> Section:
    window = window_of(found)
    listed = len(found.found) + len(found.missing)
    rows = [
        ("case", about.case),
        ("analyst", about.analyst),
        ("date", about.date),
        ("list", f"{listing.name}: {len(found.found):,} of {listed:,} names are in the ledger"),
        ("SHA-256 of the list", listing.sha256),
        ("window", "; ".join(window_words(window, name) for name in ("height", "time"))),
        ("completeness", found.graph.ledger.completeness.line().removeprefix("completeness: ")),
        ("method", f"{', '.join(found.policies)}; {reading_words(found.graph.settings)}"),
        ("made by", made_by.get("software")),
    ]
    cells = tuple((name, str(value)) for name, value in rows if value is not None)
    return Section("Statement", columns=(("of", LEFT), ("what", LEFT)), rows=cells)


def _listed(found: Screening, listing: ListFile) -> Section:
    named = [name for name in found.found if name in listing.entities or name in listing.programmes]
    rows = [
        (name, listing.entities.get(name, "-"), listing.programmes.get(name, "-"))
        for name in found.found[:MAX_LISTED]
    ]
    lines = (
        (f"{len(found.found) - MAX_LISTED:,} more are not shown.",)
        if len(found.found) > MAX_LISTED
        else ()
    )
    if not named:
        return Section("Listed names in the ledger", (first_few(found.found, MAX_LISTED), *lines))
    columns = (("address", LEFT), ("entity", LEFT), ("programme", LEFT))
    return Section("Listed names in the ledger", lines, columns=columns, rows=tuple(rows))


def _short(found: Screening, about: Statement, unit: Unit) -> Section:
    """Give the verdict, then the lowest and highest findings for the largest nodes."""
    rows = found.order()[:MAX_NAMED]
    names = found.graph.names.of(found.taint.nodes[rows]).to_pylist()
    balance = found.taint.balance.take(rows).ints()
    assumed = found.assumed.take(rows).ints()
    lines = list(verdict_words(found, about))
    for k, row in enumerate(rows.tolist()):
        shares = [(s, p) for p in found.policies if not np.isnan(s := found.shares[p][row])]
        if shares and max(shares)[0] > 0:
            low, high = (
                f"{end:.2%} ({', '.join(p for s, p in shares if s == end)})"
                for end in (min(shares)[0], max(shares)[0])
            )
            same = min(shares)[0] == max(shares)[0]
            much = f"{min(shares)[0]:.2%} by every rule," if same else f"from {low} to {high}"
            mixed = next((s for s, p in shares if p == PROPORTIONAL.column), None)
            if mixed is not None and min(shares)[0] < mixed < max(shares)[0]:
                much = f"{mixed:.2%} ({PROPORTIONAL.column}); {much}"
            part = assumed_words(balance[k], assumed[k], shown_amount(assumed[k], unit))
            held = f"the {shown_amount(balance[k], unit)} it holds{part}"
            if not balance[k]:
                held = _held_before(found, row, unit)
            lines.append(f"{names[k]}: {much} of {held}.")
    lines += _only_mixed(found)
    lines.append(f"All figures: {reading_words(found.graph.settings)}; rules as named.")
    if not unit.is_known:
        lines.append(NOT_KNOWN)
    return Section("In short", (*lines, _listed_words(found)))


def _listed_words(found: Screening) -> str:
    """Count the names of the list that are in the ledger, and name some that are not."""
    missing = found.missing
    there = f"{len(found.found):,} of {len(found.found) + len(missing):,}"
    more = f" and {len(missing) - MAX_NAMED:,} more" if len(missing) > MAX_NAMED else ""
    not_found = f"; not found: {', '.join(missing[:MAX_NAMED])}{more}" if missing else ""
    return f"Names listed and in the ledger: {there}{not_found}."


def _held_before(found: Screening, row: int, unit: Unit) -> str:
    """Say what an empty node held before: shares are of that."""
    graph, ledger = found.graph, found.graph.ledger
    if isinstance(ledger, CoinLedger) and graph.settings.get("view") == "coin":
        output = int(graph.names.party[found.taint.nodes[row]])
        spent = not ledger.has_rings and np.any(ledger.input_output == output)
        if spent and ledger.output_value is not None:
            value = shown_amount(ledger.output_value[output], unit)
            return f"the {value} it held before it was spent"
    return "what it held before; it holds nothing at the end of the window"


def _found(found: Screening, limit: int, unit: Unit, title: str = "What was found") -> Section:
    every = found.order()
    apart = (found.is_dust() | found.burned)[every]
    rows = every[~apart]
    what = "holding money at the end" if found.every else "named"
    count = int(found.reached().sum())
    some = f"{len(found):,} node{'' if len(found) == 1 else 's'}"
    holds = "holds or held" if count == 1 else "hold or held"
    lines = [f"Of {some} {what}, {count:,} {holds} money from the list by some rule."]
    lines += [_deposit_words(found, name) for name in found.deposits]
    lines += _apart(found, unit)
    lines += [f"{policy}: {POLICIES[policy].meaning}" for policy in found.policies if len(every)]
    for reason in dict.fromkeys(found.undefined.values()):
        names = ", ".join(p for p, why in found.undefined.items() if why == reason)
        lines.append(f"{names} not defined (-): {reason}.")
    if len(rows) > limit:
        lines.append(f"The {limit} largest are shown; write a .csv to see all.")
    if found.listed[rows[:limit]].any():
        lines.append("* is on the list itself.")
    lines.append(_in_all(found, unit))
    columns = [("node", LEFT), ("holds", RIGHT)]
    if found.assumed.take(rows[:limit]).positive().any():
        columns.append(("of it assumed", RIGHT))
        lines.append(ASSUMED)
    columns += [(p, RIGHT) for p in found.requested]
    lines.append(f"Shares and amounts: {reading_words(found.graph.settings)}.")
    cells = _rows(found, rows[:limit], unit)
    return Section(title, tuple(lines), (), tuple(columns) if cells else (), tuple(cells))


def _deposit_words(found: Screening, name: str) -> str:
    if isinstance(found.graph.ledger, CoinLedger):
        return f"{name}: what this transaction paid, spent since or not."
    return (
        f"{name}: the balance its transfer was paid from, as it was then. Shares are of all of "
        "that balance."
    )


def _apart(found: Screening, unit: Unit) -> Iterator[str]:
    """Describe what is set apart: burned money and dust."""
    policy = found.policies[0]
    for which, words in (
        (found.burned, "burned, so nobody holds it"),
        (found.is_dust() & ~found.burned, f"dust, below {shown_amount(found.dust, unit)} each"),
    ):
        rows = np.flatnonzero(which & found.reached())
        if len(rows):
            much = sum(found.amounts(policy, rows))
            yield (
                f"Apart: {len(rows):,} node{'' if len(rows) == 1 else 's'}, {words}; listed there "
                f"by {policy}: {shown_amount(much, unit)}."
            )


def _only_mixed(found: Screening) -> list[str]:
    """Warn, in one sentence, of matches found only by rules that mix money."""
    alone = found.only_mixed()
    if not len(alone):
        return []
    names = first_few(found.graph.names.of(found.taint.nodes[alone]).to_pylist(), MAX_NAMED)
    units = [policy for policy in found.policies if POLICIES[policy].kind != "walk"]
    mixing = [policy for policy in found.policies if policy not in units]
    return [
        f"{names}: only {' and '.join(mixing)} find{'s' if len(mixing) == 1 else ''} listed "
        f"money there; the rules that follow single units ({', '.join(units)}) find none. Such "
        "a match may be a false positive."
    ]


def _in_all(found: Screening, unit: Unit) -> str:
    whole = sum(found.taint.balance.ints())
    parts = [
        f"{row['policy']} {shown_amount(row['screened'], unit)}"
        + (f" ({row['screened'] / whole:.2%})" if whole else "")
        for row in found.totals()
    ]
    assumed = sum(found.assumed.ints())
    part = assumed_words(whole, assumed, shown_amount(assumed, unit))
    return f"Of the {shown_amount(whole, unit)} they hold in all{part}, listed: {'; '.join(parts)}."


def _rows(found: Screening, rows: Ints, unit: Unit) -> list[tuple[str, ...]]:
    amounts = {policy: found.amounts(policy, rows) for policy in found.policies}
    names = found.graph.names.of(found.taint.nodes[rows]).to_pylist()
    balance = found.taint.balance.take(rows).ints()
    assumed = found.assumed.take(rows).ints()
    cells = []
    for k, row in enumerate(rows.tolist()):
        shares = [
            "-" if p in found.undefined else _cell(found.shares[p][row], amounts[p][k], unit)
            for p in found.requested
        ]
        name = f"{names[k]} *" if found.listed[row] else names[k]
        held = [shown_amount(balance[k], unit)] + (
            [shown_amount(assumed[k], unit)] if any(assumed) else []
        )
        cells.append((name, *held, *shares))
    return cells


def _rules(found: Screening, unit: Unit) -> Section:
    total = sum(found.taint.balance.ints())
    names = (
        "policy", "listed money", "in these nodes", "in others", "fees", "unspendable",
        "back to list",
    )  # fmt: skip
    keys = ("listed", "screened", "other_sinks", "fees", "unspendable", "relisted")
    rows = []
    for row in found.totals():
        cells = ["-" if row[key] is None else shown_amount(row[key], unit) for key in keys]
        if total:
            cells[1] += f"\n{row['screened'] / total:.2%}"
        rows.append((row["policy"], *cells))
    lines = []
    whole = [row["policy"] for row in found.totals() if row["listed"] is not None]
    if whole:
        lines.append(
            f"{', '.join(whole)}: listed money is the sum of the columns after it, to the last "
            "unit. These nodes are all that were screened, even where only some are shown; others "
            "are the rest of the ledger."
        )
    if len(whole) < len(found.policies):
        lines.append(
            "Where there is a dash: haircut and poison follow no single units, so their amounts "
            "do not add up."
        )
    columns = tuple((name, LEFT if name == "policy" else RIGHT) for name in names)
    return Section("By which rule", tuple(lines), columns=columns, rows=tuple(rows))


def _ways(found: Screening, listing: ListFile) -> Section:
    rows = [_way(route, listing) for route in found.routes]
    lines = [
        "Paths by haircut, those that carried most first. The share is of all the node's money; "
        "the last column is of its listed money alone."
    ]
    carried: dict[str, float] = {}
    for route in found.routes:
        carried[route.node] = carried.get(route.node, 0.0) + route.share
    if any(carried[route.node] < route.listed - 5e-5 for route in found.routes):
        lines.append("Smaller paths carry the rest of what came from the list.")
    columns = (("node", LEFT), ("path", LEFT), ("share", RIGHT), ("of the listed", RIGHT))
    return Section("Which way it came", tuple(lines), columns=columns, rows=tuple(rows))


def _way(route: Route, listing: ListFile) -> tuple[str, ...]:
    part = "-" if not route.listed else f"{min(route.share / route.listed, 1.0):.2%}"
    whose = listing.words(route.source)
    known = "" if whose == route.source else f"{whose.removesuffix(route.source)}"
    return route.node, f"{known}{way_words(route.names)}", f"{route.share:.2%}", part


def _certainty(found: Screening) -> tuple[str, ...]:
    lines = []
    if PROPORTIONAL.column in found.policies:
        margin = found.half_width()
        off = f"no share is off by more than {at_least(margin)}" if margin else "shares are exact"
        lines.append(f"{PROPORTIONAL.column}: {off} (1 is all of a balance). This is proven.")
    exact = [policy for policy in found.policies if policy != PROPORTIONAL.column]
    if exact:
        lines.append(f"{', '.join(exact)}: exact, in whole smallest units of the money.")
    if sum(found.taint.balance.ints()) >= MANY_DIGITS:
        lines.append("Amounts of more than 15 digits are rounded here; a .csv has every digit.")
    nulls = int(np.isnan(found.shares[found.policies[0]]).sum())
    if nulls:
        lines.append(f"{nulls:,} nodes have no answer: their past never ends, or is not known.")
    lines.append(
        "This is how certain each rule's result is for this ledger and this list. Nothing here "
        "can say whether the list is right."
    )
    return tuple(lines)


def _made(found: Screening, listing: ListFile, made_by: Mapping[str, object]) -> Section:
    inputs: Any = made_by.get("inputs", ())
    window = window_of(found)
    lines = [
        f"{made_by.get('software', '')}: {made_by.get('command', '')}",
        f"list {listing.name}: SHA-256 {listing.sha256}",
        f"names of the list: {len(found.found):,} in the ledger, {len(found.missing):,} not in it"
        + (f" ({first_few(found.missing)})" if found.missing else ""),
        "window: " + "; ".join(window_words(window, name) for name in ("height", "time")),
        *(f"ledger {i['file']}: SHA-256 {i['sha256']}" for i in inputs),
        "settings: "
        + ", ".join(f"{k} {v}" for k, v in found.graph.settings.items() if v is not None),
        found.graph.ledger.completeness.line(),
        *(f"note: {note}" for note in notes_of(found)),
    ]
    return Section("How it was made", tuple(lines))


def _cell(share: float, amount: float, unit: Unit) -> str:
    return "-" if np.isnan(share) else f"{share:.2%}\n{shown_amount(amount, unit)}"
