"""A coin's page in a real browser: what a person does, and what must then be seen."""

from __future__ import annotations

import re
from typing import Any

import pytest

from web.browsing import PHONE, SMALL, Browsing, expect, whole, width_of
from web.drawn import COIN

DRAWN = f"/l/town/coin/{COIN}"
SEEN = "el => { const r = el.getBoundingClientRect(); return [r.left, r.top, r.right, r.bottom]; }"


def bits(page: Any) -> str:
    return str(page.text_content("#bits"))


def likely(site: Any, *, minimum: float = 2.0) -> str:
    """Give a coin of the town with some bits, and unlike bits by other rules."""
    with site.client() as client:
        for row in client.table("town", sort="-bits"):
            if row.bits is not None and row.bits >= minimum:
                return str(row.name)
    raise AssertionError("no such coin")


def test_05_number_range_sentence_exposure_and_flow_are_above_the_fold(
    browsing: Browsing, drawn_site: Any
) -> None:
    page = browsing.open(drawn_site, f"{DRAWN}?list=bad@71be")
    for part in ("#bits", "#range", "#say", "#fact-exposure", ".sankey.wide"):
        left, top, right, bottom = page.locator(part).evaluate(SEEN)
        assert left >= 0
        assert top >= 0
        assert right <= 1280
        assert bottom <= 900, part
    assert page.text_content("#range") == "proven range 6.96\N{EN DASH}7.01"


def test_06_bits_equal_those_of_the_api(browsing: Browsing, town_site: Any) -> None:
    name = likely(town_site)
    page = browsing.open(town_site, f"/l/town/coin/{name}")
    with town_site.client() as client:
        answer = client.coin("town", name)
    assert page.get_attribute("#bits", "data-bits") == repr(answer.bits)
    assert bits(page) == answer.sentence.shown
    assert answer.sentence.text in (page.text_content("#say") or "")


def test_07_the_though_clause_comes_by_its_rule(browsing: Browsing, town_site: Any) -> None:
    with town_site.client() as client:
        rows = [row for row, _ in zip(client.table("town", sort="-bits"), range(60), strict=False)]
        answers = [client.coin("town", row.name) for row in rows[::12]]
    page = browsing.open(town_site)
    for answer in answers:
        page.goto(f"{town_site.address}/l/town/coin/{answer.name}")
        top, equal = answer.top_share or 0.0, 2.0 ** (answer.bits or 0.0)
        wanted = top >= 0.10 and top >= 3 / equal
        assert ("though one origin alone" in page.text_content("#say")) == wanted


def test_08_fifo_changes_number_marker_flow_table_and_address_together(
    browsing: Browsing, drawn_site: Any
) -> None:
    page = browsing.open(drawn_site, DRAWN)

    def state() -> tuple[Any, ...]:
        return (
            bits(page),
            page.locator(".scale svg svg .iv").first.evaluate(SEEN),
            page.locator(".sankey.wide").inner_html(),
            page.locator(".origins tbody").inner_text(),
            page.locator("#flow-table").inner_text(),
            page.url,
        )

    before = state()
    page.click("#rule-fifo")
    page.wait_for_url("**policy=fifo*")
    after = state()
    assert all(a != b for a, b in zip(before, after, strict=True))
    expect(page.locator("#rule-fifo")).to_have_attribute("aria-current", "true")
    # A switch replaces: one step back leaves the coin, it does not undo the switch.
    page.go_back()
    assert "/coin/" not in page.url


def test_09_poison_shows_no_percent(browsing: Browsing, drawn_site: Any) -> None:
    page = browsing.open(drawn_site, f"{DRAWN}?policy=poison&list=bad@71be")
    assert bits(page) == "Touched"
    for part in (".verdict", "#flow", "#origins"):
        assert not re.search(r"\d\s*%", page.locator(part).inner_text()), part


def test_10_a_reload_restores_everything(browsing: Browsing, drawn_site: Any) -> None:
    page = browsing.open(drawn_site, DRAWN)
    page.click("#rule-fifo")
    page.wait_for_url("**policy=fifo*")
    page.click("#by-time")
    page.wait_for_url("**by=time*")
    page.keyboard.press("v")
    page.wait_for_selector("#flow-table", state="visible")
    seen = bits(page), page.locator("#flow-table").inner_text(), page.url
    page.reload()
    assert (bits(page), page.locator("#flow-table").inner_text(), page.url) == seen
    expect(page.locator("#by-time")).to_have_attribute("aria-current", "true")


def test_11_a_copied_link_has_no_token(browsing: Browsing, drawn_site: Any) -> None:
    page = browsing.open(drawn_site, f"{DRAWN}?policy=fifo")
    page.click("#copy-link")
    page.wait_for_selector("#copy-link[data-copied]")
    copied = page.get_attribute("#copy-link", "data-copied")
    assert copied.endswith(f"{DRAWN}?policy=fifo")
    assert drawn_site.token not in copied
    assert drawn_site.token not in page.content()
    assert drawn_site.token not in page.evaluate("JSON.stringify({...localStorage})")


