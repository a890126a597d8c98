"""Whatever a ledger, a label or a list calls things, every page shows it as text.

Every text of every answer is replaced by markup that would do something, and the pages are parsed.
That the check can fail is checked too: each module that draws is run without its escaping.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from html.parser import HTMLParser
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import httpx2
import pytest
from jinja2 import Environment
from pydantic import BaseModel

from coinhaze.errors import InputError
from coinhaze.explore.models import (
    Amount,
    BoundedFigure,
    CoinsOfType,
    CommonOrigin,
    Comparators,
    Destination,
    DestinationsAnswer,
    Exposure,
    FlowBand,
    Group,
    GroupAnswer,
    LedgerCard,
    LedgerPage,
    ListedEntry,
    Measure,
    MergePoint,
    MonthOfCoins,
    ObservedBits,
    Other,
    PartyKnows,
    Rule,
    SharedAnswer,
    SharedFigures,
    Spent,
    Suggested,
    TableRow,
    WalletAnswer,
    Why,
)
from coinhaze.explore.query import CoinQuery, WhatIfQuery
from coinhaze.report.page import Html
from coinhaze.web import drawing
from coinhaze.web.pages import render
from coinhaze.web.pages.render import OPTIONS, TEMPLATES, environment
from coinhaze.web.security.guard import Guard
from web.asking import BASE, PATIENCE, ask, made_app
from web.drawn import DrawnExplorer
from web.made import FIVE, MadeRegistry, _row, _together

# An element, and what leaves an attribute: so short that no name is cut in its middle. Labels and
# words differ from names, or pages would leave one of them out.
KINDS = {"element": "<b onclick={}>", "attribute": '" onclick="{}'}
LETTERS = {"label": "l", "words": "w"}
COIN = "a:0"
PATHS = (
    "/", "/l/town", f"/l/town/coin/{COIN}", f"/l/town/coin/{COIN}?policy=fifo&by=time&list=none",
    f"/l/town/coin/{COIN}?policy=poison", f"/l/town/coin/{COIN}?with=b:1",
    f"/l/town/coin/{COIN}/comparators", f"/l/town/coin/{COIN}/shared?other=b:1",
    f"/l/town/coin/{COIN}/destinations?by=time",
    "/l/town/address/a:0", "/l/town/tx/a:0",
    "/l/town/block/a:0", "/l/town/table", "/compare?l=town,raw", "/l/town/wallet", "/jobs",
    "/search?q=%3Cb%20onclick=q%3E", "/search?q=%22%20onclick=%22q", "/l/raw", "/l/lost", "/l/held",
    "/search?l=lost&q=%3Cb%20onclick=q%3E", "/l/%3Cb%20onclick=n%3E",
)  # fmt: skip
# What these escape is never a name: numbers, our own words, and names of lists, which are plain.
NO_NAMES = {"charts", "density"}


@dataclass(frozen=True)
class Evil:
    """What to put in the place of texts: of which kind, and whether also where there is none."""

    kind: str
    fill: bool = False

    def text(self, field: str = "") -> str:
        return self.kind.format(LETTERS.get(field, "n"))


EVILS = [Evil(kind, fill) for fill in (False, True) for kind in KINDS.values()]


def hostile(value: Any, evil: Evil) -> Any:
    """Put markup in the place of every free text of a model."""
    if isinstance(value, FlowBand):
        return value  # what it joins are ids that the server makes
    if not isinstance(value, BaseModel):
        if isinstance(value, tuple):
            return tuple(hostile(one, evil) for one in value)
        return {evil.text(): evil.text()} if isinstance(value, dict) else value
    changed: dict[str, Any] = {}
    for name, field in type(value).model_fields.items():
        now = getattr(value, name)
        free = field.annotation in (str, str | None) and not field.metadata
        ours = name in ("policy", "view", "time", "method", "policies", "views", "times")
        if free and not ours and (now is not None or evil.fill):
            changed[name] = evil.text(name)
        elif field.annotation == tuple[str, ...] and not ours:
            changed[name] = (evil.text(),)
        elif name == "informed":
            changed[name] = {"change": 0.5}  # by the names of observers, which are ours
        elif name == "totals":
            changed[name] = {"fee": 0.5}  # by kinds, which are ours
        else:
            changed[name] = hostile(now, evil)
    return value.model_copy(update=changed)


class HostileExplorer(DrawnExplorer):
    """An explorer with something in every field, all of it hostile."""

    def __init__(self, evil: Evil) -> None:
        super().__init__()
        self.evil = evil

    def _evil(self, answer: Any) -> Any:
        return hostile(answer, self.evil)

    def coin(self, name: str, query: Any) -> Any:
        found = super().coin(name, query)
        touched = True if query.policy == "poison" else None
        merge = MergePoint(words="words", name="a", inputs=2, hops=1, passing=0.5, bits=1.0)
        linked = merge.model_copy(update={"href": "/l/town/tx/a"})
        why = Why(merges=(merge, linked), others=1, others_bits=0.5, again=0.5)
        return self._evil(found.model_copy(update={"exposure": exposure(touched), "why": why}))

    def ledger(self, query: Any) -> LedgerPage:
        page = super().ledger(query)
        rows: tuple[TableRow, ...] = (_row(0),)
        month = MonthOfCoins(
            month="2013-01", coins=1, amount=FIVE, bits_mean=1, bits_mean_low=1, bits_mean_high=1,
            bits_by_value=1, bits_by_value_low=1, bits_by_value_high=1,
        )  # fmt: skip
        kind = CoinsOfType(
            script_type="p2wpkh", coins=1, amount=FIVE, bits_mean=1, bits_median=1, bits_by_value=1,
            one_origin=0.5,
        )  # fmt: skip
        update = {
            "most": rows, "fewest": rows, "notes": ("a note",), "provenance": {"a": "b"},
            "months": (month,), "script_types": (kind,),
        }  # fmt: skip
        found: LedgerPage = self._evil(page.model_copy(update=update))
        return found

    def search(self, query: str) -> Any:
        hits = super().search("a").hits
        found = super().search(query).model_copy(update={"hits": (*hits, *hits)})
        return self._evil(found)

    def curve(self, query: Any) -> Any:
        return self._evil(super().curve(query))

    def density(self, query: Any) -> Any:
        return self._evil(super().density(query))

    def table(self, query: Any) -> Any:
        return self._evil(super().table(query.model_copy(update={"limit": 3})))

    def group(self, kind: Any, name: str, query: Any, **page: Any) -> GroupAnswer:
        found = super().group(kind, name, query, **page)
        spent = Spent(name="a:0", amount=FIVE, owner="ann", href="/l/town/coin/a:0")
        update = {
            "spends": (spent, spent.model_copy(update={"href": None})), "transactions": ("a",),
            "exposure": exposure(None), "notes": ("a note",), "label": "a label",
        }  # fmt: skip
        evil: GroupAnswer = self._evil(found.model_copy(update=update))
        return evil

    def comparators(self, name: str, query: Any) -> Comparators:
        rule = Rule(
            policy="fifo", bits=1, bits_low=1, bits_high=1, equal_origins=2, exposure=0.5,
            refused="why",
        )  # fmt: skip
        some = Measure(name="degree", value=1.0, unit="of 1", words="words")
        none = Measure(name="boltzmann", value=None, unit="bits", words="words", refused="why")
        seen = ObservedBits(
            bits=1, bits_low=1, bits_high=1, observer="change", assumes="words", confidence=0.5,
            confidence_origin="measured", owners=2,
        )  # fmt: skip
        found: Comparators = self._evil(
            Comparators(
                ledger="town", name=name, rules=(rule,), measures=(some, none), observed="words",
                observers=(seen,),
            )
        )  # fmt: skip
        return found

    def shared(self, name: str, query: Any) -> SharedAnswer:
        half = BoundedFigure(value=0.5, low=0.4, high=0.6)
        origin = CommonOrigin(
            origin="tx:a", share_of_first=0.5, share_of_second=0.5, share_of_openings=None, weight=1
        )
        figures = SharedFigures(
            observer="naive", assumes="words", collision=half, overlap=half, divergence=half,
            evidence=half, common=(origin,),
        )  # fmt: skip
        found: SharedAnswer = self._evil(
            SharedAnswer(
                ledger="town", first=name, second=query.other, settings=query.settings,
                sentence="words", observers=(figures,),
            )
        )  # fmt: skip
        return found

    def destinations(self, name: str, query: Any) -> DestinationsAnswer:
        one = Amount(smallest="5", shown="5")
        to = Destination(
            rank=0, name="a", words="words", kind="unspent", share=0.5, amount=one, label="label",
            time=1, height=2, href="/l/town/coin/a",
        )  # fmt: skip
        fees = Destination(rank=1, name="fees", words="Fees", kind="fee", share=0.2)
        flow = super().coin(name, CoinQuery()).flow.turned()
        found: DestinationsAnswer = self._evil(
            DestinationsAnswer(
                ledger="town", digest="d", settings=query, name=name, kind="coin", label="label",
                held=one, time=1, height=2, sentence="words", totals={}, reached=0.5,
                reached_high=0.6, destinations=(to, fees), other=Other(count=3, share=0.3),
                flow=flow, notes=("a note",),
            )
        )  # fmt: skip
        return found

    def what_if(self, query: Any) -> Any:
        found = super().what_if(query)
        before = tuple(b.model_copy(update={"exposure": 0.0}) for b in found.before)
        after = found.after.model_copy(update={"exposure": 0.5, "ties": True})
        update = {"before": before, "after": after, "notes": ("a note",)}
        return self._evil(found.model_copy(update=update))

    def statement(self, query: Any) -> Any:
        return self._evil(super().statement(query))

    def wallet(self, query: Any) -> WalletAnswer:
        coins = tuple(
            coin.model_copy(update={"exposure": 0.0, "exposure_high": 0.0})
            for coin in super().what_if(WhatIfQuery(coins=("a:0", "b:1"))).before
        )
        two = _together(("a:0", "b:1")).model_copy(update={"exposure": 0.5, "ties": True})
        two = two.model_copy(update={"safe": False, "verdict": "apart", "change": FIVE})
        group = Group(kind="all coins", **two.model_dump())
        party = PartyKnows(party="bob", knows=("a:0",), unknown=("b:1",))
        suggested = Suggested(amount=FIVE, spend=two, instead=(two,), why=("why",))
        found: WalletAnswer = self._evil(
            WalletAnswer(
                ledger="town", settings=query.settings, total=FIVE, limit=0.0, coins=coins,
                groups=(group,), pairs=(two,), suggestion=suggested, how_sure="exact",
                would_change=("a",), is_not=("b",), notes=("c",), parties=(party,),
                in_short=("short",),
            )
        )  # fmt: skip
        return found


def exposure(touched: bool | None) -> Exposure:
    entry = ListedEntry(name="thief", share=0.5, label=None, href=None)
    return Exposure(
        list="bad", policy="haircut", view="coin", listed=2, entries=1, share=0.5, share_low=0.4,
        share_high=0.6, amount=FIVE, holds=FIVE, assumed=FIVE, touched=touched, largest=(entry,),
        text="half of it",
    )  # fmt: skip


class HostileRegistry(MadeRegistry):
    """A registry whose ledgers have hostile names, and whose jobs fail in hostile words."""

    def __init__(self, evil: Evil) -> None:
        super().__init__(HostileExplorer(evil))
        self.evil = evil

    def cards(self) -> list[LedgerCard]:
        cards = [self.card(card.id) for card in super().cards()]
        return [*cards, cards[0].model_copy(update={"id": "city"})]  # two that are ready

    def card(self, ledger: str) -> LedgerCard:
        names = ("name", "network", "unit", "message", "fix")
        return super().card(ledger).model_copy(update=dict.fromkeys(names, self.evil.text()))

    def prepare(self, ledger: str, settings: Any, progress: Any) -> None:
        raise InputError(self.evil.text())


class Parsed(HTMLParser):
    """Collects what no page of ours has, and all text and attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.bad: list[str] = []
        self.texts: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.texts += [value or "" for _, value in attrs]
        # No image is drawn by a page, and no bold text has attributes of its own but these.
        odd = [k for k, _ in attrs if k[:2] == "on" or not k.replace("-", "").isalnum()]
        if tag in ("img", "iframe", "object") or odd:
            self.bad.append(f"<{tag} {' '.join(odd)}>")

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def app_of(evil: Evil) -> Guard:
    return made_app(HostileRegistry(evil), changes=1_000.0)


