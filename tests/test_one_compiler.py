"""Two processes that want one kernel at once compile it once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

LOOP = """
from coinhaze.kernels import kernel

@kernel()
def inner(value):
    return value + 1

@kernel()
def loop(value):
    return 2 * inner(value)
"""
PROGRAM = """
import sys
from pathlib import Path
from loop import inner, loop
from one_compiler import compiled_in_turn

with compiled_in_turn(Path("turns")):
    loop.compiled  # imports the compiler
    print("ready", flush=True)
    sys.stdin.readline()
    found = loop.compiled(1)
    assert loop.compiled(2.5) == 7
print(found, sum(loop.compiled.stats.cache_misses.values()))
"""


def test_the_second_waits_for_the_first(tmp_path: Path) -> None:
    (tmp_path / "loop.py").write_text(LOOP)
    (tmp_path / "program.py").write_text(PROGRAM)
    path = os.pathsep.join([str(tmp_path), str(Path(__file__).parent)])
    both = [
        subprocess.Popen(
            [sys.executable, "program.py"],
            cwd=tmp_path,
            env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": path},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    for process in both:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in both:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    said = [process.communicate(timeout=300)[0].split() for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert [answer for answer, _ in said] == ["4", "4"]
    assert sum(int(compiled) for _, compiled in said) == 2  # for two types, once each
