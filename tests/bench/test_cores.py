from __future__ import annotations

import pytest
from benchmarks import cores


def test_every_number_of_threads_has_the_same_bytes(capsys: pytest.CaptureFixture[str]) -> None:
    runs = cores.main(0.003, threads=(1, 3))
    said = capsys.readouterr().out
    assert [run.threads for run in runs] == [1, 3]
    assert runs[0].digest == runs[1].digest
    assert "same bytes for all numbers of threads: yes" in said
    for part in ("read", "graph", "chain", "reduce", "lump", "write"):
        assert f"\n{part} " in said
    assert all(0 <= run.sweep <= run.wall for run in runs)
