"""What a page's address and form ask for; empty fields, as plain forms send them, ask nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TypeVar
from urllib.parse import parse_qsl

from fastapi import Request
from pydantic import ValidationError

from coinhaze.explore.models import ListCard
from coinhaze.explore.query import MOST_COINS, Model, Settings
from coinhaze.web.problems import Refused

M = TypeVar("M", bound=Model)
S = TypeVar("S", bound=Settings)
NO_LIST = "none"
BETWEEN = re.compile(r"[\s,]+")


def asked(request: Request, model: type[M]) -> M:
    """Read settings from an address; what is not among them is left alone."""
    given = {
        key: value
        for key, value in request.query_params.items()
        if key in model.model_fields and value
    }
    fields = {k: (v.split(",") if k == "open" else v) for k, v in given.items()}
    return made(model, fields)


def looked(request: Request, model: type[S], lists: Sequence[ListCard]) -> S:
    """Read how a coin is looked at: where lists are loaded, the first is asked unless told not to.

    People load a list to be warned; they should not have to ask on every page.
    """
    ask = asked(request, model)
    if ask.list == NO_LIST:
        return ask.model_copy(update={"list": None})
    if ask.list is None:
        return ask.model_copy(update={"list": lists[0].id}) if lists else ask
    if is_changed(ask.list, lists):
        name = ask.list.partition("@")[0]
        now = next(card.id for card in lists if card.name == name)
        return ask.model_copy(update={"list": now})
    return ask


def is_changed(asked_list: str | None, lists: Sequence[ListCard]) -> bool:
    """Tell whether a list has the name a link gives, but not the digest."""
    name, _, digest = (asked_list or "").partition("@")
    same = [card for card in lists if card.name == name]
    return bool(same and digest) and not any(card.digest.startswith(digest) for card in same)


def look_link(link: str, ask: Settings, lists: Sequence[ListCard]) -> str:
    """Say in a link that no list is wanted, where one would be asked.

    >>> look_link("/l/a/coin/b", Settings(), [ListCard(id="x@1", name="x", entries=1, digest="1")])
    '/l/a/coin/b?list=none'
    """
    if ask.list is not None or not lists:
        return link
    return f"{link}{'&' if '?' in link else '?'}list={NO_LIST}"


def made(model: type[M], fields: Mapping[str, object]) -> M:
    """Make what is asked, or refuse it naming the field."""
    try:
        return model(**fields)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        message = f"{where}: {first['msg']}"
        raise Refused("bad-request", message[:300], fix="use the page's own choices") from None


def ties_of(request: Request) -> tuple[str, ...]:
    """Read the coins of a what-if: `with` once or more, commas or spaces between."""
    text = ",".join(request.query_params.getlist("with"))
    names = dict.fromkeys(name for name in BETWEEN.split(text) if name)
    return tuple(names)[:MOST_COINS]


async def form_of(request: Request) -> dict[str, str]:
    """Read a form that was posted."""
    body = (await request.body()).decode("utf-8", "replace")
    return dict(parse_qsl(body, keep_blank_values=True, max_num_fields=100))
