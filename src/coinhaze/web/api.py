"""The API: every page's data as JSON under /api/v1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Depends, Path, Query, Request, Response

from coinhaze.errors import InputError
from coinhaze.explore import models
from coinhaze.explore.explorer import Explorer
from coinhaze.explore.query import (
    LONGEST_IN_ADDRESS,
    CoinQuery,
    CompareQuery,
    Id,
    JobQuery,
    Model,
    PageQuery,
    ScreenQuery,
    SearchQuery,
    Settings,
    SharedQuery,
    TableQuery,
    WalkQuery,
    WalletQuery,
    WhatIfQuery,
    name_in_path,
)
from coinhaze.explore.walked import coin_of
from coinhaze.web import replies, schema
from coinhaze.web.replies import Served
from coinhaze.web.schema import CODES, Refused, refusal_of

ROOT = "/api/v1"
Route = TypeVar("Route", bound=Callable[..., Any])
Ledger = Annotated[Id, Path(description="a ledger's id, as GET /ledgers gives it")]
# An escaped slash stands in a name as its own character, see `query.SLASH`.
Thing = Annotated[
    str,
    Path(
        min_length=1,
        max_length=LONGEST_IN_ADDRESS,
        pattern=r"^[^\x00-\x1e\x7f]*$",
        description="a name, with everything but letters and digits escaped",
    ),
]
SettingsQuery = Annotated[Settings, Query()]
Page = Annotated[PageQuery, Query()]
JobId = Annotated[str, Path(pattern=r"^[0-9a-f]{16}$")]


def _errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    always = (400, 401, 403, 405, 408, 413, 429, 431, 500)
    return {
        status: {
            "model": schema.ErrorAnswer,
            "description": ", ".join(CODES[status]),
        }
        for status in sorted({*always, *statuses})
    }


# What is requested of a ledger may be unknown, not ready, not possible, or too expensive.
OF_LEDGER = _errors(404, 409, 422, 503)
LATER: dict[int | str, dict[str, Any]] = {
    202: {"model": schema.Job, "description": "it takes longer: a job goes on with it"},
    304: {"description": "as it was: If-None-Match names the tag it still has"},
}
RESULT: dict[int | str, dict[str, Any]] = {
    200: {"content": {"application/json": {}}, "description": "the requested answer"},
    204: {"description": "it is done and has no answer but the ledger's own pages"},
}
CSV: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/csv": {"schema": {"type": "string"}}}, "description": "all rows"},
    202: LATER[202],
}


router = APIRouter(prefix=ROOT)
OF = "/ledgers/{ledger}"
COIN, JOB = OF + "/coins/{name}", "/jobs/{job}"


def _get(path: str, model: type[Any]) -> Callable[[Route], Route]:
    return router.get(path, response_model=model, responses=OF_LEDGER | LATER)


def _post(path: str, model: type[Any]) -> Callable[[Route], Route]:
    later: dict[int | str, dict[str, Any]] = {202: LATER[202]}
    return router.post(
        path, response_model=model, responses=OF_LEDGER | later, dependencies=[Depends(_no_query)]
    )


async def _no_query(request: Request) -> None:
    """Refuse settings where nobody would read them."""
    if request.url.query:
        raise Refused(
            "bad-request",
            "a POST takes its settings in its body, not in its address",
            fix='send JSON such as {"coins": ["TXID:0"], "list": "NAME"}',
        )


Method = Callable[..., Any]  # of an Explorer
# What a GET answers about a ledger: the last part of its address, and what works it out.
OF_LEDGERS: tuple[tuple[str, Method, type[Model], type[Model], str], ...] = (
    ("histogram", Explorer.histogram, Settings, models.Histogram, "Coins by bits."),
    ("density", Explorer.density, Settings, models.Density, "Coins by bits and steps."),
    ("table", Explorer.table, TableQuery, models.TablePage,
     "Rows of a ledger's table: sorted, filtered, a page at a time."),
)  # fmt: skip
OF_COINS: tuple[tuple[str, Method, type[Model], type[Model], str], ...] = (
    ("", Explorer.coin, CoinQuery, models.CoinAnswer,
     "Where a coin's money came from: bits, origins, flow, exposure."),
    ("/comparators", Explorer.comparators, Settings, models.Comparators,
     "The same coin under other rules and measures."),
    ("/shared", Explorer.shared, SharedQuery, models.SharedAnswer,
     "What a coin has in common with another one."),
    ("/destinations", Explorer.destinations, CoinQuery, models.DestinationsAnswer,
     "Where the money that a coin, account, address or transaction had went."),
)  # fmt: skip
GROUPS: tuple[tuple[str, models.GroupKind, str], ...] = (
    ("addresses", "address", "An address: its coins together and one by one."),
    ("transactions", "transaction",
     "A transaction: what it spends, and the coins it makes."),
    ("blocks", "block", "A block, by height or hash: the coins it makes."),
)  # fmt: skip
# What is sent in a body: coins and lists of names are nothing for an address.
POSTED: tuple[tuple[str, Method, type[Model], type[Model], str], ...] = (
    ("what-if", Explorer.what_if, WhatIfQuery, models.WhatIfAnswer,
     "What spending coins together would do to bits and exposure."),
    ("wallet", Explorer.wallet, WalletQuery, models.WalletAnswer,
     "A wallet's coins, what goes with what, and what to spend."),
    ("screen", Explorer.screen, ScreenQuery, models.ScreenAnswer,
     "How much of what nodes hold came from a list: the statement of `coinhaze screen --json`."),
)  # fmt: skip


def _add_routes() -> None:
    """Add a route for each row of the tables above."""
    for path, method, query, model, words in OF_LEDGERS:
        route = _named(_of_ledger(method), method.__name__, words, Annotated[query, Query()])
        _get(f"{OF}/{path}", model)(route)
    for path, method, query, model, words in OF_COINS:
        route = _named(_of_coin(method), method.__name__, words, Annotated[query, Query()])
        _get(COIN + path, model)(route)
    for path, kind, words in GROUPS:
        _get(f"{OF}/{path}/{{name}}", models.GroupAnswer)(
            _named(_of_group(kind), kind, words, Page)
        )
    for path, method, query, model, words in POSTED:
        _post(f"{OF}/{path}", model)(_named(_of_ledger(method), method.__name__, words, query))


def _named(route: Route, name: str, words: str, query: object) -> Route:
    """Give a route the name and words that the schema says, and the query that it reads."""
    route.__name__, route.__doc__ = name, words
    route.__annotations__["query"] = query
    return route


def _of_ledger(method: Method) -> Method:
    async def route(answers: Served, request: Request, ledger: Ledger, query: Any) -> Response:
        return replies.data(request, await answers.ask(ledger, method, query))

    return route


def _of_coin(method: Method) -> Method:
    async def route(
        answers: Served, request: Request, ledger: Ledger, name: Thing, query: Any
    ) -> Response:
        found = await answers.ask(ledger, method, name_in_path(name), query)
        return replies.data(request, found)

    return route


def _of_group(kind: models.GroupKind) -> Method:
    async def route(
        answers: Served, request: Request, ledger: Ledger, name: Thing, query: Any
    ) -> Response:
        found = await answers.ask(
            ledger, Explorer.group, kind, name_in_path(name), query.settings, after=query.after,
            limit=query.limit,
        )  # fmt: skip
        return replies.data(request, found)

    return route


_add_routes()


@router.get("/ledgers", response_model=models.Ledgers, responses=_errors())
async def ledgers(answers: Served) -> Response:
    """All ledgers being served, with their states."""
    return replies.plain(answers.ledgers())


@router.get("/lists", response_model=models.Lists, responses=_errors())
async def lists(answers: Served) -> Response:
    """All lists that were loaded."""
    return replies.plain(answers.lists())


@_get(OF, models.LedgerPage)
async def ledger(
    answers: Served, request: Request, ledger: Ledger, query: SettingsQuery
) -> Response:
    """A ledger's summary and histogram; its card alone where it is not ready."""
    return replies.data(request, await answers.ledger(ledger, query))


