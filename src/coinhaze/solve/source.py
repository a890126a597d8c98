"""From whatever is given (a path, ledger, graph or chain) to a chain."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from coinhaze.chain import AbsorbingChain, absorbing_chain
from coinhaze.errors import UsageError
from coinhaze.graph import TransactionGraph, transaction_graph
from coinhaze.ledger import AccountLedger, CoinLedger, Ledger, read
from coinhaze.ledger.formats import is_store
from coinhaze.ledger.window import Window

READ_SETTINGS = frozenset({"format", "complete", "first", "last", "token"})
GRAPH_SETTINGS = frozenset(
    {"view", "time", "opening", "top_up", "mint", "pools", "clusters", "sinks"}
)
CHAIN_SETTINGS = frozenset({"policy", "listed", "links", "history"})

Source = str | Path | Sequence[str | Path] | Ledger | TransactionGraph | AbsorbingChain


def chain_of(source: Source, **settings: Any) -> AbsorbingChain:
    """Go from whatever is given to a chain, each setting used at its own step."""
    known = READ_SETTINGS | GRAPH_SETTINGS | CHAIN_SETTINGS
    unknown = settings.keys() - known
    if unknown:
        raise UsageError(
            f"unknown setting {sorted(unknown)[0]!r}: one of {', '.join(sorted(known))}"
        )
    thing: Any = source
    if isinstance(thing, AbsorbingChain):
        _refuse(settings, "a chain is given")
        return thing
    if not isinstance(thing, TransactionGraph):
        if not isinstance(thing, AccountLedger | CoinLedger):
            if not _is_path(thing):
                raise UsageError(
                    f"not a path, ledger, graph or chain: {type(thing).__name__}; "
                    "rows of your own: coinhaze.AccountLedger.from_transfers(rows)"
                )
            settings = _opening_before(thing, settings)
            thing = read(thing, **_only(settings, READ_SETTINGS))
        else:
            _refuse(_only(settings, READ_SETTINGS), "a ledger is given")
        thing = transaction_graph(thing, **_only(settings, GRAPH_SETTINGS))
    else:
        _refuse(_only(settings, READ_SETTINGS | GRAPH_SETTINGS), "a graph is given")
    return absorbing_chain(thing, **_only(settings, CHAIN_SETTINGS))


def _opening_before(thing: Any, settings: dict[str, Any]) -> dict[str, Any]:
    """Let a window of accounts open with what the store tells of the time before it."""
    path = thing if isinstance(thing, str | Path) else thing[0] if len(thing) == 1 else None
    if path is None or "opening" in settings or not is_store(Path(path)):
        return settings
    from coinhaze.ledger.stored import opening_of

    window = Window.of(settings.get("first"), settings.get("last"))
    opening = opening_of(Path(path), window, token=settings.get("token"))
    return settings if opening is None else settings | {"opening": opening}


def _is_path(thing: Any) -> bool:
    if isinstance(thing, str | Path):
        return True
    return isinstance(thing, list | tuple) and all(isinstance(t, str | Path) for t in thing)


def _only(settings: dict[str, Any], names: frozenset[str]) -> dict[str, Any]:
    return {k: v for k, v in settings.items() if k in names}


def _refuse(settings: dict[str, Any], why: str) -> None:
    if settings:
        raise UsageError(f"{', '.join(sorted(settings))} cannot be set any more: {why}")
