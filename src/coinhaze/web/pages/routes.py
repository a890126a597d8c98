"""The addresses of all pages; each asks what the API asks, and draws it."""

from __future__ import annotations

import zlib
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import asdict, fields, replace
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response
from starlette.concurrency import run_in_threadpool

from coinhaze.explore.explorer import Explorer
from coinhaze.explore.models import (
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
    PageQuery,
    Settings,
    SharedQuery,
    TableQuery,
    WalletQuery,
    WhatIfQuery,
    api_link,
    name_in_path,
    thing_data_link,
)
from coinhaze.web import replies
from coinhaze.web.answers import Answer, Answers
from coinhaze.web.pages.coin import CoinView, coin_page
from coinhaze.web.pages.coin_facts import comparators_page, shared_page
from coinhaze.web.pages.coin_sets import MANY as MANY_OF
from coinhaze.web.pages.coin_sets import WalletForm, group_page, wallet_page
from coinhaze.web.pages.ledger import compare_page, ledger_page, start_page, table_page
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
from coinhaze.web.schema import Problem, Refused, StillWorking

HTML = "text/html; charset=utf-8"
MANY = 200_000  # coins of a ledger
OFFERED = 8  # coins of the same address that a what-if offers
EXAMPLES = 3
_THINGS: dict[str, GroupKind] = {"address": "address", "tx": "transaction", "block": "block"}


router = APIRouter()


def send(page: str, status: int = 200) -> Response:
    """Send a page that nobody keeps."""
    return Response(page, status, media_type=HTML)


async def drawn(
    request: Request,
    answers: Answers,
    answer: Answer[Any],
    key: Hashable,
    view: Callable[[], Awaitable[Callable[[], str]]],
) -> Response:
    """Send a page made of an answer; it is made once, apart from the loop, and then cached."""
    tag = f"{answer.tag}-{zlib.crc32(repr(key).encode()):08x}" if answer.tag else ""
    cached = answers.cache.get(tag) if tag else None
    page = cached if isinstance(cached, bytes) else None
    if page is None and not replies.has(request, tag):
        page = (await run_in_threadpool(await view())).encode()
        if tag:
            answers.cache.put(tag, page)
    return replies.tagged(request, tag, page, HTML)


@router.get("/")
async def start(answers: Served) -> Response:
    """Show the first page."""
    cards = answers.ledgers().ledgers
    examples = await _examples(answers, cards)
    return send(start_page(cards, examples))


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
        found = (await answers.compare(validated(CompareQuery, fields))).model
    return send(compare_page(found, cards))


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
        return send(
            render("nothing.html", "Search", card=card, why=why, searched=(), others=()), 404
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
        why = " ".join(dict.fromkeys(notes)) or "No ledger is ready to be searched."
        others = [c for c in ready if c not in searched]
        page = render(
            "nothing.html", "Nothing found", card=card, query=query, why=why, searched=searched,
            others=others,
        )  # fmt: skip
        return send(page, 404)
    said = tuple(dict.fromkeys(notes))
    return send(
        render("found.html", "Found", card=card, query=query, hits=hits, notes=said, more=more)
    )


@router.get("/l/{ledger}")
async def ledger(answers: Served, request: Request, ledger: str) -> Response:
    """Show a ledger."""
    if ledger.endswith(".json"):
        return RedirectResponse(api_link(f"/ledgers/{ledger[:-5]}"), 307)
    ask = query_from(request, Settings)
    found = await answers.ledger(ledger, ask)

    async def view() -> Callable[[], str]:
        page = found.model
        density = None
        if page.summary is not None and page.summary.scored:
            density = (await answers.ask(ledger, Explorer.density, ask)).model
        return lambda: ledger_page(page, density)

    return await drawn(request, answers, found, answers.card(ledger).changed, view)


@router.get("/l/{ledger}/table")
async def table(answers: Served, request: Request, ledger: str) -> Response:
    """Show a page of a ledger's table."""
    ask = query_from(request, TableQuery)
    found = await answers.ask(ledger, Explorer.table, ask)
    card = answers.card(ledger)

    async def view() -> Callable[[], str]:
        page = found.model
        return lambda: table_page(page, card)

    return await drawn(request, answers, found, "page", view)


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

    async def view() -> Callable[[], str]:
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
        return lambda: coin_page(shown)

    return await drawn(request, answers, found, card.changed, view)


@router.get("/l/{ledger}/coin/{name}/comparators")
async def comparators(answers: Served, request: Request, ledger: str, name: str) -> Response:
    """Show a coin under other rules and measures."""
    name = name_in_path(name)
    ask = query_from(request, Settings)
    found = await answers.ask(ledger, Explorer.comparators, name, ask)
    card = answers.card(ledger)

    async def view() -> Callable[[], str]:
        page = found.model.model_copy(update={"name": name})
        return lambda: comparators_page(page, card)

    return await drawn(request, answers, found, "page", view)


@router.get("/l/{ledger}/coin/{name}/shared")
async def shared(answers: Served, request: Request, ledger: str, name: str) -> Response:
    """Show what a coin has in common with another one."""
    name = name_in_path(name)
    ask = query_from(request, SharedQuery)
    found = await answers.ask(ledger, Explorer.shared, name, ask)
    card = answers.card(ledger)

    async def view() -> Callable[[], str]:
        page = found.model
        return lambda: shared_page(page, card)

    return await drawn(request, answers, found, "page", view)


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

    async def view() -> Callable[[], str]:
        page = found.model
        return lambda: group_page(page, card, ask, lists, name)

    return await drawn(request, answers, found, "page", view)


@router.get("/l/{ledger}/wallet")
async def wallet(answers: Served, ledger: str) -> Response:
    """Show an empty form of a wallet."""
    card = answers.card(ledger)
    return send(wallet_page(card, WalletForm(), None))


@router.post("/l/{ledger}/wallet")
async def weigh(answers: Served, request: Request, ledger: str) -> Response:
    """Weigh the wallet that was pasted."""
    card = answers.card(ledger)
    given = await form_of(request)
    form = WalletForm(**{f.name: given.get(f.name, "").strip() for f in fields(WalletForm)})
    try:
        ask = validated(WalletQuery, {**asdict(form), "amount": _amount(form.amount, card) or None})
        answer = (await answers.ask(ledger, Explorer.wallet, ask)).model
    except Refused as refused:
        return send(wallet_page(card, form, refused.problem), refused.status)
    return send(wallet_page(card, form, answer))


def _amount(text: str, card: LedgerCard) -> str:
    """Read a plain number in the unit that the form names."""
    plain = text.replace(".", "", 1).replace("_", "").isdigit()
    return f"{text} {card.unit}" if plain and card.unit else text


@router.get("/jobs")
async def jobs(answers: Served) -> Response:
    """Show all jobs."""
    found = answers.jobs.all()
    live = any(job.state in ("queued", "running") for job in found)
    refresh = 3 if live else None
    return send(
        render("jobs.html", "Jobs", refresh=refresh, here="/jobs", jobs=found, waiting=None)
    )


@router.post("/jobs/{job}/cancel")
async def cancel(answers: Served, job: str) -> Response:
    """Cancel a job."""
    answers.jobs.cancel(job)
    return RedirectResponse("/jobs", 303)
