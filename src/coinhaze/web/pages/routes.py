"""The addresses of all pages; each asks what the API asks, and draws it."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import Any, TypeVar

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response
from starlette.concurrency import run_in_threadpool

from coinhaze.errors import InputError
from coinhaze.explore.explorer import Explorer
from coinhaze.explore.models import (
    Comparators,
    DestinationsAnswer,
    GroupAnswer,
    GroupKind,
    Histogram,
    Hit,
    LedgerCard,
    TableRow,
    WhatIfAnswer,
)
from coinhaze.explore.query import (
    CoinQuery,
    CompareQuery,
    JobQuery,
    Model,
    PageQuery,
    Settings,
    SharedQuery,
    TableQuery,
    WhatIfQuery,
    api_link,
    name_in_path,
    thing_data_link,
    thing_link,
)
from coinhaze.explore.search import taken_out
from coinhaze.explore.walked import coin_of, is_walkable
from coinhaze.wallet.walk_back import ACCURACY
from coinhaze.web import replies
from coinhaze.web.answers import Answer, Answers
from coinhaze.web.pages.coin import CoinView, coin_page
from coinhaze.web.pages.coin_facts import comparators_page, shared_page
from coinhaze.web.pages.coin_sets import MANY as MANY_OF
from coinhaze.web.pages.coin_sets import group_page
from coinhaze.web.pages.destinations import DestinationsView, destinations_page
from coinhaze.web.pages.ledger import (
    compare_page,
    ledger_page,
    like_with_like,
    start_page,
    table_page,
)
from coinhaze.web.pages.render import render
from coinhaze.web.pages.settings import (
    form_of,
    is_changed,
    query_from,
    query_with_list,
    ties_of,
    validated,
)
from coinhaze.web.replies import Served
from coinhaze.web.schema import Problem, Refused, StillWorking, refusal_of

MANY = 200_000  # coins of a ledger
OFFERED = 8  # coins of the same address that a what-if offers
EXAMPLES = 3
_THINGS: dict[str, GroupKind] = {"address": "address", "tx": "transaction", "block": "block"}

M = TypeVar("M", bound=Model)

router = APIRouter(include_in_schema=False)


def _cached(
    request: Request, answers: Answers, answer: Answer[Any], key: Hashable
) -> Response | None:
    """Send the page that was made of an answer before, or say that the browser has it."""
    tag = _tag(answer, key)
    page = answers.cache.get(tag) if tag else None
    body = page if isinstance(page, bytes) else None
    if body is None and not replies.has(request, tag):
        return None
    return replies.tagged(request, tag, body, replies.HTML)


async def drawn(
    request: Request, answers: Answers, answer: Answer[M], key: Hashable, draw: Callable[[M], str]
) -> Response:
    """Send a page made of an answer; it is made once, apart from the loop, and then cached."""
    sent = _cached(request, answers, answer, key)
    if sent is not None:
        return sent
    tag = _tag(answer, key)
    page = (await run_in_threadpool(draw, answer.model)).encode()
    if tag:
        answers.cache.put(tag, page)
    return replies.tagged(request, tag, page, replies.HTML)


def _tag(answer: Answer[Any], key: Hashable) -> str:
    return f"{answer.tag}-{zlib.crc32(repr(key).encode()):08x}" if answer.tag else ""


@router.get("/")
async def start(answers: Served) -> Response:
    """Show the first page."""
    cards = answers.ledgers().ledgers
    examples = await _examples(answers, cards)
    first = next((card for card in cards if card.state == "ready"), None)
    return replies.page(start_page(cards, examples, first))


@router.get("/search")
async def search(answers: Served, request: Request) -> Response:
    """Search one ledger, or all."""
    query = request.query_params.get("q", "").strip()
    ledger = request.query_params.get("l", "")
    return await _search(answers, query, ledger)


@router.get("/compare")
async def compare(answers: Served, request: Request) -> Response:
    """Compare ledgers."""
    cards = answers.ledgers().ledgers
    given = ",".join(request.query_params.getlist("l"))
    chosen = ",".join(dict.fromkeys(name for name in given.split(",") if name))
    found = None
    if chosen:
        fields = {"l": chosen, **query_from(request, Settings).model_dump()}
        names = chosen.split(",")
        open_time = fields["time"] is None
        if open_time and like_with_like([card for card in cards if card.id in names]):
            fields["time"] = "temporal"
        found = (await answers.compare(validated(CompareQuery, fields))).model
        # What a ledger is, is known once it was read, perhaps for this comparison.
        if open_time and not fields["time"] and like_with_like([c.card for c in found.curves]):
            fields["time"] = "temporal"
            found = (await answers.compare(validated(CompareQuery, fields))).model
    return replies.page(compare_page(found, cards))


@router.get("/compare.json")
async def compare_json(answers: Served, request: Request) -> Response:
    """Lead to the data of a comparison."""
    return RedirectResponse(f"/api/v1/compare?{request.url.query}", 307)


async def _examples(answers: Answers, cards: tuple[LedgerCard, ...]) -> list[TableRow]:
    """Pick the coin with most bits, one with fewest, and one between, of the first ledger."""
    ready = next((card for card in cards if card.state == "ready"), None)
    if ready is None:
        return []
    try:
        page = (await answers.ledger(ready.id, Settings())).model
    except (Refused, StillWorking):
        return []
    rows = [*page.most[:1], *page.most[len(page.most) // 2 :][:1], *page.fewest[:1]]
    seen: dict[str, TableRow] = {row.name: row for row in rows}
    return list(seen.values())[:EXAMPLES]


async def _search(answers: Answers, query: str, ledger: str) -> Response:
    cards = answers.ledgers().ledgers
    card = next((c for c in cards if c.id == ledger), None)
    if not query:
        why = "Nothing was pasted."
        return replies.page(
            render(
                "nothing.html", "Search", card=card, why=why, searched=(), others=(), sources=()
            ),
            404,
        )
    hits: list[Hit] = []
    notes: list[str] = []
    more = False
    ready = [c for c in cards if c.state == "ready"]
    searched = [card] if card is not None else ready
    for one in searched:
        try:
            found = (await answers.ask(one.id, Explorer.search, query)).model
        except Refused as refused:
            notes.append(f"{refused.problem.message}; {refused.problem.fix}")
            continue
        hits += found.hits
        more = more or found.more
        notes += [found.note] if found.note else [] if found.hits else [found.understood]
    if len(hits) == 1 and not more:
        return RedirectResponse(hits[0].href, 303)
    if not hits:
        name = taken_out(query)
        sources = [c for c in cards if c.source is not None and card in (None, c)]
        walkable = name if is_walkable(name) else None
        why = " ".join(dict.fromkeys(notes)) or "No ledger is ready to be searched."
        others = [c for c in ready if c not in searched]
        page = render(
            "nothing.html", "Nothing found", card=card, query=query, why=why, searched=searched,
            others=others, walkable=walkable, sources=sources,
        )  # fmt: skip
        return replies.page(page, 404)
    said = tuple(dict.fromkeys(notes))
    return replies.page(
        render("found.html", "Found", card=card, query=query, hits=hits, notes=said, more=more)
    )


@router.get("/l/{ledger}")
async def ledger(answers: Served, request: Request, ledger: str) -> Response:
    """Show a ledger."""
    if ledger.endswith(".json"):
        return RedirectResponse(api_link(f"/ledgers/{ledger[:-5]}"), 307)
    ask = query_from(request, Settings)
    found = await answers.ledger(ledger, ask)
    changed = answers.card(ledger).changed
    sent = _cached(request, answers, found, changed)
    if sent is not None:
        return sent
    density, summary = None, found.model.summary
    if summary is not None and summary.scored:
        density = (await answers.ask(ledger, Explorer.density, ask)).model
    return await drawn(request, answers, found, changed, lambda page: ledger_page(page, density))


@router.get("/l/{ledger}/table")
async def table(answers: Served, request: Request, ledger: str) -> Response:
    """Show a page of a ledger's table."""
    ask = query_from(request, TableQuery)
    found = await answers.ask(ledger, Explorer.table, ask)
    card = answers.card(ledger)
    return await drawn(request, answers, found, "page", lambda page: table_page(page, card))


