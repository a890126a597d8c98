"""Asking an ASGI app, as httpx does it, without a socket."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import httpx2

from coinhaze.web.answers import Answers
from coinhaze.web.app import make_app
from coinhaze.web.jobs import JobQueue
from coinhaze.web.registry import LedgerRegistry
from coinhaze.web.security.guard import Guard, Limits
from coinhaze.web.security.headers import Hosts
from web.made import MadeRegistry

TOKEN = "t0ken-of-43-letters-as-the-server-makes-them-"
BASE = "http://127.0.0.1:8000"
BEARER = {"authorization": f"Bearer {TOKEN}"}
T = TypeVar("T")
PATIENCE = 600.0  # seconds until an answer is a job: none is, also where kernels are compiled first


def made_app(
    registry: LedgerRegistry | None = None,
    *,
    patience: float = PATIENCE,
    queued: int = 64,
    **limits: Any,
) -> Guard:
    answers = Answers(registry or MadeRegistry(), jobs=JobQueue(patience=patience, queued=queued))
    return make_app(answers, token=TOKEN, hosts=Hosts(), limits=Limits(**limits))


def client_of(app: Guard, **settings: Any) -> httpx2.AsyncClient:
    transport = httpx2.ASGITransport(app=app, raise_app_exceptions=False)
    return httpx2.AsyncClient(transport=transport, base_url=BASE, **settings)


def ask(
    app: Guard, path: str, *, method: str = "GET", token: bool = True, **more: Any
) -> httpx2.Response:
    """Send one request with the token, or without."""
    headers = {**(BEARER if token else {}), **more.pop("headers", {})}

    async def one() -> httpx2.Response:
        async with client_of(app) as client:
            return await client.request(method, path, headers=headers, **more)

    return asyncio.run(one())


def answered(send: Callable[[], httpx2.Response]) -> httpx2.Response:
    """Send a request again until no job works on its answer any more."""
    until = time.monotonic() + PATIENCE
    while (found := send()).status_code == 202 and time.monotonic() < until:
        time.sleep(0.05)
    return found


def run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)
