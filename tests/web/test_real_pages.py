"""Pages over real ledgers: what a wallet, a what-if, accounts and a search are told."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape

import pytest

from coinhaze import CoinLedger
from coinhaze.ledger import write_folder
from coinhaze.web.registry import LedgerRegistry
from coinhaze.web.security.guard import Guard
from web.asking import BASE, ask, made_app
from web.test_pages import NEVER

FORM = {
    "content-type": "application/x-www-form-urlencoded",
    "sec-fetch-site": "same-origin",
    "origin": BASE,
}
COINS = "coins=mix:0%0Agift:0%0Awage:0&amount="


def small_town() -> CoinLedger:
    """Make three coins of one wallet: of two mints and an old coin, of a blog, and a wage."""
    old = {"txid": "old", "vout": 3, "value": 20_000, "address": "ex1"}
    wage = {"txid": "old", "vout": 7, "value": 45_000, "address": "firm"}
    return CoinLedger.from_transactions(
        [
            {"txid": "mint1", "outputs": [{"value": 50_000, "address": "ann"}]},
            {"txid": "mint2", "outputs": [{"value": 50_000, "address": "ben"}]},
            {
                "txid": "mix",
                "inputs": [{"txid": "mint1", "vout": 0}, {"txid": "mint2", "vout": 0}, old],
                "outputs": [
                    {"value": 60_000, "address": "me1"},
                    {"value": 60_000, "address": "eve"},
                ],
            },
            {"txid": "mint3", "outputs": [{"value": 40_000, "address": "blog"}]},
            {
                "txid": "gift",
                "inputs": [{"txid": "mint3", "vout": 0}],
                "outputs": [
                    {"value": 30_000, "address": "me2"},
                    {"value": 10_000, "address": "me3"},
                ],
            },
            {"txid": "wage", "inputs": [wage], "outputs": [{"value": 45_000, "address": "me4"}]},
        ]
    )


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guard]:
    folder = tmp_path_factory.mktemp("told")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        write_folder(small_town(), folder / "town")
        pay = "from,to,amount\nalice,bob,60\ndora,bob,40\nbob,carol,50\n"
        (folder / "pay.csv").write_text(pay)
        (folder / "odd.bin").write_bytes(b"\0\1\2")
        (folder / "list.txt").write_text("blog\nbob\n")
        paths = [folder / name for name in ("town", "pay.csv", "gone.csv", "odd.bin")]
        registry = LedgerRegistry(paths, lists={"known": folder / "list.txt"})
        yield made_app(registry)


def weighed(app: Guard, exposed: str, amount: str = "") -> str:
    body = f"{COINS}{amount}&exposed={exposed}"
    reply = ask(app, "/l/town/wallet", method="POST", content=body, headers=FORM)
    assert reply.status_code == 200
    return reply.text


def seen(markup: str) -> str:
    """Give the words of markup."""
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]*>", " ", markup))).strip()


def part(page: str, title: str) -> str:
    """Give the words of the card with a heading; nothing where there is none."""
    cards = page.split('<section class="card sec"')
    return next((seen(card) for card in cards if f"<h2>{title}</h2>" in card), "")


def test_coins_of_different_payers_are_to_be_separate(app: Guard) -> None:
    page = weighed(app, "blog")
    assert part(page, "Safe to merge: no known party learns of another coin") == ""
    apart = part(page, "Keep apart")
    assert (
        "Not exposed mix:0 , wage:0 keep apart: ann learns coin 3 (45,000 spent); firm learns "
        "coin 1 (60,000 spent) 105,000 1.83 0 %"
    ) in apart
    assert "exposes coins 1, 3 135,000 2.19 22.2 %" in apart
    assert "exposes coin 1 90,000 1.91 33.3 %" in part(page, "In pairs")
    parties = part(page.replace(' id="parties"', ""), "Who knows which coins")
    assert "ann mix:0 2 coins" in parties


def test_coins_one_party_knows_can_be_merged_and_show_one_owner(app: Guard) -> None:
    body = "coins=gift:0%0Agift:1&amount=&exposed="
    reply = ask(app, "/l/town/wallet", method="POST", content=body, headers=FORM)
    fine = part(reply.text, "Safe to merge: no known party learns of another coin")
    assert "learns of another coin; onlookers see one owner 40,000" in fine
    assert "one person holds these coins" in fine
    assert "Merging all coins is safe, as far as is known" in seen(reply.text)
    known = "&known=party,coin%0Azed,gift:1"
    reply = ask(app, "/l/town/wallet", method="POST", content=body + known, headers=FORM)
    assert "zed learns coin 1 (30,000 spent)" in part(reply.text, "Keep apart")


@pytest.mark.parametrize("exposed", ["", "blog"], ids=["none", "blog"])
def test_a_wallet_is_reported_in_words_of_the_page(app: Guard, exposed: str) -> None:
    words = seen(weighed(app, exposed, "40000"))
    assert "--" not in words
    assert not NEVER.search(words)


def test_a_what_if_warns_of_coins_that_become_exposed(app: Guard) -> None:
    page = ask(app, "/l/town/coin/gift:0?with=mix:0,wage:0").text
    result = seen(page.partition('id="what-if-result"')[2].partition("</section>")[0])
    assert "Keep apart: 2 coins not exposed now would become so: mix:0, wage:0." in result
    assert "mix:0 60,000 1.48 → 2.19 0 % → 22.2 %" in result
    assert "gift:0 30,000 0 → 2.19 100 % → 22.2 %" in result
    assert 'class="warnbox"' in page


def test_a_what_if_that_exposes_nothing_does_not_warn(app: Guard) -> None:
    page = ask(app, "/l/town/coin/mix:0?with=wage:0").text
    assert "what-if-bits" in page
    assert "what-if-warning" not in page
    assert "warnbox" not in page


def test_a_search_that_finds_nothing_names_where_and_offers_the_others(app: Guard) -> None:
    page = ask(app, "/search?q=alice&l=town").text
    assert "You searched for alice in town" in seen(page)
    assert re.findall(r'id="elsewhere">.*?href="([^"]*)"', page) == ["/search?q=alice&amp;l=pay"]
    assert ask(app, "/search?q=alice&l=pay").headers["location"] == "/l/pay/coin/alice"
    everywhere = ask(app, "/search?q=nobodyatall").text
    assert "in town , pay.csv" in seen(everywhere)
    assert "elsewhere" not in everywhere


def test_accounts_have_no_wallet_and_are_not_spent(app: Guard) -> None:
    for path in ("/l/pay", "/l/pay/coin/carol"):
        page = ask(app, path).text
        assert "Wallet" not in page
        assert "What if you spend" not in page
    assert "Wallets are of coins" in ask(app, "/l/pay/wallet").text
    assert "<textarea" not in ask(app, "/l/pay/wallet").text
    assert "/l/town/wallet" in ask(app, "/l/town").text
    assert "What if you spend" in ask(app, "/l/town/coin/mix:0").text
    assert "What if you spend" not in ask(app, "/l/town/coin/me1?view=address").text


def test_a_rule_that_turns_time_round_says_so(app: Guard) -> None:
    said = "needs payments in order of time"
    assert f"FIFO {said}" in ask(app, "/l/pay/coin/carol?policy=fifo").text
    assert f"LIFO {said}" in ask(app, "/l/pay/coin/carol?policy=lifo").text
    for query in ("", "?time=temporal", "?policy=fifo&time=temporal"):
        assert said not in ask(app, f"/l/pay/coin/carol{query}").text
    assert said not in ask(app, "/l/town/coin/mix:0?policy=fifo").text
    others = ask(app, "/l/pay/coin/carol/comparators").text
    assert others.count(said) == 2
    assert "time=temporal" not in others


def test_an_account_is_called_one(app: Guard) -> None:
    words = seen(ask(app, "/l/pay/coin/carol").text)
    assert "Share of account" in words
    assert "The same account, other rules" in words
    assert "of accounts in this ledger" in words
    assert "this coin" not in ask(app, "/l/pay/coin/carol").text.lower()
    assert "Share of coin" in ask(app, "/l/town/coin/mix:0").text


def test_exposure_says_that_passing_counts(app: Guard) -> None:
    words = seen(ask(app, "/l/pay/coin/carol").text)
    assert "60.0 % alice" in words
    read = "accounts, in order of time, haircut"
    assert f"50 was at 1 of 2 listed accounts; {read}" in words
    assert "not only what began there" in words
    assert "not only what began there" not in ask(app, "/l/town/coin/mix:0").text


def test_a_ledger_that_never_was_is_not_there(app: Guard) -> None:
    words = seen(ask(app, "/l/gone").text)
    assert "gone.csv is not there" in words
    assert "any more" not in words


def test_a_file_of_no_known_format_is_not_sent_to_its_backup(app: Guard) -> None:
    words = seen(ask(app, "/l/odd").text)
    assert "no known format" in words
    assert "backup" not in words
    assert "from,to,amount" in words


def test_labels_over_bands_have_a_halo(app: Guard) -> None:
    page = ask(app, "/l/town/coin/gift:0").text
    labels = re.findall(r'<text class="(lb2?[^"]*)"', page)
    assert labels
    assert all("halo" in label for label in labels)
    style = ask(app, re.findall(r'href="(/static/app.css[^"]*)"', page)[0]).text
    halo = next(line for line in style.splitlines() if line.startswith(".halo"))
    assert "paint-order: stroke" in halo
    assert "stroke: var(--card)" in halo
    assert "opacity" not in halo  # a thread of listed money is solid