@router.get("/l/{ledger}/table.{kind}")
async def table_data(answers: Served, request: Request, ledger: str, kind: str) -> Response:
    """Lead to the data of a table."""
    suffix = ".csv" if kind == "csv" else ""
    to = api_link(f"/ledgers/{ledger}/table{suffix}", query_from(request, TableQuery))
    return RedirectResponse(to, 307)


@router.post("/l/{ledger}/score")
async def score(answers: Served, ledger: str) -> Response:
    """Begin to score a ledger."""
    job = answers.prepare(validated(JobQuery, {"ledger": ledger}))
    return RedirectResponse(f"/jobs#{job.id}", 303)


@router.post("/l/{ledger}/walk")
async def walk(answers: Served, request: Request, ledger: str) -> Response:
    """Walk a coin or transaction back over a node or server, and show it."""
    given = await form_of(request)
    text = given.get("coin", "").strip()
    try:
        one = coin_of(text)
    except InputError as error:
        raise refusal_of(error) from None
    name = one.coin or ""
    txid = taken_out(text)
    page = thing_link(ledger, "tx", txid) if ":" not in txid else thing_link(ledger, "coin", name)
    await answers.walk(ledger, [one], page=page, accuracy=0.0 if given.get("further") else ACCURACY)
    return RedirectResponse(page, 303)


