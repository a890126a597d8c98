"""Opening balances: the money that was there, or is assumed to have been, before the window."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from coinhaze.amounts import Bools, Ints
from coinhaze.errors import OpeningError, first_few
from coinhaze.graph.graph import Kind, TransactionGraph
from coinhaze.graph.names import PartyNames
from coinhaze.ledger import Amounts
from coinhaze.ledger.checks import exact_amount

# Kinds of holder whose opening balance no ledger or table states, by the rule that found it.
_ASSUMED = {
    "surplus": (Kind.address, Kind.account, Kind.pool),
    "observed": (Kind.pool,),
}


@dataclass(frozen=True, eq=False)
class Opening:
    """The rule by which opening balances of holders are found.

    No table: the lowest balance that allows every payment. A table: its entries, for the parties it
    covers. `strict` parties missing from the table count as zero; otherwise they take the lowest.
    """

    table: Mapping[str, int] | None = None
    strict: bool = True
    top_up: bool = False

    def entries(self, names: PartyNames, holds: Bools) -> tuple[dict[int, int], list[str]]:
        """Resolve the table to holders; also return the entries that name none of them."""
        found: dict[int, int] = {}
        missing: list[str] = []
        assert self.table is not None
        number = {name: k for k, name in enumerate(names.to_pylist())}
        for name, value in self.table.items():
            amount = exact_amount(value, f"opening of {name}", field="amount")
            if name in number and holds[number[name]]:
                found[number[name]] = amount
            else:
                missing.append(name)
        return found, missing


def opening_balances(
    names: PartyNames, holds: Bools, needed: Amounts, opening: Opening
) -> tuple[Amounts, tuple[str, ...]]:
    """Return every party's opening balance, at least what its payments need, and notes.

    Parties that only pass money on (coinbases, mints, earlier coins) open with exactly what they
    pay.
    """
    if opening.table is None:
        return needed, ()
    found, missing = opening.entries(names, holds)
    notes: tuple[str, ...] = ()
    if missing:
        shown = first_few(missing)
        notes = (
            f"opening balances: {len(missing)} entries name no account of the ledger: {shown}",
        )
    rows = np.array(list(found), dtype=np.int64)
    covered = holds.copy() if opening.strict else np.zeros(len(holds), dtype=np.bool_)
    covered[rows] = True
    given = Amounts.of([found[p] for p in rows.tolist()]).total_by(rows, len(holds))
    balance = Amounts.concat([needed, given]).take(np.arange(len(holds)) + len(holds) * covered)
    if opening.top_up:
        return balance.maximum(needed), notes
    short = (needed - balance).positive()
    if short.any():
        party = int(np.flatnonzero(short)[0])
        raise OpeningError(
            f"opening balance of {names[party].as_py()} is {balance[party]}, but its payments need "
            f"{needed[party]}: {needed[party] - balance[party]} short"
            + (f" ({int(short.sum()) - 1} more accounts too)" if short.sum() > 1 else "")
            + "; complete the table, or raise it to what was spent with top_up"
        )
    return balance, notes


def assumed_openings(graph: TransactionGraph, nodes: Ints) -> Amounts | None:
    """Return the opening balance assumed for the holder of each node; None where hidden.

    By `surplus` an account opens with the lowest balance that allows what it paid. Its closing
    balance contains that; a table of balances is known, and so are the values of coins.

    >>> import coinhaze
    >>> ledger = coinhaze.AccountLedger.from_transfers([("a", "b", 5), ("c", "a", 7)])
    >>> graph = coinhaze.transaction_graph(ledger, time="temporal")
    >>> a = graph.names.node("a")
    >>> graph.closing[a], assumed_openings(graph, np.array([a]))[0]
    (7, 5)
    """
    if graph.opening is None:
        return None
    kinds = _ASSUMED.get(str(graph.settings.get("opening")), ())
    party = graph.names.party
    opened = np.flatnonzero(graph.sources & np.isin(graph.kinds, kinds))
    by_party = graph.opening.take(opened).total_by(party[opened], len(graph.names.parties))
    return by_party.take(party[nodes])


def assumed_in_balances(graph: TransactionGraph, nodes: Ints) -> Amounts | None:
    """Return what of the balance of each node is assumed, or reckoned with; None where hidden.

    Nothing is where nothing is held: of an account with snapshots only the newest holds money.
    """
    found = assumed_openings(graph, nodes)
    if found is None or graph.closing is None:
        return None
    return found.where(graph.closing.take(nodes).positive())


def assumed_words(holds: int, assumed: int, shown: str) -> str:
    """Describe the assumed part of a holding, as a suffix; `shown` is the formatted amount.

    >>> assumed_words(7, 5, "5")
    ', of which 5 assumed to have been there before the window'
    """
    if not assumed:
        return ""
    how = "of which" if assumed <= holds else "reckoned with"
    return f", {how} {shown} assumed to have been there before the window"
