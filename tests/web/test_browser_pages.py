"""All pages in a real browser: searching, brushing, exporting, weighing, waiting, by any means."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

from web.browsing import PHONE, SMALL, Browsing, expect, log_in, whole, width_of
from web.drawn import COIN
from web.made import HOSTILE

DRAWN = f"/l/town/coin/{COIN}"
BITCOIN = "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4"  # of BIP 173
AXE_RUN = """async rules => {
  const runOnly = rules.length ? { type: 'rule', values: rules } : undefined;
  const found = await axe.run(document, { resultTypes: ['violations'], runOnly });
  return found.violations.map(v => `${v.impact} ${v.id}: ${v.nodes.map(n => n.target).join(' ')}`);
}"""

OF_COLOURS = ["color-contrast", "link-in-text-block"]  # what alone can differ in the dark


def some_coins(site: Any, number: int, *, sort: str = "-bits") -> list[str]:
    with site.client() as client:
        rows = client.table("town", sort=sort)
        return [row.name for row, _ in zip(rows, range(number), strict=False)]


def pages_of(site: Any) -> dict[str, str]:
    """Give an address of every kind of page."""
    coin, other = some_coins(site, 2)
    with site.client() as client:
        answer = client.coin("town", coin)
        listed = client.lists()[0].id
        dated = client.coin("week", next(iter(client.table("week"))).name)
    return {
        "start": "/",
        "coin": f"/l/town/coin/{coin}?with={other}",
        "destinations": f"/l/town/coin/{answer.made_by}/destinations",
        "destinations by time": f"/l/week/coin/{dated.made_by}/destinations?by=time",
        "where an account's went": f"/l/pay/coin/alice/destinations?list={listed}",
        "time": f"/l/week/coin/{dated.name}?by=time",
        "poison": f"/l/town/coin/{coin}?policy=poison&list={listed}",
        "table of flow": f"/l/town/coin/{coin}#flow-table",
        "account": "/l/pay/coin/dave",
        "address": f"/l/town/address/{answer.owner}",
        "transaction": f"/l/town/tx/{answer.made_by}",
        "block": f"/l/week/block/{dated.height}?limit=15",
        "ledger": "/l/town",
        "dots": "/l/pay",
        "table": "/l/town/table?limit=15",
        "compare": "/compare?l=town,pay",
        "wallet": "/l/town/wallet",
        "jobs": "/jobs",
        "investigation": "/investigation",
        "missing": "/l/gone",
        "nothing": "/search?q=nosuchthing",
    }


def test_01_slash_focuses_the_search(browsing: Browsing, drawn_site: Any) -> None:
    page = browsing.open(drawn_site, DRAWN)
    page.keyboard.press("/")
    expect(page.locator("#q")).to_be_focused()
    expect(page.locator("#q")).to_have_value("")
    first = browsing.open(drawn_site)
    expect(first.locator("#start-q")).to_be_focused()


def test_02_a_pasted_coin_opens(browsing: Browsing, town_site: Any) -> None:
    name = some_coins(town_site, 1)[0]
    page = browsing.open(town_site)
    page.fill("#start-q", f"  '{name}' ")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/l/town/coin/{name}")
    expect(page.locator("#bits")).to_be_visible()


def test_03_garbage_keeps_the_text_and_the_box(browsing: Browsing, town_site: Any) -> None:
    page = browsing.open(town_site, "/l/town")
    page.fill("#q", "%%% not a coin <b>")
    page.keyboard.press("Enter")
    page.wait_for_selector("#nothing")
    assert page.input_value("#q") == "%%% not a coin <b>"
    assert "%%% not a coin <b>" in page.text_content("#nothing")


def test_04_another_network_is_named(browsing: Browsing, town_site: Any) -> None:
    page = browsing.open(town_site, f"/search?q={BITCOIN}&l=dai")
    said = page.text_content("#nothing")
    assert "an address of bitcoin" in said
    assert "ethereum" in said


def test_20_no_page_scrolls_sideways(browsing: Browsing, town_site: Any) -> None:
    page = browsing.open(town_site, size=SMALL)
    for name, path in pages_of(town_site).items():
        page.goto(town_site.address + path)
        whole(page)
        for size in (SMALL, PHONE, (768, 900)):
            page.set_viewport_size({"width": size[0], "height": size[1]})
            assert width_of(page) <= size[0], (name, size)


def test_20_the_examples_do_not_scroll_sideways(browsing: Browsing, drawn_site: Any) -> None:
    page = browsing.open(drawn_site, size=SMALL)
    for name in (COIN, "crowd", "cycle", "hostile"):
        page.goto(f"{drawn_site.address}/l/town/coin/{name}")
        whole(page)
        for size in (SMALL, PHONE):
            page.set_viewport_size({"width": size[0], "height": size[1]})
            assert width_of(page) <= size[0], (name, size)


def judged(page: Any, axe: str) -> dict[str, list[str]]:
    """Give what axe has to say of a page, light and dark; nothing where that is nothing."""
    whole(page)
    page.evaluate(axe)
    found = {}
    for scheme, rules in (("light", []), ("dark", OF_COLOURS)):
        page.emulate_media(color_scheme=scheme)
        if said := page.evaluate(AXE_RUN, rules):
            found[scheme] = said
    return found


def test_21_axe_finds_nothing(browsing: Browsing, town_site: Any, axe: str) -> None:
    page = browsing.open(town_site)
    for name, path in pages_of(town_site).items():
        page.goto(town_site.address + path)
        assert judged(page, axe) == {}, name


def test_21_axe_finds_nothing_in_the_examples(
    browsing: Browsing, drawn_site: Any, axe: str
) -> None:
    page = browsing.open(drawn_site)
    for path in (DRAWN, f"{DRAWN}?policy=poison", "/l/raw"):
        page.goto(drawn_site.address + path)
        assert judged(page, axe) == {}, path


def test_21_axe_would_find_something(browsing: Browsing, drawn_site: Any, axe: str) -> None:
    page = browsing.open(drawn_site, "/jobs")
    page.evaluate("document.querySelector('#theme').removeAttribute('aria-label')")
    page.evaluate("document.querySelector('#theme').textContent = ''")
    assert any("button-name" in said for said in judged(page, axe)["light"])


def test_22_nothing_is_requested_of_another_host(browsing: Browsing, town_site: Any) -> None:
    page = browsing.open(town_site)
    for path in ("/l/town", f"/l/town/coin/{some_coins(town_site, 1)[0]}"):
        page.goto(town_site.address + path)
    assert browsing.elsewhere == []  # as at the end of every test here
    # The watch itself works: a page that asks elsewhere is noted.
    page.goto("about:blank")
    page.evaluate("fetch('http://elsewhere.invalid/').catch(() => 0)")
    assert browsing.elsewhere == ["http://elsewhere.invalid/"]
    browsing.elsewhere.clear()
    browsing.complaints.clear()


def test_23_a_hostile_label_is_text(browsing: Browsing, drawn_site: Any) -> None:
    page = browsing.open(drawn_site, "/l/town/coin/hostile")
    page.on("dialog", lambda dialog: browsing.complaints.append("a script ran"))
    assert HOSTILE in page.locator("#origins").inner_text()
    page.locator('.sankey.wide .nd[data-n="o1"]').hover()
    expect(page.locator("#info")).to_contain_text(HOSTILE)
    assert page.locator("img").count() == 0


def test_24_a_long_job_cancels_while_a_second_tab_works(
    browsing: Browsing, impatient_site: Any
) -> None:
    page = browsing.open(impatient_site, "/l/town/coin/slow")
    expect(page.locator("h1")).to_contain_text("Still working")
    second = browsing.open(impatient_site, DRAWN)
    expect(second.locator("#bits")).to_have_text("6.98")
    page.wait_for_selector("progress[value]:not([value='0'])")
    second.goto(f"{impatient_site.address}/jobs")
    second.locator("[data-state=running] button").first.click()
    second.wait_for_selector("[data-state=cancelled]")
    # The page that waited sees it, and does not wait any more.
    page.wait_for_url("**/jobs")


def test_25_without_script_there_are_number_sentence_and_tables(
    browsing: Browsing, town_site: Any
) -> None:
    coin, other = some_coins(town_site, 2)
    page = browsing.open(town_site, f"/l/town/coin/{coin}", script=False)
    expect(page.locator("#bits")).to_be_visible()
    expect(page.locator("#say")).to_contain_text("equally likely origins")
    assert page.locator(".origins tbody tr").count() > 1
    page.click("#by-table")
    expect(page.locator("#flow-table tbody tr").first).to_be_visible()
    expect(page.locator("#copy-link")).not_to_be_visible()
    page.fill("#with", other)
    page.click("#what-if-form button")
    page.wait_for_url("**with=*")
    expect(page.locator("#ownership")).to_be_visible()
    page.click("#rule-fifo")
    page.wait_for_url("**policy=fifo*")
    expect(page.locator("#bits")).to_be_visible()
    page.goto(f"{town_site.address}/l/town")
    page.fill("#bits_low", "1")
    page.click("#range-form button")
    page.wait_for_url("**bits_low=1*")
    expect(page.locator(".coins tbody tr").first).to_be_visible()


def test_somebody_who_is_not_in_learns_where_the_token_is(
    browsing: Browsing, drawn_site: Any
) -> None:
    page = browsing.open(drawn_site)
    page.context.set_extra_http_headers({})
    page.goto(f"{drawn_site.address}/jobs")
    expect(page.locator("h1")).to_contain_text("needs its key")
    expect(page.locator("#enter-token")).to_be_visible()


def test_brushing_lists_the_coins_inside(browsing: Browsing, town_site: Any) -> None:
    page = browsing.open(town_site, "/l/town")
    page.locator("#field").scroll_into_view_if_needed()
    box = page.locator("#field").bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.3, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + 120)
    page.mouse.move(box["x"] + box["width"] * 0.9, box["y"] + 250)
    page.mouse.up()
    page.wait_for_selector("#brushed-total")
    given = {
        name: float(page.input_value(f"#{name}"))
        for name in ("bits_low", "bits_high", "steps_low", "steps_high")
    }
    with town_site.client() as client:
        inside = [
            row
            for row in client.table("town")
            if row.bits is not None
            and given["bits_low"] <= row.bits <= given["bits_high"]
            and row.steps is not None
            and given["steps_low"] <= row.steps <= given["steps_high"]
        ]
    assert inside
    assert page.text_content("#brushed-total") == f"{len(inside):,} row" + "s" * (len(inside) != 1)
    expect(page.locator("#brushed .coins tbody tr")).to_have_count(min(len(inside), 100))
    assert "bits_low=" in page.get_attribute("#brushed a[download]", "href")


def test_the_table_sorts_turns_pages_and_exports(
    browsing: Browsing, town_site: Any, tmp_path: Path
) -> None:
    page = browsing.open(town_site, "/l/town/table")
    first = page.locator(".coins tbody tr").first.inner_text()
    page.click("#sort-steps")
    page.wait_for_url("**sort=-steps*")
    expect(page.locator("th:has(#sort-steps)")).to_have_attribute("aria-sort", "descending")
    steps = page.eval_on_selector_all(
        ".coins td[data-head=Steps]",
        "cells => cells.map(c => Number(c.textContent.replace(',', '')))",
    )
    assert steps == sorted(steps, reverse=True)
    page.click("#next")
    page.wait_for_url("**after=*")
    expect(page.locator(".coins tbody tr").first).not_to_have_text(first, use_inner_text=True)
    page.context.set_extra_http_headers({})
    page.goto(page.url)
    log_in(page, town_site.token)
    page.reload()
    with page.expect_download() as download:
        page.click("#csv")
    download.value.save_as(tmp_path / "table.csv")
    rows = list(csv.DictReader((tmp_path / "table.csv").read_text().splitlines()))
    page.goto(f"{town_site.address}/l/town/table")
    assert len(rows) == int(page.get_attribute("#total", "data-total"))


def test_counts_of_the_histogram_turn_logarithmic(browsing: Browsing, town_site: Any) -> None:
    page = browsing.open(town_site, "/l/town")
    expect(page.locator(".hist.linear")).to_be_visible()
    expect(page.locator(".hist.log")).not_to_be_visible()
    page.check("#log-counts")
    expect(page.locator(".hist.log")).to_be_visible()
    expect(page.locator(".hist.linear")).not_to_be_visible()


def test_a_wallet_is_weighed_and_stays_out_of_the_address(
    browsing: Browsing, town_site: Any, tmp_path: Path
) -> None:
    coins = some_coins(town_site, 3)
    (tmp_path / "coins.txt").write_text("\n".join(coins))
    page = browsing.open(town_site, "/l/town/wallet")
    page.set_input_files("#coins-file", tmp_path / "coins.txt")
    expect(page.locator("#coins")).not_to_have_value("")
    page.click("#wallet-form button[type=submit]")
    page.wait_for_selector("#wallet-answer")
    assert page.url == f"{town_site.address}/l/town/wallet"
    expect(page.locator("#wallet-answer table").first.locator("tbody tr")).to_have_count(3)
    expect(page.locator("#wallet-answer")).to_contain_text("one person holds these coins")


def test_ledgers_are_compared(browsing: Browsing, town_site: Any) -> None:
    page = browsing.open(town_site, "/compare")
    page.check("input[value=town]")
    page.check("input[value=pay]")
    page.click("main button")
    page.wait_for_selector(".curves")
    expect(page.locator(".curves .curve")).to_have_count(2)
    expect(page.locator(".curves .name")).to_have_text(["town", "pay.csv"])


def test_the_theme_turns_and_stays(browsing: Browsing, drawn_site: Any) -> None:
    page = browsing.open(drawn_site, DRAWN)
    ground = "background-color"
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.click("#theme")
    expect(page.locator("body")).not_to_have_css(ground, light)
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.goto(f"{drawn_site.address}/jobs")
    expect(page.locator("body")).to_have_css(ground, dark)
    page.keyboard.press("t")
    expect(page.locator("body")).to_have_css(ground, light)
    system = browsing.open(drawn_site, dark=True)
    expect(system.locator("body")).to_have_css(ground, dark)


def test_by_keyboard_alone_a_person_finds_reads_and_switches(
    browsing: Browsing, town_site: Any
) -> None:
    name = some_coins(town_site, 1)[0]
    page = browsing.open(town_site, "/l/town")
    page.keyboard.press("/")
    page.keyboard.type(name)
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/l/town/coin/{name}")
    expect(page.locator("#bits")).to_be_visible()
    seen = []
    for _ in range(60):
        page.keyboard.press("Tab")
        at = page.evaluate("document.activeElement.id || document.activeElement.className")
        seen.append(at if isinstance(at, str) else "flow")
        if page.evaluate("document.activeElement.classList.contains('nd')"):
            break
    assert "rule-fifo" in seen
    assert page.evaluate("document.activeElement.dataset.c") == "0"
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".nd:focus")).to_have_attribute("data-c", "1")
    page.keyboard.press("2")
    page.wait_for_url("**policy=fifo*")
    expect(page.locator("#rule-fifo")).to_have_attribute("aria-current", "true")


def test_recent_coins_stay_in_this_browser(browsing: Browsing, drawn_site: Any) -> None:
    page = browsing.open(drawn_site, DRAWN)
    page.goto(drawn_site.address)
    expect(page.locator("#recent-list a")).to_have_text(["4f1e07…a93c:1"])
    expect(page.locator("#recent")).to_be_visible()
    page.click("#forget")
    expect(page.locator("#recent")).not_to_be_visible()
    page.reload()
    expect(page.locator("#recent")).not_to_be_visible()


def test_a_ledger_that_is_not_there_says_so(browsing: Browsing, town_site: Any) -> None:
    page = browsing.open(town_site, "/l/gone")
    assert page.get_attribute("[data-state]", "data-state") == "missing"
    assert "gone.csv" in page.text_content("main")
    expect(page.locator("#q")).to_be_visible()


def test_a_ledger_is_scored_from_its_page(browsing: Browsing, drawn_site: Any) -> None:
    page = browsing.open(drawn_site, "/l/raw")
    page.click("button:has-text('Score it now')")
    page.wait_for_url("**/jobs*")
    page.wait_for_selector("[data-state=done]")
    expect(page.locator("main")).to_contain_text("raw")


def test_json_of_a_page_is_the_api(browsing: Browsing, town_site: Any) -> None:
    name = some_coins(town_site, 1)[0]
    page = browsing.open(town_site, f"/l/town/coin/{name}.json")
    assert json.loads(page.text_content("body"))["name"] == name
