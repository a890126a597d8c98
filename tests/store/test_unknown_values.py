"""Coins spent whose value nobody tells: an error, or what hangs on them is left out."""

from __future__ import annotations

import io
from fractions import Fraction
from math import log2
from pathlib import Path
from random import Random

import numpy as np
import pytest
from rich.console import Console

import coinhaze
from coinhaze.errors import InputError, UsageError
from coinhaze.report.files import provenance
from coinhaze.report.tables import origins_sentence, scores_report
from coinhaze.store.read import read_store
from store.made_stores import Chain, transfers

Row = dict[str, Fraction]


class Twin:
    """A random economy, what every coin is made of with all values known, and what is not."""

    def __init__(self, seed: int) -> None:
        random = Random(seed)
        self.chains = {known: Chain(first=9) for known in (True, False)}
        self.rows: dict[str, Row] = {}  # of unspent coins, over lumped sources
        self.full: dict[str, Row] = {}  # over sources
        self.lost: set[str] = set()  # coins that descend from unknown shares
        self.spent: set[str] = set()
        self.values: dict[str, int] = {}
        self.maximum = 1  # coins lumped into one
        for number in range(60):
            for chain in self.chains.values():
                chain.block()
            self._pay(f"t{number}", random)

    def _pay(self, txid: str, random: Random) -> None:
        own = random.sample(sorted(self.values), min(random.choice([0, 1, 2, 3]), len(self.values)))
        old = {f"{txid}-{k}": random.randint(1, 99) for k in range(random.choice([0, 0, 1, 2, 4]))}
        told = random.random() < 0.3  # of earlier coins this one tells the values
        taken = sum(self.values[c] for c in own) + sum(old.values())
        paid = taken - random.randint(0, taken // 9) if taken else 50
        first = random.randint(0, paid)
        made = [(f"{txid} a", first), (f"{txid} b", paid - first)]
        for known, chain in self.chains.items():
            spends: list[tuple[str, int, int | None]] = [(*self._name(c), None) for c in own]
            spends += [(name, 0, v if known or told else None) for name, v in old.items()]
            chain.pay(txid, spends, made)
        self._trace(txid, own, old, told, paid)
        for vout, (_, value) in enumerate(made):
            self.values[f"{txid}:{vout}"] = value
        for coin in own:
            del self.values[coin]
            self.spent.add(coin)

    def _name(self, coin: str) -> tuple[str, int]:
        txid, _, vout = coin.rpartition(":")
        return txid, int(vout)

    def _trace(self, txid: str, own: list[str], old: dict[str, int], told: bool, paid: int) -> None:
        full: Row = {} if own or old else {f"tx:{txid}": Fraction(1)}
        lumped = dict(full)
        taken = sum(self.values[c] for c in own) + sum(old.values())
        parts = [(self.full[c], self.rows[c], self.values[c]) for c in own]
        for name, value in old.items():
            one = {f"{name}:0": Fraction(1)}
            parts.append((one, one if told else {f"unknown@{txid}:0": Fraction(1)}, value))
        for whole, joined, value in parts:
            for row, of in ((full, whole), (lumped, joined)):
                for source, share in of.items():
                    row[source] = row.get(source, Fraction(0)) + share * Fraction(value, taken)
        blind = bool(old) and not told
        if blind and not own:
            self.maximum = max(self.maximum, len(old))
        lost = (blind and bool(own)) or any(c in self.lost for c in own)
        for vout in range(2):
            coin = f"{txid}:{vout}"
            self.full[coin], self.rows[coin] = full, lumped
            if lost:
                self.lost.add(coin)


def names(scores: coinhaze.Scores) -> list[str]:
    found: list[str] = scores.to_arrow()["node"].to_pylist()
    return found


def bits_of(row: Row) -> float:
    return -sum(float(p) * log2(p) for p in row.values() if p)


@pytest.mark.parametrize(
    "seed", [pytest.param(k, marks=[pytest.mark.long] if k > 2 else []) for k in range(8)]
)
def test_what_is_retained_is_what_the_whole_would_give_with_sources_lumped(
    tmp_path: Path, seed: int
) -> None:
    twin = Twin(seed)
    path = tmp_path / "store"
    twin.chains[False].store(path).close()
    scores = coinhaze.score(path, unknown="leave-out", nodes="all")
    found = dict(zip(names(scores), scores.bits, strict=True))
    marks = scores.lower_bound
    bound = {} if marks is None else dict(zip(names(scores), marks.tolist(), strict=True))
    kept = {c for c in twin.rows if c not in twin.lost and value_of(twin, c) > 0}
    assert kept == found.keys() & twin.rows.keys()
    for coin in kept:
        assert found[coin] == pytest.approx(bits_of(twin.rows[coin]), abs=1e-9), coin
        # The law that makes it a bound: lumping sources never adds bits, nor takes more than this.
        whole = bits_of(twin.full[coin])
        assert whole - log2(twin.maximum) - 1e-9 <= found[coin] <= whole + 1e-9
        # Marked is what comes from lumped coins, and nothing else.
        lumped = any(source.startswith("unknown@") for source in twin.rows[coin])
        assert bound.get(coin, False) == lumped, coin
        assert lumped or found[coin] == pytest.approx(whole, abs=1e-9), coin
    sinks = set(names(coinhaze.score(path, unknown="leave-out")))
    assert sinks == {c for c in kept if c not in twin.spent}
    whole_store = tmp_path / "whole"
    twin.chains[True].store(whole_store).close()
    told = coinhaze.score(whole_store, unknown="leave-out", nodes=sorted(kept))
    assert told.notes == coinhaze.score(whole_store, nodes=sorted(kept)).notes
    for coin, bits in zip(sorted(kept), told.bits, strict=True):
        assert bits == pytest.approx(bits_of(twin.full[coin]), abs=1e-9)


def value_of(twin: Twin, coin: str) -> int:
    rows = twin.chains[True].rows["outputs"].columns
    txid, _, vout = coin.rpartition(":")
    for at, value in zip(zip(rows["txid"], rows["vout"], strict=True), rows["value"], strict=True):
        if at == (txid, int(vout)):
            assert isinstance(value, int)
            return value
    raise AssertionError(coin)


def blind(*, first: int = 9) -> Chain:
    """u spends unknown coins, k a known one; m one of each, and d what m paid."""
    chain = Chain(first=first)
    chain.block()
    chain.pay("a", made=[("ann", 50)])
    chain.pay("u", [("x", 0, None), ("y", 1, None)], [("bob", 30), ("cat", 10)])
    chain.block()
    chain.pay("k", [("u", 0, None)], [("dan", 29)])
    chain.pay("m", [("a", 0, None), ("z", 0, None)], [("eve", 60)])
    chain.block()
    chain.pay("d", [("m", 0, None), ("k", 0, None)], [("fay", 80)])
    return chain


def test_by_default_it_is_an_error_that_names_the_coins(tmp_path: Path) -> None:
    blind().store(tmp_path / "store").close()
    with pytest.raises(InputError, match=r"values of 3 coins spent .* \(x:0, y:1, z:0\)"):
        coinhaze.score(tmp_path / "store")


def test_what_is_left_out_is_counted_and_said(tmp_path: Path) -> None:
    path = tmp_path / "store"
    blind().store(path).close()
    scores = coinhaze.score(path, unknown="leave-out")
    # a:0 and k:0 were spent by what is left out: they are no sinks.
    assert names(scores) == ["u:1"]
    assert scores.bits.tolist() == [0.0]
    (note,) = scores.notes
    assert "1 of 5 transactions spend only coins of unknown value" in note
    assert "2 are left out: 1 that spend coins of known and of unknown value, 1 that" in note
    nodes = names(coinhaze.score(path, unknown="leave-out", nodes="all"))
    assert {"a:0", "k:0", "unknown@u:0", "tx:u"} <= set(nodes)
    assert not {"m:0", "tx:m", "d:0", "tx:d"} & set(nodes)


def test_lower_bounds_are_marked_in_every_output_of_scores(tmp_path: Path) -> None:
    path = tmp_path / "store"
    blind().store(path).close()
    scores = coinhaze.score(path, unknown="leave-out", nodes="all")
    bound = {row["node"]: row["lower_bound"] for row in scores.to_arrow().to_pylist()}
    assert bound == {
        "a:0": False, "tx:a": False, "unknown@u:0": True, "tx:u": True, "u:0": True, "u:1": True,
        "tx:k": True, "k:0": True,
    }  # fmt: skip
    summary = scores.summary()
    assert summary.lower_bounds == 6
    assert "bits mean ≥0" in summary.line()
    assert "6 are lower bounds" in summary.line()
    made = provenance(scores)
    assert made["lower_bounds"] == 6
    assert made["notes"] == list(scores.notes)
    text = io.StringIO()
    Console(width=200, file=text).print(scores_report(scores, limit=10))
    rows = {line.split()[1]: line for line in text.getvalue().splitlines() if ":" in line}
    assert all(("≥" in rows[name]) == bound[name] for name in ("k:0", "tx:u", "a:0"))
    assert "At least 0.0000 bits" in origins_sentence(coinhaze.origins(scores.chain, "k:0"))
    assert coinhaze.origins(scores.chain, "k:0").as_dict()["lower_bound"] is True
    assert "exact" not in origins_sentence(coinhaze.origins(scores.chain, "k:0"))
    assert origins_sentence(coinhaze.origins(scores.chain, "a:0")).startswith("0.0000 bits")


def test_what_is_known_or_requested_of_a_list_is_no_lower_bound(tmp_path: Path) -> None:
    path = tmp_path / "store"
    blind().store(path).close()
    known = coinhaze.score(path, unknown="leave-out", first=11)
    assert (known.lower_bound, known.summary().lower_bounds) == (None, 0)
    assert "lower_bound" not in known.to_arrow().column_names
    # Who owned the unknown coins is unknown: listed owners may be among them.
    listed = coinhaze.score(path, unknown="leave-out", listed=["bob"])
    assert listed.lower_bound is None
    in_order = coinhaze.score(path, unknown="leave-out", policy="fifo")
    assert in_order.lower_bound is not None
    assert in_order.lower_bound.all()


def test_links_carry_lower_bounds_along(tmp_path: Path) -> None:
    path = tmp_path / "store"
    chain = blind()
    chain.block()
    chain.pay("l", made=[("gus", 5)])
    chain.store(path).close()
    graph = coinhaze.transaction_graph(coinhaze.read(path, unknown="leave-out"))
    plain = coinhaze.score(graph, nodes=["l:0"])
    assert plain.lower_bound is not None
    assert not plain.lower_bound.any()
    linked = coinhaze.absorbing_chain(graph, links={"l:0": {"k:0": 1.0}})
    found = coinhaze.score(linked, nodes=["l:0"]).lower_bound
    assert found is not None
    assert found.all()


def test_a_window_leaves_out_only_what_hangs_on_it_inside(tmp_path: Path) -> None:
    path = tmp_path / "store"
    blind().store(path).close()
    # From block 11 on all coins were made in the store: m lies before the window.
    scores = coinhaze.score(path, unknown="leave-out", first=11)
    assert names(scores) == ["d:0"]
    assert scores.notes == ()
    expected = -sum(p * log2(p) for p in (60 / 89, 29 / 89))
    assert scores.bits[0] == pytest.approx(expected, abs=1e-12)


def test_a_pool_that_meets_an_unknown_share_ends_the_window(tmp_path: Path) -> None:
    chain = blind()
    chain.block()
    chain.pay("s", [("d", 0, None)], [], sapling=70)
    path = tmp_path / "store"
    chain.store(path).close()
    with pytest.raises(InputError, match=r"transaction s of block 12 .* pool sapling.*--to 11"):
        coinhaze.score(path, unknown="leave-out")
    assert names(coinhaze.score(path, unknown="leave-out", last=11)) == ["u:1"]


def test_unknown_coins_shielded_alone_are_one_origin_of_the_pool(tmp_path: Path) -> None:
    chain = Chain(first=9)
    chain.block()
    chain.pay("a", made=[("ann", 10)], sapling=30)
    chain.pay("s", [("x", 0, None), ("y", 0, None)], [("ann", 5)], sapling=30)
    chain.block()
    chain.pay("o", [], [("bob", 8)], sapling=-9)
    path = tmp_path / "store"
    chain.store(path).close()
    scores = coinhaze.score(path, unknown="leave-out", nodes=["o:0"])
    assert scores.bits[0] == pytest.approx(1.0, abs=1e-12)


def test_unknown_coins_beside_money_of_a_pool_are_an_unknown_share(tmp_path: Path) -> None:
    chain = Chain(first=9)
    chain.block()
    chain.pay("s", [("x", 0, None)], [("ann", 5)], sapling=-30)
    chain.store(tmp_path / "store").close()
    with pytest.raises(InputError, match="transaction s of block 9 has to be left out"):
        coinhaze.score(tmp_path / "store", unknown="leave-out")


def test_owners_of_unknown_coins_are_unknown_too(tmp_path: Path) -> None:
    blind().store(tmp_path / "store").close()
    with pytest.raises(UsageError, match="view=coin"):
        coinhaze.score(tmp_path / "store", unknown="leave-out", view="address")


def test_the_setting_is_for_coins_and_has_two_values(tmp_path: Path) -> None:
    with transfers([("a", "b", 1)]) as store:
        with pytest.raises(UsageError, match="for coins"):
            read_store(store, unknown="leave-out")
        with pytest.raises(UsageError, match="error or leave-out"):
            read_store(store, unknown="guess")  # type: ignore[arg-type]
    path = tmp_path / "transfers.csv"
    path.write_text("from,to,amount\na,b,1\n")
    with pytest.raises(UsageError, match="every coin has its value"):
        coinhaze.score(path, unknown="leave-out")
    assert not np.isnan(coinhaze.score(path).bits).any()
