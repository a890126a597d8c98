"""Answers first: observers, transactions, merges and bundles in a real browser, narrow and wide."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import coinhaze
from coinhaze.explore.describe import share_words
from coinhaze.ledger import write_folder
from coinhaze.web.registry import LedgerRegistry
from web.browsing import DESKTOP, PHONE, Browsing, expect, width_of
from web.conftest import running
from web.test_browser_pages import judged

EQUAL = 200


def spent(name: str, value: int) -> dict[str, Any]:
    return {"txid": name, "vout": 0, "value": value, "address": f"owner of {name}"}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A consolidation of 200 equal coins, a mix that can be read in several ways, transfers."""
    folder = tmp_path_factory.mktemp("answers")
    ledger = coinhaze.CoinLedger.from_transactions(
        [
            {"txid": "sweep", "inputs": [spent(f"s{k}", 5_000) for k in range(EQUAL)],
             "outputs": [{"value": EQUAL * 5_000, "address": "swept"}]},
            {"txid": "mix", "inputs": [spent("v", 10), spent("w", 10), spent("x", 4)],
             "outputs": [{"value": v} for v in (8, 2, 3, 7, 4)]},
        ]
    )  # fmt: skip
    write_folder(ledger, folder / "coins")
    (folder / "pay.csv").write_text(
        "from,to,amount,time\nalice,bob,5,1\ncarol,bob,5,2\nbob,dave,3,3\n", encoding="utf-8"
    )
    registry = LedgerRegistry([folder / "coins", folder / "pay.csv"])
    with running(registry) as found:
        yield found


PAGES = {
    "consolidation": "/l/coins/coin/sweep:0",
    "its transaction": "/l/coins/tx/sweep",
    "mix": "/l/coins/tx/mix",
    "table": "/l/coins/table?sort=-informed",
    "account": "/l/pay/coin/dave",
    "ledger of accounts": "/l/pay",
    "compare": "/compare?l=coins,pay",
    "start": "/",
}


@pytest.mark.parametrize("size", [DESKTOP, PHONE])
def test_axe_finds_nothing_and_nothing_scrolls_sideways(
    browsing: Browsing, site: Any, axe: str, size: tuple[int, int]
) -> None:
    page = browsing.open(site, size=size)
    for name, path in PAGES.items():
        page.goto(site.address + path)
        assert judged(page, axe) == {}, (name, size)
        assert width_of(page) <= size[0], (name, size)


def test_a_consolidation_says_what_most_observers_assume(browsing: Browsing, site: Any) -> None:
    page = browsing.open(site, PAGES["consolidation"])
    said = page.text_content("#observed-first")
    assert "7.64 bits; 0 if its inputs had one owner, which most observers assume." in said
    # Above the fold, before any table.
    assert page.locator("#observed-first").bounding_box()["y"] < 400
    assert "+7.64" in page.text_content("#why")
    assert f"{EQUAL} ways back, 1 hop away" in page.text_content("#why")


def test_equal_origins_are_one_bundle_that_opens(browsing: Browsing, site: Any) -> None:
    page = browsing.open(site, PAGES["consolidation"])
    drawn = page.locator(".wideflow")
    assert f"{EQUAL} equal origins 100 %" in drawn.text_content()
    assert drawn.locator(".stripes").count() == 1
    drawn.locator("a.nd", has=page.locator(".stripes")).click()
    page.wait_for_url("**open=ox0*")
    expect(page.locator(".wideflow")).to_contain_text(f"Other, {EQUAL - 8} origins")


def test_a_transaction_shows_its_links_as_a_heat_map(browsing: Browsing, site: Any) -> None:
    page = browsing.open(site, PAGES["mix"])
    with site.client() as client:
        facts = client.transaction("coins", "mix").transaction
    assert facts is not None
    cells = page.locator(".heat td")
    assert cells.count() == 5 * 2
    shown = {cells.nth(k).get_attribute("class") for k in range(cells.count())}
    assert len(shown) > 1, "all cells have one shade"
    assert "Amounts can be read in" in page.text_content("#say")
    assert page.text_content("#say") == facts.sentence
    stated = [share_words(share) for row in facts.links.probabilities for share in row]
    assert [cells.nth(k).text_content() for k in range(cells.count())] == stated
    swept = browsing.open(site, PAGES["its transaction"])
    assert "to most observers one person paid it." in swept.text_content("#say")
    assert "common-input-no-coinjoins, right in 83% of the cases measured" in swept.text_content(
        "#findings"
    )
    assert "every input paid every output" in swept.text_content("#links")


