"""The app: pages and API behind the guard."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from starlette.exceptions import HTTPException
from starlette.staticfiles import StaticFiles

from coinhaze import __version__
from coinhaze.errors import CoinhazeError
from coinhaze.web import api
from coinhaze.web.answers import Answers
from coinhaze.web.jobs import BUG
from coinhaze.web.pages import forms, routes
from coinhaze.web.pages.render import problem_page, working_page
from coinhaze.web.registry import LedgerRegistry
from coinhaze.web.schema import Refused, StillWorking, refusal_of
from coinhaze.web.security.guard import Guard, Limits
from coinhaze.web.security.headers import Hosts

STATIC = Path(__file__).with_name("static")
# Newer FastAPI can report requests to wherever the environment says. Nothing leaves this machine.
_SILENT: Any = dict.fromkeys(
    ("tracing", "metrics", "logs", "operation_spans", "auto_configure"), False
)
_log = logging.getLogger("coinhaze.web")


def make_app(
    served: LedgerRegistry | Answers,
    *,
    token: str,
    hosts: Hosts | None = None,
    limits: Limits | None = None,
) -> Guard:
    """Make the ASGI app that serves ledgers to those who have the token."""
    answers = served if isinstance(served, Answers) else Answers(served)
    inner = make_inner(answers)
    return Guard(inner, token=token, hosts=hosts or Hosts(), limits=limits, show=problem_page)


def make_inner(answers: Answers) -> FastAPI:
    """Make the app without its guard."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> Any:
        yield
        answers.jobs.close()

    app = FastAPI(
        title="coinhaze",
        version=__version__,
        description="How many bits an observer lacks to tell where a coin's money came from.",
        openapi_url=f"{api.ROOT}/openapi.json",
        docs_url=None,  # these pages would load scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,
        telemetry=_SILENT,
        lifespan=lifespan,
    )
    app.state.answers = answers
    # As they are: included routers would build every route anew at an app's first request.
    app.router.routes += [*api.router.routes, *routes.router.routes, *forms.router.routes]
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    app.openapi = lambda: document(app)  # type: ignore[method-assign]
    for kind, handle in _HANDLERS.items():
        app.add_exception_handler(kind, handle)
    return app


def document(app: FastAPI) -> dict[str, Any]:
    """Return the API's document (OpenAPI), made once: routes, and how the token is sent."""
    if app.openapi_schema is None:
        found = get_openapi(
            title=app.title, version=app.version, description=app.description, routes=app.routes
        )
        parts = found.setdefault("components", {})
        parts["securitySchemes"] = {
            "token": {"type": "http", "scheme": "bearer"},
        }
        found["security"] = [{"token": []}]
        # Requests that break the contract get 400 with a problem, not FastAPI's own answer.
        for name in ("HTTPValidationError", "ValidationError"):
            parts.get("schemas", {}).pop(name, None)
        for operations in found["paths"].values():
            for operation in operations.values():
                if "HTTPValidationError" in str(operation["responses"].get("422")):
                    del operation["responses"]["422"]
        app.openapi_schema = found
    return app.openapi_schema


def _refused(request: Request, refused: Refused) -> Response:
    headers = refused.headers
    if request.url.path.startswith("/api"):
        return Response(refused.body, refused.status, headers, "application/json")
    page = problem_page(refused, _ledger_of(request) if refused.problem.code in STATES else None)
    return Response(page, refused.status, headers, "text/html")


STATES = ("not-scored", "loading")  # of ledgers that a person can do something about


def _ledger_of(request: Request) -> str | None:
    """Give the ledger that a page is of."""
    parts = request.url.path.split("/")
    return parts[2] if len(parts) > 2 and parts[1] == "l" else None


async def _refusal(request: Request, error: Any) -> Response:
    return _refused(request, error)


async def _still_working(request: Request, error: Any) -> Response:
    job = error.job
    headers = {"location": f"{api.ROOT}/jobs/{job.id}", "retry-after": "1"}
    if request.url.path.startswith("/api"):
        return Response(job.model_dump_json(), 202, headers, "application/json")
    return Response(working_page(job), 202, {"retry-after": "1"}, "text/html")


async def _known(request: Request, error: Any) -> Response:
    return _refused(request, refusal_of(error))


async def _invalid(request: Request, error: Any) -> Response:
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    message = f"{where}: {first['msg']}"
    return _refused(request, Refused("bad-request", message[:500], fix="see the API's document"))


async def _http(request: Request, error: Any) -> Response:
    if error.status_code == 405:
        refused = Refused(
            "wrong-method", f"not {request.method} here", fix="see the API's document"
        )
        response = _refused(request, refused)
        response.headers["allow"] = (error.headers or {}).get("allow", "GET")
        return response
    if error.status_code == 404:
        fix = "begin at /, or at /api/v1/ledgers"
        return _refused(request, Refused("unknown-address", "nothing is at this address", fix=fix))
    return _refused(request, Refused("bad-request", str(error.detail)[:500], fix="ask otherwise"))


async def _bug(request: Request, error: Any) -> Response:
    # The path alone: a query may hold what is nobody's business, and no header is ever logged.
    _log.error("%s %s", request.method, request.url.path, exc_info=error)
    return _refused(request, Refused(BUG.code, BUG.message, fix=BUG.fix))


_HANDLERS: dict[type[Exception], Callable[[Request, Any], Awaitable[Response]]] = {
    Refused: _refusal,
    StillWorking: _still_working,
    CoinhazeError: _known,
    RequestValidationError: _invalid,
    HTTPException: _http,
    Exception: _bug,
}
