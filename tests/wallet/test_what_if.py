"""What if: equal to the extended ledger, to the last bit that counts; and every refusal."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import coinhaze
from coinhaze.errors import InputError, UsageError
from coinhaze.graph import TransactionGraph
from coinhaze.ledger import CoinLedger
from coinhaze.ledger.coins import Input, Output, Transaction
from coinhaze.observer import AbsorbingChain
from coinhaze.wallet.holdings import UnknownCoin
from coinhaze.wallet.what_if import what_if
from properties import strategies

Records = list[dict[str, Any]]


def graph_of(records: Records) -> TransactionGraph:
    return coinhaze.transaction_graph(CoinLedger.from_transactions(records))


def unspent(graph: TransactionGraph) -> list[tuple[str, int, int]]:
    """Name the coins that can be spent, worth something: txid, vout, value."""
    ledger = graph.ledger
    assert isinstance(ledger, CoinLedger)
    assert ledger.output_value is not None
    rows = np.setdiff1d(np.flatnonzero(ledger.inside[ledger.output_tx]), ledger.input_output)
    return [
        (ledger.txids[int(ledger.output_tx[r])].as_py(), int(ledger.output_vout[r]), value)
        for r, value in zip(rows, ledger.output_value.take(rows).ints(), strict=True)
        if value > 0
    ]


@st.composite
def proposals(draw: st.DrawFn) -> tuple[Records, dict[str, Any]]:
    """Draw a ledger and a transaction that spends some of its coins."""
    records = draw(strategies.transactions(pools=draw(st.booleans())))
    coins = unspent(graph_of(records))
    assume(coins)
    spent = draw(st.lists(st.sampled_from(coins), min_size=1, max_size=4, unique=True))
    money = sum(value for *_, value in spent)
    paid = draw(st.integers(1, money))
    first = draw(st.integers(0, paid))
    outputs = [{"value": first, "address": "p"}, {"value": paid - first, "address": None}]
    inputs = [{"txid": txid, "vout": vout} for txid, vout, _ in spent]
    return records, {"txid": "new", "inputs": inputs, "outputs": outputs}


def chains(records: Records, **more: Any) -> AbsorbingChain:
    return coinhaze.absorbing_chain(graph_of(records), **more)


@given(proposals(), st.sampled_from(["proportional", "uniform"]))
@settings(max_examples=80, deadline=None)
def test_it_equals_recomputing_the_extended_ledger(
    drawn: tuple[Records, dict[str, Any]], policy: str
) -> None:
    records, proposed = drawn
    answer = what_if(chains(records, policy=policy), Transaction.of(proposed))
    longer = chains([*records, proposed], policy=policy)
    for vout, output in enumerate(proposed["outputs"]):
        if output["value"] == 0:
            continue
        full = coinhaze.origins(longer, f"new:{vout}")
        assert answer.after.bits == pytest.approx(full.bits, abs=1e-11)
        assert answer.after.bits_low <= full.bits_high + 1e-13
        assert full.bits_low - 1e-13 <= answer.after.bits_high
        assert answer.steps == pytest.approx(full.steps, rel=1e-11)
        ours = {r["source"]: r["probability"] for r in answer.after.sources().to_pylist()}
        theirs = {r["source"]: r["probability"] for r in full.sources().to_pylist()}
        assert ours == pytest.approx(theirs, abs=1e-12)
    for coin in answer.coins:
        before = coinhaze.score(longer, nodes=[coin.name]).bits[0]
        assert coin.bits == pytest.approx(before, abs=1e-11)


@given(proposals(), st.sampled_from(["proportional", "poison"]))
@settings(max_examples=80, deadline=None)
def test_exposure_equals_that_of_the_extended_ledger(
    drawn: tuple[Records, dict[str, Any]], policy: str
) -> None:
    records, proposed = drawn
    graph = graph_of(records)
    listed = ["p", "q"]
    assume(any(len(graph.names.nodes(name)) for name in listed))
    exposed = coinhaze.absorbing_chain(graph, listed=listed, policy=policy)
    transaction = Transaction.of(proposed)
    answer = what_if(coinhaze.absorbing_chain(graph), transaction, exposed=exposed)
    longer = chains([*records, proposed], listed=listed, policy=policy)
    for vout, output in enumerate(transaction.outputs):
        if output.value:
            full = coinhaze.score(longer, nodes=[f"new:{vout}"])
            assert full.exposure is not None
            # An address the list names but the ledger did not know is known only afterwards.
            if output.address == "p" and "p" not in answer.listed:
                continue
            assert answer.exposure_of(output) == pytest.approx(full.exposure[0], abs=1e-11)


COINS: Records = [
    {"txid": "a", "outputs": [{"value": 5, "address": "p"}, {"value": 3, "address": "q"}]},
    {"txid": "b", "inputs": [{"txid": "a", "vout": 1}], "outputs": [{"value": 3}]},
    {"txid": "c", "outputs": [{"value": 2}, {"value": 0}, {"value": 1, "spendable": False}]},
]


def test_a_coin_from_before_the_window_is_a_source_if_requested() -> None:
    proposed = {"txid": "new", "outputs": [{"value": 9}]}
    proposed |= {"inputs": [{"txid": "a", "vout": 0}, {"txid": "x", "vout": 1, "value": 5}]}
    transaction = Transaction.of(proposed)
    chain = chains(COINS)
    with pytest.raises(UnknownCoin, match=r"no coin 'x:1' in the ledger \(a coin made before"):
        what_if(chain, transaction)
    answer = what_if(chain, transaction, unknown="source")
    assert answer.after.bits == coinhaze.score(chains([*COINS, proposed]), nodes=["new:0"]).bits[0]
    assert answer.fee == 1
    listed = coinhaze.absorbing_chain(chain.graph, listed=["p"])
    assert what_if(chain, transaction, exposed=listed, unknown="source").exposure == 0.5
    known = Transaction("new", inputs=(Input("x", 1, 5, "p"), Input("c", 0)))
    exposure = what_if(chain, known, exposed=listed, unknown="source").exposure
    assert exposure == pytest.approx(5 / 7)
    for value, complete in ((None, False), (5, True)):
        ledger = CoinLedger.from_transactions(COINS, complete=complete)
        whole = coinhaze.absorbing_chain(coinhaze.transaction_graph(ledger))
        with pytest.raises(InputError, match="as a source it needs a value"):
            what_if(whole, Transaction("new", inputs=(Input("x", 1, value),)), unknown="source")


@pytest.mark.parametrize("listed", [["B", "Z"], ["b:0", "B", "Z"], ["B", "b:0"]])
def test_a_payment_to_a_listed_address_is_exposed_wherever_the_name_comes_from(
    listed: list[str],
) -> None:
    records = [
        {"txid": "a", "outputs": [{"value": 5, "address": "A"}]},
        {"txid": "b", "outputs": [{"value": 5, "address": "B"}]},
    ]
    graph = coinhaze.transaction_graph(CoinLedger.from_transactions(records))
    chain = coinhaze.absorbing_chain(graph)
    exposed = coinhaze.absorbing_chain(graph, listed=listed)
    paid = tuple(Output(1, name, k) for k, name in enumerate("BZC"))
    answer = what_if(chain, Transaction("n", (Input("a", 0),), paid), exposed=exposed)
    shares = [answer.exposure_of(output) for output in paid]
    assert shares == [1.0, 1.0 if "Z" in listed else 0.0, 0.0]


def test_a_listed_coin_that_the_ledger_does_not_know_is_refused() -> None:
    records = [{"txid": "b", "outputs": [{"value": 5, "address": "B"}]}]
    graph = coinhaze.transaction_graph(CoinLedger.from_transactions(records))
    chain = coinhaze.absorbing_chain(graph)
    for listed, address in ((["B", "x:0"], None), (["B", "Z"], "Z"), (["b:0", "B"], "B")):
        exposed = coinhaze.absorbing_chain(graph, listed=listed)
        spent = Transaction("n", (Input("x", 0, 4, address),), (Output(4, None, 0),))
        with pytest.raises(InputError, match="x:0 is listed, but the ledger knows"):
            what_if(chain, spent, exposed=exposed, unknown="source")


@pytest.mark.parametrize(
    ("coins", "words"),
    [
        (["a:1"], "coin a:1 is spent already, by b"),
        (["a:0", "a:0"], "named twice"),
        (["a:7"], "no coin 'a:7' in the ledger"),
        (["tx:a"], "not a coin: 'tx:a'; name it txid:vout"),
        (["c:1"], "coin c:1 is worth nothing"),
        (["c:2"], "coin c:2 can never be spent"),
    ],
    ids=["spent", "twice", "unknown", "no coin", "nothing", "never"],
)
def test_coins_that_cannot_be_spent_are_refused(coins: list[str], words: str) -> None:
    with pytest.raises(InputError, match=words):
        what_if(chains(COINS), coins)


def test_proposals_that_break_a_rule_are_refused() -> None:
    chain = chains(COINS)
    greedy = Transaction("new", inputs=(Input("a", 0),), outputs=(Output(6),))
    with pytest.raises(InputError, match="worth 1 more than the coins"):
        what_if(chain, greedy)
    with pytest.raises(InputError, match="worth 5 in the ledger, but in the proposal: 7"):
        what_if(chain, Transaction("new", inputs=(Input("a", 0, 7),)))
    with pytest.raises(UsageError, match="name the coins"):
        what_if(chain, [])
    with pytest.raises(UsageError, match="made with `listed`"):
        what_if(chain, ["a:0"], exposed=chain)
    address = coinhaze.transaction_graph(CoinLedger.from_transactions(COINS), view="address")
    with pytest.raises(UsageError, match="coin view"):
        what_if(coinhaze.absorbing_chain(address), ["a:0"])
    rings = CoinLedger.from_transactions([{"txid": "a", "rings": [["o:0"]], "outputs": 1}])
    with pytest.raises(UsageError, match="rings do not tell"):
        what_if(coinhaze.absorbing_chain(coinhaze.transaction_graph(rings)), ["a:0"])


def test_an_answer_on_a_real_set_comes_at_once(data: Path) -> None:
    """Blocks 100 000 to 104 000 of Bitcoin: any two unspent coins in under a tenth of a second."""
    ledger = coinhaze.read(sorted(data.glob("btc_utxo_100000_104000/[ve]*.csv.gz")))
    chain = coinhaze.absorbing_chain(coinhaze.transaction_graph(ledger))
    coins = [f"{txid}:{vout}" for txid, vout, _ in unspent(chain.graph)]
    what_if(chain, coins[:2])
    rng, seconds = np.random.default_rng(1), []
    for _ in range(30):
        pair = rng.choice(coins, 2, replace=False).tolist()
        begin = time.process_time()
        answer = what_if(chain, pair)
        seconds.append(time.process_time() - begin)
        exact = coinhaze.score(chain, nodes=pair)
        assert [c.bits for c in answer.coins] == pytest.approx(exact.bits.tolist(), abs=1e-9)
        assert not math.isnan(answer.after.bits)
    assert np.median(seconds) < 0.1
