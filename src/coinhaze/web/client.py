"""A client of the API: typed answers, pages followed, jobs waited for.

with Client("http://127.0.0.1:8000", token=token) as client:
    print(client.coin("week", "ab...:0").bits)
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any, TypeVar, Unpack
from urllib.parse import parse_qsl, quote, urlsplit

import httpx2
from pydantic import BaseModel

from coinhaze.errors import (
    CoinhazeError,
    InputError,
    ResourceError,
    SourceUnreachable,
    UnknownName,
    UsageError,
)
from coinhaze.explore import models
from coinhaze.explore.query import (
    CoinKeywords,
    CoinQuery,
    CompareQuery,
    JobQuery,
    PageKeywords,
    PageQuery,
    ScreenKeywords,
    ScreenQuery,
    SearchQuery,
    Settings,
    SettingsKeywords,
    SharedQuery,
    TableKeywords,
    TableQuery,
    WalkQuery,
    WalletKeywords,
    WalletQuery,
    WhatIfQuery,
    name_for_path,
)
from coinhaze.web import schema
from coinhaze.web.security.codes import ENTER

ROOT = "/api/v1"
BETWEEN_LOOKS = 0.2  # seconds, at a job
M = TypeVar("M", bound=BaseModel)
_KINDS: dict[int, type[CoinhazeError]] = {
    404: UnknownName, 409: ResourceError, 413: UsageError, 422: UsageError, 429: ResourceError,
    503: ResourceError,
}  # fmt: skip


class Client:
    """A server's answers. What it refuses is raised as the library would; jobs are waited for.

    `address` is the server's, or the one `coinhaze serve` printed: its code opens once, and is
    given for the token with the first request. `timeout` is for one answer on the wire, in
    seconds; `patience` for a job, None without end.

    >>> Client("http://127.0.0.1:8000/?code=abc")
    Client('http://127.0.0.1:8000')
    """

    def __init__(
        self,
        address: str,
        *,
        token: str | None = None,
        timeout: float = 30.0,
        patience: float | None = None,
        transport: httpx2.BaseTransport | None = None,
    ) -> None:
        parts = urlsplit(address)
        given = dict(parse_qsl(parts.query))
        token = token or given.get("token")
        self._code = None if token else given.get("code")
        if token is None and self._code is None:
            raise UsageError(
                "a client needs the server's token: token=, or the address the server printed"
            )
        self.server = f"{parts.scheme}://{parts.netloc}"
        self.patience = patience
        self._http = httpx2.Client(
            base_url=self.server + ROOT,
            headers={"authorization": f"Bearer {token}"} if token else {},
            timeout=timeout,
            follow_redirects=False,  # the token goes to this address and no other
            trust_env=False,
            transport=transport,
        )

    def __repr__(self) -> str:
        return f"Client({self.server!r})"  # never the token

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def ledgers(self) -> tuple[models.LedgerCard, ...]:
        """Give all ledgers being served."""
        return self._get("/ledgers", models.Ledgers).ledgers

    def lists(self) -> tuple[models.ListCard, ...]:
        """Give the loaded lists."""
        return self._get("/lists", models.Lists).lists

    def ledger(self, ledger: str, **settings: Unpack[SettingsKeywords]) -> models.LedgerPage:
        """Give a ledger's summary and histogram."""
        return self._get(_of(ledger), models.LedgerPage, Settings(**settings))

    def histogram(self, ledger: str, **settings: Unpack[SettingsKeywords]) -> models.Histogram:
        """Give a ledger's coins by bits."""
        return self._get(_of(ledger, "histogram"), models.Histogram, Settings(**settings))

    def density(self, ledger: str, **settings: Unpack[SettingsKeywords]) -> models.Density:
        """Give a ledger's coins by bits and steps."""
        return self._get(_of(ledger, "density"), models.Density, Settings(**settings))

    def compare(
        self, ledgers: Sequence[str], **settings: Unpack[SettingsKeywords]
    ) -> models.Comparison:
        """Give up to five ledgers side by side."""
        return self._get(
            "/compare", models.Comparison, CompareQuery(l=",".join(ledgers), **settings)
        )

    def search(self, ledger: str, query: str) -> models.SearchAnswer:
        """Find what a person pasted."""
        return self._get(_of(ledger, "search"), models.SearchAnswer, SearchQuery(q=query))

    def coin(self, ledger: str, name: str, **settings: Unpack[CoinKeywords]) -> models.CoinAnswer:
        """Give where a coin's money came from; see `CoinQuery` for the options."""
        return self._get(_of(ledger, "coins", name), models.CoinAnswer, CoinQuery(**settings))

    def comparators(
        self, ledger: str, name: str, **settings: Unpack[SettingsKeywords]
    ) -> models.Comparators:
        """Give a coin under other rules and measures."""
        path = _of(ledger, "coins", name, "comparators")
        return self._get(path, models.Comparators, Settings(**settings))

    def shared(
        self, ledger: str, name: str, other: str, **settings: Unpack[SettingsKeywords]
    ) -> models.SharedAnswer:
        """Give what a coin has in common with another one."""
        path = _of(ledger, "coins", name, "shared")
        return self._get(path, models.SharedAnswer, SharedQuery(other=other, **settings))

    def destinations(
        self, ledger: str, name: str, **settings: Unpack[CoinKeywords]
    ) -> models.DestinationsAnswer:
        """Say where the money that a coin, account, address or transaction had went."""
        path = _of(ledger, "coins", name, "destinations")
        return self._get(path, models.DestinationsAnswer, CoinQuery(**settings))

    def origins(
        self, ledger: str, name: str, **settings: Unpack[PageKeywords]
    ) -> Iterator[models.Origin]:
        """Give all of a coin's origins, largest first, page after page."""
        path = _of(ledger, "coins", name, "origins")
        ask = PageQuery(**settings)
        while True:
            page = self._get(path, models.OriginsPage, ask)
            yield from page.rows
            if page.after is None:
                return
            ask = ask.model_copy(update={"after": page.after})

    def address(
        self, ledger: str, name: str, **settings: Unpack[PageKeywords]
    ) -> models.GroupAnswer:
        """Give an address and its coins."""
        return self._get(_of(ledger, "addresses", name), models.GroupAnswer, PageQuery(**settings))

    def transaction(
        self, ledger: str, name: str, **settings: Unpack[PageKeywords]
    ) -> models.GroupAnswer:
        """Give a transaction and its coins."""
        return self._get(
            _of(ledger, "transactions", name), models.GroupAnswer, PageQuery(**settings)
        )

    def block(self, ledger: str, name: str, **settings: Unpack[PageKeywords]) -> models.GroupAnswer:
        """Give a block and its coins."""
        return self._get(_of(ledger, "blocks", name), models.GroupAnswer, PageQuery(**settings))

    def table(self, ledger: str, **settings: Unpack[TableKeywords]) -> Iterator[models.TableRow]:
        """Give all rows of a ledger's table that a filter leaves, page after page."""
        ask = TableQuery(**settings)
        while True:
            page = self._get(_of(ledger, "table"), models.TablePage, ask)
            yield from page.rows
            if page.after is None:
                return
            ask = ask.model_copy(update={"after": page.after})

    def what_if(
        self, ledger: str, coins: Sequence[str], **settings: Unpack[SettingsKeywords]
    ) -> models.WhatIfAnswer:
        """Say what spending coins together would do."""
        ask = WhatIfQuery(coins=tuple(coins), **settings)
        return self._post(_of(ledger, "what-if"), models.WhatIfAnswer, ask)

    def wallet(
        self, ledger: str, coins: str, **settings: Unpack[WalletKeywords]
    ) -> models.WalletAnswer:
        """Weigh a wallet: coins as text, one per line."""
        ask = WalletQuery(coins=coins, **settings)
        return self._post(_of(ledger, "wallet"), models.WalletAnswer, ask)

    def screen(self, ledger: str, **settings: Unpack[ScreenKeywords]) -> models.ScreenAnswer:
        """Screen nodes against a list that is loaded, or against names as text, one per line."""
        return self._post(_of(ledger, "screen"), models.ScreenAnswer, ScreenQuery(**settings))

    def walk(self, ledger: str, *coins: str, accuracy: float = 0.1) -> models.WalkAnswer:
        """Walk coins back over the node or server that is served; asking again goes further."""
        ask = WalkQuery(coins=coins, accuracy=accuracy)
        return self._post(_of(ledger, "walk"), models.WalkAnswer, ask)

    def jobs(self) -> tuple[schema.Job, ...]:
        """Give all jobs, newest first."""
        return self._get("/jobs", schema.Jobs).jobs

    def score(self, ledger: str, **settings: Unpack[SettingsKeywords]) -> schema.Job:
        """Begin to open, build and score a ledger."""
        ask = JobQuery(ledger=ledger, settings=Settings(**settings))
        return schema.Job.model_validate_json(self._send("POST", "/jobs", ask).content)

    def job(self, job: str | schema.Job) -> schema.Job:
        """Look at a job."""
        return self._get(f"/jobs/{_id(job)}", schema.Job)

    def cancel(self, job: str | schema.Job) -> schema.Job:
        """Cancel a job."""
        return schema.Job.model_validate_json(self._send("DELETE", f"/jobs/{_id(job)}").content)

    def wait(self, job: str | schema.Job) -> schema.Job:
        """Wait until a job has ended well; raise what it met if it did not."""
        began = time.monotonic()
        while True:
            now = self.job(job)
            if now.state == "done":
                return now
            if now.state in ("failed", "cancelled"):
                why = now.error.message if now.error else now.state
                raise ResourceError(f"{now.words}: {why}")
            if self.patience is not None and time.monotonic() - began > self.patience:
                raise ResourceError(f"{now.words}: not done within {self.patience:g} s")
            time.sleep(BETWEEN_LOOKS)

    def _get(self, path: str, model: type[M], ask: BaseModel | None = None) -> M:
        return self._answer(self._send("GET", path, ask), model)

    def _post(self, path: str, model: type[M], ask: BaseModel) -> M:
        return self._answer(self._send("POST", path, ask), model)

    def _answer(self, response: httpx2.Response, model: type[M]) -> M:
        if response.status_code == 202:
            job = self.wait(schema.Job.model_validate_json(response.content))
            response = self._send("GET", f"/jobs/{job.id}/result")
        return model.model_validate_json(response.content)

    def _send(self, method: str, path: str, ask: BaseModel | None = None) -> httpx2.Response:
        given: dict[str, Any] = {}
        if ask is not None and method == "GET":
            given["params"] = {
                name: ",".join(value) if isinstance(value, tuple) else value
                for name, value in ask.model_dump(exclude_none=True).items()
                if value != ()
            }
        elif ask is not None:
            given["content"] = ask.model_dump_json()
            given["headers"] = {"content-type": "application/json"}
        if self._code is not None:
            self._enter(self._code)
        return self._request(method, path, given)

    def _enter(self, code: str) -> None:
        """Give the code of an address for the token."""
        found = self._request("POST", self.server + ENTER, {"json": {"code": code}})
        self._http.headers["authorization"] = f"Bearer {found.json()['token']}"
        self._code = None

    def _request(self, method: str, path: str, given: dict[str, Any]) -> httpx2.Response:
        try:
            response = self._http.request(method, path, **given)
        except httpx2.HTTPError as error:
            what = type(error).__name__
            raise SourceUnreachable(f"{self.server}: {what}; does it run?") from None
        if response.status_code >= 400:
            raise _raised(response)
        return response


def _raised(response: httpx2.Response) -> CoinhazeError:
    """Say a refusal as an error of the library."""
    try:
        problem = schema.ErrorAnswer.model_validate_json(response.content).error
    except ValueError:
        return SourceUnreachable(f"{response.status_code} from what is no coinhaze server")
    kind = _KINDS.get(response.status_code, InputError)
    return kind(f"{problem.message} ({problem.code}: {problem.fix})")


def _of(ledger: str, *parts: str) -> str:
    return "/ledgers/" + "/".join(quote(name_for_path(part), safe="") for part in (ledger, *parts))


def _id(job: str | schema.Job) -> str:
    return quote(job if isinstance(job, str) else job.id, safe="")