@pytest.mark.parametrize("name", [COIN, "crowd", "one"], ids=["example", "crowd", "one"])
def test_12_shares_of_origins_sum_to_100(browsing: Browsing, drawn_site: Any, name: str) -> None:
    page = browsing.open(drawn_site, f"/l/town/coin/{name}")
    given = page.eval_on_selector_all(
        "[data-share]", "rows => rows.map(r => Number(r.dataset.share))"
    )
    assert 100 * sum(given) == pytest.approx(100, abs=0.1)


def test_13_columns_conserve_what_is_drawn(browsing: Browsing, drawn_site: Any) -> None:
    page = browsing.open(drawn_site, DRAWN)
    heights = page.eval_on_selector_all(
        ".sankey.wide .nd",
        """nodes => nodes.map(n => [Number(n.dataset.c),
            n.querySelector('.bar').getBoundingClientRect().height])""",
    )
    coin = next(height for column, height in heights if column == 0)
    last = max(column for column, _ in heights)
    origins = sum(height for column, height in heights if column == last)
    assert origins == pytest.approx(coin, rel=0.03)  # the least of a bar is a pixel


def test_14_a_crowd_stays_under_the_cap(browsing: Browsing, drawn_site: Any) -> None:
    page = browsing.open(drawn_site, "/l/town/coin/crowd")
    assert page.locator(".sankey.wide .nd").count() <= 40
    assert "99,992 origins" in page.locator("#origins").inner_text()
    phone = browsing.open(drawn_site, "/l/town/coin/crowd", size=PHONE)
    assert phone.locator(".sankey.narrow .nd").count() <= 26
    expect(phone.locator(".sankey.narrow")).to_be_visible()
    expect(phone.locator(".sankey.wide")).not_to_be_visible()


def test_15_one_origin_draws(browsing: Browsing, drawn_site: Any) -> None:
    page = browsing.open(drawn_site, "/l/town/coin/one")
    assert page.locator(".sankey.wide .ln").count() == 1
    assert "One possible origin" in page.text_content("#say")
    expect(page.locator(".sankey.wide .nd").first).to_be_visible()


# Presses arrows at every box that was reached, until no new one is.
REACHED = """() => {
  const drawing = document.querySelector('.sankey.wide');
  const seen = new Set([drawing.querySelector('.nd[tabindex="0"]')]);
  for (const box of seen) {
    for (const key of ['ArrowLeft', 'ArrowRight', 'ArrowUp', 'ArrowDown']) {
      box.focus();
      box.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }));
      seen.add(document.activeElement);
    }
  }
  return seen.size;
}"""


def test_16_arrows_reach_every_box_of_a_crowd(browsing: Browsing, drawn_site: Any) -> None:
    page = browsing.open(drawn_site, "/l/town/coin/crowd")
    assert page.evaluate(REACHED) == page.locator(".sankey.wide .nd").count() > 30


def test_16_arrows_reach_every_box_and_focus_is_seen(browsing: Browsing, drawn_site: Any) -> None:
    page = browsing.open(drawn_site, DRAWN)
    assert page.locator('.sankey.wide .nd[tabindex="0"]').count() == 1
    page.locator('.sankey.wide .nd[tabindex="0"]').focus()
    here = "document.activeElement.dataset.n"
    first = page.evaluate(here)
    seen, waiting = {first}, [first]
    while waiting:
        at = waiting.pop()
        for key in ("ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"):
            page.evaluate(f"document.querySelector('.sankey.wide .nd[data-n=\"{at}\"]').focus()")
            page.keyboard.press(key)
            to = page.evaluate(here)
            if to not in seen:
                seen.add(to)
                waiting.append(to)
    assert len(seen) == page.locator(".sankey.wide .nd").count()
    assert page.locator('.sankey.wide .nd[tabindex="0"]').count() == 1
    page.keyboard.press("ArrowLeft")
    drawn = page.evaluate(
        "getComputedStyle(document.activeElement.querySelector('.bar')).strokeWidth"
    )
    assert drawn == "4px"


def test_17_escape_clears(browsing: Browsing, drawn_site: Any) -> None:
    page = browsing.open(drawn_site, DRAWN)
    page.locator('.sankey.wide .nd[data-n="o1"]').focus()
    expect(page.locator(".sankey.focus")).to_have_count(1)
    expect(page.locator('.thread.on[data-o="o1"]')).to_have_count(1)
    expect(page.locator("#info")).to_contain_text("Exchange North")
    page.keyboard.press("Escape")
    expect(page.locator(".sankey.focus, .thread.on, .sel")).to_have_count(0)
    expect(page.locator("#info")).to_contain_text("Point at a bar")


