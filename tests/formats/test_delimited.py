"""Arrow's threads hold nothing of Python's when a reader of text is done, whatever became of it."""

from __future__ import annotations

import io
import subprocess
import sys
import time
from pathlib import Path

import pytest

from coinhaze.formats.tabular import delimited
from coinhaze.formats.tabular.delimited import stream_text


class Watched(io.BytesIO):
    """A file that reads slowly, tells when it does, and gives what can be seen to be in use."""

    slow = 0.0
    busy = False
    given = bytearray()

    def read(self, count: int | None = -1, /) -> bytearray:  # type: ignore[override]
        self.busy = True
        time.sleep(self.slow)
        self.given = bytearray(super().read(count))
        self.busy = False
        return self.given


def test_text_of_one_block_is_memory_of_arrows(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("a\n1\n2\n")
    file = Watched(b"1\n2\n")
    pieces = stream_text(path, ["a"], file=file, names=["a"])
    assert next(pieces).columns.table.to_pydict() == {"a": ["1", "2"]}
    file.given.clear()  # BufferError if Arrow looks at it


def test_longer_text_is_read_by_no_thread_once_its_reader_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delimited, "BLOCK", 1 << 10)
    path = tmp_path / "x.csv"
    text = b"1234567\n" * (1 << 15)
    path.write_bytes(b"a\n" + text)
    file = Watched(text)
    file.slow = 0.05
    pieces = stream_text(path, ["a"], file=file, names=["a"])
    next(pieces)
    time.sleep(0.02)  # a thread may be at its next block
    pieces.close()  # type: ignore[attr-defined]
    assert not file.busy
    place = file.tell() if not file.closed else None
    time.sleep(0.1)
    assert place is None or (file.tell() == place and place < len(text))


def test_an_error_in_a_long_file_ends_the_command_with_its_own_code(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    with path.open("w") as file:
        file.write("from,to,amount\na,b,wrong\n")
        file.write(f"{'a' * 1000},b,1\n" * (3 * delimited.BLOCK // 1000))
    command = [sys.executable, "-m", "coinhaze", "score", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 3, done.stderr
    assert done.stderr.splitlines()[-1].startswith(f"coinhaze: {path}:2: amount")
