"""A program that runs `coinhaze` several times over, each in a child with little memory and time.

    python within_limits.py ROOM SECONDS FOLDER

runs the command in each `NAME.command` of the folder (a word a line), and leaves `NAME.code` and
`NAME.stderr`. Libraries are loaded once, before the children are forked; a child may take ROOM
bytes of address space above what they take then and once their threads have started.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
from pathlib import Path


def load() -> None:
    """Import all that ingesting imports, starting no threads."""
    import duckdb  # noqa: F401
    import pyarrow.csv
    import pyarrow.parquet  # noqa: F401

    from coinhaze.cli import ingest, wallet  # noqa: F401
    from coinhaze.formats.bitcoin_raw import kernels as block_kernels  # noqa: F401
    from coinhaze.formats.bitcoin_raw import script_kernels  # noqa: F401
    from coinhaze.formats.registry import formats
    from coinhaze.store import snapshot, store  # noqa: F401

    for format in formats().values():
        format.recognises(b"")


def warm() -> None:
    """Let libraries start their threads, which reserve more address space than they ever use."""
    import pyarrow.csv

    from coinhaze.store.store import Store

    with Store(None) as store:
        store.ask("SELECT sum(x) FROM range(1000000) AS numbers(x)")
    pyarrow.csv.read_csv(pyarrow.py_buffer(b"a\n1\n" * 1000))


def run(words: list[str], room: int, seconds: int, stderr: Path) -> int:
    """Run the command in a child; give its exit code, below 0 if a signal ended it."""
    child = os.fork()
    if child == 0:
        with open(stderr, "wb") as said:
            os.dup2(said.fileno(), 2)
        warm()
        with open("/proc/self/statm") as taken:
            size = int(taken.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (size + room, size + room))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        # Seconds of its own work: what others do on the machine is not its fault. Nor may it sleep.
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        signal.alarm(10 * seconds)
        sys.argv = ["coinhaze", *words]
        from coinhaze.cli import main

        main()
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    room, seconds, folder = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    load()
    for command in sorted(folder.glob("*.command")):
        words = command.read_text().splitlines()
        code = run(words, room, seconds, command.with_suffix(".stderr"))
        command.with_suffix(".code").write_text(str(code))