@router.get("/l/{ledger}/coin/{name}")
async def coin(answers: Served, request: Request, ledger: str, name: str) -> Response:
    """Show a coin."""
    name = name_in_path(name)
    lists = answers.lists().lists
    ask = query_with_list(request, CoinQuery, lists)
    if name.endswith(".json"):
        return RedirectResponse(thing_data_link(ledger, "coins", name[:-5], ask), 307)
    ties = ties_of(request)
    list_changed = is_changed(request.query_params.get("list"), lists)
    found = await answers.ask(ledger, Explorer.coin, name, ask)
    if ties or list_changed:
        found = replace(found, tag="")
    card = answers.card(ledger)
    sent = _cached(request, answers, found, card.changed)
    if sent is not None:
        return sent
    answer = found.model
    shown = CoinView(
        card,
        answer,
        ask,
        await _beside_histogram(answers, answer.ledger, ask, answer.place is not None),
        lists,
        ties,
        await _what_if(answers, ledger, name, ask, ties),
        await _beside(answers, card, answer.owner),
        list_changed,
    )
    return await drawn(request, answers, found, card.changed, lambda _: coin_page(shown))


@router.get("/l/{ledger}/coin/{name}/comparators")
async def comparators(answers: Served, request: Request, ledger: str, name: str) -> Response:
    """Show a coin under other rules and measures."""
    name = name_in_path(name)
    ask = query_from(request, Settings)
    found = await answers.ask(ledger, Explorer.comparators, name, ask)
    card = answers.card(ledger)

    def draw(page: Comparators) -> str:
        return comparators_page(page.model_copy(update={"name": name}), card)

    return await drawn(request, answers, found, "page", draw)


@router.get("/l/{ledger}/coin/{name}/shared")
async def shared(answers: Served, request: Request, ledger: str, name: str) -> Response:
    """Show what a coin has in common with another one."""
    name = name_in_path(name)
    ask = query_from(request, SharedQuery)
    found = await answers.ask(ledger, Explorer.shared, name, ask)
    card = answers.card(ledger)
    return await drawn(request, answers, found, "page", lambda page: shared_page(page, card))


