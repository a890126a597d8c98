"""The API: every page's data as JSON under /api/v1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Depends, Path, Query, Request, Response

from coinhaze.explore import models
from coinhaze.explore.explorer import Explorer
from coinhaze.explore.query import (
    LONGEST_IN_ADDRESS,
    CoinAsk,
    CompareAsk,
    Id,
    JobAsk,
    PageAsk,
    SearchAsk,
    Settings,
    TableAsk,
    WalletAsk,
    WhatIfAsk,
    name_in_path,
)
from coinhaze.web import replies, schema
from coinhaze.web.answers import Answer, Answers
from coinhaze.web.schema import CODES, Refused

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
Asked = Annotated[Settings, Query()]
Page = Annotated[PageAsk, Query()]
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


# What is asked of a ledger may be unknown, not ready, not to be asked so, or too dear.
OF_LEDGER = _errors(404, 409, 422, 503)
LATER: dict[int | str, dict[str, Any]] = {
    202: {"model": schema.Job, "description": "it takes longer: a job goes on with it"},
    304: {"description": "as it was: If-None-Match names the tag it still has"},
}
RESULT: dict[int | str, dict[str, Any]] = {
    200: {"content": {"application/json": {}}, "description": "the answer that was asked for"},
    204: {"description": "it is done and has no answer but the ledger's own pages"},
}
CSV: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/csv": {"schema": {"type": "string"}}}, "description": "all rows"},
    202: LATER[202],
}


def routes(answers: Answers) -> APIRouter:
    """Give all routes of the API."""
    router = APIRouter(prefix=ROOT)
    _add_ledgers(router, answers)
    _add_coins(router, answers)
    _add_groups(router, answers)
    _add_table(router, answers)
    _add_asks(router, answers)
    _add_jobs(router, answers)
    return router


def _add_ledgers(router: APIRouter, answers: Answers) -> None:
    @router.get("/ledgers", response_model=models.Ledgers, responses=_errors())
    async def ledgers() -> Response:
        """All ledgers being served, with their states."""
        return replies.plain(answers.ledgers())

    @router.get("/lists", response_model=models.Lists, responses=_errors())
    async def lists() -> Response:
        """All lists that were loaded."""
        return replies.plain(answers.lists())

    @_get(router, "/ledgers/{ledger}", models.LedgerPage)
    async def ledger(request: Request, ledger: Ledger, asked: Asked) -> Response:
        """A ledger's summary and histogram; its card alone where it is not ready."""
        return replies.data(request, await answers.ledger(ledger, asked))

    @_get(router, "/ledgers/{ledger}/histogram", models.Histogram)
    async def histogram(request: Request, ledger: Ledger, asked: Asked) -> Response:
        """Coins by bits."""
        return replies.data(request, await answers.ask(ledger, Explorer.histogram, asked))

    @_get(router, "/ledgers/{ledger}/density", models.Density)
    async def density(request: Request, ledger: Ledger, asked: Asked) -> Response:
        """Coins by bits and steps."""
        return replies.data(request, await answers.ask(ledger, Explorer.density, asked))

    @_get(router, "/compare", models.Comparison)
    async def compare(request: Request, asked: Annotated[CompareAsk, Query()]) -> Response:
        """Up to five ledgers side by side; `l` is their ids with commas between."""
        return replies.data(request, await answers.compare(asked))


def _add_coins(router: APIRouter, answers: Answers) -> None:
    one = "/ledgers/{ledger}/coins/{name}"

    @_get(router, one, models.CoinAnswer)
    async def coin(
        request: Request, ledger: Ledger, name: Thing, asked: Annotated[CoinAsk, Query()]
    ) -> Response:
        """Where a coin's money came from: bits, origins, flow, exposure."""
        return replies.data(
            request, await answers.ask(ledger, Explorer.coin, name_in_path(name), asked)
        )

    @_get(router, f"{one}/comparators", models.Comparators)
    async def comparators(request: Request, ledger: Ledger, name: Thing, asked: Asked) -> Response:
        """The same coin under other rules and measures."""
        return replies.data(
            request, await answers.ask(ledger, Explorer.comparators, name_in_path(name), asked)
        )

    @_get(router, f"{one}/origins", models.OriginsPage)
    async def origins(request: Request, ledger: Ledger, name: Thing, asked: Page) -> Response:
        """A coin's origins, largest first."""
        found = await answers.ask(
            ledger, Explorer.origins, name_in_path(name), asked.settings, after=asked.after,
            limit=asked.limit,
        )  # fmt: skip
        return replies.data(request, found)

    @router.get(f"{one}/origins.csv", response_class=Response, responses=OF_LEDGER | CSV)
    async def origins_csv(ledger: Ledger, name: Thing, asked: Asked) -> Response:
        """All of a coin's origins as CSV."""
        batches = await answers.batches(ledger, Explorer.origin_batches, name_in_path(name), asked)
        return await replies.csv(batches, f"{ledger}-origins")


