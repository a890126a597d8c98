"""Queries: settings, bodies of requests, and the addresses of pages that show them.

Queries are frozen and refuse unknown fields. Addresses leave defaults out, have names in one order,
and never hold a token.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, TypedDict
from urllib.parse import quote, urlencode

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    StringConstraints,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from coinhaze.observer.policies import POLICIES, PROPORTIONAL, score_policies
from coinhaze.options import GraphOptions, Time, View


def policy_names() -> list[str]:
    """Name the policies that can be chosen."""
    return [policy.column for policy in score_policies()]


def _policy(given: str) -> str:
    found = POLICIES.get(given)
    if found is None or found.column not in policy_names():
        raise ValueError(f"one of {', '.join(policy_names())}")
    return found.column


class _PolicyNames:
    """Writes the registered policies into a schema when the schema is made."""

    def __get_pydantic_json_schema__(
        self, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return handler(core) | {"enum": policy_names()}


Policy = Annotated[str, AfterValidator(_policy), _PolicyNames()]
By = Literal["hop", "time"]
FileKind = Literal["html", "csv", "json"]

# A ledger's id, made from its file name; also what jobs and lists are called by.
Id = Annotated[str, StringConstraints(pattern=r"^[a-z0-9_-]{1,64}$")]
# A list as links name it: its name, and the first digits of its digest if that is to be checked.
ListName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9_-]{1,64}(@[0-9a-f]{4,64})?$")]
# A coin, account, address or transaction as it is requested. No control characters. What is
# answered has no such bounds: a ledger may hold any name.
LONGEST_NAME = 16_384
# A line of text for a statement.
Line = Annotated[
    str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")
]
# In an address each letter may take twelve bytes, and a head has 8 KiB.
LONGEST_IN_ADDRESS = 512
Name = Annotated[
    str,
    StringConstraints(min_length=1, max_length=LONGEST_NAME, pattern=r"^[^\x00-\x1f\x7f]*$"),
]
# An amount as people write it, 0.05 BTC or 5_000_000 sat: the ledger's unit says what is wrong.
AmountText = Annotated[str, StringConstraints(pattern=r"^[0-9_.,]{1,160} ?[A-Za-z0-9.$-]{0,16}$")]
Digits = Annotated[str, StringConstraints(pattern=r"^[0-9]{1,80}$")]

# A box of a flow, as the flow's answer names it.
NodeId = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]{1,16}$")]

SLASH = "\x1f"  # stands for an escaped slash inside one part of a path
# Parts of a path that mean a folder, whatever way they are written: browsers take them out. Such a
# name gets a slash before it, and so does one that already looks like that.
_DOTS = re.compile(r"/*\.{1,2}")

MAX_ROWS = 1_000  # of a page of a table
MAX_NODES = 300  # of a flow
MAX_COINS = 100  # of a what-if
MAX_TEXT = 1_000_000  # letters of a pasted list


def _apart(value: Any) -> Any:
    """Take texts apart at commas."""
    if not isinstance(value, (list, tuple)) or not all(isinstance(v, str) for v in value):
        return value
    return tuple(part for text in value for part in text.split(",") if part)


def name_in_path(text: str) -> str:
    """Give a name as a ledger has it, from an address whose `%2F` was kept apart from `/`.

    >>> name_in_path("a\x1fb"), name_in_path("\x1f.."), name_in_path("..")
    ('a/b', '..', '..')
    """
    name = text.replace(SLASH, "/")
    return name[1:] if name.startswith("/") and _DOTS.fullmatch(name) else name


def name_for_path(name: str) -> str:
    """Give a name as an address can hold it, before it is escaped; `name_in_path` undoes it.

    >>> name_for_path(".."), name_for_path("/."), name_for_path("a.b")
    ('/..', '//.', 'a.b')
    """
    return f"/{name}" if _DOTS.fullmatch(name) else name


class Model(BaseModel):
    """A value: frozen, no field but those named, and no number that is not one."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Settings(Model):
    """How a ledger is looked at; None stands for the ledger's own default.

    >>> Settings(policy="fifo").policy
    'fifo'
    """

    policy: Policy = PROPORTIONAL.column
    view: View | None = GraphOptions.view
    time: Time | None = GraphOptions.time
    list: ListName | None = None

    @property
    def settings(self) -> Settings:
        """The settings alone, where they came with more."""
        return Settings(policy=self.policy, view=self.view, time=self.time, list=self.list)


