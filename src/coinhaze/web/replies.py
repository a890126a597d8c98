"""Answers on the wire: JSON, pages, CSV; tagged, so that what a browser has is not sent again."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from typing import Annotated, Any

import pyarrow as pa
import pyarrow.csv
from fastapi import Depends, Request, Response
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from coinhaze.explore.models import StatementFile
from coinhaze.explore.query import Model
from coinhaze.report.files import for_spreadsheets
from coinhaze.web.answers import Answer, Answers

HTML = "text/html; charset=utf-8"
_CACHED = "private, no-cache"  # keep it, but ask each time whether it still holds


async def _answers(request: Request) -> Answers:
    found: Answers = request.app.state.answers
    return found


Served = Annotated[Answers, Depends(_answers)]  # what routes take their answers from


def data(request: Request, answer: Answer[Any]) -> Response:
    """Send an answer as JSON, or say that the asker has it already."""
    return tagged(request, answer.tag, answer.body, "application/json")


def plain(model: Model, *, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Send what changes all the time: nobody keeps it."""
    body = model.model_dump_json()
    return Response(body, status, media_type="application/json", headers=headers)


def page(text: str, status: int = 200) -> Response:
    """Send a page that nobody keeps."""
    return Response(text, status, media_type=HTML)


def file(found: StatementFile) -> Response:
    """Send a file to be saved, not shown."""
    disposition = f'attachment; filename="{found.name}"'
    return Response(
        found.text, media_type=found.media, headers={"content-disposition": disposition}
    )


def found(result: object) -> Response:
    """Send what a job found: an answer's bytes, or nothing where it has none."""
    if isinstance(result, Answer):
        return Response(result.body, media_type="application/json")
    return Response(status_code=204)


def tagged(request: Request, tag: str, body: bytes | None, media: str) -> Response:
    """Send bytes under a tag, or 304 where the asker names the tag."""
    if not tag:
        return Response(body, media_type=media)
    headers = {"etag": f'"{tag}"', "cache-control": _CACHED}
    if has(request, tag):
        return Response(status_code=304, headers=headers)
    return Response(body, media_type=media, headers=headers)


def has(request: Request, tag: str) -> bool:
    """Tell whether the asker has what goes by a tag already."""
    return bool(tag) and is_named(tag, request.headers.get("if-none-match", ""))


def is_named(tag: str, given: str) -> bool:
    """Tell whether `If-None-Match` names a tag.

    >>> is_named("a1", 'W/"a0", "a1"'), is_named("a1", "*"), is_named("a1", "a1")
    (True, True, False)
    """
    names = [name.strip().removeprefix("W/") for name in given.split(",")]
    return "*" in names or f'"{tag}"' in names


async def csv(batches: Iterator[pa.RecordBatch], name: str) -> Response:
    """Send columns as CSV, piece by piece; no name in it can be taken for a formula."""
    pieces = _pieces(batches)
    first = await run_in_threadpool(next, pieces, b"")  # what fails at once is refused, not cut off

    def all_() -> Iterator[bytes]:
        yield first
        yield from pieces

    disposition = f'attachment; filename="{name}.csv"'
    return StreamingResponse(
        all_(), media_type="text/csv; charset=utf-8", headers={"content-disposition": disposition}
    )


def _pieces(batches: Iterator[pa.RecordBatch]) -> Iterator[bytes]:
    for k, batch in enumerate(batches):
        sink = BytesIO()
        options = pa.csv.WriteOptions(include_header=k == 0)
        pa.csv.write_csv(for_spreadsheets(pa.Table.from_batches([batch])), sink, options)
        yield sink.getvalue()
