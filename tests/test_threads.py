"""Threads decide who does what, and change neither results nor errors."""

from __future__ import annotations

import threading
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import coinhaze
from coinhaze import threads
from coinhaze.amounts import Amounts
from coinhaze.errors import LedgerError
from coinhaze.ledger import read_folder, write_folder
from coinhaze.simulate import simulate_town, simulate_week
from coinhaze.threads import at_most, beside, cores, together


def test_several_things_are_done_at_once_and_given_in_their_order() -> None:
    meet = threading.Barrier(3)

    def work(k: int) -> int:
        meet.wait(60)  # all three must have begun
        return k

    assert together([partial(work, k) for k in range(3)], 3) == [0, 1, 2]


def test_one_thread_does_them_one_by_one_itself() -> None:
    me = threading.get_ident
    with at_most(1):
        assert together([me, me]) == [me(), me()]
        with beside(me, None) as other:
            assert other() == me()
    with beside(me, 2) as other:
        assert other() != me()


def test_of_several_errors_the_first_in_order_is_raised() -> None:
    late = threading.Event()

    def first() -> None:
        late.wait(60)
        raise ValueError("first")

    def second() -> None:
        late.set()
        raise KeyError("second")

    with pytest.raises(ValueError, match="first"):
        together([first, second], 2)


def test_what_is_allowed_ends_with_its_block() -> None:
    usual = cores()
    with at_most(7):
        assert cores() == 7
        with at_most(None):
            assert cores() == usual
    assert cores() == usual


def arrays(thing: Any) -> dict[str, object]:
    """Give all columns of a ledger or graph."""
    found: dict[str, object] = {}
    for field in fields(thing):
        value = getattr(thing, field.name)
        if isinstance(value, Amounts):
            value = value.digits
        if isinstance(value, np.ndarray):
            found[field.name] = (value.dtype, value.tobytes())
        elif isinstance(value, pa.Array):
            found[field.name] = value.to_pylist()
    return found


@pytest.mark.parametrize("view", ["coin", "address"])
def test_threads_change_no_ledger_and_no_graph(
    view: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_folder(simulate_week("bitcoin-week", size=0.002), tmp_path / "week")
    found = []
    for count, many in ((1, threads.MANY_ROWS), (1, 0), (2, 0), (5, 0)):
        monkeypatch.setattr(threads, "MANY_ROWS", many)
        with at_most(count):
            ledger = read_folder(folder)
            graph = coinhaze.transaction_graph(ledger, view=view)
            walk = coinhaze.absorbing_chain(graph).walk
        moves = [a.tobytes() for a in (walk.q.indptr, walk.q.indices, walk.q.data, walk.own)]
        found.append((arrays(ledger), arrays(graph), arrays(graph.names), moves))
    assert all(other == found[0] for other in found[1:])


@pytest.mark.parametrize("count", [1, 4])
def test_of_several_faults_of_a_folder_the_first_is_named(
    count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "MANY_ROWS", 0)
    folder = write_folder(simulate_town(transactions=60), tmp_path / "town")
    spent = pq.read_table(folder / "inputs.parquet")
    rows = spent["output"].to_pylist()
    rows[5] = rows[4]  # spent twice; and a coinbase that spends
    pq.write_table(spent.set_column(1, "output", pa.array(rows)), folder / "inputs.parquet")
    made = pq.read_table(folder / "transactions.parquet")
    every = pa.array([True] * len(made))
    pq.write_table(made.set_column(2, "coinbase", every), folder / "transactions.parquet")
    with at_most(count), pytest.raises(LedgerError, match="a coin spent twice"):
        read_folder(folder)