class SettingsKeywords(TypedDict, total=False):
    """Settings as keyword arguments of the client."""

    policy: Policy
    view: View | None
    time: Time | None
    list: str | None


class CoinKeywords(SettingsKeywords, total=False):
    """What can be said of a coin's page."""

    by: By
    top: int
    open: tuple[str, ...]


class PageKeywords(SettingsKeywords, total=False):
    """What can be said of a list."""

    after: str | None
    limit: int


class TableKeywords(PageKeywords, total=False):
    """What can be said of a ledger's table."""

    sort: str
    bits_low: float | None
    bits_high: float | None
    steps_low: float | None
    steps_high: float | None


class WalletKeywords(SettingsKeywords, total=False):
    """What can be said of a wallet beside its coins."""

    exposed: str
    known: str
    psbt: str
    payee: str
    amount: str | None
    limit: float


class ScreenKeywords(TypedDict, total=False):
    """What can be said of a screening."""

    list: str | None
    listed: str
    nodes: str
    view: View | None
    time: Time | None
    limit: float | None
    dust: str | None
    case: str | None
    analyst: str | None


class CoinQuery(Settings):
    """How a coin is looked at: the settings, and how its flow is drawn."""

    by: By = "hop"
    top: int = Field(default=8, ge=1, le=100)  # origins shown
    # Boxes to open, in an address with commas between them.
    open: Annotated[tuple[NodeId, ...], BeforeValidator(_apart)] = Field(default=(), max_length=40)


class PageQuery(Settings):
    """Which page of a list, such as a coin's origins; `after` is a former page's cursor."""

    after: str | None = Field(default=None, max_length=200)
    limit: int = Field(default=100, ge=1, le=MAX_ROWS)


class CompareQuery(Settings):
    """Which ledgers to compare: ids with commas between them."""

    l: str = Field(pattern=r"^[a-z0-9_-]{1,64}(,[a-z0-9_-]{1,64}){0,4}$")  # noqa: E741


class SearchQuery(Model):
    """What to look for."""

    q: str = Field(min_length=1, max_length=LONGEST_IN_ADDRESS)


class TableQuery(Settings):
    """Which rows of a ledger's table; `after` is a former page's cursor."""

    sort: str = Field(
        default="-bits", pattern=r"^-?(name|kind|amount|bits|informed|steps|sources|top_share)$"
    )
    after: str | None = Field(default=None, max_length=200)
    limit: int = Field(default=100, ge=1, le=MAX_ROWS)
    bits_low: float | None = None
    bits_high: float | None = None
    steps_low: float | None = None
    steps_high: float | None = None


class SharedQuery(Settings):
    """Another coin to compare a coin with, and how many common origins to show."""

    other: str = Field(min_length=1, max_length=LONGEST_IN_ADDRESS)
    limit: int = Field(default=5, ge=1, le=100)


class WhatIfQuery(Settings):
    """Coins to be spent together."""

    coins: tuple[Name, ...] = Field(min_length=1, max_length=MAX_COINS)


class WalletQuery(Settings):
    """A wallet: coins and exposed addresses as pasted text, and perhaps an amount to spend.

    `known` says who knows which coins: a table or labels; `psbt` is a payment, in base64 or hex.
    """

    coins: str = Field(min_length=1, max_length=MAX_TEXT)
    exposed: str = Field(default="", max_length=MAX_TEXT)
    known: str = Field(default="", max_length=MAX_TEXT)
    psbt: str = Field(default="", max_length=MAX_TEXT)
    payee: str = Field(default="", max_length=200)
    amount: AmountText | None = None
    limit: float = Field(default=0.0, ge=0, lt=1)


class ScreenQuery(Model):
    """What to screen against which list: one that is loaded, by name, or names as pasted text.

    `nodes` are pasted, one per line: nodes, addresses or the hashes of transactions; all that hold
    money where there are none. `limit` is the exposure above which a node is named, `dust` the
    amount of listed money below which a finding is set apart.
    """

    list: ListName | None = None
    listed: str = Field(default="", max_length=MAX_TEXT)
    nodes: str = Field(default="", max_length=MAX_TEXT)
    view: View | None = GraphOptions.view
    time: Time | None = GraphOptions.time
    limit: float | None = Field(default=None, ge=0, lt=1)
    dust: AmountText | None = None
    case: Line | None = None
    analyst: Line | None = None


