"""All kinds of requests to a server for ten minutes: its memory stays what it was.

`python -m benchmarks.soak` (`make soak`) serves two small ledgers and asks, with four clients at
once, for coins under all rules, tables, CSV, searches, what-ifs, wallets, pages, wrong things and
jobs. Memory is looked at each second: what counts is the least of a fifth of the time, what the
server holds when it is not in the midst of something. That of the last fifth may be 5 % above
that of the third, when caches are full. Prints a line for each fifth; ends with 1 where memory
grew or an answer was a bug. `--seconds` makes it shorter.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import httpx2

from benchmarks.served import Served, serving
from coinhaze.ledger.parquet import write_folder
from coinhaze.simulate import simulate_week

CLIENTS = 4
MAX_GROWTH = 0.05
FIFTHS, FULL = 5, 2  # caches are full after so many
NAMES = 40  # coins of each ledger that are requested
POLICIES = ("haircut", "uniform", "fifo", "lifo")


class Asker:
    """One client that asks for something else each time."""

    def __init__(self, served: Served, names: dict[str, list[str]], seed: int) -> None:
        self.random = random.Random(seed)
        self.http = httpx2.Client(
            base_url=served.address, headers=served.bearer, timeout=60, trust_env=False
        )
        self.names = names
        self.seen: Counter[int] = Counter()
        self.slowest = 0.0

    def ask(self) -> None:
        """Ask for one thing."""
        ledger = self.random.choice(sorted(self.names))
        name = self.random.choice(self.names[ledger])
        kinds: list[Callable[[str, str], httpx2.Response]] = [
            self._coin, self._coin, self._coin, self._page, self._table, self._csv, self._search,
            self._what_if, self._part, self._wrong,
        ]  # fmt: skip
        began = time.monotonic()
        response = self.random.choice(kinds)(ledger, quote(name, safe=":"))
        self.slowest = max(self.slowest, time.monotonic() - began)
        self.seen[response.status_code] += 1

    def _coin(self, ledger: str, name: str) -> httpx2.Response:
        by, policy = self.random.choice(["hop", "time"]), self.random.choice(POLICIES)
        return self._get(ledger, f"coins/{name}?policy={policy}&by={by}")

    def _page(self, ledger: str, name: str) -> httpx2.Response:
        page = self.random.choice([f"/coin/{name}", "", "/table", "/wallet"])
        return self.http.get(f"/l/{ledger}{page}")

    def _table(self, ledger: str, name: str) -> httpx2.Response:
        low = self.random.randrange(40) / 10
        return self._get(ledger, f"table?bits_low={low}&sort=-steps")

    def _csv(self, ledger: str, name: str) -> httpx2.Response:
        return self._get(ledger, self.random.choice(["table.csv", f"coins/{name}/origins.csv"]))

    def _search(self, ledger: str, name: str) -> httpx2.Response:
        return self._get(ledger, f"search?q={name[:8]}")

    def _what_if(self, ledger: str, name: str) -> httpx2.Response:
        coins = self.random.sample(self.names[ledger], 3)
        return self.http.post(f"/api/v1/ledgers/{ledger}/what-if", json={"coins": coins})

    def _part(self, ledger: str, name: str) -> httpx2.Response:
        parts = ["density", "histogram", f"coins/{name}/comparators", f"coins/{name}/origins"]
        return self._get(ledger, self.random.choice(parts))

    def _wrong(self, ledger: str, name: str) -> httpx2.Response:
        wrong = [f"coins/{name}x", "table?limit=0", "coins/..%2f", "nowhere"]
        return self._get(ledger, self.random.choice(wrong))

    def _get(self, ledger: str, rest: str) -> httpx2.Response:
        return self.http.get(f"/api/v1/ledgers/{ledger}/{rest}")


def memory_of(pid: int) -> int:
    """Give the bytes of its own that a process holds; files it has mapped are not counted."""
    pages = [int(field) for field in Path(f"/proc/{pid}/statm").read_text().split()]
    return (pages[1] - pages[2]) * os.sysconf("SC_PAGE_SIZE")


def main(*, seconds: float = 600.0, size: float = 0.001, seed: int = 1) -> float:
    """Ask for so long; print what came, and give how much the server's memory grew."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [
            write_folder(simulate_week(week, size=size * more), Path(folder, week))
            for week, more in (("bitcoin-week", 1), ("dai-week", 5))
        ]
        with serving(*paths) as served:
            return _soak(served, seconds, seed)


def _soak(served: Served, seconds: float, seed: int) -> float:
    askers = [Asker(served, _names(served), seed + k) for k in range(CLIENTS)]
    until = time.monotonic() + seconds

    def work(asker: Asker) -> None:
        while time.monotonic() < until:
            asker.ask()

    threads = [threading.Thread(target=work, args=(asker,)) for asker in askers]
    for thread in threads:
        thread.start()
    minimum = []
    for k in range(FIFTHS):
        end = until - seconds * (FIFTHS - 1 - k) / FIFTHS
        minimum.append(_min_memory(served.process.pid, end))
        options = sum(asker.seen.total() for asker in askers)
        print(f"{options:>8,} answers, memory {minimum[-1] / 2**20:.1f} MB", flush=True)
    for thread, asker in zip(threads, askers, strict=True):
        thread.join()
        asker.http.close()
    seen: Counter[int] = sum((asker.seen for asker in askers), Counter())
    slowest = max(asker.slowest for asker in askers)
    growth = minimum[-1] / minimum[FULL] - 1
    print(f"{seen.total():,} answers by status: {dict(sorted(seen.items()))}")
    print(f"slowest answer {slowest:.2f} s; memory {growth:+.1%} since caches were full")
    if seen[500]:
        raise SystemExit("an answer was a bug")
    return growth


def _min_memory(pid: int, until: float) -> int:
    minimum = memory_of(pid)
    while time.monotonic() < until:
        time.sleep(min(1.0, max(until - time.monotonic(), 0.01)))
        minimum = min(minimum, memory_of(pid))
    return minimum


def _names(served: Served) -> dict[str, list[str]]:
    with served.client() as client:
        return {
            card.id: [row.name for row, _ in zip(client.table(card.id), range(NAMES), strict=False)]
            for card in client.ledgers()
        }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--size", type=float, default=0.001)
    parser.add_argument("--seed", type=int, default=1)
    grown = main(**vars(parser.parse_args()))
    sys.exit(f"memory grew by {grown:.1%}" if grown > MAX_GROWTH else 0)
