"""Pages without a browser: what they hold, what they never hold, and plain forms."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from urllib.parse import quote

import pytest

from coinhaze.explore.models import Density, Histogram, TableRow
from coinhaze.explore.query import Settings
from coinhaze.web.drawing.charts import density_chart, scale_chart, shade_paths
from coinhaze.web.pages.ledger import informed_words
from coinhaze.web.security.guard import Guard
from web.asking import TOKEN, ask, made_app
from web.drawn import COIN, DrawnExplorer
from web.made import HOSTILE, MadeRegistry

PAGES = {
    "start": "/",
    "ledger": "/l/town",
    "coin": f"/l/town/coin/{COIN}",
    "fifo": f"/l/town/coin/{COIN}?policy=fifo",
    "poison": f"/l/town/coin/{COIN}?policy=poison",
    "one": "/l/town/coin/one",
    "crowd": "/l/town/coin/crowd",
    "time": f"/l/town/coin/{COIN}?by=time",
    "what-if": "/l/town/coin/a:0?with=b:1",
    "others": "/l/town/coin/a:0/comparators",
    "address": "/l/town/address/a:0",
    "transaction": "/l/town/tx/a:0",
    "block": "/l/town/block/a:0",
    "table": "/l/town/table",
    "compare": "/compare?l=town,raw",
    "wallet": "/l/town/wallet",
    "screen": "/l/town/screen?nodes=a%3A0",
    "jobs": "/jobs",
    "nothing": "/search?q=zzzzzz",
    "not scored": "/l/raw",
    "missing": "/l/lost",
    "locked": "/l/held",
}
every_page = pytest.mark.parametrize("path", PAGES.values(), ids=PAGES.keys())
NEVER = re.compile(r"\b(anonymous|anonymity|unsafe|safe|clean|dirty|guilt|guilty)\b", re.I)


@pytest.fixture(scope="module")
def app() -> Guard:
    return made_app(MadeRegistry(DrawnExplorer()))


class Tags(HTMLParser):
    """Collects what a strict content policy would refuse, and whether tags are closed."""

    VOID = frozenset({"meta", "link", "input", "br", "hr", "img"})

    def __init__(self) -> None:
        super().__init__()
        self.bad: list[str] = []
        self.open: list[str] = []
        self.ids: list[str] = []
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = dict(attrs)
        self.bad += [f"{tag} {name}" for name in names if name == "style" or name[:2] == "on"]
        if tag in ("style", "img", "iframe", "object", "embed") or (
            tag == "script" and "src" not in names
        ):
            self.bad.append(tag)
        self.ids += [names["id"] or ""] if "id" in names else []
        self.addresses += [v or "" for k, v in attrs if k in ("href", "src", "action")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@every_page
def test_nothing_inline_and_nothing_from_elsewhere(app: Guard, path: str) -> None:
    reply = ask(app, path)
    tags = Tags()
    tags.feed(reply.text)
    assert tags.bad == []
    assert tags.open == []
    assert all(a.startswith(("/", "#")) and not a.startswith("//") for a in tags.addresses)
    assert len(tags.ids) == len(set(tags.ids))


@every_page
def test_no_page_holds_the_token_or_a_verdict(app: Guard, path: str) -> None:
    text = ask(app, path).text
    assert TOKEN not in text
    seen = re.sub(r"<[^>]*>", " ", text).replace("k-anonymity", "").replace("system-anonymity", "")
    assert not NEVER.search(seen)
    assert "<img" not in text


@every_page
def test_every_page_has_its_search_and_says_that_nothing_leaves(app: Guard, path: str) -> None:
    text = ask(app, path).text
    assert 'name="q"' in text
    assert "Nothing leaves this machine" in text


def test_a_hostile_label_is_text(app: Guard) -> None:
    text = ask(app, f"/l/town/coin/{quote(HOSTILE, safe='')}").text
    assert "&lt;img src=x onerror=alert(1)&gt;" in text
    assert "<img" not in text
    assert "<img" not in ask(app, f"/search?q={quote(HOSTILE)}").text


@pytest.mark.parametrize(
    ("ledger", "said"),
    [("raw", "Score it now"), ("lost", "put it back"), ("held", "wait for it")],
    ids=["not scored", "missing", "locked"],
)
def test_a_ledger_that_is_not_ready_says_why_and_what_to_do(
    app: Guard, ledger: str, said: str
) -> None:
    reply = ask(app, f"/l/{ledger}")
    assert reply.status_code == 200
    assert said in reply.text
    assert ask(app, f"/l/{ledger}/coin/a:0").status_code == 409


def test_garbage_keeps_text_and_box(app: Guard) -> None:
    reply = ask(app, "/search?q=%20%20zzzzzz%20")
    assert reply.status_code == 404
    assert 'value="zzzzzz"' in reply.text
    assert "zzzzzz</code>" in reply.text


def test_a_search_with_one_answer_leads_there(app: Guard) -> None:
    reply = ask(app, "/search?q=b:1&l=town")
    assert reply.status_code == 303
    assert reply.headers["location"] == "/l/town/coin/b:1"


def test_json_of_a_page_is_what_the_api_gives(app: Guard) -> None:
    for path, to in (
        (f"/l/town/coin/{COIN}.json?policy=fifo", f"/api/v1/ledgers/town/coins/{COIN}?policy=fifo"),
        ("/l/town.json", "/api/v1/ledgers/town"),
        ("/l/town/tx/a:0.json", "/api/v1/ledgers/town/transactions/a:0"),
    ):
        found = ask(app, path)
        assert found.status_code == 307
        assert found.headers["location"].partition("&list")[0].partition("?list")[0] == to


def test_bits_are_those_of_the_api(app: Guard) -> None:
    text = ask(app, f"/l/town/coin/{COIN}").text
    data = ask(app, f"/api/v1/ledgers/town/coins/{COIN}").json()
    assert f'data-bits="{data["bits"]!r}"' in text
    assert data["sentence"]["text"] in re.sub(r"<[^>]*>", "", text)


def test_shares_of_origins_sum_to_all(app: Guard) -> None:
    for name in (COIN, "crowd", "one"):
        text = ask(app, f"/l/town/coin/{name}").text
        shares = [float(s) for s in re.findall(r'data-share="([^"]+)"', text)]
        assert sum(shares) == pytest.approx(1.0, abs=1e-3)


def test_empty_fields_of_a_plain_form_ask_nothing(app: Guard) -> None:
    reply = ask(app, "/l/town/table?bits_low=&bits_high=2&steps_low=&steps_high=")
    assert reply.status_code == 200
    assert 'name="bits_high" id="bits_high" value="2"' in reply.text


def test_a_bad_setting_is_refused_with_its_name(app: Guard) -> None:
    reply = ask(app, f"/l/town/coin/{COIN}?policy=magic")
    assert reply.status_code == 400
    assert "policy" in reply.text


def test_a_list_is_used_unless_none_is_chosen(app: Guard) -> None:
    assert "1 of 148" in ask(app, f"/l/town/coin/{COIN}").text
    assert "choose a list" in ask(app, f"/l/town/coin/{COIN}?list=none").text


def test_a_list_that_changed_is_said(app: Guard) -> None:
    text = ask(app, f"/l/town/coin/{COIN}?list=bad@0000").text
    assert "figures may differ" in text
    assert "figures may differ" not in ask(app, f"/l/town/coin/{COIN}?list=bad@71be").text


def test_what_if_says_both_numbers_and_what_bits_do_not_count(app: Guard) -> None:
    text = ask(app, "/l/town/coin/a:0?with=b:1").text
    assert 'id="what-if-bits" data-bits="1.0"' in text
    assert "one person holds these coins" in text
    assert "no coin" in ask(app, "/l/town/coin/a:0?with=nothing").text


def test_a_wallet_is_posted_never_linked(app: Guard) -> None:
    body = "coins=a%3A0%0Ab%3A1&exposed=&amount="
    headers = {
        "content-type": "application/x-www-form-urlencoded",
        "sec-fetch-site": "same-origin",
        "origin": "http://127.0.0.1:8000",
    }
    reply = ask(app, "/l/town/wallet", method="POST", content=body, headers=headers)
    assert reply.status_code == 200
    assert 'id="wallet-answer"' in reply.text
    assert "b:1" in reply.text
    assert not re.search(r'(href|action)="[^"]*(coins=|exposed=)', reply.text)
    wrong = ask(app, "/l/town/wallet", method="POST", content="coins=nope", headers=headers)
    assert "could not be weighed" in wrong.text
    assert ">nope</textarea>" in wrong.text


def test_pages_have_tags_and_are_not_sent_twice(app: Guard) -> None:
    first = ask(app, f"/l/town/coin/{COIN}")
    again = ask(app, f"/l/town/coin/{COIN}", headers={"if-none-match": first.headers["etag"]})
    assert again.status_code == 304
    other = ask(app, f"/l/town/coin/{COIN}?policy=fifo")
    assert other.headers["etag"] != first.headers["etag"]


def test_a_field_of_16000_bins_is_small() -> None:
    counts = tuple((k * 7919) % 50 if k % 3 else 0 for k in range(16_000))
    density = Density(
        ledger="a", settings=Settings(), bits_low=0, bits_high=12, steps_low=1, steps_high=300,
        counts=counts,
    )  # fmt: skip
    drawn = [
        (int(x), int(y), int(w))
        for path in shade_paths(density)
        for x, y, w in re.findall(r"M(\d+) (\d+)h(\d+)v1", path)
    ]
    assert sum(w for _, _, w in drawn) == sum(1 for c in counts if c)
    real = tuple(c if k % 160 < 60 and k // 160 < 50 else 0 for k, c in enumerate(counts))
    assert len(density_chart(density.model_copy(update={"counts": real}))) < 60_000


@pytest.mark.parametrize(("bins", "dots"), [(0, 0), (3, 3), (50, 50), (51, 0)])
def test_a_few_bins_are_drawn_as_dots(bins: int, dots: int) -> None:
    density = Density(
        ledger="a", settings=Settings(), bits_low=0, bits_high=12, steps_low=1, steps_high=300,
        counts=tuple(2 if k < bins else 0 for k in range(16_000)),
    )  # fmt: skip
    assert density_chart(density).count('class="dot"') == dots


def test_coins_with_one_origin_stand_at_one_origin() -> None:
    values = (0.0, 1.0, 3.0)
    picture = scale_chart(Histogram(width=0.25, zeros=1, counts=(0,) * 4 + (1,) + (0,) * 7 + (1,),
                                    values=values))  # fmt: skip
    ticks = dict(re.findall(r'x="([\d.]+%)"[^>]*>(\d+)<', picture))
    dots = re.findall(r'cx="([\d.]+%)"', picture)
    assert [ticks[x] for x in dots] == ["1", "2", "8"]


def test_hardest_is_to_an_informed_observer_unless_that_one_traces_all() -> None:
    def row(informed: dict[str, float]) -> TableRow:
        return TableRow.model_construct(informed=informed)

    assert informed_words([row({})]) == ""
    traced = informed_words([row({"change": 0.0}), row({"change": 0.001})])
    assert "to the naive observer" in traced
    assert "to an informed observer" in informed_words([row({"change": 0.0}), row({"change": 1.0})])
