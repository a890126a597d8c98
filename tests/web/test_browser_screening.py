"""Screening in a real browser, narrow and wide, light and dark, with and without script."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from coinhaze.ledger import write_folder
from coinhaze.simulate import simulate_town
from coinhaze.web.registry import LedgerRegistry
from web.browsing import DESKTOP, PHONE, SMALL, Browsing, expect, log_in, width_of
from web.conftest import running
from web.test_browser_pages import judged


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A town of coins and a few transfers, with a list that names somebody in each."""
    folder = tmp_path_factory.mktemp("screening")
    write_folder(simulate_town(transactions=200, people=20), folder / "town")
    (folder / "pay.csv").write_text(
        "from,to,amount\nthief,bob,5\ncarol,bob,5\nbob,dave,3\n", encoding="utf-8"
    )
    (folder / "list.txt").write_text("thief\nminer0\nzoe\n", encoding="utf-8")
    registry = LedgerRegistry(
        [folder / "town", folder / "pay.csv"], lists={"bad": folder / "list.txt"}
    )
    with running(registry) as found:
        yield found


def screened(page: Any, **given: str) -> Any:
    for name, value in given.items():
        page.fill(f"#{name}", value)
    page.click("#screen-form button[type=submit]")
    page.wait_for_selector("#screen-answer")
    return page


@pytest.mark.parametrize("size", [DESKTOP, PHONE, SMALL])
@pytest.mark.parametrize("ledger", ["town", "pay"])
def test_axe_finds_nothing_and_nothing_scrolls_sideways(
    browsing: Browsing, site: Any, axe: str, ledger: str, size: tuple[int, int]
) -> None:
    page = browsing.open(site, f"/l/{ledger}/screen", size=size)
    assert judged(page, axe) == {}
    assert width_of(page) <= size[0]
    screened(page, limit="0.1", case="7/26")
    page.locator("#annex summary").click()
    expect(page.locator("#annex h3").first).to_be_visible()
    assert judged(page, axe) == {}
    assert width_of(page) <= size[0]


def test_the_verdict_comes_first_and_stays_out_of_the_address(
    browsing: Browsing, site: Any
) -> None:
    page = browsing.open(site, "/l/pay/coin/dave")
    page.click("text=screening statement")
    page.wait_for_selector("#screen-form")
    assert page.input_value("#nodes") == "dave"
    screened(page)
    assert page.text_content("#verdict").startswith("Match: 1 of 1 node screened")
    assert page.url == f"{site.address}/l/pay/screen"
    assert page.locator("#annex h3").first.is_hidden()
    screened(browsing.open(site, "/l/pay/screen"), nodes="carol")
    page.fill("#nodes", "nobody here")
    page.click("#screen-form button[type=submit]")
    expect(page.locator("[role=alert]")).to_contain_text("nobody here")
    assert page.input_value("#nodes") == "nobody here"


@pytest.mark.parametrize("script", [True, False])
def test_a_file_states_what_is_shown_whatever_the_form_says_by_then(
    browsing: Browsing, site: Any, tmp_path: Path, script: bool
) -> None:
    page = screened(browsing.open(site, "/l/pay/screen", script=script), nodes="bob\ndave")
    if script:
        log_in(page, site.token)
    page.fill("#nodes", "carol")
    with page.expect_download() as begun:
        page.click(".downloads button[value=json]")
    begun.value.save_as(tmp_path / "statement.json")
    document = json.loads((tmp_path / "statement.json").read_text())
    assert [row["node"] for row in document["nodes"]] == ["bob", "dave"]
    assert document["verdict"][0] == page.text_content("#verdict")