class StatementQuery(ScreenQuery):
    """A screening, and the kind of file that states it."""

    kind: FileKind = "html"


class WalkQuery(Model):
    """Coins or transactions to walk back over a node or server, until bits are so narrow."""

    coins: tuple[Name, ...] = Field(min_length=1, max_length=20)
    accuracy: float = Field(default=0.1, ge=0, le=100)


class JobQuery(Model):
    """Work to be done apart: score a ledger as its settings say."""

    ledger: Id
    settings: Settings = Settings()


OF_JOB = "?job={job}"  # stands in a job's page for its id: it shows what that job found
GROUP_PATHS = {"address": "address", "transaction": "tx", "block": "block"}
# The order of a link's settings, so that one view of a coin has one address.
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
    """Give the page of a coin, address, transaction or block as it was requested.

    >>> from coinhaze.explore.query import CoinQuery
    >>> thing_link("week", "coin", "ab:1", CoinQuery(policy="fifo", by="time", open=("n3",)))
    '/l/week/coin/ab:1?policy=fifo&by=time&open=n3'
    >>> thing_link("week", "coin", "a/b?c", ties=["ab:0", "cd:1"])
    '/l/week/coin/a%2Fb%3Fc?with=ab:0,cd:1'
    """
    return f"{ledger_link(ledger)}/{kind}/{_part(name)}{query_of(ask, ties=ties)}"


def destinations_link(
    ledger: str, name: str, ask: Settings | None = None, *, suffix: str = ""
) -> str:
    """Give the page of where money went.

    >>> destinations_link("week", "ab:1", Settings(policy="fifo"))
    '/l/week/coin/ab:1/destinations?policy=fifo'
    """
    return f"{ledger_link(ledger)}/coin/{_part(name)}/destinations{suffix}{query_of(ask)}"


def wallet_link(ledger: str, *, job: str = "") -> str:
    """Give the form of a wallet, or what a job has found about one.

    >>> wallet_link("week", job="0a1b")
    '/l/week/wallet?job=0a1b'
    """
    return f"{ledger_link(ledger)}/wallet" + (f"?{urlencode({'job': job})}" if job else "")


def screen_link(ledger: str, nodes: str = "", ask: Settings | None = None, *, job: str = "") -> str:
    """Give the form of a screening, filled for a node; or the statement that a job has made.

    >>> screen_link("week", "ab:1", Settings(list="sanctions@71be"))
    '/l/week/screen?nodes=ab:1&list=sanctions@71be'
    """
    given = {"nodes": nodes, "job": job}
    if ask is not None:
        given |= {"view": ask.view or "", "time": ask.time or "", "list": ask.list or ""}
    pairs = {key: value for key, value in given.items() if value}
    return f"{ledger_link(ledger)}/screen" + (f"?{urlencode(pairs, safe=':@')}" if pairs else "")


def thing_data_link(
    ledger: str, kind: str, name: str, ask: Settings | None = None, *, suffix: str = ""
) -> str:
    """Give where the data of a coin, address, transaction or block is; `kind` in the plural.

    >>> thing_data_link("week", "coins", "ab:1", Settings(policy="fifo"), suffix="/origins")
    '/api/v1/ledgers/week/coins/ab:1/origins?policy=fifo'
    """
    return api_link(f"/ledgers/{ledger}/{kind}/{_part(name)}{suffix}", ask)


def _part(name: str) -> str:
    return quote(name_for_path(name), safe=":@")


def table_link(ask: TableQuery, ledger: str, *, suffix: str = "") -> str:
    """Give a page of a ledger's table.

    >>> table_link(TableQuery(sort="steps", bits_low=2.0), "week")
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
    query = next((each for each in args if isinstance(each, Settings)), None)
    if query is not None and more:
        query = PageQuery.model_validate({**query.model_dump(), **more})
    if method == "destinations":
        return destinations_link(ledger, str(args[0]), query)
    if method in ("coin", "origins", "comparators"):
        return thing_link(ledger, "coin", str(args[0]), query)
    if method == "group":
        return thing_link(ledger, GROUP_PATHS[str(args[0])], str(args[1]), query)
    if method == "wallet":
        return f"{wallet_link(ledger)}{OF_JOB}"
    if method in ("statement", "statement_file"):
        return f"{screen_link(ledger)}{OF_JOB}"
    if method == "screen":
        return screen_link(ledger)
    return table_link(query, ledger) if isinstance(query, TableQuery) else ledger_link(ledger)
