"""Names that are not UTF-8: files are read whatever they are called, or refused in one line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CSV = b"from,to,amount\nalice,shop,5\nbob,shop,3\nshop,carol,6\n"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ([b"info", b"led\xffger.csv"], 0),
        ([b"score", b"led\xffger.csv"], 0),
        ([b"score", b"absent\xff.csv"], 3),
        ([b"ingest", b"led\xffger.csv", b"-o", b"store"], 0),
        ([b"ingest", b"led\xffger.csv", b"-o", b"st\xffore"], 3),
        ([b"score", b"bytes.csv"], 3),
        ([b"score", b"header.csv"], 3),
    ],
)
def test_names_of_any_bytes_give_an_answer_or_one_line(
    tmp_path: Path, arguments: list[bytes], code: int
) -> None:
    try:
        (tmp_path / os.fsdecode(b"led\xffger.csv")).write_bytes(CSV)
    except OSError:
        pytest.skip("this file system has no such names")
    (tmp_path / "bytes.csv").write_bytes(CSV.replace(b"bob", b"b\xffb"))
    (tmp_path / "header.csv").write_bytes(CSV.replace(b"amount", b"amo\xffunt"))
    done = subprocess.run(
        [os.fsencode(sys.executable), b"-m", b"coinhaze", *arguments],
        cwd=tmp_path, capture_output=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    assert b"Traceback" not in done.stderr
    if code:
        assert done.stderr.startswith(b"coinhaze: ")
        assert done.stderr.count(b"\n") == 1
    if arguments[1] == b"bytes.csv":
        assert b"bytes.csv:3: text that is not UTF-8" in done.stderr
