"""Every worked case with exact answers, to 1e-12, through every exact solver that applies."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import coinhaze
from coinhaze import AbsorbingChain, absorbing_chain, transaction_graph
from vectors import accounts, coins, load

CLOSE = 1e-12


def table() -> dict[str, int]:
    return {name: int(value) for name, value in load("mint_and_table")["table"].items()}


def chain_of(ledger: coinhaze.AccountLedger | coinhaze.CoinLedger, **graph: Any) -> AbsorbingChain:
    return absorbing_chain(transaction_graph(ledger, **graph))


CASES: dict[str, tuple[Any, Any]] = {
    "worked example": (
        lambda: chain_of(accounts("graph_example")),
        lambda: load("graph_example")["answers"],
    ),
    "cycle": (lambda: chain_of(accounts("graph_cycle")), lambda: load("graph_cycle")["answers"]),
    "uniform": (
        lambda: absorbing_chain(transaction_graph(accounts("graph_example")), policy="uniform"),
        lambda: load("uniform")["answers"],
    ),
    "accounts, stationary": (
        lambda: chain_of(accounts("account_stationary")),
        lambda: load("account_stationary")["answers"],
    ),
    "accounts, temporal": (
        lambda: chain_of(accounts("account_temporal"), time="temporal"),
        lambda: load("account_temporal")["answers"],
    ),
    "temporality figure, stationary": (
        lambda: chain_of(accounts("temporality_figure")),
        lambda: load("temporality_figure")["stationary"],
    ),
    "temporality figure, temporal": (
        lambda: chain_of(accounts("temporality_figure"), time="temporal"),
        lambda: load("temporality_figure")["temporal"],
    ),
    "coins": (lambda: chain_of(coins("utxo")), lambda: load("utxo")["coin"]),
    **{
        f"addresses, {time}, {opening}": (
            lambda time=time, opening=opening: chain_of(
                coins("utxo"), view="address", time=time, opening=opening
            ),
            lambda time=time, opening=opening: load("utxo")[f"address_{time}_{opening}"],
        )
        for time in ("stationary", "temporal")
        for opening in ("surplus", "observed")
    },
    "pools, coins": (lambda: chain_of(coins("pools")), lambda: load("pools")["coin"]),
    "pools, addresses": (
        lambda: chain_of(coins("pools"), view="address"),
        lambda: load("pools")["address_stationary"],
    ),
    "rings": (lambda: chain_of(coins("rings")), lambda: load("rings")["answers"]),
    "mint one": (
        lambda: chain_of(accounts("mint_and_table"), mint="one"),
        lambda: load("mint_and_table")["mint_one"],
    ),
    "mint each": (
        lambda: chain_of(accounts("mint_and_table")),
        lambda: load("mint_and_table")["mint_each"],
    ),
    "table": (
        lambda: chain_of(accounts("mint_and_table"), mint="one", opening=table()),
        lambda: load("mint_and_table")["with_table"],
    ),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("method", ["auto", "eliminate", "series"])
def test_bits_steps_and_sources_are_the_exact_ones(case: str, method: Any) -> None:
    make_chain, answers = CASES[case][0], CASES[case][1]()
    scores = coinhaze.score(make_chain(), nodes=list(answers), method=method)
    for row, (name, answer) in enumerate(answers.items()):
        if answer is None:
            assert math.isnan(scores.bits[row]), name
            assert math.isnan(scores.steps[row]), name
            continue
        assert scores.bits[row] == pytest.approx(answer["bits"], rel=0, abs=CLOSE), name
        assert scores.steps[row] == pytest.approx(answer["steps"], rel=CLOSE, abs=0), name
        assert scores.sources[row] == len(answer["sources"]), name
        assert scores.bits_low[row] <= answer["bits"] + 1e-16, name
        assert scores.bits_high[row] >= answer["bits"] - 1e-16, name
    assert scores.width <= 1e-9


@pytest.mark.parametrize("case", CASES)
def test_origins_are_the_exact_distribution(case: str) -> None:
    chain, answers = CASES[case][0](), CASES[case][1]()
    for name, answer in answers.items():
        if answer is None:
            with pytest.raises(coinhaze.CoinhazeError, match="no answer"):
                coinhaze.origins(chain, name)
            continue
        found = coinhaze.origins(chain, name)
        shares = {row["source"]: row["probability"] for row in found.sources().to_pylist()}
        assert shares.keys() == answer["sources"].keys()
        for source, (_, probability) in answer["sources"].items():
            assert shares[source] == pytest.approx(probability, rel=0, abs=CLOSE)
        assert found.probability.tolist() == sorted(found.probability.tolist(), reverse=True)
        assert found.bits == pytest.approx(answer["bits"], rel=0, abs=CLOSE)


@pytest.mark.parametrize(
    ("case", "sinks"),
    [
        ("worked example", lambda: load("graph_example")["sinks"]),
        ("cycle", lambda: load("graph_cycle")["sinks"]),
        ("accounts, stationary", lambda: load("account_stationary")["sinks"]),
        ("accounts, temporal", lambda: load("account_temporal")["answers"]),
        ("coins", lambda: load("utxo")["coin"]),
        ("addresses, stationary, surplus", lambda: load("utxo")["address_stationary_surplus"]),
        ("addresses, temporal, observed", lambda: load("utxo")["address_temporal_observed"]),
        ("rings", lambda: load("rings")["answers"]),
        ("mint each", lambda: load("mint_and_table")["mint_each"]),
        ("mint one", lambda: load("mint_and_table")["mint_one"]),
        ("table", lambda: load("mint_and_table")["with_table"]),
    ],
)
def test_sinks_are_those_listed(case: str, sinks: Any) -> None:
    graph = CASES[case][0]().graph
    assert set(graph.names.of(np.flatnonzero(graph.sinks)).to_pylist()) == set(sinks())


@pytest.mark.parametrize(
    ("graph", "opening"),
    [
        (
            lambda: transaction_graph(accounts("account_temporal"), time="temporal"),
            lambda: {f"{k}:0": v for k, v in load("account_temporal")["opening"].items()},
        ),
        (lambda: transaction_graph(coins("pools")), lambda: load("pools")["coin_opening"]),
        (
            lambda: transaction_graph(coins("pools"), view="address"),
            lambda: load("pools")["address_stationary_opening"],
        ),
    ],
)
def test_opening_balances_are_exact(graph: Any, opening: Any) -> None:
    built = graph()
    sources = np.flatnonzero(built.sources)
    names = built.names.of_sources(sources).to_pylist()
    assert dict(zip(names, built.opening.take(sources).text().to_pylist(), strict=True)) == (
        opening()
    )


@pytest.mark.parametrize("case", ["source_set", "source_set_on_the_way", "poison"])
def test_listed_sources_give_exposure_and_bits(case: str) -> None:
    given = load("observer")[case]
    graph = transaction_graph(accounts("graph_example"))
    policy = "poison" if case == "poison" else "proportional"
    chain = absorbing_chain(graph, policy=policy, listed=given["listed"])
    scores = coinhaze.score(chain, nodes=[given["node"]])
    assert scores.exposure is not None
    assert scores.exposure[0] == pytest.approx(given["exposure"], abs=CLOSE)
    assert scores.bits[0] == pytest.approx(given["bits"], abs=CLOSE)
    if "conditional_bits" in given:
        assert scores.conditional_bits is not None
        assert scores.conditional_bits[0] == pytest.approx(given["conditional_bits"], abs=CLOSE)
    shares = coinhaze.origins(chain, given["node"]).sources().to_pylist()
    assert {r["source"]: pytest.approx(r["probability"], abs=CLOSE) for r in shares} == (
        given["distribution"]
    )


def test_poison_leaves_the_rest_clean() -> None:
    given = load("observer")["poison"]
    graph = transaction_graph(accounts("graph_example"))
    scores = coinhaze.score(
        absorbing_chain(graph, policy="poison", listed=given["listed"]), nodes="all"
    )
    assert scores.exposure is not None
    clean = np.flatnonzero(scores.exposure == 0)
    assert graph.names.of(clean).to_pylist() == given["clean_nodes"]
    assert np.isnan(scores.bits[clean]).all()


def test_pool_history_adds_its_share_and_the_unmodified_score_stands_beside() -> None:
    given = load("observer")["pool_history"]
    graph = transaction_graph(accounts("graph_example"))
    chain = absorbing_chain(graph, history={given["source"]: given["history_values"]})
    scores = coinhaze.score(chain, nodes=[given["node"]])
    assert scores.bits_unmodified is not None
    assert scores.bits[0] == pytest.approx(given["bits"], abs=CLOSE)
    assert scores.bits_unmodified[0] == pytest.approx(given["bits_unmodified"], abs=CLOSE)
    assert scores.sources[0] == 6


def test_links_send_a_payment_where_it_is_known_to_come_from() -> None:
    given = load("observer")["links"]
    edges = load("graph_example")["edges"]
    rows = {edge[1]: str(k) for k, edge in enumerate(edges)}
    links = {rows[node]: spread for node, spread in given["rows"].items()}
    chain = absorbing_chain(transaction_graph(accounts("graph_example")), links=links)
    scores = coinhaze.score(chain, nodes=["n8", "n7"])
    assert scores.bits[0] == pytest.approx(given["n8"]["bits"], abs=CLOSE)
    assert scores.bits[1] == pytest.approx(given["n7"]["bits"], abs=CLOSE)
    found = coinhaze.origins(chain, "n8").sources().to_pylist()
    assert found == [{"source": "n5", "probability": 1.0}]
    assert scores.conservation is None
