"""Long walks through hubs: intervals hold the exact answer, and rounding does not add up.

The twin is the model in integers and fractions: money of each source in each account, moved in
proportion, with entropies to 50 digits.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import coinhaze
from coinhaze.errors import AccuracyError
from coinhaze.ledger import Amounts
from coinhaze.measures.intervals import slack_from_walks, surprise
from coinhaze.solve.exact import engines as exact
from coinhaze.solve.exact.engines import rounding_of, score_exactly
from coinhaze.solve.exact.fine import as_pairs, exact_moves
from coinhaze.solve.exact.pairs_kernels import add_pairs, divide_pairs, multiply_pairs
from coinhaze.solve.exact.stream_kernels import add_tile
from coinhaze.solve.planner import thresholds
from coinhaze.solve.query import Query
from coinhaze.solve.structure.lump import lump
from coinhaze.solve.sums import Sums

Transfer = tuple[str, str, int]
Held = dict[str, Fraction]


def replayed(transfers: Iterable[Transfer]) -> dict[str, Held]:
    """Move money in proportion; give the share of each source in what each account ends with.

    Accounts named s... are sources: what they pay is their own money.
    """
    held: dict[str, Held] = {}
    for sender, receiver, amount in transfers:
        if sender.startswith("s"):
            moved = {sender: Fraction(amount)}
        else:
            mine = held[sender]
            part = Fraction(amount) / sum(mine.values())
            moved = {name: share * part for name, share in mine.items()}
            held[sender] = {name: share * (1 - part) for name, share in mine.items()}
        to = held.setdefault(receiver, {})
        for name, share in moved.items():
            to[name] = to.get(name, Fraction(0)) + share
    return held


def entropy(held: Held) -> Decimal:
    with localcontext() as context:
        context.prec = 50
        total = sum(held.values())
        nats = Decimal(0)
        for value in held.values():
            if value > 0:
                p = value / total
                q = Decimal(p.numerator) / Decimal(p.denominator)
                nats -= q * q.ln()
        return nats / Decimal(2).ln()


def check(
    transfers: list[Transfer], *, careful: bool = False, carried: bool = False
) -> coinhaze.Scores:
    ledger = coinhaze.AccountLedger.from_transfers(transfers)
    chain = coinhaze.absorbing_chain(coinhaze.transaction_graph(ledger, time="temporal"))
    rows = np.flatnonzero(chain.graph.sinks)
    if careful:
        lumped = lump(Query.of(chain, rows), np.zeros(0))
        counts, _ = lumped.sources()
        scaled = rounding_of(lumped, counts, by_fours=lumped.cost.lists is None)[1]
        assert scaled is not None
        assert np.any(scaled.unit != 1.0) or len(rows) < 5
        assert np.any(scaled.query.factor.before >= 0) == carried
    scores = score_exactly(chain, rows, width=1e-9, renyi=(2.0,))
    held = replayed(transfers)
    names = chain.graph.names.of(scores.nodes).to_pylist()
    for k, name in enumerate(names):
        truth = entropy(held[name.rsplit(":", 1)[0]])
        low, high = Decimal(float(scores.bits_low[k])), Decimal(float(scores.bits_high[k]))
        assert low <= truth <= high, (name, low, truth, high)
        mine = held[name.rsplit(":", 1)[0]]
        total = sum(mine.values())
        power = float(sum((v / total) ** 2 for v in mine.values()))
        assert scores.renyi[2.0][k] == pytest.approx(-np.log2(power), abs=1e-11)
        assert scores.top_probability[k] == pytest.approx(float(max(mine.values()) / total))
    return scores


def hubs(seed: int, receipts: int, largest: int, count: int) -> list[Transfer]:
    """Hubs that receive amounts of any size, spend between, and pay one another and users back."""
    rng = random.Random(seed)
    balance = dict.fromkeys([f"h{k}" for k in range(count)], 0)
    transfers: list[Transfer] = []

    def pay(sender: str, receiver: str, amount: int) -> None:
        if amount < 1:
            return
        transfers.append((sender, receiver, amount))
        if sender in balance:
            balance[sender] -= amount
        if not receiver.startswith("s"):
            balance[receiver] = balance.get(receiver, 0) + amount

    for k in range(receipts):
        hub = f"h{rng.randrange(count)}"
        pay(f"s{rng.randrange(receipts)}" if k % 3 else f"s{k}x", hub, _any(rng, largest))
        if rng.random() < 0.4 and balance[hub]:
            user = f"u{rng.randrange(receipts // 8)}"
            pay(hub, user, rng.randrange(1, max(2, balance[hub] // 2)))
            if rng.random() < 0.5:
                pay(user, f"h{rng.randrange(count)}", rng.randrange(1, balance[user] + 1))
        if rng.random() < 0.1 and balance[hub]:
            pay(hub, f"h{(int(hub[1:]) + 1) % count}", rng.randrange(1, balance[hub] + 1))
    return transfers


def _any(rng: random.Random, largest: int) -> int:
    return max(1, int(10 ** rng.uniform(0, math.log10(largest))))


@pytest.fixture(params=["plain", "scaled", "carried"])
def careful(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Solve as it is, in units, or with chains of three states that carry what they lose."""
    way = str(request.param)
    if way != "plain":
        monkeypatch.setattr(thresholds, "MAX_ROUNDING_WIDTH", -1.0)
    if way == "scaled":
        monkeypatch.setattr(exact, "CARE", (False,))
    monkeypatch.setattr(thresholds, "MIN_CARRIED_CHAIN", 3)
    return way


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("largest", "count"), [(1, 1), (100, 3), (10**18, 2), (10**60, 3)])
def test_hubs_that_spend_between_receipts(
    seed: int, largest: int, count: int, careful: str
) -> None:
    transfers = hubs(seed, 60, largest, count)
    scores = check(transfers, careful=careful != "plain", carried=careful == "carried")
    assert scores.width < 1e-10
    assert scores.conservation is not None
    assert scores.conservation < 1e-11


