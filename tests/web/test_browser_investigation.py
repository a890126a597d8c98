"""An investigation in a real browser: views kept with notes, saved, opened again; hostile files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from web.browsing import DESKTOP, PHONE, Browsing, expect, width_of
from web.made import HOSTILE
from web.test_browser_pages import judged, some_coins

FORMAT = "coinhaze investigation"


def keep(page: Any, address: str) -> None:
    page.goto(address)
    page.click("#keep")
    expect(page.locator("#keep")).to_have_text("Kept")


def opened(page: Any, content: bytes) -> str:
    page.evaluate("document.getElementById('kept-said').textContent = ''")
    page.set_input_files(
        "#kept-open", {"name": "found.json", "mimeType": "application/json", "buffer": content}
    )
    page.wait_for_selector("#kept-said:not(:empty)")
    said: str = page.text_content("#kept-said")
    return said


def kept(page: Any) -> list[tuple[str, str]]:
    rows: list[list[str]] = page.locator(".kept").evaluate_all(
        "rows => rows.map(r => [r.querySelector('a').getAttribute('href'), "
        "r.querySelector('textarea').value])"
    )
    return [(href, note) for href, note in rows]


def test_views_are_retained_saved_and_opened_again(
    browsing: Browsing, town_site: Any, axe: str, tmp_path: Path
) -> None:
    coin = some_coins(town_site, 1)[0]
    with town_site.client() as client:
        made_by = client.coin("town", coin).made_by
    views = [
        f"/l/town/coin/{coin}?policy=fifo&top=12",
        f"/l/town/coin/{made_by}/destinations?open=h1x",
    ]
    page = browsing.open(town_site, "/investigation")
    expect(page.locator("#kept-none")).to_be_visible()
    for view in views:
        keep(page, town_site.address + view)
    page.goto(town_site.address + "/investigation")
    page.fill("#kept-title", "A case")
    page.fill("#note-0", "bought with cash")
    page.fill("#note-1", f"then {HOSTILE}")
    expected = [(views[0], "bought with cash"), (views[1], f"then {HOSTILE}")]
    page.reload()
    assert kept(page) == expected
    assert page.input_value("#kept-title") == "A case"
    for size in (DESKTOP, PHONE):
        page.set_viewport_size({"width": size[0], "height": size[1]})
        assert judged(page, axe) == {}
        assert width_of(page) <= size[0]
    with page.expect_download() as download:
        page.click("#kept-save")
    download.value.save_as(tmp_path / "saved.json")
    saved = (tmp_path / "saved.json").read_bytes()
    assert json.loads(saved)["format"] == FORMAT
    page.click("#kept-clear")
    expect(page.locator(".kept")).to_have_count(0)
    page.reload()
    expect(page.locator("#kept-none")).to_be_visible()
    assert kept(page) == []
    assert opened(page, saved) == "Opened."
    assert kept(page) == expected
    page.click(".kept:nth-child(1) button")
    expect(page.locator(".kept")).to_have_count(1)
    assert kept(page) == expected[1:]
    page.click(".kept a")
    page.wait_for_url("**/destinations?open=h1x")
    expect(page.locator("#destinations")).to_be_visible()


def test_a_hostile_file_leads_nowhere_and_runs_nothing(browsing: Browsing, drawn_site: Any) -> None:
    page = browsing.open(drawn_site, "/investigation")
    fine = {"href": "/l/town/coin/a", "title": HOSTILE, "note": f"</textarea>{HOSTILE}"}
    bad = [
        "javascript:alert(1)", "https://elsewhere.example/l/town/coin/a", "//elsewhere.example/",
        "/\\elsewhere.example/l/town/coin/a", "/l/town/coin/../../../jobs", "/jobs",
        "/l/town/coin/a?code=1", "/l/town/coin/" + "a" * 9_000, 7, None,
    ]  # fmt: skip
    views = [{"href": href, "title": "x", "note": "y"} for href in bad]
    document = {"format": FORMAT, "title": HOSTILE, "views": [*views, "x", None, fine]}
    said = opened(page, json.dumps(document).encode())
    assert said == f"Opened, without {len(bad) + 2} that are no pages of this server."
    assert kept(page) == [(fine["href"], fine["note"])]
    assert page.text_content(".kept a") == HOSTILE
    assert page.locator("main img").count() == 0
    href = page.evaluate("document.querySelector('.kept a').href")
    assert urlsplit(href).netloc == urlsplit(drawn_site.address).netloc
    for content in (b"{", b"[]", b'{"format": "other", "views": []}', b'{"views": 1}'):
        assert "is no investigation" in opened(page, content)
    assert "above 1 MB" in opened(page, b" " * 1_000_001)
    assert len(kept(page)) == 1  # what was there stays
    # What this browser holds may have been tampered with, too.
    page.evaluate(
        "localStorage.setItem('coinhaze-investigation', JSON.stringify("
        "{format: 'coinhaze investigation', views: [{href: 'javascript:alert(1)'}]}))"
    )
    page.reload()
    expect(page.locator("#kept-none")).to_be_visible()
    assert kept(page) == []
