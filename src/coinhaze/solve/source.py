"""From whatever is given (a path, ledger, graph or chain) to a chain."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

from coinhaze.errors import UsageError
from coinhaze.formats.lists import knowledge
from coinhaze.formats.registry import is_store
from coinhaze.formats.tabular.table_rows import ArrowStream
from coinhaze.graph import TransactionGraph, transaction_graph
from coinhaze.graph.build import building_bytes, default_time, default_view
from coinhaze.ledger import AccountLedger, CoinLedger, Ledger
from coinhaze.ledger.parquet import is_folder, unpacked_bytes
from coinhaze.ledger.window import LedgerWindow
from coinhaze.observer import AbsorbingChain, absorbing_chain
from coinhaze.observer.chain import Belief
from coinhaze.options import (
    GraphOptions,
    LedgerKeywords,
    ModelKeywords,
    ObserverOptions,
    ReadOptions,
    known,
    names_of,
)
from coinhaze.readers import is_stream, read
from coinhaze.solve.pool import Backend
from coinhaze.solve.pool.limits import THREADS, UNLIMITED, Budget
from coinhaze.solve.structure.structure import Structure


class Prepared(ABC):
    """Something that holds what solvers need, made once: a `coinhaze.Session`."""

    backend: str | Backend = THREADS  # what solves its questions; see pool/backend.py

    @property
    @abstractmethod
    def is_ordered(self) -> bool:
        """Whether its policy follows lots, not a walk."""

    @property
    @abstractmethod
    def graph(self) -> TransactionGraph:
        """The graph."""

    @property
    @abstractmethod
    def graph_in_time(self) -> TransactionGraph:
        """The graph, or one that knows the order of payments where the settings leave it open."""

    @property
    @abstractmethod
    def structure(self) -> Structure:
        """The chain, and what was worked out of it."""

    @property
    @abstractmethod
    def lots(self) -> Belief:
        """The lots of an ordered policy."""


READ_SETTINGS = names_of(ReadOptions)
GRAPH_SETTINGS = names_of(GraphOptions)
CHAIN_SETTINGS = names_of(ObserverOptions)

Source = (
    str
    | Path
    | ArrowStream
    | Sequence[str | Path | ArrowStream]
    | Ledger
    | TransactionGraph
    | Belief
    | Structure
    | Prepared
)

# What files can be named by settings, and how each is read.
_READERS: Mapping[str, Callable[[str], Any]] = {
    "opening": knowledge.read_opening,
    "listed": knowledge.read_listed,
    "links": knowledge.read_links,
    "history": knowledge.read_history,
    "clusters": knowledge.read_clusters,
}


def read_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Turn options as people write them into settings, reading the files they name.

    >>> read_options({"from": "100", "opening": "observed", "complete": False})
    {'opening': 'observed', 'first': '100'}
    >>> read_options({"seed": 0})
    {'seed': 0}
    """
    # A 0 that was given is no False.
    settings = {n: value for n, value in given.items() if value is not None and value is not False}
    for option, setting in (("from", "first"), ("to", "last")):
        if option in settings:
            settings[setting] = settings.pop(option)
    for name in option_files(settings):
        settings[name] = _READERS[name](settings[name])
    return settings


def option_files(given: Mapping[str, Any]) -> dict[str, str]:
    """Give the files that options name, by option.

    >>> option_files({"opening": "table.csv", "clusters": "change", "view": "address"})
    {'opening': 'table.csv'}
    """
    named = {name: given[name] for name in _READERS if given.get(name) is not None}
    return {name: value for name, value in named.items() if value not in known(name).choices}


def chain_of(
    source: Source, *, budget: Budget = UNLIMITED, **settings: Unpack[ModelKeywords]
) -> AbsorbingChain:
    """Go from whatever is given to a chain, each setting used at its own step.

    What would pass the budget's memory is refused before it is built.
    """
    check_known(settings, READ_SETTINGS | GRAPH_SETTINGS | CHAIN_SETTINGS)
    if isinstance(source, Prepared | Structure):
        return structure_of(source, **settings).chain
    if isinstance(source, AbsorbingChain):
        refuse(settings, "a chain is given")
        return source
    exposure = settings.get("listed") is not None
    shape = only(settings, READ_SETTINGS | GRAPH_SETTINGS)
    graph = graph_of(source, in_order=exposure, budget=budget, **shape)
    return absorbing_chain(graph, **only(settings, CHAIN_SETTINGS))