def test_a_pool_of_many_receipts_with_payments_between(careful: str) -> None:
    transfers: list[Transfer] = []
    for k in range(400):
        transfers.append((f"s{k}", "hub", 1 + 7**k % 1_000_003))
        if k % 20 == 19:
            transfers.append(("hub", f"u{k}", 1 + 3**k % 1_000))
    check(transfers, careful=careful != "plain", carried=careful == "carried")


@pytest.mark.parametrize("receipts", [2_000, 20_000, 200_000])
def test_many_receipts_into_one_account_are_proven_to_1e_10(receipts: int) -> None:
    amounts = [1 + k % 7 for k in range(receipts)]
    ledger = coinhaze.AccountLedger.from_columns(
        pa.array([f"s{k}" for k in range(receipts)]),
        pa.array(["hub"] * receipts),
        pa.array(amounts),
    )
    scores = coinhaze.score(ledger, time="temporal")
    total = Fraction(sum(amounts))
    some = Counter(amounts)
    with localcontext() as context:
        context.prec = 50
        nats = sum(
            (count * value / Decimal(int(total)) * (int(total) / Decimal(value)).ln())
            for value, count in some.items()
        )
        truth = nats / Decimal(2).ln()
    assert Decimal(float(scores.bits_low[0])) <= truth <= Decimal(float(scores.bits_high[0]))
    assert scores.width <= 1e-10
    assert coinhaze.plan(ledger, time="temporal").width <= 1e-10


def test_a_plan_tells_the_widest_interval_before_the_solve() -> None:
    ledger = coinhaze.AccountLedger.from_transfers(hubs(1, 60, 10**18, 2))
    told, reached = coinhaze.plan(ledger, time="temporal"), coinhaze.score(ledger, time="temporal")
    assert reached.width <= told.width <= 1e-10
    assert told.lines()[-1] == f"width     at most {told.width:.1e} bits"


def test_an_accuracy_out_of_reach_is_reported_before_the_solve(
    caplog: pytest.LogCaptureFixture,
) -> None:
    ledger = coinhaze.AccountLedger.from_transfers([("a", "c", 5), ("b", "c", 3)])

    def stop(done: float, /) -> None:
        if done > 0:
            assert "rounding may leave intervals up to" in caplog.text

    with pytest.raises(AccuracyError):
        coinhaze.score(ledger, accuracy=1e-17, progress=stop)
    assert "above the requested 1e-17" in caplog.text


