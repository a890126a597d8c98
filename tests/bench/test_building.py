from pathlib import Path

import pytest
from benchmarks import building

from coinhaze.ledger import write_folder
from coinhaze.simulate import simulate_hubs, simulate_town


@pytest.mark.parametrize("kind", ["coins", "accounts"])
def test_the_benchmark_of_building_runs(
    tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ledger = (
        simulate_town(transactions=50, people=10) if kind == "coins" else simulate_hubs(people=50)
    )
    rows = building.main(str(write_folder(ledger, tmp_path / "ledger")))
    assert len(rows) == 5
    assert all(row.peak > 0 for row in rows)
    assert "graph" in capsys.readouterr().out
