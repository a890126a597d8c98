"""Asking an ASGI app, as httpx does it, without a socket."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import httpx2

from coinhaze.web.answers import Answers
from coinhaze.web.app import guarded
from coinhaze.web.jobs import JobQueue
from coinhaze.web.security.guard import Guard, Limits
from coinhaze.web.security.headers import Hosts
from web.made import MadeRegistry

TOKEN = "t0ken-of-43-letters-as-the-server-makes-them-"
BASE = "http://127.0.0.1:8000"
BEARER = {"authorization": f"Bearer {TOKEN}"}
T = TypeVar("T")


def made_app(
    registry: MadeRegistry | None = None, *, patience: float = 5.0, queued: int = 64, **limits: Any
) -> Guard:
    answers = Answers(registry or MadeRegistry(), jobs=JobQueue(patience=patience, queued=queued))
    return guarded(answers, token=TOKEN, hosts=Hosts(), limits=Limits(**limits))


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


def run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)