def test_pairs_err_by_less_than_stated() -> None:
    rng = random.Random(1)
    for _ in range(300):
        a, b = (Fraction(rng.getrandbits(160), 1 << rng.randrange(300)) + 1 for _ in range(2))
        one, two = pair(a), pair(b)
        for got, exact_value in (
            (add_pairs(*one, *two), exactly(one) + exactly(two)),
            (multiply_pairs(*one, *two), exactly(one) * exactly(two)),
            (divide_pairs(*one, *two), exactly(one) / exactly(two)),
        ):
            assert abs(exactly(got) / exact_value - 1) < Fraction(1, 2**100)


def pair(value: Fraction) -> tuple[float, float]:
    high = float(value)
    return high, float(value - Fraction(high))


def exactly(given: tuple[float, float]) -> Fraction:
    return Fraction(given[0]) + Fraction(given[1])


def test_amounts_of_any_size_become_pairs() -> None:
    rng = random.Random(2)
    for bits in (5, 33, 61, 64, 100, 255):
        values = [rng.getrandbits(bits) | 1 for _ in range(50)] + [2**bits - 1, 2 ** (bits - 1) + 1]
        for value, high, low in zip(values, *as_pairs(Amounts.of(values)), strict=True):
            assert abs(exactly((high, low)) / value - 1) < Fraction(1, 2**100)


def test_moves_are_known_exactly_where_amounts_are() -> None:
    # Two ways from x to hub, through aliases, are one move of 3/7 + 1/7.
    transfers = [("sx", "x", 8), ("x", "a", 3), ("x", "b", 1), ("a", "hub", 3), ("b", "hub", 1)]
    transfers += [("sy", "hub", 3), ("hub", "c", 5), ("hub", "d", 1), ("c", "e", 2), ("sz", "e", 1)]
    ledger = coinhaze.AccountLedger.from_transfers(transfers)
    graph = coinhaze.transaction_graph(ledger)
    chain = coinhaze.absorbing_chain(graph)
    reduced = Query.of(chain, np.flatnonzero(graph.sinks)).reduced
    moves = exact_moves(chain, reduced)
    assert moves is not None
    hub = int(reduced.state[graph.names.node("hub")])
    row = slice(reduced.indptr[hub], reduced.indptr[hub + 1])
    found = {exactly(each) for each in zip(moves.value[row], moves.low[row], strict=True)}
    for value, truth in zip(sorted(found), (Fraction(3, 7), Fraction(4, 7)), strict=True):
        assert abs(value / truth - 1) < Fraction(1, 2**100)
    for changed in (
        coinhaze.absorbing_chain(graph, policy="uniform"),
        replace(chain, settings=chain.settings | {"links": 1}),
    ):
        assert exact_moves(changed, reduced) is None
    # Moves that are not what they were rounded from are not taken for it.
    other = replace(reduced, data=reduced.data * (1 + 1e-14))
    assert exact_moves(chain, other) is None


def test_sums_of_tiles_lose_nothing() -> None:
    rng = np.random.default_rng(3)
    parts = 10.0 ** rng.uniform(-18, 0, (3000, 3))
    total, lost = Sums.zeros(1, 0), np.zeros((3, 1))
    for row in parts:
        part = Sums.zeros(1, 0)
        part.entropy[0], part.mass[0], part.prior[0] = row
        add_tile(*total.arrays()[:7], *part.arrays()[:7], lost)
    for k, values in enumerate((total.entropy, total.mass, total.prior)):
        assert values[0] + lost[k, 0] == pytest.approx(math.fsum(parts[:, k]), rel=2**-52)


def test_walks_bound_entropy() -> None:
    # Chances of walks off by relative errors, at random: entropy changes by less than the bound.
    rng = np.random.default_rng(4)
    for _ in range(300):
        n, walks = rng.integers(1, 30), 200
        chance = rng.dirichlet(np.full(walks, rng.choice([0.05, 1.0])))
        error = rng.choice([0.0, 1e-6, 1e-3], walks) * rng.uniform(0, 1, walks)
        ends = rng.integers(0, n, walks)
        before: Any = np.bincount(ends, chance, minlength=n)
        sign = rng.choice([-1.0, 1.0], n)[ends]
        after: Any = np.bincount(ends, chance * (1 + sign * error), minlength=n)
        change = abs(surprise(after).sum() - surprise(before).sum())
        expected, maximum = np.array([chance @ error]), np.array([error.max()])
        assert change <= slack_from_walks(expected, maximum, np.array([n]))[0] + 1e-15
    assert slack_from_walks(np.array([0.5]), np.array([0.5]), np.array([8.0]))[0] == 3.0
