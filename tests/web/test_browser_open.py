"""The ways into the page, in a real browser: a file that holds the token, another site's link."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from benchmarks.served import Served, serving

from coinhaze.cli.serve import way_in

CHROMIUM = shutil.which("chromium")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    ledger = tmp_path_factory.mktemp("opened") / "town.csv"
    ledger.write_text("from,to,value\nalice,carol,3\nbob,carol,5\n")
    with serving(ledger) as found:
        yield found


def test_the_page_opens_from_a_file_and_from_another_site_s_link(
    served: Served, tmp_path: Path
) -> None:
    if CHROMIUM is None:
        pytest.skip("no chromium here: the page cannot be opened")
    from playwright.sync_api import sync_playwright

    elsewhere = tmp_path / "elsewhere.html"
    elsewhere.write_text(f'<a href="{served.address}/l/town">a link</a>')
    with sync_playwright() as playwright, way_in(f"{served.address}/?token={served.token}") as file:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(elsewhere.as_uri())
        page.click("a")
        page.wait_for_url(f"{served.address}/l/town")
        page.get_by_text("only with its token").first.wait_for()
        assert "town.csv" not in page.content()
        page.goto(file)
        page.wait_for_url(f"{served.address}/")
        page.get_by_text("town.csv").first.wait_for()
        cookie = page.context.cookies()[0]
        assert cookie["httpOnly"]
        assert cookie["sameSite"] == "Strict"
        assert page.evaluate("document.cookie") == ""
        page.goto(elsewhere.as_uri())
        page.click("a")
        page.get_by_text("town.csv").first.wait_for()
        assert page.url == f"{served.address}/l/town"
        browser.close()


def test_only_this_user_can_read_the_file_that_holds_the_token() -> None:
    with way_in("http://127.0.0.1:1/?token=abc") as address:
        page = Path(address.removeprefix("file://"))
        assert page.stat().st_mode & 0o077 == 0
        assert page.parent.stat().st_mode & 0o077 == 0
    assert not page.exists()
