"""How fast a server answers what it has answered before: one core serves, the other one asks.

`python -m benchmarks.serving` makes a small ledger, or serves LEDGER, and asks for coins of it at
`--rate` a second for `--seconds`, over 8 connections. Every request has its time; how late its
answer is counts from then, so that a server that falls behind cannot hide it. Then it asks as
fast as answers come. `--pages` asks for the coins' pages instead of their JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import numpy as np

from benchmarks.served import Served, serving
from coinhaze.ledger.parquet import write_folder
from coinhaze.simulate import simulate_week

CONNECTIONS, COINS = 8, 50


@dataclass(frozen=True)
class Load:
    """What a number of answered requests took."""

    name: str
    requests: int
    seconds: float
    late: Sequence[float]  # seconds from when each was due to its answer
    cpu: float  # the server's, in seconds
    refused: int  # 429: more than the server allows in a second
    wrong: int  # any other answer that was not 200

    def line(self) -> str:
        """Say it in one line."""
        p50, p99 = np.quantile(self.late, [0.5, 0.99], method="higher") * 1e3
        return (
            f"{self.name:<28} {self.requests / self.seconds:>7.0f}/s  p50 {p50:>7.2f} ms  "
            f"p99 {p99:>7.2f} ms  most {max(self.late) * 1e3:>7.2f} ms  "
            f"server CPU {self.cpu / self.requests * 1e3:.2f} ms each  "
            f"refused {self.refused}  wrong {self.wrong}"
        )


async def ask_at(served: Served, paths: Sequence[str], *, rate: float, seconds: float) -> Load:
    """Ask at a steady rate; with an infinite one as fast as answers come."""
    count = int(rate * seconds) if rate < float("inf") else 10**9
    late: list[float] = []
    refused = wrong = 0
    turn = iter(range(count))
    cpu, began = cpu_of(served.process.pid), time.perf_counter()

    async def connection() -> None:
        nonlocal refused, wrong
        reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
        for k in turn:
            due = began + k / rate
            now = time.perf_counter()
            if now - began > seconds + 30 or (rate == float("inf") and now - began > seconds):
                break
            if due > now:
                await asyncio.sleep(due - now)
            status = await _one(reader, writer, served, paths[k % len(paths)])
            if status == 429:
                refused += 1
                continue
            late.append(time.perf_counter() - (due if rate < float("inf") else now))
            wrong += status != 200
        writer.close()
        await writer.wait_closed()

    await asyncio.gather(*(connection() for _ in range(CONNECTIONS)))
    took = time.perf_counter() - began
    name = "as fast as answers come" if rate == float("inf") else f"{rate:g} a second"
    used = cpu_of(served.process.pid) - cpu
    return Load(name, len(late), took, late, used, refused, wrong)


async def _one(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, served: Served, path: str
) -> int:
    writer.write(
        f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1:{served.port}\r\n"
        f"authorization: Bearer {served.token}\r\n\r\n".encode()
    )
    head = await reader.readuntil(b"\r\n\r\n")
    lines = head.lower().split(b"\r\n")
    length = next(line for line in lines if line.startswith(b"content-length:"))
    await reader.readexactly(int(length.split(b":")[1]))
    return int(head.split(b" ", 2)[1])


def cpu_of(pid: int) -> float:
    """Give the seconds a process has computed for."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def paths_of(served: Served, *, pages: bool) -> list[str]:
    """Ask for some coins once, so that all are remembered; give their addresses."""
    with served.client() as client:
        ledger = client.ledgers()[0].id
        names = [row.name for row, _ in zip(client.table(ledger), range(COINS), strict=False)]
    root = f"/l/{ledger}/coin" if pages else f"/api/v1/ledgers/{ledger}/coins"
    return [f"{root}/{quote(name, safe=':')}" for name in names]


def main(
    ledger: str | None, *, rate: float = 300, seconds: float = 20, size: float = 0.001,
    pages: bool = False,
) -> list[Load]:  # fmt: skip
    """Print the table, and give its rows."""
    cores = sorted(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as folder:
        if ledger is None:
            ledger = str(
                write_folder(simulate_week("bitcoin-week", size=size), Path(folder, "week"))
            )
        with serving(ledger) as served:
            if len(cores) > 1:
                _pin(served.process.pid, cores[0])
                os.sched_setaffinity(0, {cores[1]})
            paths = paths_of(served, pages=pages)
            asyncio.run(_once(served, paths))
            loads = [
                asyncio.run(ask_at(served, paths, rate=r, seconds=seconds))
                for r in (rate, float("inf"))
            ]
            os.sched_setaffinity(0, set(cores))
    what = "pages" if pages else "answers"
    print(f"{len(paths)} coins, {what} remembered; load average {os.getloadavg()[0]:.1f}")
    for load in loads:
        print(load.line())
    return loads


async def _once(served: Served, paths: Sequence[str]) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
    for path in paths:
        status = await _one(reader, writer, served, path)
        assert status == 200, (path, status)
    writer.close()
    await writer.wait_closed()


def _pin(pid: int, core: int) -> None:
    for thread in os.listdir(f"/proc/{pid}/task"):
        os.sched_setaffinity(int(thread), {core})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("ledger", nargs="?")
    parser.add_argument("--rate", type=float, default=300)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--size", type=float, default=0.001)
    parser.add_argument("--pages", action="store_true")
    main(**vars(parser.parse_args()))