@router.get("/l/{ledger}/coin/{name}/destinations")
async def destinations(answers: Served, request: Request, ledger: str, name: str) -> Response:
    """Show where the money of a coin, account, address or transaction went."""
    name = name_in_path(name)
    lists = answers.lists().lists
    ask = query_with_list(request, CoinQuery, lists)
    found = await answers.ask(ledger, Explorer.destinations, name, ask)
    card = answers.card(ledger)

    def draw(page: DestinationsAnswer) -> str:
        return destinations_page(DestinationsView(card, page, ask, lists))

    return await drawn(request, answers, found, "page", draw)


@router.get("/l/{ledger}/coin/{name}/destinations.json")
async def destinations_json(answers: Served, request: Request, ledger: str, name: str) -> Response:
    """Lead to the data of where money went."""
    ask = query_with_list(request, CoinQuery, answers.lists().lists)
    link = thing_data_link(ledger, "coins", name_in_path(name), ask, suffix="/destinations")
    return RedirectResponse(link, 307)


async def _beside_histogram(
    answers: Answers, ledger: str, ask: CoinQuery, placed: bool
) -> Histogram | None:
    """Give all coins by bits: under the same rule where they were scored, else the ledger's own."""
    plain = ask.view is None and ask.time is None
    if not placed and not plain:
        return None
    settings = ask.settings if placed else Settings()
    try:
        return (await answers.ask(ledger, Explorer.histogram, settings)).model
    except (Refused, StillWorking):
        return None


async def _what_if(
    answers: Answers, ledger: str, name: str, ask: CoinQuery, ties: tuple[str, ...]
) -> WhatIfAnswer | Problem | None:
    if not ties:
        return None
    try:
        coins = tuple(dict.fromkeys((name, *ties)))
        question = validated(WhatIfQuery, {"coins": coins, **ask.settings.model_dump()})
        return (await answers.ask(ledger, Explorer.what_if, question)).model
    except Refused as refused:
        return refused.problem


async def _beside(answers: Answers, card: LedgerCard, owner: str | None) -> tuple[TableRow, ...]:
    """Give a few coins of the same address: those a person may hold as well.

    None on large ledgers, where scoring all that a busy address ever spent takes seconds.
    """
    if owner is None or (card.coins or 0) > MANY:
        return ()
    try:
        found = await answers.ask(
            card.id, Explorer.group, "address", owner, Settings(), after=None, limit=OFFERED
        )
    except (Refused, StillWorking):
        return ()
    return found.model.rows


@router.get("/l/{ledger}/{thing}/{name}")
async def group(answers: Served, request: Request, ledger: str, thing: str, name: str) -> Response:
    """Show an address, a transaction or a block."""
    name = name_in_path(name)
    if thing not in _THINGS:
        fix = "begin at /, or search"
        raise Refused("unknown-address", "nothing is at this address", fix=fix)
    lists = answers.lists().lists
    ask = query_with_list(request, PageQuery, lists)
    kind = _THINGS[thing]
    if name.endswith(".json"):
        return RedirectResponse(thing_data_link(ledger, MANY_OF[kind], name[:-5], ask), 307)
    found = await answers.ask(
        ledger, Explorer.group, kind, name, ask.settings, after=ask.after, limit=ask.limit
    )
    card = answers.card(ledger)

    def draw(page: GroupAnswer) -> str:
        return group_page(page, card, ask, lists, name)

    return await drawn(request, answers, found, "page", draw)


@router.get("/investigation")
async def investigation() -> Response:
    """Show the views that this browser keeps: the server knows nothing of them."""
    return replies.page(render("investigation.html", "Investigation", here="/investigation"))


@router.get("/jobs")
async def jobs(answers: Served) -> Response:
    """Show all jobs."""
    found = answers.jobs.all()
    live = any(job.state in ("queued", "running") for job in found)
    refresh = 3 if live else None
    return replies.page(
        render("jobs.html", "Jobs", refresh=refresh, here="/jobs", jobs=found, waiting=None)
    )


@router.post("/jobs/{job}/cancel")
async def cancel(answers: Served, job: str) -> Response:
    """Cancel a job."""
    answers.jobs.cancel(job)
    return RedirectResponse("/jobs", 303)
