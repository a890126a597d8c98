"""A chain walked back on demand: what its explorer tells holds over the whole chain."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coinhaze.errors import CoinhazeError, InputError, UnknownName, UsageError
from coinhaze.explore import Explorer
from coinhaze.explore.query import CoinQuery, SharedQuery, WalletQuery, WhatIfQuery
from coinhaze.explore.walked import WalkedExplorer, WalkedPart, coin_of, follow
from coinhaze.formats.lists.coins import ListedCoin
from coinhaze.ledger import CoinLedger
from coinhaze.wallet.walk_back import in_order
from wallet.test_walk_back import Book, Records, chains

SLACK = 1e-9


def spend(*coins: str) -> list[dict[str, object]]:
    return [
        {"txid": txid, "vout": int(vout)} for txid, _, vout in (c.partition(":") for c in coins)
    ]


MINED: Records = [
    {"txid": f"c{k}", "outputs": [{"value": 50, "address": f"m{k}"}]} for k in range(4)
]
CHAIN: Records = [
    *MINED,
    {"txid": "a", "inputs": spend("c0:0", "c1:0"), "outputs": [{"value": 60}, {"value": 40}]},
    {"txid": "b", "inputs": spend("a:0", "c2:0"), "outputs": [{"value": 70}, {"value": 40}]},
    {"txid": "d", "inputs": spend("b:0", "c3:0"), "outputs": [{"value": 100}, {"value": 20}]},
]


def followed(book: Book, *coins: str, limit: int, accuracy: float = 0.1) -> WalkedExplorer:
    listed = [ListedCoin("coin", coin, None) for coin in coins]
    part = follow(book, WalkedPart(), listed, accuracy=accuracy, max_transactions=limit)
    return WalkedExplorer(part)


@given(chains(), st.integers(1, 6), st.data())
@settings(max_examples=60, deadline=None)
def test_figures_of_a_part_hold_over_the_whole_chain(
    records: Records, limit: int, data: st.DataObject
) -> None:
    book = Book(records)
    last = book.known[records[-1]["txid"]]
    name = f"{last.txid}:{data.draw(st.sampled_from(last.outputs)).vout}"
    listed = data.draw(st.sampled_from([f"t{k}:0" for k in range(len(records))]))
    ledger = CoinLedger.from_transactions(in_order(book.known))
    truth = Explorer(ledger, names_of=lambda _: [listed]).coin(name, CoinQuery(list="some"))
    part = follow(book, WalkedPart(), [ListedCoin("coin", name, None)], accuracy=0,
                  max_transactions=limit)  # fmt: skip
    found = WalkedExplorer(part, names_of=lambda _: [listed]).coin(name, CoinQuery(list="some"))
    assert found.bits is not None
    assert truth.bits is not None
    assert found.bits_low is not None
    assert found.bits_high is not None
    assert found.bits_low - SLACK <= truth.bits <= found.bits_high + SLACK
    assert found.bits_low <= found.bits <= found.bits_high
    assert found.exposure is not None
    assert truth.exposure is not None
    assert found.exposure.share is not None
    assert truth.exposure.share is not None
    low, high = found.exposure.share_low, found.exposure.share_high
    assert low is not None
    assert high is not None
    assert low - SLACK <= truth.exposure.share <= high + SLACK
    if not found.not_followed:
        assert found.bits == pytest.approx(truth.bits, abs=1e-9)
        assert found.steps == pytest.approx(truth.steps)
        assert found.top_share == pytest.approx(truth.top_share)


def test_what_is_not_known_from_a_part_is_not_reported() -> None:
    explorer = followed(Book(CHAIN), "d:0", limit=2)
    coin = explorer.coin("d:0")
    assert coin.not_followed == pytest.approx(1.0)
    assert (coin.top_share, coin.steps, coin.steps_nearest, coin.sources) == (None,) * 4
    assert (coin.why, coin.observers, coin.place) == (None, (), None)
    assert coin.sentence.band == "Not known yet"
    assert coin.sentence.shown == "0.0\N{EN DASH}2.0"
    assert coin.sentence.text.startswith("As hard to trace as a coin with 1 to 4.0 equally likely")
    assert {origin.kind for origin in coin.origins} == {"earlier"}
    assert {origin.href for origin in coin.origins} == {
        "/l/ledger/coin/a:0", "/l/ledger/coin/c2:0", "/l/ledger/coin/c3:0"
    }  # fmt: skip


def test_walking_further_adds_to_what_is_known_and_ends_exact() -> None:
    book = Book(CHAIN)
    coin = ListedCoin("coin", "d:0", None)
    part = follow(book, WalkedPart(), [coin], max_transactions=2)
    asked = book.asked
    more = follow(book, part, [coin], accuracy=0, max_transactions=100)
    assert book.asked - asked == len(CHAIN) - 2
    assert set(part.known) < set(more.known)
    assert more.digest != part.digest
    found = WalkedExplorer(more).coin("d:0")
    whole = Explorer(CoinLedger.from_transactions(in_order(book.known))).coin("d:0")
    assert (found.not_followed, found.sentence.range) == (0.0, "exact")
    assert found.bits == pytest.approx(whole.bits)
    assert found.why == whole.why
    assert [o.share for o in found.origins] == pytest.approx([o.share for o in whole.origins])


def test_a_chain_that_became_shorter_still_bounds_what_was_walked_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    book = Book(CHAIN)
    coin = ListedCoin("coin", "d:0", None)
    part = follow(book, WalkedPart(), [coin], max_transactions=2)
    before = book.blocks()
    assert part.blocks == before
    monkeypatch.setattr(book, "blocks", lambda: before - 1)
    assert follow(book, part, [coin], max_transactions=3).blocks == before


def test_coins_already_spent_can_be_walked_back_too() -> None:
    explorer = followed(Book(CHAIN), "a:0", limit=100)
    assert explorer.coin("a:0").bits == pytest.approx(1.0)
    assert [each.name for each in explorer.ledger().followed] == ["a:0"]


def test_all_coins_of_a_transaction_have_the_interval_of_its_past() -> None:
    rows = followed(Book(CHAIN), "d:0", limit=2).group("transaction", "d").rows
    assert len(rows) == 2
    assert len({(row.bits_low, row.bits_high) for row in rows}) == 1
    assert rows[0].bits_high == pytest.approx(2.0)


REFUSED: dict[str, Callable[[WalkedExplorer], object]] = {
    "table": lambda e: e.table(),
    "histogram": lambda e: e.histogram(),
    "density": lambda e: e.density(),
    "curve": lambda e: e.curve(),
    "block": lambda e: e.group("block", "1"),
    "address": lambda e: e.group("address", "m0"),
    "addresses as nodes": lambda e: e.coin("d:0", CoinQuery(view="address")),
    "lots": lambda e: e.coin("d:0", CoinQuery(policy="fifo")),
    "comparators": lambda e: e.comparators("d:0"),
    "shared": lambda e: e.shared("d:0", SharedQuery(other="d:1")),
    "destinations": lambda e: e.destinations("d:0"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_needs_the_whole_ledger_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match=r"a part of a chain|view address"):
        REFUSED[name](followed(Book(CHAIN), "d:0", limit=2))


def test_a_transaction_at_the_frontier_is_not_found_yet() -> None:
    explorer = followed(Book(CHAIN), "d:0", limit=2)
    assert explorer.search("ab" * 32).note == "It has not been walked back yet."
    with pytest.raises(UnknownName, match="has not been walked back"):
        explorer.group("transaction", "c2")
    assert explorer.coin("c2:0").not_followed == 1.0


def test_wallets_and_what_ifs_have_intervals_over_the_whole_chain() -> None:
    book = Book(CHAIN)
    explorer = followed(book, "d:0", "b:1", limit=3, accuracy=0)
    ledger = CoinLedger.from_transactions(in_order(book.known))
    whole = Explorer(ledger)
    ask = WhatIfQuery(coins=("d:0", "b:1"))
    found, truth = explorer.what_if(ask), whole.what_if(ask)
    for one, other in [(found.after, truth.after), *zip(found.before, truth.before, strict=True)]:
        assert one.bits_low is not None
        assert one.bits_high is not None
        assert other.bits is not None
        assert one.bits_low - SLACK <= other.bits <= one.bits_high + SLACK
    assert found.after.bits_high != found.after.bits_low
    assert found.steps is None
    wallet = WalletQuery(coins="d:0\nb:1", exposed="c0:0")
    some, all_of = explorer.wallet(wallet), whole.wallet(wallet)
    for mine, real in zip(some.coins, all_of.coins, strict=True):
        assert mine.exposure is not None
        assert mine.exposure_high is not None
        assert real.exposure is not None
        assert mine.exposure - SLACK <= real.exposure <= mine.exposure_high + SLACK


@pytest.mark.parametrize("text", ["", "bc1qxyz", "12", "ab" * 31])
def test_only_transactions_and_coins_are_walked_back(text: str) -> None:
    with pytest.raises(InputError, match="a transaction's id, or a coin"):
        coin_of(text)


def test_a_coin_that_its_transaction_does_not_have_is_refused() -> None:
    with pytest.raises(CoinhazeError, match="no such output"):
        followed(Book(CHAIN), "d:7", limit=9)
