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


COMMANDS = [
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
]
# Runs each command in a child of its own, with libraries loaded once; prints how they ended.
PROGRAM = """
import ast, os, sys
from coinhaze.cli import main
from formats.within_limits import load
load()
for number, words in enumerate(ast.literal_eval(sys.argv[1])):
    child = os.fork()
    if child == 0:
        for descriptor, name in ((1, "out"), (2, "err")):
            os.dup2(os.open(f"{number}.{name}", os.O_CREAT | os.O_WRONLY), descriptor)
        sys.argv = ["coinhaze", *map(os.fsdecode, words)]
        main()
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[int, bytes]]:
    """The exit code of each command, and what it wrote to stderr."""
    folder = tmp_path_factory.mktemp("names")
    try:
        (folder / os.fsdecode(b"led\xffger.csv")).write_bytes(CSV)
    except OSError:
        pytest.skip("this file system has no such names")
    (folder / "bytes.csv").write_bytes(CSV.replace(b"bob", b"b\xffb"))
    (folder / "header.csv").write_bytes(CSV.replace(b"amount", b"amo\xffunt"))
    _write_parquet(folder)
    tests = Path(__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, repr([arguments for arguments, _ in COMMANDS])],
        cwd=folder, env=os.environ | {"PYTHONPATH": str(tests)},
        capture_output=True, timeout=600, check=False,
    )  # fmt: skip
    codes = [int(line) for line in done.stdout.split()]
    assert len(codes) == len(COMMANDS), done.stderr
    return [(code, (folder / f"{k}.err").read_bytes()) for k, code in enumerate(codes)]


@pytest.mark.parametrize("number", range(len(COMMANDS)))
def test_names_of_any_bytes_give_an_answer_or_one_line(
    ended: list[tuple[int, bytes]], number: int
) -> None:
    arguments, expected = COMMANDS[number]
    code, said = ended[number]
    assert code == expected, said
    assert b"Traceback" not in said
    if code:
        assert said.startswith(b"coinhaze: ")
        assert said.count(b"\n") == 1
    if arguments[1] == b"bytes.csv":
        assert b"bytes.csv:3: text that is not UTF-8" in said


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
