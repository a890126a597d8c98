from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks import raw_blocks


def test_raw_blocks_are_read_at_twenty_megabytes_a_second(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    speed = raw_blocks.main(data / "btc_raw_560062_560069" / "blk00000.dat.xz")
    assert "MB of blocks" in capsys.readouterr().out
    assert speed >= 20