@pytest.fixture(scope="module", params=EVILS, ids=repr)
def evil(request: pytest.FixtureRequest) -> Evil:
    found: Evil = request.param
    return found


@pytest.fixture(scope="module")
def app(evil: Evil) -> Guard:
    return app_of(evil)


def weighed(app: Guard) -> httpx2.Response:
    """Give the page of a wallet that was pasted."""
    form = {"coins": '<b onclick=n>" onclick="n', "exposed": '"><b onclick=n>', "amount": "5 sat"}
    return ask(app, "/l/town/wallet", method="POST", data=form, headers={"origin": BASE})


def screened(app: Guard) -> httpx2.Response:
    """Give the page of a statement about what was pasted."""
    evil = '<b onclick=n>" onclick="n'
    form = {"nodes": evil, "listed": f'"><b onclick=n>{evil}', "case": evil, "analyst": evil}
    return ask(app, "/l/town/screen", method="POST", data=form, headers={"origin": BASE})


def failed(app: Guard) -> httpx2.Response:
    """Give the page of jobs, one of which has failed."""
    ask(app, "/l/raw/score", method="POST", headers={"origin": BASE})
    until = time.monotonic() + PATIENCE
    while True:
        page = ask(app, "/jobs")
        if "failed" in page.text or time.monotonic() > until:
            return page
        time.sleep(0.02)


