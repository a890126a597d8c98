"""Real ledgers in order: every unit of every source is somewhere at the end, and told of once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

import coinhaze
from coinhaze.ledger import Ledger
from coinhaze.solve.lots.lots_kernels import MADE
from real.test_real_ledgers import dai, dgd_token


def tokens(data: Path) -> Ledger:
    return coinhaze.AccountLedger.from_transfers(dai(data))


def old_tokens(data: Path) -> Ledger:
    return coinhaze.AccountLedger.from_transfers(dgd_token(data))


def bitcoin(data: Path) -> Ledger:
    return coinhaze.read(sorted((data / "btc_utxo_100000_104000").glob("[ve]*.csv.gz")))


@pytest.mark.parametrize("order", ["fifo", "lifo"])
@pytest.mark.parametrize("source", [tokens, old_tokens, bitcoin], ids=lambda s: str(s.__name__))
def test_a_real_ledger_keeps_every_unit(
    data: Path, source: Callable[[Path], Ledger], order: Literal["fifo", "lifo"]
) -> None:
    held = coinhaze.lots(source(data), order=order)
    graph = held.graph
    assert graph.opening is not None
    assert graph.closing is not None
    owner, label, amounts = held.held(np.arange(len(graph)))
    ends = amounts.total_by(label, len(held.outcomes)) + held.fees()
    assert ends.ints() == graph.opening.take(graph.sources).ints()
    assert amounts.total_by(owner, len(graph)).take(graph.sinks).ints() == (
        graph.closing.take(graph.sinks).ints()
    )
    scores = coinhaze.score(held)
    assert not np.isnan(scores.bits).any()
    assert scores.width <= 1e-12
    assert held.queues.count[MADE] <= len(held.payments.openers) + held.payments.cuts()


def test_listed_miners_are_followed_forward_by_every_policy(data: Path) -> None:
    graph = coinhaze.transaction_graph(bitcoin(data))
    miners = graph.names.of_sources(np.flatnonzero(graph.sources)[::400]).to_pylist()
    taint = coinhaze.taint(graph, miners)
    assert taint.policies == ("haircut", "poison", "fifo", "lifo", "tiho")
    for row in taint.totals().to_pylist():
        ends = sum(int(row[name]) for name in ("relisted", "sinks", "fees", "other"))
        assert int(row["listed"]) == ends > 0
    kept = {policy: sum(taint.amounts(policy).ints()) for policy in taint.trails}
    assert taint.haircut is not None
    assert min(kept.values()) > 0.99 * float(taint.haircut.sum())
    assert sum(taint.amounts("poison").ints()) > max(kept.values())
