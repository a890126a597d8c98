"""CoinJoins told by shape, each rule at its edge and against a slow reading of it."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

import pytest

from coinhaze.errors import UsageError
from coinhaze.graph.clusters.coinjoins import CoinJoin, coinjoin_kinds, split_amounts
from coinhaze.graph.clusters.merge import common_input_clusters
from coinhaze.ledger import CoinLedger


def transaction(
    number: int, spent: Sequence[int], made: Sequence[int], owners: Sequence[str] = ()
) -> dict[str, object]:
    names = list(owners) or [f"p{number}.{k}" for k in range(len(spent))]
    return {
        "txid": f"t{number}",
        "inputs": [
            {"txid": f"x{number}", "vout": k, "value": v, "address": names[k]}
            for k, v in enumerate(spent)
        ],
        "outputs": [{"value": v, "address": f"q{number}.{k}"} for k, v in enumerate(made)],
    }


def kind(spent: Sequence[int], made: Sequence[int], owners: Sequence[str] = ()) -> str:
    ledger = CoinLedger.from_transactions([transaction(0, spent, made, owners)])
    return CoinJoin(coinjoin_kinds(ledger)[-1]).name


POOL, TENTH = 1_000_000, 9_990_000


@pytest.mark.parametrize(
    ("spent", "made", "expected"),
    [
        ([POOL] * 4 + [POOL + 300], [POOL] * 5, "whirlpool"),
        ([POOL] * 4 + [POOL + 100_000], [POOL] * 5, "whirlpool"),
        ([POOL] * 4 + [POOL + 100_001], [POOL] * 5, "none"),
        ([POOL] * 3 + [POOL + 300], [POOL] * 4, "none"),
        ([POOL] * 9 + [POOL + 300], [POOL] * 10, "whirlpool"),
        ([POOL] * 10 + [POOL + 300], [POOL] * 11, "none"),
        ([POOL + 1] * 5, [POOL + 1] * 5, "none"),
        ([TENTH + 5] * 12, [TENTH] * 10 + [7, 8], "wasabi1"),
        ([TENTH + 5] * 12, [TENTH] * 9 + [7, 8], "none"),
        ([12 * TENTH], [TENTH] * 10 + [7, 8], "none"),
        ([8192] * 10, [4096, 4096, 2187, 2187, 1024, 512, 256, 128, 81, 64], "wasabi2"),
        ([8192] * 10, [64, 4096, 4096, 2187, 2187, 1024, 512, 256, 128, 81], "none"),
        ([8192] * 10, [4096, 4096, 2190, 2180, 1024, 512, 255, 128, 81, 64], "none"),
        ([50_000, 60_000, 70_000], [40_000, 40_000, 40_000, 9_000, 19_000, 29_000], "joinmarket"),
        ([50_000, 60_000, 70_000], [40_000, 40_000, 40_000, 9_000, 19_000], "joinmarket"),
        ([50_000, 60_000, 70_000], [40_000, 40_000, 9_000, 19_000], "none"),
    ],
)
def test_a_shape_is_reported(spent: list[int], made: list[int], expected: str) -> None:
    assert kind(spent, made) == expected


def test_joint_payers_must_be_several() -> None:
    spent, made = [50_000, 60_000, 70_000], [40_000, 40_000, 40_000, 9_000, 19_000, 29_000]
    assert kind(spent, made, ["a", "b", "b"]) == "none"


def slow_kind(ledger: CoinLedger, tx: int) -> str:
    """Read the rules as they are written, one transaction at a time."""
    assert ledger.output_value is not None
    value, owner = ledger.output_value.ints(), ledger.output_owner.tolist()
    spent_rows = [
        int(o) for t, o in zip(ledger.input_tx, ledger.input_output, strict=True) if t == tx
    ]
    made_rows = [k for k, t in enumerate(ledger.output_tx) if t == tx]
    made = [value[k] for k in made_rows if ledger.output_spendable[k]]
    spent = [value[k] for k in spent_rows]
    if not made or not spent:
        return "none"
    equals = max(Counter(made).values())
    common = max(v for v, n in Counter(made).items() if n == equals)
    pools = (100_000, 1_000_000, 5_000_000, 50_000_000)
    alike = len(made) == len(spent) == equals and 5 <= len(made) <= 10 and common in pools
    if alike and all(0 <= v - common <= min(100_000, common // 2) for v in spent):
        return "whirlpool"
    falling = made == sorted(made, reverse=True) and spent == sorted(spent, reverse=True)
    split = sum(v in set(split_amounts().tolist()) for v in made)
    if min(len(made), len(spent)) >= 10 and falling and split >= 0.8 * len(made) and equals >= 2:
        return "wasabi2"
    if abs(common - 10_000_000) <= 2_000_000 and equals >= 10 and len(spent) >= equals:
        return "wasabi1"
    people = (len(made) + 1) // 2
    payers = len({owner[k] for k in spent_rows})
    if people >= 3 and equals == people and payers >= people and common > 2_730:
        return "none" if len(made) < len(made_rows) else "joinmarket"
    return "none"


def test_all_at_once_is_as_one_by_one() -> None:
    chance = random.Random(5)
    values = [100_000, 100_400, 1_000_000, 9_990_000, 8192, 4096, 2187, 3000]
    records = []
    for number in range(400):
        base = chance.choice(values)
        spent = [chance.choice([base, base, base + 300, chance.choice(values)]) + 50_000_000
                 for _ in range(chance.choice([1, 3, 5, 8, 12]))]  # fmt: skip
        made = [chance.choice([base, base, chance.choice(values)]) for _ in range(len(spent))]
        if chance.random() < 0.5:
            spent = [v - 50_000_000 for v in spent]
            made = [min(s, base) for s in spent]
        if chance.random() < 0.5:
            spent, made = sorted(spent, reverse=True), sorted(made, reverse=True)
        record = transaction(number, spent, made)
        if chance.random() < 0.1:
            record["outputs"] += [{"value": 0, "spendable": False}]  # type: ignore[operator]
        records.append(record)
    ledger = CoinLedger.from_transactions(records)
    kinds = coinjoin_kinds(ledger)
    inside = [k for k in range(len(ledger.txids)) if ledger.inside[k]]
    expected = [slow_kind(ledger, k) for k in inside]
    assert [CoinJoin(kinds[k]).name for k in inside] == expected
    assert len(set(expected)) == 5


def test_inputs_of_a_coinjoin_stay_apart_if_requested() -> None:
    mix = transaction(0, [POOL] * 4 + [POOL + 300], [POOL] * 5)
    plain = transaction(1, [5, 6], [10])
    ledger = CoinLedger.from_transactions([mix, plain])
    assert len(common_input_clusters(ledger)) == 4 + 1
    assert common_input_clusters(ledger, coinjoins=False) == {"p1.1": "p1.0"}


def test_a_ledger_that_hides_amounts_shows_no_coinjoins() -> None:
    hidden = CoinLedger.from_transactions([{"txid": "a", "rings": [["w:0"]], "outputs": 1}])
    with pytest.raises(UsageError, match="recognised by amounts"):
        coinjoin_kinds(hidden)