def page_at(path: str) -> Callable[[Guard], httpx2.Response]:
    return lambda app: ask(app, path)


EVERY = {path: page_at(path) for path in PATHS} | {
    "a wallet": weighed,
    "a statement": screened,
    "a job": failed,
}


@pytest.mark.parametrize("page", EVERY.values(), ids=range(len(EVERY)))
def test_every_name_is_text_on_every_page(
    app: Guard, evil: Evil, page: Callable[[Guard], httpx2.Response]
) -> None:
    reply = page(app)
    assert reply.status_code in (200, 404), reply.text[:300]
    found = Parsed(reply.text)
    assert found.bad == []
    if str(reply.url) != f"{BASE}/jobs" or page is failed:
        assert any("onclick=" in text for text in found.texts), "nothing hostile was shown"


TEMPLATE_FILES = sorted(path.name for path in TEMPLATES.iterdir())
# Nothing that a ledger, list or person names is written there.
# What flow.html shows is made elsewhere; a browser fills investigation.html.
NAMELESS = ("enter.html", "flow.html", "investigation.html", "jobs.html", "legend.html")
MODULES = sorted(
    name
    for _, name, _ in iter_modules(drawing.__path__)
    if hasattr(import_module(f"{drawing.__name__}.{name}"), "escape")
)


@pytest.mark.parametrize("name", [name for name in MODULES if name not in NO_NAMES])
def test_a_drawing_that_does_not_escape_is_seen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = import_module(f"{drawing.__name__}.{name}")
    monkeypatch.setattr(module, "escape", lambda value: Html(str(value)))
    for evil in EVILS:
        app = app_of(evil)
        if any(Parsed(page(app).text).bad for page in EVERY.values()):
            return
    pytest.fail(f"{name} can leave names as they are, and no page shows it")


@pytest.mark.parametrize("name", [name for name in TEMPLATE_FILES if name not in NAMELESS])
def test_a_template_that_does_not_escape_is_seen(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    templates = Environment(**OPTIONS)
    templates.globals, templates.filters = environment().globals, environment().filters
    monkeypatch.setattr(render, "environment", lambda: templates)
    templates.autoescape = lambda given: given != name
    for evil in EVILS:
        app = app_of(evil)
        if any(Parsed(page(app).text).bad for page in EVERY.values()):
            return
    pytest.fail(f"{name} can leave names as they are, and no page shows it")