def structure_of(
    source: Source, *, budget: Budget = UNLIMITED, **settings: Unpack[ModelKeywords]
) -> Structure:
    """Go from whatever is given to a chain with what is worked out of it so far."""
    if isinstance(source, Prepared | Structure):
        session = isinstance(source, Prepared)
        refuse(settings, "a session is given" if session else "a chain is given")
        return source.structure if isinstance(source, Prepared) else source
    return Structure(chain_of(source, budget=budget, **settings))


def graph_of(
    source: Source,
    *,
    in_order: bool = False,
    budget: Budget = UNLIMITED,
    **settings: Unpack[LedgerKeywords],
) -> TransactionGraph:
    """Go from a path, ledger or graph to a graph; `in_order`: one that knows time, by default."""
    check_known(settings, READ_SETTINGS | GRAPH_SETTINGS)
    thing: Any = source
    if isinstance(thing, Prepared):
        refuse(settings, "a session is given")
        return thing.graph_in_time if in_order else thing.graph
    if isinstance(thing, TransactionGraph):
        refuse(settings, "a graph is given")
        return thing
    if not isinstance(thing, AccountLedger | CoinLedger):
        if not _is_readable(thing):
            raise UsageError(
                f"not a path, ledger, graph or chain: {type(thing).__name__}; "
                "rows of your own: coinhaze.AccountLedger.from_transfers(rows)"
            )
        budget.fits(_reading_bytes(thing), "the ledger")
        requested = opening_before(thing, settings)
        thing = read(thing, **only(requested, READ_SETTINGS))
    else:
        refuse(only(settings, READ_SETTINGS), "a ledger is given")
        requested = settings
    shape = only(requested, GRAPH_SETTINGS)
    shape = in_time(thing, shape) if in_order else shape
    size = building_bytes(thing, view=shape.get("view"), time=shape.get("time"))
    budget.fits(size, "building the graph")
    return transaction_graph(thing, **shape)


def _reading_bytes(thing: Any) -> int:
    """Estimate the bytes that reading folders of Parquet files takes; of others nothing is known.

    Measured on simulated weeks: 2.6 times what the files hold unpacked, and somewhat more where
    that is little.
    """
    given = thing if isinstance(thing, list | tuple) else [thing]
    paths = [Path(path) for path in given if isinstance(path, str | Path)]
    size = sum(unpacked_bytes(path) for path in paths if is_folder(path))
    return int(2.6 * size + min(1.3 * size, 100 << 20))


def in_time(ledger: Ledger, settings: dict[str, Any]) -> dict[str, Any]:
    """Put payments in the order of time, as exposure needs it, unless a time is chosen."""
    view = settings.get("view") or default_view(ledger)
    if settings.get("time") is not None or view == "coin":
        return settings
    return settings | {"time": default_time(view, exposure=True)}


def check_known(settings: Mapping[str, Any], known: frozenset[str]) -> None:
    """Refuse settings of other names."""
    unknown = settings.keys() - known
    if unknown:
        raise UsageError(
            f"unknown setting {sorted(unknown)[0]!r}: one of {', '.join(sorted(known))}"
        )


def opening_before(thing: Any, settings: Mapping[str, Any]) -> Mapping[str, Any]:
    """Let a window of accounts open with what the store tells of the time before it."""
    path = thing[0] if isinstance(thing, list | tuple) and len(thing) == 1 else thing
    is_path = isinstance(path, str | Path)
    if not is_path or "opening" in settings or not is_store(Path(path)):
        return settings
    from coinhaze.store.read import opening_of

    window = LedgerWindow.of(settings.get("first"), settings.get("last"))
    opening = opening_of(Path(path), window, token=settings.get("token"))
    return settings if opening is None else {**settings, "opening": opening}


def _is_readable(thing: Any) -> bool:
    if isinstance(thing, list | tuple):
        return all(isinstance(t, str | Path) or is_stream(t) for t in thing)
    return isinstance(thing, str | Path) or is_stream(thing)


def only(settings: Mapping[str, Any], names: frozenset[str]) -> dict[str, Any]:
    """Give the settings of these names."""
    return {k: v for k, v in settings.items() if k in names}


def refuse(settings: Mapping[str, Any], why: str) -> None:
    """Refuse settings of what was made already."""
    if settings:
        raise UsageError(f"{', '.join(sorted(settings))} cannot be set any more: {why}")
