"""Names that are not UTF-8: files are read whatever they are called, or refused in one line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
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
        ([b"score", b"led\xffger.csv", b"-o", b"scores.csv"], 0),
        ([b"score", b"led\xffger.csv", b"--json"], 0),
        ([b"screen", b"led\xffger.csv", b"--listed", b"bytes.csv"], 3),
        ([b"info", b"column.parquet"], 3),
        ([b"score", b"column.parquet", b"--format", b"plain"], 3),
        ([b"score", b"value.parquet"], 3),
        ([b"score", b"led\xffger.parquet"], 3),
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
    _write_parquet(tmp_path)
    done = subprocess.run(
        [os.fsencode(sys.executable), b"-m", b"coinhaze", *arguments],
        cwd=tmp_path, capture_output=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    assert b"Traceback" not in done.stderr
    if code:
        assert done.stderr.startswith(b"coinhaze: ")
        assert done.stderr.count(b"\n") == 1
    if arguments[1] == b"bytes.csv":
        assert b"bytes.csv:3: text that is not UTF-8" in done.stderr


def _write_parquet(folder: Path) -> None:
    """Write a Parquet file, and damage the text of a column's name and of a value in it."""
    table = pa.table({"from": ["alice"], "to": ["shop"], "amount": ["5"], "remark": ["none"]})
    pq.write_table(table, folder / "whole.parquet", use_dictionary=False, compression="none")
    data = (folder / "whole.parquet").read_bytes()
    for name, old, new in (
        (b"led\xffger.parquet", b"", b""),
        (b"column.parquet", b"remark", b"rem\xffrk"),
        (b"value.parquet", b"alice", b"al\xffce"),
    ):
        (folder / os.fsdecode(name)).write_bytes(data.replace(old, new) if old else data)
