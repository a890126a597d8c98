"""Addresses of pages: defaults left out, names in one order, never a token."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import quote, urlencode

from coinhaze.explore.query import PageAsk, Settings, TableAsk, name_for_path

GROUP_PATHS = {"address": "address", "transaction": "tx", "block": "block"}
# The order of a link's settings, so that one look at a coin has one address.
_ORDER = (
    "policy", "view", "time", "by", "top", "open", "list",
    "sort", "limit", "bits_low", "bits_high", "steps_low", "steps_high", "after",
)  # fmt: skip


def ledger_link(ledger: str) -> str:
    """Give a ledger's page.

    >>> ledger_link("week")
    '/l/week'
    """
    return f"/l/{quote(ledger, safe='')}"


def thing_link(
    ledger: str, kind: str, name: str, ask: Settings | None = None, *, ties: Sequence[str] = ()
) -> str:
    """Give the page of a coin, address, transaction or block as it was asked for.

    >>> from coinhaze.explore.query import CoinAsk
    >>> thing_link("week", "coin", "ab:1", CoinAsk(policy="fifo", by="time", open=("n3",)))
    '/l/week/coin/ab:1?policy=fifo&by=time&open=n3'
    >>> thing_link("week", "coin", "a/b?c", ties=["ab:0", "cd:1"])
    '/l/week/coin/a%2Fb%3Fc?with=ab:0,cd:1'
    """
    part = quote(name_for_path(name), safe=":@")
    return f"{ledger_link(ledger)}/{kind}/{part}{query_of(ask, ties=ties)}"


def table_link(ask: TableAsk, ledger: str, *, suffix: str = "") -> str:
    """Give a page of a ledger's table.

    >>> table_link(TableAsk(sort="steps", bits_low=2.0), "week")
    '/l/week/table?sort=steps&bits_low=2.0'
    """
    return f"{ledger_link(ledger)}/table{suffix}{query_of(ask)}"


def api_link(path: str, ask: Settings | None = None) -> str:
    """Give where the data of a page is.

    >>> api_link("/ledgers/week")
    '/api/v1/ledgers/week'
    """
    return f"/api/v1{path}{query_of(ask)}"


def query_of(ask: Settings | None, *, ties: Sequence[str] = ()) -> str:
    """Write settings as a query, with its question mark; nothing where all are defaults.

    >>> query_of(Settings()), query_of(Settings(list="sanctions@71be"))
    ('', '?list=sanctions@71be')
    """
    pairs = []
    if ask is not None:
        given = ask.model_dump(exclude_defaults=True)
        for key in _ORDER:
            value = given.get(key)
            if value is not None:
                pairs.append((key, ",".join(value) if isinstance(value, tuple) else value))
    if ties:
        pairs.append(("with", ",".join(ties)))
    return f"?{urlencode(pairs, safe=':,@')}" if pairs else ""


def page_of(
    ledger: str, method: str, args: Sequence[object], more: Mapping[str, object] | None = None
) -> str:
    """Return the page that shows what an explorer's method returns; else the ledger's own.

    >>> page_of("week", "comparators", ("ab:1", Settings(policy="lifo")))
    '/l/week/coin/ab:1?policy=lifo'
    >>> page_of("week", "group", ("transaction", "ab", Settings()), {"limit": 5})
    '/l/week/tx/ab?limit=5'
    """
    asked = next((each for each in args if isinstance(each, Settings)), None)
    if asked is not None and more:
        asked = PageAsk.model_validate({**asked.model_dump(), **more})
    if method in ("coin", "origins", "comparators"):
        return thing_link(ledger, "coin", str(args[0]), asked)
    if method == "group":
        return thing_link(ledger, GROUP_PATHS[str(args[0])], str(args[1]), asked)
    if method == "wallet":
        return f"{ledger_link(ledger)}/wallet"
    return table_link(asked, ledger) if isinstance(asked, TableAsk) else ledger_link(ledger)
