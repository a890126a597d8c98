"""Walking back: what is told of a part of a chain holds for the whole of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coinhaze
from coinhaze.errors import InputError, UnknownName, UsageError
from coinhaze.formats.lists.coins import ListedCoin
from coinhaze.ledger import CoinLedger
from coinhaze.ledger.coins import Input, Output, Transaction
from coinhaze.measures.mixture import bits_beyond
from coinhaze.solve.local.mixing import mix
from coinhaze.wallet.holdings import UnknownCoin, find_coins
from coinhaze.wallet.report import WalletReport
from coinhaze.wallet.walk_back import in_order, walk_back, without_spent
from coinhaze.wallet.wallet import weigh_wallet

Records = list[dict[str, Any]]


class Book:
    """A whole chain in memory, that counts what is asked of it."""

    def __init__(self, records: Records) -> None:
        self.records = records
        made = {(r["txid"], k): o for r in records for k, o in enumerate(r["outputs"])}
        self.known: dict[str, Transaction] = {}
        for record in records:
            inputs = tuple(
                Input(i["txid"], i["vout"], made[i["txid"], i["vout"]]["value"])
                for i in record.get("inputs", ())
            )
            outputs = tuple(
                Output(o["value"], o.get("address"), k) for k, o in enumerate(record["outputs"])
            )
            self.known[record["txid"]] = Transaction(
                record["txid"], inputs, outputs, coinbase=not inputs
            )
        self.spent = {(i.txid, i.vout) for t in self.known.values() for i in t.inputs}
        self.asked = 0

    def transactions(self, txids: Sequence[str]) -> list[Transaction]:
        self.asked += len(txids)
        if not set(txids) <= self.known.keys():
            raise UnknownName("not there")
        return [self.known[txid] for txid in txids]

    def is_unspent(self, txid: str, vout: int) -> bool:
        return (txid, vout) not in self.spent

    def blocks(self) -> int:
        return sum(t.coinbase is True for t in self.known.values())


@st.composite
def chains(draw: st.DrawFn) -> Records:
    """Draw a whole chain, deep enough that pasts part and meet again."""
    mined = draw(st.integers(1, 4))
    records: Records = []
    unspent: dict[tuple[str, int], int] = {}
    for k in range(mined + draw(st.integers(2, 9))):
        coins: list[tuple[str, int]] = []
        money = draw(st.integers(2, 40))
        if k >= mined:
            some = st.lists(st.sampled_from(sorted(unspent)), min_size=1, max_size=3, unique=True)
            coins = draw(some)
            money = sum(unspent.pop(coin) for coin in coins)
        first = draw(st.integers(1, money - 1)) if money > 1 else money
        values = [first, money - first] if money > first else [first]
        unspent |= {(f"t{k}", vout): value for vout, value in enumerate(values)}
        spends = [{"txid": txid, "vout": vout} for txid, vout in coins]
        pays = [{"value": value} for value in values]
        records.append({"txid": f"t{k}", "inputs": spends, "outputs": pays})
    return records


@given(chains(), st.integers(1, 6), st.data())
@settings(max_examples=150, deadline=None)
def test_the_interval_holds_the_truth_of_the_whole_chain(
    records: Records, maximum: int, data: st.DataObject
) -> None:
    book = Book(records)
    last = book.known[records[-1]["txid"]]
    name = f"{last.txid}:{data.draw(st.sampled_from(last.outputs)).vout}"
    walked = walk_back(book, [ListedCoin("here", name)], accuracy=0.0, max_transactions=maximum)
    found = walked.beyond[name]
    truth = coinhaze.origins(CoinLedger.from_transactions(records), name).bits
    assert found.bits_low <= truth + 1e-12
    assert truth <= found.bits_high + 1e-12
    assert len(walked.ledger) <= maximum
    if found.open == 0:
        assert found.width < 1e-9


def test_bounds_are_those_of_the_best_and_the_worst_past() -> None:
    """Half of a coin is from m; the other half may be too, or from as many as there are."""
    spends = [{"txid": "x", "vout": 0, "value": 5}, {"txid": "m", "vout": 0}]
    part = CoinLedger.from_transactions(
        [
            {"txid": "m", "outputs": [{"value": 5}]},
            {"txid": "z", "inputs": spends, "outputs": [{"value": 10}]},
        ]
    )
    row = mix(coinhaze.absorbing_chain(coinhaze.transaction_graph(part)), ["z:0"])
    found = bits_beyond(row, 1 << 20)
    assert found.bits_low == pytest.approx(0, abs=1e-9)
    assert found.bits_high == pytest.approx(1 + 20 / 2)
    assert bits_beyond(row, 2).bits_high == pytest.approx(1)
    assert (found.open, found.resting) == (0.5, {"x": 0.5})


def town(count: int) -> Records:
    """Make a chain of payments, each of the last coin and a freshly mined one of equal value."""
    records: Records = [{"txid": "m0", "outputs": [{"value": 1_000}]}]
    last = ("m0", 0)
    for k in range(1, count):
        records.append({"txid": f"m{k}", "outputs": [{"value": 1_000}]})
        spends = [{"txid": last[0], "vout": last[1]}, {"txid": f"m{k}", "vout": 0}]
        pays = [{"value": 1_000}, {"value": 1_000}]
        records.append({"txid": f"p{k}", "inputs": spends, "outputs": pays})
        last = (f"p{k}", 0)
    return records


def test_it_fetches_no_more_than_the_width_needs() -> None:
    records = town(300)
    name = "p299:0"
    truth = coinhaze.origins(CoinLedger.from_transactions(records), name).bits
    asked = []
    for width in (2.0, 0.5, 1e-3):
        book = Book(records)
        walked = walk_back(book, [ListedCoin("here", name)], accuracy=width)
        assert walked.reached
        assert walked.beyond[name].bits_low <= truth <= walked.beyond[name].bits_high
        asked.append(book.asked)
    assert asked[0] < asked[-1] < len(records) / 2
    stopped = walk_back(
        Book(records), [ListedCoin("here", name)], accuracy=1e-3, max_transactions=5
    )
    assert not stopped.reached
    assert len(stopped.ledger) == 5
    assert stopped.beyond[name].bits_low <= truth <= stopped.beyond[name].bits_high


def test_a_wallet_from_a_part_says_what_it_does_not_know() -> None:
    listed = [ListedCoin("here", "p30:0"), ListedCoin("here", "p30:1")]
    walked = walk_back(Book(town(31)), listed, accuracy=0.0, max_transactions=9)
    chain = coinhaze.absorbing_chain(coinhaze.transaction_graph(walked.ledger))
    coins = find_coins(chain.graph, listed)
    exposed = coinhaze.absorbing_chain(chain.graph, listed=["m30:0"])
    wallet = weigh_wallet(chain, coins, exposed=exposed, max_origins=walked.blocks)
    assert wallet.open > 0
    first = wallet.holdings[0]
    told = walked.beyond["p30:0"]
    assert first.interval == pytest.approx((told.bits_low, told.bits_high), abs=1e-12)
    assert first.exposure == 0.5
    assert first.exposure_high == 0.5 + wallet.open
    lines = [line for part in WalletReport(wallet).sections() for line in part.lines]
    assert any(line.startswith("Not all of the past was fetched") for line in lines)
    assert not any("exact but for roundings" in line for line in lines)


def test_coins_of_one_transaction_rest_as_one() -> None:
    """Two coins of one maker have one past: together they are one piece, not two."""
    spends = [{"txid": "x", "vout": k, "value": 5} for k in (0, 1)]
    ledger = CoinLedger.from_transactions(
        [{"txid": "a", "inputs": spends, "outputs": [{"value": 10}]}]
    )
    chain = coinhaze.absorbing_chain(coinhaze.transaction_graph(ledger))
    row = mix(chain, ["a:0"])
    assert row.bits == 1
    found = bits_beyond(row, 16)
    assert found.resting == {"x": 1.0}
    assert found.bits_low == 0
    assert found.bits_high == pytest.approx(4)
    with pytest.raises(UsageError, match="one origin or more"):
        bits_beyond(row, 0)


def test_labels_of_spent_coins_are_left_out_and_counted() -> None:
    book = Book([
        {"txid": "a", "outputs": [{"value": 6}, {"value": 1}]},
        {"txid": "b", "inputs": [{"txid": "a", "vout": 0}], "outputs": [{"value": 6}]},
    ])  # fmt: skip
    spent, other = (ListedCoin(f"labels:{k}", f"a:{k}", labelled=True) for k in range(2))
    assert without_spent(book, [spent, other]) == (
        [other],
        ["of a wallet's labels, 1 coin is spent, and passed over"],
    )
    with pytest.raises(InputError, match="labels:0: all these coins are spent"):
        without_spent(book, [spent])
    named = ListedCoin("--nodes", "a:0")
    assert without_spent(book, [named]) == ([named], [])  # refused where it is walked back


def test_what_cannot_be_walked_back_is_refused() -> None:
    book = Book(town(3))
    for entry, kind, words in (
        (ListedCoin("f:1", "zz:0"), UnknownCoin, "f:1: no coin 'zz:0': not there"),
        (ListedCoin("f:1", "p2:7"), UnknownCoin, "f:1: no coin 'p2:7': p2 has no such output"),
        (ListedCoin("f:1", "m1:0"), InputError, "f:1: coin m1:0 is spent already"),
        (ListedCoin("f:1", address="me"), UsageError, "f:1: a node does not tell the coins of me"),
    ):
        with pytest.raises(kind, match=words):
            walk_back(book, [entry])
    with pytest.raises(UsageError, match="max_transactions 1 or more"):
        walk_back(book, [ListedCoin("f:1", "p2:0")], max_transactions=0)
    circle = {a: Transaction(a, (Input(b, 0, 1),)) for a, b in (("a", "b"), ("b", "a"))}
    with pytest.raises(InputError, match="comes from itself"):
        in_order(circle)
