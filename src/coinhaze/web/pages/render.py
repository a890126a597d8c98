"""Templates and what all of them may use: words, links, the frame; text is always escaped."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from coinhaze import __version__
from coinhaze.errors import count_words
from coinhaze.explore import describe
from coinhaze.explore.models import LedgerCard
from coinhaze.explore.query import api_link, ledger_link, thing_link, wallet_link
from coinhaze.observer.owners import sure_words
from coinhaze.report.page import Html
from coinhaze.web.pages import words
from coinhaze.web.schema import Job, Refused
from coinhaze.web.security.codes import ENTER, LOGIN

TITLES = {401: "This page needs its key", 404: "Nothing found", 429: "Too much at once"}
TEMPLATES = Path(__file__).parent.with_name("templates")
OPTIONS: dict[str, Any] = {
    "loader": FileSystemLoader(TEMPLATES),
    "autoescape": True,
    "undefined": StrictUndefined,
    "trim_blocks": True,
    "lstrip_blocks": True,
    "auto_reload": False,
}
_KEYS = (
    ("/", "search"), ("t", "theme"), ("h", "hide amounts"), ("v", "flow as table"),
    (f"1{words.EN}5", "rule"), ("?", "keys"),
)  # fmt: skip


def render(
    template: str,
    title: str,
    *,
    card: LedgerCard | None = None,
    query: str = "",
    refresh: int | None = None,
    here: str = "",
    **values: object,
) -> str:
    """Return a whole page.

    >>> page = render("jobs.html", "<b>", waiting=None, jobs=())
    >>> "<title>&lt;b&gt; · coinhaze</title>" in page, "http:" in page
    (True, False)
    """
    frame = {"title": title, "card": card, "query": query, "refresh": refresh, "here": here}
    return environment().get_template(template).render(frame | values)


def render_part(template: str, **values: object) -> Html:
    """Return a part of a page, as markup that other templates do not escape again."""
    return Html(environment().get_template(template).render(values))


@cache
def environment() -> Environment:
    """Return the templates' environment: everything is escaped, and nothing may be left out."""
    found = Environment(**OPTIONS)
    shared: tuple[Any, ...] = (
        count_words, describe.reading_words, describe.share_words, describe.short_id,
        describe.steps_words, api_link, ledger_link, thing_link, wallet_link,
        words.bits_of_many, words.bits_text, words.bits_title, words.informed_text,
        words.informed_title, words.job_words, words.ledger_words, words.merge_words,
        words.moment, words.share_or_dash, words.standing_words, words.state_words,
        words.task_words, words.can_screen, words.window_words, words.heads, static_link,
        places, sure_words,
    )  # fmt: skip
    found.globals |= {each.__name__: each for each in shared} | {"DASH": words.DASH, "keys": _KEYS}
    found.filters |= {"thousands": "{:,}".format, "capitalize_first": words.capitalize_first}
    return found


def static_link(name: str) -> str:
    """Return where a file of the page is; its address changes with the version.

    >>> static_link("app.css").startswith("/static/app.css?v=")
    True
    """
    return f"/static/{name}?v={__version__}"


def places(card: LedgerCard | None) -> list[tuple[str, str]]:
    """List the pages that the head of a page leads to."""
    found = []
    if card is not None and card.state == "ready":
        base = ledger_link(card.id)
        found = [] if card.source is not None else [(f"{base}/table", "Table")]
        # Accounts hold no coins that could be chosen among.
        coins = card.kind != "accounts" and card.standing is None
        found += [(wallet_link(card.id), "Wallet")] if coins else []
        found += [(f"{base}/screen", "Screen")] if words.can_screen(card) else []
    return [*found, ("/compare", "Compare"), ("/investigation", "Investigation"), ("/jobs", "Jobs")]


def problem_page(refused: Refused, ledger: str | None = None) -> bytes:
    """Return a refusal; the search stays. Visitors who are not logged in need the token.

    `ledger` is the one that is not ready: it can be scored from here.
    """
    title = TITLES.get(refused.status, "That did not work")
    if refused.problem.code == "not-scored":
        title = "Not scored yet"
    template = "enter.html" if refused.status == 401 else "problem.html"
    return render(
        template, title, problem=refused.problem, enter=ENTER, login=LOGIN, ledger=ledger
    ).encode()


def working_page(job: Job) -> bytes:
    """Return the page of work that takes longer; it asks again by itself."""
    return render("jobs.html", "Still working", refresh=2, waiting=job, jobs=()).encode()
