"""Origins by owner: worked cases, an exact twin, and the laws of the ladder."""

from __future__ import annotations

import random
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import coinhaze
import twin
from coinhaze import CoinLedger
from coinhaze.errors import UsageError
from coinhaze.graph.clusters.change import change_outputs
from coinhaze.graph.clusters.coinjoins import CoinJoin, coinjoin_kinds
from coinhaze.measures.by_owner import origins_by_owner
from coinhaze.observer.owners import by_owner, ladder, persons
from coinhaze.solve.query import Query
from coinhaze.solve.structure.columns import Dominators
from vectors import accounts, coins, load

STEPS = ("common-input-no-coinjoins", "change", "given")


def test_worked_cases() -> None:
    ledger, case = coins("utxo"), load("owners")
    chain = coinhaze.absorbing_chain(coinhaze.transaction_graph(ledger))
    answers = case["answers"]
    naive = coinhaze.score(chain, nodes=list(answers))
    address = by_owner(chain, persons(ledger))
    cluster = by_owner(chain, persons(ledger, case["clusters"]))
    by_address = coinhaze.score(address, nodes=list(answers))
    by_cluster = coinhaze.score(cluster, nodes=list(answers))
    for row, (node, answer) in enumerate(answers.items()):
        assert naive.bits[row] == pytest.approx(answer["bits"], abs=1e-12)
        assert by_address.bits[row] == pytest.approx(answer["bits_by_address"], abs=1e-12)
        assert by_cluster.bits[row] == pytest.approx(answer["bits_by_cluster"], abs=1e-12)
        found = coinhaze.origins(cluster, node).sources().to_pylist()
        shares = {each["source"]: each["probability"] for each in found}
        exact = {name: float(Fraction(share[0])) for name, share in answer["by_cluster"].items()}
        assert shares == pytest.approx(exact, abs=1e-12)


def economy(seed: int) -> list[dict[str, Any]]:
    """Make transactions up: coinbases of one or two owners, coins from before, payments, change."""
    chance = random.Random(seed)
    addresses = [f"addr{k}" for k in range(9)]
    live: list[tuple[str, int, int]] = []
    found: list[dict[str, Any]] = []
    for number in range(chance.randint(4, 14)):
        inputs: list[dict[str, Any]] = []
        if live and chance.random() < 0.75:
            chance.shuffle(live)
            spent = [live.pop() for _ in range(min(len(live), chance.randint(1, 4)))]
            inputs = [{"txid": t, "vout": v} for t, v, _ in spent]
            worth = sum(value for _, _, value in spent)
            if chance.random() < 0.5:
                more = chance.randint(1, 50)
                address = chance.choice([*addresses, None])
                coin = {"txid": f"old{number}", "vout": 0, "value": more}
                inputs.append(coin | ({"address": address} if address else {}))
                worth += more
        else:
            worth = chance.randint(10, 90)
        outputs: list[dict[str, Any]] = []
        for _ in range(chance.randint(1, 3)):
            value = chance.randint(0, worth)
            worth -= value
            to = chance.choice([*addresses, f"new{number}.{len(outputs)}", None])
            outputs.append({"value": value} | ({"address": to} if to else {}))
        found.append({"txid": f"t{number}", "inputs": inputs, "outputs": outputs})
        live += [(f"t{number}", k, o["value"]) for k, o in enumerate(outputs) if o["value"]]
    return found


def told_owners(ledger: CoinLedger, records: list[dict[str, Any]], given: Mapping[str, str]) -> Any:
    """Say, for each step of the ladder, which owners are one: sets merged until nothing changes."""
    kinds = coinjoin_kinds(ledger)
    mixes = {ledger.txids[k].as_py() for k in np.flatnonzero(kinds != CoinJoin.none)}
    change = set(ledger.output_names(change_outputs(ledger)).to_pylist())
    of_coin = dict(owners_of_coins(records))
    joint: list[set[str]] = []
    told: list[set[str]] = []
    for record in records:
        spent = {of_coin[f"{i['txid']}:{i['vout']}"] for i in record["inputs"]}
        if record["txid"] not in mixes:
            joint.append(spent)
        back = {
            c for k, _ in enumerate(record["outputs"]) if (c := f"{record['txid']}:{k}") in change
        }
        told.append(spent | {of_coin[c] for c in back} if back else set())
    same = [{a for a in given if given[a] == name} for name in set(given.values())]
    return [merged(joint), merged(joint + told), merged(joint + told + same)]


