"""Origins by owner: sources that an observer takes for one person's are one origin.

The chain stays as it is and its outcomes are merged, so an informed observer never lacks more bits
than a naive one. The ladder of observers adds one inference after the other, each of which only
joins owners: inputs spent together (CoinJoins excepted), change, and what somebody knows besides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coinhaze.amounts import Ints
from coinhaze.errors import UsageError
from coinhaze.graph.clusters.change import change_outputs
from coinhaze.graph.clusters.coinjoins import coinjoin_kinds
from coinhaze.graph.clusters.heuristics import heuristic
from coinhaze.graph.clusters.merge import common_inputs, connected
from coinhaze.graph.graph import Kind
from coinhaze.ledger import CoinLedger, Ledger
from coinhaze.observer.chain import NO_COLUMN, AbsorbingChain, Belief, OwnerNames, SourceNames

UNKNOWN = -1
NOTHING: Ints = np.zeros(0, dtype=np.int64)
COMMON_INPUTS, CHANGE, GIVEN = "common-input-no-coinjoins", "change", "given"
ASSUMES = {
    COMMON_INPUTS: "inputs spent together had one owner, CoinJoins excepted",
    CHANGE: "change, where it can be recognised, went back to the payer",
    GIVEN: "addresses of one owner or one label in the tables given are one person's",
}
Table = Mapping[str, str]


@dataclass(frozen=True, eq=False)
class Persons:
    """Which owners of a ledger, its addresses or accounts, are one person."""

    of_owner: Ints  # the person behind each owner
    called: Ints  # the name of each person, a row of ...
    names: pa.StringArray  # ... the owners, and of what tables call them


def bits_column(observer: str) -> str:
    """Give the name of an observer's bits in a table.

    >>> bits_column(COMMON_INPUTS)
    'bits_common_input_no_coinjoins'
    """
    return f"bits_{observer.replace('-', '_')}"


@dataclass(frozen=True, eq=False)
class Observer:
    """A step of the ladder: what is inferred on top of the step before, and how sure that is."""

    name: str
    assumes: str
    confidence: float | None  # None where it is as sure as what was given
    origin: Literal["measured", "assumed", "given"]
    source: str
    persons: Persons

    @property
    def column(self) -> str:
        """What its bits are called in a table."""
        return bits_column(self.name)

    def record(self) -> dict[str, object]:
        """Give what it is called, what it assumes, and how sure that is, for JSON."""
        return {
            "name": self.name,
            "assumes": self.assumes,
            "confidence": self.confidence,
            "confidence_origin": self.origin,
            "confidence_source": self.source,
        }

    def sure(self) -> str:
        """Say how sure its inference is.

        >>> ladder(CoinLedger.from_transactions([]))[1].sure()
        'right in 97% of the cases measured'
        """
        return sure_words(self.confidence, self.origin)


def sure_words(confidence: float | None, origin: str) -> str:
    """Say how often an inference is right, as far as that is known.

    >>> sure_words(0.9, "assumed"), sure_words(None, "given")
    ('right in 90% of the cases, as assumed', 'given')
    """
    if confidence is None:
        return origin
    known = " measured" if origin == "measured" else f", as {origin}"
    return f"right in {confidence:.0%} of the cases{known}"


Inferences = Mapping[str, tuple[Ints, Ints]]  # of each step: owners, and what joins them


def inferences(ledger: Ledger) -> Inferences:
    """Give what each step of the ladder infers: owners, and the transactions that join them.

    What a transaction joins follows from itself and what came before it.
    """
    if not isinstance(ledger, CoinLedger) or ledger.output_value is None:
        return {}
    kinds = coinjoin_kinds(ledger)
    change = change_outputs(ledger, kinds)
    return {
        COMMON_INPUTS: common_inputs(ledger, coinjoins=False, kinds=kinds),
        CHANGE: (ledger.output_owner[change], ledger.output_tx[change]),
    }


def ladder(
    ledger: Ledger,
    *,
    owners: Table | None = None,
    labels: Table | None = None,
    inferred: Inferences | None = None,
    until: int | None = None,
) -> tuple[Observer, ...]:
    """Give the informed observers of a ledger, each of whom knows what the one before does.

    `owners` (address -> owner) and `labels` (address -> label) make the last step: addresses of one
    owner, or of one label, are one person's. The first two are for coins whose amounts are known.
    `until` leaves transactions out, from that row of the ledger on: the observers are those of that
    moment. `inferred` are the `inferences` of the ledger, where they are known already.

    >>> ledger = CoinLedger.from_transactions([{"txid": "t", "inputs": [
    ...     {"txid": "x", "vout": 0, "value": 1, "address": "a"},
    ...     {"txid": "y", "vout": 0, "value": 1, "address": "b"}], "outputs": [{"value": 2}]}])
    >>> [observer.name for observer in ladder(ledger, owners={"a": "Ann"})]
    ['common-input-no-coinjoins', 'change', 'given']
    """
    found: list[Observer] = []
    joined: Ints | None = None
    earlier = NOTHING, NOTHING
    for name, (owner, joint) in (inferences(ledger) if inferred is None else inferred).items():
        seen = slice(None) if until is None else joint < until
        latest = owner[seen], joint[seen]
        known = persons(ledger, joined=_meeting(latest, earlier), before=joined)
        joined, earlier = known.of_owner, latest
        rule = heuristic(name)
        found.append(
            Observer(
                name,
                ASSUMES[name],
                rule.confidence,
                rule.origin,
                rule.source,
                known,
            )
        )
    tables = [table for table in (owners, labels) if table]
    if tables:
        found.append(
            Observer(
                GIVEN,
                ASSUMES[GIVEN],
                None,
                "given",
                "the tables given",
                persons(ledger, *tables, before=joined),
            )
        )
    return tuple(found)


def _meeting(latest: tuple[Ints, Ints], earlier: tuple[Ints, Ints]) -> tuple[Ints, Ints]:
    """Add the owners that an earlier inference joins to what the latest joins owners to."""
    met = np.zeros(1 + max(int(joint.max(initial=-1)) for _, joint in (latest, earlier)), np.bool_)
    met[latest[1]] = True
    same = met[earlier[1]]
    return (
        np.concatenate([latest[0], earlier[0][same]]),
        np.concatenate([latest[1], earlier[1][same]]),
    )


def persons(
    ledger: Ledger,
    *tables: Table,
    joined: tuple[Ints, Ints] = (NOTHING, NOTHING),
    before: Ints | None = None,
) -> Persons:
    """Join owners by tables address -> person, and by (owner, what joins them) of an inference.

    Without either, every owner is a person: origins are then grouped by address. Where tables
    have several names for a person, the first stands. `before` is the person behind each owner as
    far as known: only these are joined.
    """
    names = _owners(ledger)
    n = len(names)
    known = np.arange(n) if before is None else before
    _, used = np.unique(joined[1], return_inverse=True)
    inferred = 1 + int(used.max(initial=-1))
    owner, joint = [joined[0]], [used]
    words = pa.array([], pa.string())
    for table in tables:
        entries = pa.array(list(table), pa.string()), pa.array(list(table.values()), pa.string())
        row = pc.index_in(entries[0], value_set=names.cast(pa.string()))
        there = row.is_valid()
        stated = entries[1].filter(there).dictionary_encode()
        owner.append(np.asarray(row.drop_null(), dtype=np.int64))
        joint.append(np.asarray(stated.indices, dtype=np.int64) + inferred + len(words))
        words = pa.concat_arrays([words, stated.dictionary])
    persons_before = int(known.max(initial=-1)) + 1
    one = connected(persons_before, known[np.concatenate(owner)], np.concatenate(joint))
    person = one[known]
    called = np.full(int(person.max(initial=-1)) + 1, n + len(words))
    np.minimum.at(called, person, np.arange(n))  # the first of its owners, unless a table says
    some, name = (np.concatenate([NOTHING, *part[1:]]) for part in (owner, joint))
    if len(some):
        by_table = np.full(len(called), len(words))
        np.minimum.at(by_table, person[some], name - inferred)
        called = np.where(by_table < len(words), n + by_table, called)
    return Persons(person, called, pa.concat_arrays([names.cast(pa.string()), words]))


def by_owner(chain: AbsorbingChain, known: Persons, *, name: str = "owners") -> AbsorbingChain:
    """Merge the outcomes of a chain whose sources are one person's.

    A coinbase belongs to the owner of what it pays, if that is one person; a source of unknown
    owner, such as a pool or a mint, stays by itself. `name` is the observer's, for the record.
    """
    groups = owner_groups(chain, known)
    has = chain.column != NO_COLUMN
    column = np.full(len(chain), NO_COLUMN)
    column[has] = groups.of_outcome[chain.column[has]]
    return replace(
        chain,
        column=column,
        outcomes=groups.names,
        history={int(groups.of_outcome[k]): values for k, values in chain.history.items()},
        settings=chain.settings | {"observer": name},
    )


class OwnerGroups(NamedTuple):
    """The outcomes of a belief by owner: the group of each, and what groups are called."""

    of_outcome: Ints
    names: OwnerNames


def owner_groups(belief: Belief, known: Persons) -> OwnerGroups:
    """Group the sources of a chain, or of lots, by the person they belong to."""
    sources = belief.outcomes
    if type(sources) is not SourceNames:
        raise UsageError("origins are grouped by owner where they are all sources: leave lists out")
    person = _person_of(belief, known, sources.nodes.astype(np.int64))
    alone = person == UNKNOWN
    person[alone] = len(known.called) + np.arange(np.count_nonzero(alone))
    # Numbered in the order first met, so that without any merging nothing changes.
    _, first, inverse = np.unique(person, return_index=True, return_inverse=True)
    place = np.empty(len(first), dtype=np.int64)
    place[np.argsort(first)] = np.arange(len(first))
    first = np.sort(first)
    name = np.append(known.called, UNKNOWN)[np.minimum(person[first], len(known.called))]
    names = OwnerNames(sources.names, sources.nodes[first], known.names, name)
    return OwnerGroups(place[inverse], names)


def _person_of(belief: Belief, known: Persons, nodes: Ints) -> Ints:
    """Find the person behind each of some sources, UNKNOWN where it has none."""
    graph, ledger = belief.graph, belief.graph.ledger
    kinds, party = graph.kinds[nodes], graph.names.party[nodes].astype(np.int64)
    person = np.full(len(nodes), UNKNOWN)
    if isinstance(ledger, CoinLedger) and graph.settings.get("view") == "coin":
        coin = kinds == Kind.coin
        person[coin] = known.of_owner[ledger.output_owner[party[coin]]]
        made = kinds == Kind.transaction
        tx = party[made] - len(ledger.output_tx)
        person[made] = _payee(ledger, known, tx)[tx]
        return person
    holds = np.isin(kinds, (Kind.account, Kind.address, Kind.coin))
    names = graph.names.parties.take(party[holds]).cast(pa.string())
    row = pc.index_in(names, value_set=_owners(ledger).cast(pa.string()))
    person[holds] = np.append(known.of_owner, UNKNOWN)[row.fill_null(UNKNOWN).to_numpy()]
    return person


def _payee(ledger: CoinLedger, known: Persons, tx: Ints) -> Ints:
    """Give the one person that a transaction's coins belong to, UNKNOWN if there are several.

    Transactions other than `tx` are not looked at.
    """
    assert ledger.output_value is not None
    wanted = np.zeros(len(ledger.txids), dtype=np.bool_)
    wanted[tx] = True
    paid = np.flatnonzero(wanted[ledger.output_tx] & ledger.output_spendable)
    paid = paid[ledger.output_value.take(paid).positive()]
    person = known.of_owner[ledger.output_owner[paid]]
    low = np.full(len(ledger.txids), len(known.called))
    high = np.full(len(ledger.txids), UNKNOWN)
    np.minimum.at(low, ledger.output_tx[paid], person)
    np.maximum.at(high, ledger.output_tx[paid], person)
    return np.where(low == high, high, UNKNOWN)


def _owners(ledger: Ledger) -> pa.StringArray:
    return ledger.owners if isinstance(ledger, CoinLedger) else ledger.accounts
