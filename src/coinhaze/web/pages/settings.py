"""How a page is requested: settings read from its address or form, and links that choose others."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeVar
from urllib.parse import parse_qsl

from fastapi import Request
from pydantic import ValidationError

from coinhaze.explore.describe import TIMES, VIEWS
from coinhaze.explore.models import LedgerCard, ListCard
from coinhaze.explore.query import MAX_COINS, Model, Settings
from coinhaze.observer.policies import POLICIES, needs_list
from coinhaze.options import known
from coinhaze.web.schema import Refused

M = TypeVar("M", bound=Model)
S = TypeVar("S", bound=Settings)
NO_LIST = "none"
BETWEEN = re.compile(r"[\s,]+")


def query_from(request: Request, model: type[M]) -> M:
    """Read settings from an address; what is not among them is left alone."""
    given = {
        key: value
        for key, value in request.query_params.items()
        if key in model.model_fields and value
    }
    fields = {k: (v.split(",") if k == "open" else v) for k, v in given.items()}
    return validated(model, fields)


def query_with_list(request: Request, model: type[S], lists: Sequence[ListCard]) -> S:
    """Read how a coin is looked at: of loaded lists the first is used unless none is.

    People load a list to be warned; they should not have to ask on every page.
    """
    ask = query_from(request, model)
    if ask.list == NO_LIST:
        return ask.model_copy(update={"list": None})
    if ask.list is None:
        return ask.model_copy(update={"list": lists[0].id}) if lists else ask
    if is_changed(ask.list, lists):
        name = ask.list.partition("@")[0]
        now = next(card.id for card in lists if card.name == name)
        return ask.model_copy(update={"list": now})
    return ask


def is_changed(listed: str | None, lists: Sequence[ListCard]) -> bool:
    """Tell whether a list has the name a link gives, but not the digest."""
    name, _, digest = (listed or "").partition("@")
    same = [card for card in lists if card.name == name]
    return bool(same and digest) and not any(card.digest.startswith(digest) for card in same)


def link_with_list(link: str, ask: Settings, lists: Sequence[ListCard]) -> str:
    """Say in a link that no list is wanted, where one would be used.

    >>> card = ListCard(id="x@1", name="x", entries=1, digest="1")
    >>> link_with_list("/l/a/coin/b", Settings(), [card])
    '/l/a/coin/b?list=none'
    """
    if ask.list is not None or not lists:
        return link
    return f"{link}{'&' if '?' in link else '?'}list={NO_LIST}"


def leads_on(card: LedgerCard, ask: Settings) -> bool:
    """Tell whether where money went is known: not of parts, histories, and hidden amounts."""
    known = not (card.source or card.standing or card.hides_amounts)
    return known and POLICIES[ask.policy].shares


def validated(model: type[M], fields: Mapping[str, object]) -> M:
    """Make the query, or refuse it naming the field."""
    try:
        return model(**fields)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        # A pattern is no help to a reader: what was given is.
        fault = f"{first['input']!r} cannot be read" if "pattern" in first["type"] else first["msg"]
        message = f"{where}: {fault}"
        raise Refused("bad-request", message[:300], fix="use the page's own choices") from None


def ties_of(request: Request) -> tuple[str, ...]:
    """Read the coins of a what-if: `with` once or more, commas or spaces between."""
    text = ",".join(request.query_params.getlist("with"))
    names = dict.fromkeys(name for name in BETWEEN.split(text) if name)
    return tuple(names)[:MAX_COINS]


async def form_of(request: Request) -> dict[str, str]:
    """Read a form that was posted."""
    body = (await request.body()).decode("utf-8", "replace")
    return dict(parse_qsl(body, keep_blank_values=True, max_num_fields=100))


Linker = Callable[..., str]


class MenuEntry(NamedTuple):
    """Something that can be chosen; without `href` it cannot be chosen yet."""

    key: str
    words: str
    href: str | None
    on: bool


class Menu(NamedTuple):
    """A choice of one: links, so that it works without script."""

    label: str
    name: str
    help: str  # what the option is for
    choices: list[MenuEntry]

    @property
    def now(self) -> str:
        """What is chosen now."""
        return next((choice.words for choice in self.choices if choice.on), "choose")


def choices_of(
    card: LedgerCard, ask: Settings, used: Settings, lists: Sequence[ListCard], link: Linker
) -> tuple[Menu, list[Menu]]:
    """List the rules, and all else that can be chosen; what a ledger does not offer is left out."""
    rules = []
    names = card.policies or (used.policy,)
    offered = [policy for policy in POLICIES if policy.column in names]
    # Policies that use amounts come first, and those that need a list last.
    for policy in sorted(offered, key=lambda p: (p.needs_list, "amounts" not in p.needs)):
        changes: dict[str, object] = {"policy": policy.column, "open": ()}
        href: str | None = None
        if lists or not policy.needs_list or ask.list is not None:
            if policy.needs_list and ask.list is None:  # it has no meaning without a list
                changes["list"] = lists[0].id
            href = link(**changes)
        rules.append(MenuEntry(policy.column, policy.label, href, used.policy == policy.column))
    menus = [
        _menu("Nodes are", "view", card.views, VIEWS, used.view, link),
        # Coins have no balances over time: there the choice means nothing.
        _menu("Time", "time", card.times if used.time else (), TIMES, used.time, link),
        Menu("Exposure to", "list", "", _lists(lists, used, link)),
    ]
    first = Menu("Follow value by", "policy", known("policy").help, rules)
    return first, [menu for menu in menus if menu.choices]


def _menu(
    label: str,
    name: str,
    options: Sequence[str],
    words: dict[str, str],
    used: str | None,
    link: Linker,
) -> Menu:
    choices = []
    for k, option in enumerate(options if len(options) > 1 else ()):
        # The ledger's own default is left out of links.
        href = link(**{name: None if k == 0 else option, "open": ()})
        choices.append(MenuEntry(option, words.get(option, option), href, option == used))
    return Menu(label, name, known(name).help, choices)


def _lists(lists: Sequence[ListCard], used: Settings, link: Linker) -> list[MenuEntry]:
    if not lists:
        return []
    current = (used.list or "").partition("@")[0]
    found = []
    if not needs_list(used.policy):
        found.append(MenuEntry("none", "none", link(list=None, open=()), not current))
    for each in lists:
        words = f"{each.name} ({each.entries:,})"
        href = link(list=each.id, open=())
        found.append(MenuEntry(each.id, words, href, each.name == current))
    return found