def test_18_the_table_has_a_row_for_every_band(browsing: Browsing, town_site: Any) -> None:
    page = browsing.open(town_site, f"/l/town/coin/{likely(town_site)}")
    page.click("#by-table")
    expect(page.locator("#flow-table")).to_be_visible()
    expect(page.locator(".pic")).not_to_be_visible()
    rows = page.locator("#flow-table tbody tr").count()
    assert rows == page.locator(".sankey.wide .ln").count() > 0


def test_19_what_if_equals_the_api_and_says_what_bits_do_not_count(
    browsing: Browsing, town_site: Any
) -> None:
    with town_site.client() as client:
        names = [row.name for row, _ in zip(client.table("town"), range(40), strict=False)]
        answer = client.what_if("town", [names[0], names[39]])
    page = browsing.open(town_site, f"/l/town/coin/{names[0]}?list=none")
    page.fill("#with", names[39])
    page.keyboard.press("Enter")
    page.wait_for_url("**with=*")
    expect(page.locator("#what-if-bits")).to_have_attribute("data-bits", repr(answer.after.bits))
    expect(page.locator("#ownership")).to_contain_text("one person holds these coins")


def test_opening_a_folded_box_shows_more_and_folds_again(
    browsing: Browsing, town_site: Any
) -> None:
    with town_site.client() as client:
        rows = [row for row, _ in zip(client.table("town"), range(80), strict=False)]
        crowded = next(
            row.name
            for row in rows
            if any(node.opens for node in client.coin("town", row.name).flow.nodes)
        )
    page = browsing.open(town_site, f"/l/town/coin/{crowded}")
    before = page.locator(".sankey.wide .nd").count()
    folded = page.locator(".sankey.wide a.nd[data-opens]").first
    folded.focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**open=*")
    expect(page.locator(".sankey.wide .nd").nth(before)).to_be_attached()
    page.click("text=Fold again")
    page.wait_for_url(lambda url: "open=" not in url)
    expect(page.locator(".sankey.wide .nd")).to_have_count(before)


def test_repeats_light_together(browsing: Browsing, drawn_site: Any) -> None:
    page = browsing.open(drawn_site, "/l/town/coin/cycle")
    page.locator('.sankey.wide .nd[data-n="b3"]').hover()
    expect(page.locator(".sankey.wide .twin")).to_have_count(2)


@pytest.mark.parametrize("name", [COIN, "crowd", "cycle"], ids=["example", "crowd", "cycle"])
def test_no_words_of_the_flow_overlap(browsing: Browsing, drawn_site: Any, name: str) -> None:
    page = browsing.open(drawn_site, f"/l/town/coin/{name}")
    for size in ((1280, 900), (1090, 900), PHONE, SMALL):
        page.set_viewport_size({"width": size[0], "height": size[1]})
        boxes = page.eval_on_selector_all(
            ".sankey text",
            """all => all.map(t => [t.textContent, t.getBoundingClientRect()])
                .filter(([_, r]) => r.width > 0)
                .map(([t, r]) => [t, r.left, r.top, r.right, r.bottom])""",
        )
        assert boxes
        for i, (a, left, top, right, bottom) in enumerate(boxes):
            assert left >= -1, (size, a)
            assert right <= size[0] + 1, (size, a)
            for b, *other in boxes[:i]:
                across = min(right, other[2]) - max(left, other[0])
                down = min(bottom, other[3]) - max(top, other[1])
                # Lines of letters stand closer than the boxes browsers give them.
                assert across <= 1 or down <= 4, (size, a, b)


def test_the_phone_puts_the_coin_on_top(browsing: Browsing, drawn_site: Any) -> None:
    page = browsing.open(drawn_site, DRAWN, size=PHONE)
    tops = page.eval_on_selector_all(
        ".sankey.narrow .nd",
        """nodes => nodes.map(n => [Number(n.dataset.c),
            n.querySelector('.bar').getBoundingClientRect().top])""",
    )
    by_column = dict(tops)
    assert [by_column[c] for c in sorted(by_column)] == sorted(by_column.values())
    page.locator('.sankey.narrow .nd[data-n="o1"]').dispatch_event("click")
    expect(page.locator("#info")).to_contain_text("Exchange North")
    assert width_of(page) <= PHONE[0]


def test_amounts_hide_by_a_key_and_stay_hidden(browsing: Browsing, drawn_site: Any) -> None:
    page = browsing.open(drawn_site, DRAWN)
    amount = page.locator(".amt").first
    expect(amount).to_have_css("filter", "none")
    page.keyboard.press("h")
    expect(amount).to_have_css("filter", re.compile("blur"))
    page.reload()
    expect(amount).to_have_css("filter", re.compile("blur"))


def test_other_rules_come_after_the_page(browsing: Browsing, town_site: Any) -> None:
    page = browsing.open(town_site, f"/l/town/coin/{likely(town_site)}")
    whole(page)
    expect(page.locator("#rules tbody tr").first).to_be_visible()
    expect(page.locator("#rules")).to_contain_text("Haircut")