def test_rows_are_cards_on_a_phone(browsing: Browsing, site: Any) -> None:
    page = browsing.open(site, PAGES["table"], size=PHONE)
    first = page.locator("table.cards tbody tr").first
    boxes = [cell.bounding_box() for cell in first.locator("td:visible").all()]
    assert len(boxes) >= 4
    assert all(low["y"] < high["y"] for low, high in pairwise(boxes))
    assert all(box["x"] + box["width"] <= PHONE[0] for box in boxes)


def test_who_learns_what_can_be_read_on_a_phone(browsing: Browsing, site: Any) -> None:
    page = browsing.open(site, "/l/coins/wallet", size=PHONE)
    page.locator("#wallet-form textarea").first.fill("sweep:0\nmix:0\nmix:1")
    page.click("#wallet-form button[type=submit]")
    page.wait_for_selector("#wallet-answer")
    verdicts = page.locator("td[data-head='Who learns what']")
    assert verdicts.count() > 0
    assert all(each.bounding_box()["width"] > PHONE[0] / 2 for each in verdicts.all())
    assert width_of(page) <= PHONE[0]


def test_ids_of_real_length_fit_on_a_phone_and_short_words_stay_whole(
    browsing: Browsing, tmp_path: Path
) -> None:
    ids = [letter * 64 for letter in "abcd"]
    made = [
        {"txid": name, "inputs": [spent(f"in{k}", 5_000)]}
        | {"outputs": [{"value": 5_000, "address": "bc1q" + name[:38]}]}
        for k, name in enumerate(ids)
    ]
    write_folder(coinhaze.CoinLedger.from_transactions(made), tmp_path / "real")
    with running(LedgerRegistry([tmp_path / "real"])) as found:
        for size in (PHONE, DESKTOP):
            page = browsing.open(found, "/l/real/wallet", size=size)
            page.locator("#wallet-form textarea").first.fill("\n".join(f"{i}:0" for i in ids))
            page.fill("#amount", "12000")
            page.click("#wallet-form button[type=submit]")
            page.wait_for_selector("#wallet-answer")
            assert width_of(page) <= size[0]
            roles = page.locator("#suggestion td.role")
            assert roles.count() > 0
            assert all(each.bounding_box()["height"] < 60 for each in roles.all())


def test_accounts_are_neither_mined_nor_coins(browsing: Browsing, site: Any) -> None:
    for path in (PAGES["account"], PAGES["ledger of accounts"], "/l/pay/table"):
        page = browsing.open(site, path)
        said = page.text_content("main").lower()
        assert "mined" not in said, path
        assert "coin" not in said.replace("coinhaze", "").replace("coinjoin", ""), path


def test_coins_and_accounts_are_compared_in_the_same_time(browsing: Browsing, site: Any) -> None:
    page = browsing.open(site, PAGES["compare"])
    said = page.text_content("table")
    assert "coins, in order of time" in said
    assert "accounts, in order of time" in said
    assert page.locator("#differences").count() == 0
    asked = browsing.open(site, "/compare?l=coins,pay&time=temporal")
    assert asked.locator("#differences").count() == 0


def test_a_page_of_an_unscored_ledger_has_the_button(
    browsing: Browsing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from coinhaze.web import ledger_state

    monkeypatch.setattr(ledger_state, "LIGHT", 0)
    (tmp_path / "own.csv").write_text("from,to,amount\na,b,5\n", encoding="utf-8")
    with running(LedgerRegistry([tmp_path / "own.csv"])) as found:
        page = browsing.open(found, "/l/own/table")
        page.click("button:has-text('Score it now')")
        page.wait_for_url("**/jobs*")
