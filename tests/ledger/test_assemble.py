"""Ledgers built by columns against the twin that takes transactions one at a time."""

from __future__ import annotations

import random
from typing import Any

from coinhaze.errors import LedgerError
from coinhaze.ledger import CoinLedger
from ledger.assemble_twin import assemble_one_by_one

Record = dict[str, Any]
CASES = 1500


def made_up(chance: random.Random) -> list[Record]:
    """Some transactions, most of which keep the rules."""
    hidden, rings = chance.random() < 0.15, chance.random() < 0.15
    records: list[Record] = []
    coins: list[tuple[str, int, int]] = [("old", n, 9) for n in range(2)]
    for number in range(chance.randrange(1, 6)):
        txid = f"t{number}" if chance.random() < 0.97 else f"t{chance.randrange(number + 1)}"
        record: Record = {"txid": txid, "height": chance.choice([None, number])}
        record["coinbase"] = chance.choice([None, None, None, True, False])
        taken = chance.sample(coins, min(len(coins), chance.randrange(3)))
        if chance.random() < 0.95:
            coins = [coin for coin in coins if coin not in taken]
        if chance.random() < 0.05:
            taken.append((f"t{chance.randrange(6)}", chance.randrange(3), 5))
        worth = sum(value for _, _, value in taken)
        if rings and taken:
            record["rings"] = [[f"{t}:{v}" for t, v, _ in taken]]
            if chance.random() < 0.5:
                record["posteriors"] = [chance.choice([[1], [0.5, 0.5], [0.25, 0.5], [-1, 2]])]
        else:
            told = chance.random() < 0.8
            record["inputs"] = [
                {"txid": t, "vout": v} | ({"value": n} if told or t == "old" else {})
                for t, v, n in taken
            ]
        if chance.random() < 0.2:
            flow = chance.choice([-4, 3, 0])
            record["pools"] = {chance.choice(["sapling", "orchard"]): flow}
            worth -= flow
        record["outputs"] = []
        for vout in range(chance.randrange(3)):
            value = chance.randrange(max(1, worth + 1)) if worth > 0 else chance.randrange(9)
            worth -= value if chance.random() < 0.95 else 0
            output: Record = {"value": None if hidden else value}
            if chance.random() < 0.5:
                output["address"] = chance.choice("ab")
            if chance.random() < 0.05:
                output["spendable"] = False
            if chance.random() < 0.1:
                output["vout"] = chance.randrange(3)
            record["outputs"].append(output)
            coins.append((txid, output.get("vout", vout), value))
        records.append(record)
    if chance.random() < 0.05:
        chance.shuffle(records)
    return records


def outcome(build: Any, records: list[Record], complete: bool) -> Any:
    try:
        ledger = build(records, complete=complete, pool_values={})
    except LedgerError as error:
        names = [r["txid"] for r in records if f"transaction {r['txid']}" in str(error)]
        return None if names else error
    return ledger.tables()  # None instead for an error that names a transaction


def test_columns_and_one_by_one_accept_and_refuse_the_same() -> None:
    refused = 0
    for seed in range(CASES):
        chance = random.Random(seed)
        records, complete = made_up(chance), chance.random() < 0.1
        found = outcome(CoinLedger.from_transactions, records, complete)
        assert found == outcome(assemble_one_by_one, records, complete), (seed, records)
        refused += found is None
    assert CASES / 8 < refused < CASES * 7 / 8