@_get("/compare", models.Comparison)
async def compare(
    answers: Served, request: Request, query: Annotated[CompareQuery, Query()]
) -> Response:
    """Up to five ledgers side by side; `l` is their ids with commas between."""
    return replies.data(request, await answers.compare(query))


@_get(f"{COIN}/origins", models.OriginsPage)
async def origins(
    answers: Served, request: Request, ledger: Ledger, name: Thing, query: Page
) -> Response:
    """A coin's origins, largest first."""
    found = await answers.ask(
        ledger, Explorer.origins, name_in_path(name), query.settings, after=query.after,
        limit=query.limit,
    )  # fmt: skip
    return replies.data(request, found)


@router.get(f"{COIN}/origins.csv", response_class=Response, responses=OF_LEDGER | CSV)
async def origins_csv(
    answers: Served, ledger: Ledger, name: Thing, query: SettingsQuery
) -> Response:
    """All of a coin's origins as CSV."""
    batches = await answers.batches(ledger, Explorer.origin_batches, name_in_path(name), query)
    return await replies.csv(batches, f"{ledger}-origins")


@_get(f"{OF}/search", models.SearchAnswer)
async def search(
    answers: Served, request: Request, ledger: Ledger, query: Annotated[SearchQuery, Query()]
) -> Response:
    """Find a coin, transaction, address, account or block by what a person pasted."""
    return replies.data(request, await answers.ask(ledger, Explorer.search, query.q))