def owners_of_coins(records: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Name the owner of every coin: its address, or itself."""
    found = []
    for record in records:
        for coin in record["inputs"]:
            if "value" in coin:
                name = f"{coin['txid']}:{coin['vout']}"
                found.append((name, coin.get("address", name)))
        for k, coin in enumerate(record["outputs"]):
            name = f"{record['txid']}:{k}"
            found.append((name, coin.get("address", name)))
    return found


def merged(sets: list[set[str]]) -> list[set[str]]:
    """Merge sets that meet."""
    left: list[set[str]] = []
    for each in sets:
        apart = [s for s in left if not s & each]
        left = [*apart, set(each).union(*(s for s in left if s & each))]
    return [s for s in left if s]


def by_person(
    row: Mapping[str, Fraction], records: list[dict[str, Any]], one: list[set[str]]
) -> dict[str, Fraction]:
    """Add up a row of B by the person behind each source."""
    of_coin = dict(owners_of_coins(records))

    def person(owner: str) -> str:
        return next((min(s) for s in one if owner in s), owner)

    found: dict[str, Fraction] = {}
    for source, share in row.items():
        name = source
        if source.startswith("tx:"):
            record = next(r for r in records if r["txid"] == source[3:])
            paid = {
                person(of_coin[f"{record['txid']}:{k}"])
                for k, coin in enumerate(record["outputs"])
                if coin["value"]
            }
            name = paid.pop() if len(paid) == 1 else source
        else:
            name = person(of_coin[source])
        found[name] = found.get(name, Fraction(0)) + share
    return found


@pytest.mark.parametrize(
    "seed", [pytest.param(k, marks=[pytest.mark.long] if k > 19 else []) for k in range(60)]
)
def test_every_step_of_the_ladder_is_what_fractions_give(seed: int) -> None:
    records = economy(seed)
    ledger = CoinLedger.from_transactions(records)
    given = {f"addr{k}": ("Ann", "Bob", "Cat")[k % 3] for k in range(0, 9, 2)}
    given = {a: given[a] for a in given if a in set(ledger.owners.to_pylist())}
    exact = twin.solve(twin.proportional(twin.coin_graph(records)))
    scores = coinhaze.score(ledger, nodes="all")
    found = coinhaze.informed(scores, owners=given or {"addr0": "Ann"})
    steps = told_owners(ledger, records, given)
    assert tuple(found.informed) == STEPS
    nodes = scores.chain.graph.names.of(scores.nodes).to_pylist()
    observers = ladder(ledger, owners=given or {"addr0": "Ann"})
    for row, node in enumerate(nodes):
        answer = exact[node]
        if answer is None:  # a coinbase worth nothing
            assert all(np.isnan(found.informed[name].bits[row]) for name in STEPS)
            continue
        before = scores.bits_high[row]
        origins = coinhaze.origins(scores.chain, node)
        alone = origins_by_owner(origins, observers)
        for name, one, single in zip(STEPS, steps, alone, strict=True):
            truth = twin.entropy(by_person(answer.distribution, records, one))
            bits = found.informed[name]
            assert bits.bits[row] == pytest.approx(truth, abs=1e-12)
            assert bits.bits_low[row] <= truth + 1e-15
            assert truth - 1e-15 <= bits.bits_high[row] <= before
            assert single.bits == pytest.approx(truth, abs=1e-12)
            assert single.bits_low - 1e-15 <= truth <= single.bits_high + 1e-15
            before = bits.bits_high[row]


def test_one_coin_has_the_bits_inside_a_pool_that_a_table_has() -> None:
    chain = coinhaze.absorbing_chain(
        coinhaze.transaction_graph(coins("pools")), history={"sapling": [3, 5, 8, 16]}
    )
    observers = ladder(chain.graph.ledger)
    found = coinhaze.informed(coinhaze.score(chain, nodes=["t2:0"])).informed
    alone = origins_by_owner(coinhaze.origins(chain, "t2:0"), observers)
    spread = (0.5, 0.2, *(0.3 * value / 32 for value in (3, 5, 8, 16)))  # nobody joins owners
    truth = -sum(share * np.log2(share) for share in spread)
    for observer, single in zip(observers, alone, strict=True):
        assert found[observer.name].bits[0] == pytest.approx(truth, abs=1e-12)
        assert single.bits == pytest.approx(truth, abs=1e-12)
        assert single.bits_low <= truth <= single.bits_high


@pytest.mark.parametrize("seed", range(12))
def test_merged_outcomes_obey_the_laws_in_every_order(seed: int) -> None:
    ledger = CoinLedger.from_transactions(economy(100 + seed))
    chain = coinhaze.absorbing_chain(coinhaze.transaction_graph(ledger))
    orders = (0, 0.5, 2, np.inf)
    before = coinhaze.score(chain, nodes="all", renyi=orders)
    for observer in ladder(ledger, owners={"addr1": "x", "addr2": "x", "addr3": "x"}):
        merged_chain = by_owner(chain, observer.persons, name=observer.name)
        scores = coinhaze.score(merged_chain, nodes="all", renyi=orders)
        swept = coinhaze.score(merged_chain, nodes="all", method="eliminate")
        assert scores.bits == pytest.approx(swept.bits, abs=1e-12)
        assert np.all(scores.bits <= before.bits + 1e-12)
        for order in orders:
            assert np.all(scores.renyi[order] <= before.renyi[order] + 1e-9)
        assert scores.conservation is None or scores.conservation < 1e-9
        near = coinhaze.score(merged_chain, nodes="all", accuracy=0.3)
        assert np.all((near.bits_low <= scores.bits_high) & (scores.bits_low <= near.bits_high))
        drawn = coinhaze.score(merged_chain, nodes="all", accuracy="preview", seed=seed)
        assert np.all((drawn.bits_low <= scores.bits_high) & (scores.bits_low <= drawn.bits_high))
        before = scores


def test_previews_and_wide_intervals_have_informed_bits_too() -> None:
    ledger = CoinLedger.from_transactions(economy(7))
    exact = coinhaze.informed(coinhaze.score(ledger)).informed["change"].bits
    for accuracy in (0.5, "preview"):
        wide = coinhaze.informed(coinhaze.score(ledger, accuracy=accuracy)).informed["change"]
        assert np.all((wide.bits_low <= exact + 1e-12) & (exact - 1e-12 <= wide.bits_high))


def test_accounts_have_owners_where_a_table_tells_them() -> None:
    ledger = accounts("account_stationary")
    names = ledger.accounts.to_pylist()
    scores = coinhaze.score(ledger)
    with pytest.raises(UsageError, match="give a table of owners"):
        coinhaze.informed(scores)
    one = coinhaze.informed(scores, owners=dict.fromkeys(names, "everybody"))
    mints = one.informed["given"]
    assert np.all(mints.bits <= scores.bits + 1e-12)
    assert mints.observer is not None
    assert mints.observer.sure() == "given"
    with pytest.raises(UsageError, match="fifo and lifo"):
        coinhaze.informed(coinhaze.score(ledger, policy="fifo"), owners={names[0]: "x"})


def test_columns_of_tables_are_named_after_observers() -> None:
    scores = coinhaze.informed(coinhaze.score(coins("utxo")), owners={"addr0": "A", "addr1": "A"})
    table = scores.to_arrow()
    for name in STEPS:
        column = f"bits_{name.replace('-', '_')}"
        assert {column, f"{column}_low", f"{column}_high"} <= set(table.column_names)
    some = scores.take(np.array([1, 0]))
    assert some.informed["given"].bits.tolist() == scores.informed["given"].bits[[1, 0]].tolist()


def test_lumped_columns_change_no_bits() -> None:
    for seed in range(60):
        ledger = CoinLedger.from_transactions(economy(seed))
        whole = coinhaze.informed(coinhaze.score(ledger, nodes="all"))
        sinks = coinhaze.informed(coinhaze.score(ledger))  # with columns of many origins
        rows = np.searchsorted(whole.nodes, sinks.nodes)
        for name, found in sinks.informed.items():
            assert found.bits == pytest.approx(whole.informed[name].bits[rows], abs=1e-12)


def test_what_all_observers_share_is_worked_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[object] = []
    find = Dominators.of

    def counted(query: Query) -> Dominators:
        calls.append(query)
        return find(query)

    scores = coinhaze.score(CoinLedger.from_transactions(economy(3)), nodes="all")
    monkeypatch.setattr(Dominators, "of", counted)
    found = coinhaze.informed(scores, owners={"addr2": "Ann", "addr4": "Ann"})
    assert len(found.informed) == len(STEPS)
    assert len(calls) == 1
