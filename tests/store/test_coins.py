"""Coins out of a store are those that went in, in order, however their rows came."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from benchmarks.ingesting import as_stored, main

from coinhaze.errors import InputError, LedgerError
from coinhaze.ledger import CoinLedger
from coinhaze.ledger.batches import Batch, Rows, gather
from coinhaze.ledger.coins import MAX_OUTPUTS
from coinhaze.ledger.window import ALL, LedgerWindow
from coinhaze.simulate import simulate_town
from coinhaze.solve.pool.limits import memory_now
from coinhaze.store.read import read_store
from coinhaze.store.store import Store

Record = dict[str, Any]
Records = dict[str, list[Record]]
NAMES = ("transactions", "outputs", "inputs")


def made_up(seed: int, *, positions: bool) -> Records:
    """Blocks of transactions that spend coins of before, of their own block and of before all."""
    chance = np.random.default_rng(seed)
    records: Records = {name: [] for name in NAMES}
    coins: list[tuple[str, int, int, str | None]] = []
    for number in range(60):
        of: Record = {"height": 100 + number // 8, "txid": f"{chance.integers(0, 9)}tx{number}"}
        spent = [coins.pop(int(chance.integers(len(coins)))) for _ in range(2) if len(coins) > 3]
        if number % 5 == 4:
            spent.append((f"old{number % 3}", number, int(chance.integers(5, 99)), None))
        records["transactions"].append(
            of | {"coinbase": not spent, "position": number % 8 if positions else None}
        )
        for vin, (txid, vout, value, owner) in enumerate(spent):
            coin = {"spent_txid": txid, "spent_vout": vout, "value": value, "owner": owner}
            records["inputs"].append(of | {"vin": vin, **coin})
        left = sum(coin[2] for coin in spent) if spent else 500
        for vout in np.cumsum(chance.integers(1, 3, 3)).tolist():  # numbers may have gaps
            value, owner = left // 3, [None, "ann", "bob", f"p{number}"][chance.integers(4)]
            coins.append((of["txid"], vout, value, owner))
            told = {"spendable": True, "value": value, "owner": owner}
            records["outputs"].append(of | {"vout": vout, **told})
    return records


def stored(records: Records, *, seed: int) -> Store:
    """Put rows into a store in any order, in several pieces."""
    chance = np.random.default_rng(seed)
    every = [(name, record) for name in records for record in records[name]]
    store = Store(None)
    for piece in np.array_split(chance.permutation(len(every)), 4):
        rows = {name: Rows(name) for name in records}
        for k in piece:
            rows[every[k][0]].add(**every[k][1])
        with store.transaction():
            store.append(Batch(gather(list(rows.values()))))
    return store


def twin(records: Records, window: LedgerWindow) -> list[object]:
    """The slow twin: sort a list, a transaction at a time, and look everything up by name."""
    chosen = {
        r["txid"]: r
        for r in records["transactions"]
        if (window.first or 0) <= r["height"] <= (window.last or 10**9)
    }
    level: dict[str, int] = {}

    def level_of(txid: str) -> int:
        if txid not in level:
            near = [
                r["spent_txid"]
                for r in records["inputs"]
                if r["txid"] == txid
                and r["spent_txid"] in chosen
                and chosen[r["spent_txid"]]["height"] == r["height"]
            ]
            level[txid] = max([1 + level_of(maker) for maker in near], default=0)
        return level[txid]

    def place(txid: str) -> tuple[int, int, str]:
        position = chosen[txid]["position"]
        return chosen[txid]["height"], level_of(txid) if position is None else position, txid

    return [
        (
            txid,
            chosen[txid]["height"],
            [
                (f"{r['spent_txid']}:{r['spent_vout']}", r["value"], r["owner"])
                for r in sorted(records["inputs"], key=lambda r: r["vin"])
                if r["txid"] == txid
            ],
            [
                (f"{txid}:{r['vout']}", r["value"], r["owner"])
                for r in sorted(records["outputs"], key=lambda r: r["vout"])
                if r["txid"] == txid
            ],
        )
        for txid in sorted(chosen, key=place)
    ]


def told(ledger: CoinLedger) -> list[object]:
    """A ledger in the words of the twin."""
    assert ledger.output_value is not None
    names, values = ledger.output_names().to_pylist(), ledger.output_value.ints()
    owners = [ledger.owners[int(k)].as_py() for k in ledger.output_owner]
    alone = ledger.owner_is_coin[ledger.output_owner]
    coins = [
        (name, value, None if by_itself else owner)
        for name, value, owner, by_itself in zip(names, values, owners, alone, strict=True)
    ]
    return [
        (
            ledger.txids[tx].as_py(),
            ledger.heights[tx].as_py(),
            [coins[k] for k in ledger.input_output[ledger.input_tx == tx]],
            [coins[k] for k in np.flatnonzero(ledger.output_tx == tx)],
        )
        for tx in np.flatnonzero(ledger.inside).tolist()
    ]


def coins_of(store: Store, window: LedgerWindow = ALL) -> CoinLedger:
    ledger = read_store(store, window)
    assert isinstance(ledger, CoinLedger)
    return ledger


@pytest.mark.parametrize("positions", [True, False])
@pytest.mark.parametrize("seed", range(8))
def test_what_comes_out_is_what_a_list_would_give(seed: int, positions: bool) -> None:
    records = made_up(seed, positions=positions)
    with stored(records, seed=seed) as store:
        for window in (ALL, LedgerWindow("height", 102, 104), LedgerWindow("height", 105, None)):
            assert told(coins_of(store, window)) == twin(records, window)


@pytest.mark.parametrize("positions", [True, False])
def test_rows_in_another_order_make_the_same_ledger(positions: bool) -> None:
    records = made_up(1, positions=positions)
    found = []
    for seed in range(3):
        with stored(records, seed=seed) as store:
            found.append(coins_of(store).tables())
    assert found[0] == found[1] == found[2]


def test_values_of_earlier_coins_are_looked_up_where_inputs_do_not_tell() -> None:
    records, window = made_up(3, positions=True), LedgerWindow("height", 103, None)
    expected = twin(records, window)
    for record in records["inputs"]:
        if not record["spent_txid"].startswith("old"):
            record |= {"value": None, "owner": None}
    with stored(records, seed=1) as store:
        assert told(coins_of(store, window)) == expected


def test_an_owner_that_inputs_tell_is_not_overwritten() -> None:
    made = {"height": 1, "txid": "a"}
    spends = {"height": 2, "txid": "b"}
    records: Records = {
        "transactions": [made | {"coinbase": True}, spends | {"coinbase": False}],
        "outputs": [
            made | {"vout": 0, "spendable": True, "value": 5, "owner": "ann,bob"},
            made | {"vout": 1, "spendable": True, "value": 6, "owner": "carol"},
        ],
        # Of the first coin the input tells an owner and no value, of the second neither.
        "inputs": [
            spends | {"vin": 0, "spent_txid": "a", "spent_vout": 0, "owner": "bob,ann"},
            spends | {"vin": 1, "spent_txid": "a", "spent_vout": 1},
        ],
    }
    with stored(records, seed=1) as store:
        ledger = coins_of(store, LedgerWindow("height", 2, None))
    assert told(ledger) == [("b", 2, [("a:0", 5, "bob,ann"), ("a:1", 6, "carol")], [])]


@pytest.mark.parametrize(("maker", "spender"), [(None, 0), (1, None), (None, None)])
def test_a_maker_comes_before_its_spender_whichever_place_is_reported(
    maker: int | None, spender: int | None
) -> None:
    of = {"height": 1}
    records: Records = {
        "transactions": [
            of | {"txid": "m", "coinbase": True, "position": maker},
            of | {"txid": "a", "coinbase": False, "position": spender},
        ],
        "outputs": [of | {"txid": "m", "vout": 0, "spendable": True, "value": 5}],
        "inputs": [of | {"txid": "a", "vin": 0, "spent_txid": "m", "spent_vout": 0}],
    }
    with stored(records, seed=1) as store:
        assert coins_of(store).txids.to_pylist() == ["m", "a"]


def test_a_coin_spent_twice_is_refused_also_if_it_is_an_earlier_one() -> None:
    records = made_up(2, positions=True)
    (first, second, *_) = (r for r in records["inputs"] if r["spent_txid"].startswith("old"))
    second |= {"spent_txid": first["spent_txid"], "spent_vout": first["spent_vout"]}
    with (
        stored(records, seed=1) as store,
        pytest.raises(LedgerError, match=f"spent twice: '{first['spent_txid']}:"),
    ):
        read_store(store)


def test_one_id_at_two_heights_is_refused() -> None:
    records = made_up(2, positions=True)
    again = records["transactions"][7] | {"height": 200}
    records["transactions"].append(again)
    with (
        stored(records, seed=1) as store,
        pytest.raises(LedgerError, match=f"one id at two heights: '{again['txid']}'"),
    ):
        read_store(store)


def test_rows_at_another_height_than_their_transaction_are_not_taken() -> None:
    records = made_up(2, positions=True)
    expected = twin(records, ALL)
    records["outputs"].append(records["outputs"][0] | {"height": 107})
    with stored(records, seed=1) as store:
        assert told(coins_of(store)) == expected


def test_coins_left_out_of_their_transaction_are_named() -> None:
    records = made_up(2, positions=True)
    spent = next(r for r in records["inputs"] if not r["spent_txid"].startswith("old"))
    name = f"{spent['spent_txid']}:{spent['spent_vout']}"
    records["outputs"] = [r for r in records["outputs"] if f"{r['txid']}:{r['vout']}" != name]
    with (
        stored(records, seed=1) as store,
        pytest.raises(InputError, match=f"1 inputs spend coins .*such as {name}: ingest the out"),
    ):
        read_store(store)


@pytest.mark.parametrize("number", [-1, MAX_OUTPUTS + 1])
@pytest.mark.parametrize("column", ["outputs.vout", "inputs.vin", "inputs.spent_vout"])
def test_numbers_out_of_range_are_refused(column: str, number: int) -> None:
    records = made_up(2, positions=True)
    table, name = column.split(".")
    records[table][3][name] = number
    with stored(records, seed=1) as store, pytest.raises(LedgerError, match="out of range"):
        read_store(store)


def test_ring_members_outside_the_window_are_named() -> None:
    records: Records = {"transactions": [], "outputs": [], "rings": []}
    for height in range(4):
        of = {"height": height, "txid": f"t{height}"}
        records["transactions"].append(of | {"coinbase": height < 3, "position": 0})
        records["outputs"].append(of | {"vout": 0, "spendable": True})
    for member in range(3):
        ring = {"height": 3, "txid": "t3", "vin": 0, "member_txid": f"t{member}", "member_vout": 0}
        records["rings"].append(ring)
    with stored(records, seed=1) as store:
        assert coins_of(store).ring_output.tolist() == [0, 1, 2]
        with pytest.raises(InputError, match=r"1 ring members .* such as t0:0: widen it"):
            read_store(store, LedgerWindow("height", 1, None))


def test_the_order_of_the_comparison_is_a_ledger_of_the_same_coins() -> None:
    ledger = simulate_town(transactions=200)
    other = as_stored(ledger)
    assert sorted(map(str, told(ledger))) == sorted(map(str, told(other)))


@pytest.mark.parametrize("size", [0.003, pytest.param(0.1, marks=pytest.mark.long)])
def test_a_week_of_dumps_scores_to_the_bit_as_the_week_itself(
    size: float, capsys: pytest.CaptureFixture[str]
) -> None:
    # What is measured is forked from this process, and begins with its memory.
    before = memory_now() / 2**20
    found = main(size, scores=True)
    assert found["peak_mb"] < before + 1200
    assert "same_ledger=True, same_bits=True, same_nodes=True, apart=0" in capsys.readouterr().out