@router.get(f"{OF}/table.csv", response_class=Response, responses=OF_LEDGER | CSV)
async def table_csv(
    answers: Served, ledger: Ledger, query: Annotated[TableQuery, Query()]
) -> Response:
    """All rows the filter leaves, as CSV; `after` and `limit` do not count."""
    return await replies.csv(
        await answers.batches(ledger, Explorer.table_batches, query), f"{ledger}-table"
    )


@_post(f"{OF}/walk", models.WalkAnswer)
async def walk(answers: Served, ledger: Ledger, query: WalkQuery) -> Response:
    """Walk coins back over the node or server that is served; asking again goes further."""
    try:
        coins = [coin_of(name) for name in query.coins]
    except InputError as error:
        raise refusal_of(error) from None
    found = await answers.walk(ledger, coins, page=f"/l/{ledger}", accuracy=query.accuracy)
    return replies.plain(found.model)


@router.get("/jobs", response_model=schema.Jobs, responses=_errors())
async def all_jobs(answers: Served) -> Response:
    """All jobs, newest first."""
    return replies.plain(schema.Jobs(jobs=answers.jobs.all()))


@router.post("/jobs", response_model=schema.Job, status_code=202, responses=_errors(404, 409, 422))
async def begin(answers: Served, query: JobQuery) -> Response:
    """Open, build and score a ledger, apart."""
    job = answers.prepare(query)
    return replies.plain(job, status=202, headers={"location": f"{ROOT}/jobs/{job.id}"})


@router.get(JOB, response_model=schema.Job, responses=_errors(404))
async def job(answers: Served, job: JobId) -> Response:
    """How far a job is."""
    return replies.plain(answers.jobs.find(job))


@router.delete(JOB, response_model=schema.Job, responses=_errors(404))
async def cancel(answers: Served, job: JobId) -> Response:
    """Cancel a job; one that has ended stays as it is."""
    return replies.plain(answers.jobs.cancel(job))


@router.get(f"{JOB}/result", response_class=Response, responses=_errors(404, 409) | RESULT)
async def result(answers: Served, job: JobId) -> Response:
    """What a job that is done found."""
    return replies.found(answers.jobs.result(job))
