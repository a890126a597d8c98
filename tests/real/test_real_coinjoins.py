"""Real CoinJoins taken apart: the figures in the documentation."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

import numpy as np
import pytest

import coinhaze
from coinhaze import CoinLedger
from coinhaze.observer.coinjoin_links import coinjoin_links


@pytest.mark.parametrize(
    ("archive", "taken", "refused"),
    [("dumplings__sw_202403.zip", 1732, 0), ("dumplings__ww1_202405.zip", 12, 196)],
    ids=["whirlpool", "wasabi 1"],
)
def test_coinjoins_are_taken_apart_or_refused_with_a_reason(
    data: Path, tmp_path: Path, archive: str, taken: int, refused: int
) -> None:
    with zipfile.ZipFile(data / "btc_coinjoin_dumplings" / archive) as packed:
        packed.extractall(tmp_path)
    ledger = coinhaze.read(sorted(tmp_path.rglob("*.txt")))
    assert isinstance(ledger, CoinLedger)
    found = coinjoin_links(ledger, steps=10_000_000)
    assert len({name.rpartition(":")[0] for name in found.links}) == taken
    assert len(found.refused) == refused
    for reason in found.refused.values():
        assert re.search(r"too much to take apart, .*; between 0 and \d+\.\d bits", reason)
    totals = [sum(row.values()) for row in found.links.values()]
    assert np.abs(np.array(totals) - 1).max() < 1e-12
