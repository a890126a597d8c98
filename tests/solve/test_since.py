"""Bits as blocks go by: against ledgers that really end at that moment."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import coinhaze
from coinhaze import CoinLedger
from coinhaze.graph.clusters.coinjoins import CoinJoin, coinjoin_kinds
from coinhaze.measures.since import NAIVE, UNMIXED
from coinhaze.observer.coinjoin_links import owner_links
from coinhaze.observer.owners import ladder, persons

Record = dict[str, Any]
LADDER = ("common-input-no-coinjoins", "change")


def paid(txid: str, spends: list[str], outputs: list[tuple[int, str]], time: int) -> Record:
    inputs = [{"txid": c.partition(":")[0], "vout": int(c.partition(":")[2])} for c in spends]
    made = [{"value": v, "address": a} for v, a in outputs]
    return {"txid": txid, "inputs": inputs, "outputs": made, "time": time, "height": time // 600}


def mined(txid: str, outputs: list[tuple[int, str]], time: int) -> Record:
    return paid(txid, [], outputs, time) | {"coinbase": True}


def a_mix() -> list[Record]:
    """Let three people mix 10 000 each; a spends the result together with older money a day on."""
    day = 86_400
    coins = [mined(f"m{p}", [(10_500, p), (7_000, p)], 0) for p in "abc"]
    mix = paid(
        "mix",
        ["ma:0", "mb:0", "mc:0"],
        [(10_000, "x"), (10_000, "y"), (10_000, "z"), (450, "p"), (440, "q"), (430, "r")],
        1_000,
    )
    return [
        *coins,
        mix,
        paid("late", ["mix:0", "ma:1"], [(16_000, "shop"), (900, "k")], day),
        paid("later", ["mb:1", "mc:1"], [(14_000, "shop")], 8 * day),
    ]


def test_a_partner_who_spends_with_older_money_leaves_the_others_less_to_hide_among() -> None:
    ledger = CoinLedger.from_transactions(a_mix())
    assert coinjoin_kinds(ledger)[3] == CoinJoin.joinmarket
    found = coinhaze.since(ledger, ["mix:1"], points=9)
    unmixed = found.bits[UNMIXED][:, 0]
    assert unmixed[0] == pytest.approx(math.log2(3))
    # Of 10 500 that a paid in 10 000 are known to have gone back: 500 of 21 500 are left.
    shares = [500 / 21_500, 10_500 / 21_500, 10_500 / 21_500]
    then = -sum(p * math.log2(p) for p in shares)
    assert unmixed[1:-1] == pytest.approx([then] * (len(unmixed) - 2))
    # At the end b and c are one person.
    end = -sum(p * math.log2(p) for p in (500 / 21_500, 21_000 / 21_500))
    assert unmixed[-1] == pytest.approx(end)
    assert np.all(found.bits[NAIVE] == found.bits[NAIVE][0])
    assert found.bits[LADDER[0]][:, 0] == pytest.approx(
        [math.log2(3)] * (len(unmixed) - 1) + [-2 / 3 * math.log2(2 / 3) - 1 / 3 * math.log2(1 / 3)]
    )


def test_owners_take_a_coinjoin_apart_as_by_hand() -> None:
    """Count by hand in fractions, for every way three inputs and outputs can have owners."""
    for owner in ("aaa", "abc", "axy", "abx", "xyz", "aab"):
        ledger = CoinLedger.from_transactions(
            [
                {
                    "txid": "t",
                    "inputs": [
                        {"txid": f"i{a}", "vout": 0, "value": v, "address": a}
                        for a, v in zip("abc", (7, 5, 4), strict=True)
                    ],
                    "outputs": [
                        {"value": v, "address": a} for a, v in zip(owner, (5, 5, 2), strict=True)
                    ],
                }
            ]
        )
        links = owner_links(ledger, persons(ledger), [3])
        left = {"a": Fraction(7), "b": Fraction(5), "c": Fraction(4)}
        for a, v in zip(owner, (5, 5, 2), strict=True):
            if a in left:
                left[a] = max(left[a] - v, Fraction(0))
        if not set(owner) & set("abc"):
            assert links == {}
            continue
        for k, a in enumerate(owner):
            if a in left:
                assert links[f"t:{k}"] == {f"i{a}:0": 1.0}
                continue
            expected = {f"i{p}:0": float(v / sum(left.values())) for p, v in left.items() if v}
            assert links[f"t:{k}"] == pytest.approx(expected)


@st.composite
def histories(draw: st.DrawFn) -> list[Record]:
    """Draw payments among a few addresses that spend what is there; some look like CoinJoins."""
    made = [mined(f"m{k}", [(20_000 + k, a), (9_000 + k, a)], k) for k, a in enumerate("abcd")]
    unspent = [(f"m{k}:{v}", x) for k in range(4) for v, x in ((0, 20_000 + k), (1, 9_000 + k))]
    for step in range(draw(st.integers(1, 6))):
        count = draw(st.integers(1, min(4, len(unspent))))
        chosen = [unspent.pop(draw(st.integers(0, len(unspent) - 1))) for _ in range(count)]
        total = sum(v for _, v in chosen)
        addresses = draw(st.lists(st.sampled_from("abcdefgh"), min_size=6, max_size=6))
        if count >= 3 and draw(st.booleans()) and min(v for _, v in chosen) > 3_000:
            values = [3_000] * count + [v - 3_000 for _, v in chosen]
        else:
            values = [total // 3, total - total // 3 - 1]
        if min(values) <= 0:
            continue
        named = [f"{addresses[k % 6]}{step if k > 2 else ''}" for k in range(len(values))]
        record = paid(
            f"t{step}",
            [c for c, _ in chosen],
            list(zip(values, named, strict=True)),
            100 * step + 50,
        )
        made.append(record)
        unspent += [(f"t{step}:{k}", v) for k, v in enumerate(values)]
    return made


@settings(max_examples=40, deadline=None)
@example(a_mix())
@given(histories())
def test_an_observer_at_a_moment_is_the_one_of_a_ledger_that_ends_there(made: list[Record]) -> None:
    ledger = CoinLedger.from_transactions(made)
    found = coinhaze.since(ledger, "all", points=5)
    names = found.names
    for step, until in enumerate(found.until.tolist()):
        ends_there = CoinLedger.from_transactions(made[:until])
        here = [k for k in range(len(names)) if found.made[k] < until]
        scores = coinhaze.score(ends_there, nodes=[names[k] for k in here])
        told = coinhaze.informed(scores)
        # The law: without knowledge nothing changes.
        assert found.bits[NAIVE][step, here] == pytest.approx(scores.bits, abs=1e-12)
        for observer in LADDER:
            assert found.bits[observer][step, here] == pytest.approx(
                told.informed[observer].bits, abs=1e-9
            )
        known = ladder(ends_there)[-1].persons
        joins = np.flatnonzero(coinjoin_kinds(ends_there) != CoinJoin.none).tolist()
        links = owner_links(ends_there, known, joins)
        apart = coinhaze.informed(
            coinhaze.score(ends_there, nodes=[names[k] for k in here], links=links or None)
        )
        assert found.bits[UNMIXED][step, here] == pytest.approx(
            apart.informed["change"].bits, abs=1e-9
        )
        assert np.all(np.isnan(found.bits[NAIVE][step, np.setdiff1d(np.arange(len(names)), here)]))


@settings(max_examples=30, deadline=None)
@given(histories())
def test_along_the_ladder_bits_never_rise_with_time(made: list[Record]) -> None:
    found = coinhaze.since(CoinLedger.from_transactions(made), "all", points=6)
    for observer in LADDER:
        change = np.diff(found.bits[observer], axis=0)
        assert not np.any(change > 1e-9)


def test_series_count_what_is_unspent_and_decay_what_was_lost() -> None:
    ledger = CoinLedger.from_transactions(a_mix())
    found = coinhaze.since(ledger, "all", points=9)
    series = found.series().to_pylist()
    assert series[0]["coins"] == 6
    assert series[-1]["coins"] == 8  # three of the mix's change, two mixed, k, two shops
    decay = coinhaze.since(ledger, ["mix:1"], points=9).decay().to_pylist()
    by_age = {row["age"]: row for row in decay}
    assert by_age["at once"][UNMIXED] == 0
    assert by_age["a week"][UNMIXED] < -0.3
    assert by_age["a week"]["coins"] == 1
    assert by_age["a year"]["coins"] == 0


def test_what_is_no_coin_is_refused() -> None:
    with pytest.raises(coinhaze.UsageError, match="a ledger of coins, in the coin view"):
        coinhaze.since(coinhaze.AccountLedger.from_transfers([("a", "b", 1)]), ["b"])
    ledger = CoinLedger.from_transactions(a_mix()[:1])
    with pytest.raises(coinhaze.UsageError, match="looks like a CoinJoin"):
        coinhaze.since(ledger)
    with pytest.raises(coinhaze.UsageError, match="is no coin"):
        coinhaze.since(ledger, ["tx:ma"])