def _add_groups(router: APIRouter, answers: Answers) -> None:
    of = "/ledgers/{ledger}"

    async def group(
        kind: models.GroupKind, ledger: str, name: str, asked: PageAsk
    ) -> Answer[models.GroupAnswer]:
        return await answers.ask(
            ledger, Explorer.group, kind, name_in_path(name), asked.settings, after=asked.after,
            limit=asked.limit,
        )  # fmt: skip

    @_get(router, f"{of}/search", models.SearchAnswer)
    async def search(
        request: Request, ledger: Ledger, asked: Annotated[SearchAsk, Query()]
    ) -> Response:
        """Find a coin, transaction, address, account or block by what a person pasted."""
        return replies.data(request, await answers.ask(ledger, Explorer.search, asked.q))

    @_get(router, f"{of}/addresses/{{name}}", models.GroupAnswer)
    async def address(request: Request, ledger: Ledger, name: Thing, asked: Page) -> Response:
        """An address: its coins together and one by one."""
        found = await group("address", ledger, name, asked)
        return replies.data(request, found)

    @_get(router, f"{of}/transactions/{{name}}", models.GroupAnswer)
    async def transaction(request: Request, ledger: Ledger, name: Thing, asked: Page) -> Response:
        """A transaction: what it spends, and the coins it makes."""
        found = await group("transaction", ledger, name, asked)
        return replies.data(request, found)

    @_get(router, f"{of}/blocks/{{name}}", models.GroupAnswer)
    async def block(request: Request, ledger: Ledger, name: Thing, asked: Page) -> Response:
        """A block, by height or hash: the coins it makes."""
        found = await group("block", ledger, name, asked)
        return replies.data(request, found)


def _add_table(router: APIRouter, answers: Answers) -> None:
    of = "/ledgers/{ledger}"

    @_get(router, f"{of}/table", models.TablePage)
    async def table(
        request: Request, ledger: Ledger, asked: Annotated[TableAsk, Query()]
    ) -> Response:
        """Rows of a ledger's table: sorted, filtered, a page at a time."""
        return replies.data(request, await answers.ask(ledger, Explorer.table, asked))

    @router.get(f"{of}/table.csv", response_class=Response, responses=OF_LEDGER | CSV)
    async def table_csv(ledger: Ledger, asked: Annotated[TableAsk, Query()]) -> Response:
        """All rows the filter leaves, as CSV; `after` and `limit` do not count."""
        return await replies.csv(
            await answers.batches(ledger, Explorer.table_batches, asked), f"{ledger}-table"
        )


def _add_asks(router: APIRouter, answers: Answers) -> None:
    @_post(router, "/ledgers/{ledger}/what-if", models.WhatIfAnswer)
    async def what_if(request: Request, ledger: Ledger, asked: WhatIfAsk) -> Response:
        """What spending coins together would do to bits and exposure."""
        return replies.data(request, await answers.ask(ledger, Explorer.what_if, asked))

    @_post(router, "/ledgers/{ledger}/wallet", models.WalletAnswer)
    async def wallet(request: Request, ledger: Ledger, asked: WalletAsk) -> Response:
        """A wallet's coins, what goes with what, and what to spend."""
        return replies.data(request, await answers.ask(ledger, Explorer.wallet, asked))


def _add_jobs(router: APIRouter, answers: Answers) -> None:
    jobs = answers.jobs
    one = "/jobs/{job}"

    @router.get("/jobs", response_model=schema.Jobs, responses=_errors())
    async def all_jobs() -> Response:
        """All jobs, newest first."""
        return replies.plain(schema.Jobs(jobs=jobs.all()))

    @router.post(
        "/jobs", response_model=schema.Job, status_code=202, responses=_errors(404, 409, 422)
    )
    async def begin(asked: JobAsk) -> Response:
        """Open, build and score a ledger, apart."""
        job = answers.prepare(asked)
        return replies.plain(job, status=202, headers={"location": f"{ROOT}/jobs/{job.id}"})

    @router.get(one, response_model=schema.Job, responses=_errors(404))
    async def job(job: JobId) -> Response:
        """How far a job is."""
        return replies.plain(jobs.find(job))

    @router.delete(one, response_model=schema.Job, responses=_errors(404))
    async def cancel(job: JobId) -> Response:
        """Cancel a job; one that has ended stays as it is."""
        return replies.plain(jobs.cancel(job))

    @router.get(f"{one}/result", response_class=Response, responses=_errors(404, 409) | RESULT)
    async def result(job: JobId) -> Response:
        """What a job that is done found."""
        return replies.found(jobs.result(job))


def _get(router: APIRouter, path: str, model: type[Any]) -> Callable[[Route], Route]:
    return router.get(path, response_model=model, responses=OF_LEDGER | LATER)


def _post(router: APIRouter, path: str, model: type[Any]) -> Callable[[Route], Route]:
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
