"""Passes that other processes solve: the bytes of threads."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from coinhaze import History
from coinhaze.history.scores.score import TapeColumns, TapeDraws
from coinhaze.simulate.history import bitcoin_history
from coinhaze.solve.pool import WorkerCluster
from coinhaze.solve.pool.packed import map_packed, write_packed

pytest.importorskip("distributed")


def test_workers_give_the_bytes_of_threads(tmp_path: Path) -> None:
    path = tmp_path / "x.history"
    history = History.index_blocks(path, bitcoin_history(150), piece_rows=5000)
    assert history.manifest.sources > 2 * 64  # tiles
    threads = [
        history.score(accuracy="exact").to_arrow(),
        history.score(draws=256, seed=4).to_arrow(),
        history.score(draws=128, seed=4, top_sources=8).to_arrow(),
    ]
    with WorkerCluster(2) as workers:
        again = [
            history.score(accuracy="exact", workers=workers).to_arrow(),
            history.score(draws=256, seed=4, workers=workers).to_arrow(),
            history.score(draws=128, seed=4, top_sources=8, workers=workers).to_arrow(),
        ]
    assert again == threads


def test_a_tape_is_sent_by_its_path(tmp_path: Path) -> None:
    history = History.index_blocks(tmp_path / "x.history", bitcoin_history(30))
    tape = history.tape
    scored = tuple(tape.scored_in(np.arange(history.manifest.rows)))
    assert len(tape.pieces[0]) > 0
    works: list[TapeDraws | TapeColumns] = [TapeDraws(tape, scored, 1, np.float64)]
    works.append(TapeColumns(tape, scored))
    for k, work in enumerate(works):
        write_packed(work, tmp_path / f"{k}.work")
        assert (tmp_path / f"{k}.work").stat().st_size < 8 * history.manifest.rows + 10_000
        sent = map_packed(tmp_path / f"{k}.work")
        assert sent.tape.path == tape.path
        assert sent.room_bytes == work.room_bytes
