"""What a block costs a history that follows its chain, on a simulated history of some size.

Prints milliseconds from the parsed block to scored and committed, with the write to the disk: the
median, the 99th percentile and the worst; then of taking a hundred blocks back, of opening the
history again with its journal, and of one coin's origins. Seconds are of the wall. The check is a
median of at most 5 ms for a block, 99 % within 50 ms.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from coinhaze.history import History
from coinhaze.history.follow import Follower
from coinhaze.history.journal import NamedBlock
from coinhaze.ledger.coin_blocks import CoinBlocks
from coinhaze.simulate.history import bitcoin_history

BLOCKS, FOLLOWED, COINS = 12_000, 240, 40
MAX_MEDIAN, MAX_NEARLY_ALL = 0.005, 0.050


def main(blocks: int = BLOCKS, followed: int = FOLLOWED) -> bool:
    """Print the figures, and whether the check holds."""
    with tempfile.TemporaryDirectory() as home:
        path = Path(home) / "x.history"
        last: list[CoinBlocks] = []
        history = History.index_blocks(path, _before(blocks - followed, blocks, last))
        print(
            f"{len(history):,} transactions, {history.manifest.coins:,} unspent coins", flush=True
        )
        with Follower(path, draws=64, seed=1, commit_after=10**9) as follower:
            seconds, cpu = [], []
            for k, block in enumerate(last):
                named = NamedBlock(f"{k + 1:064x}", f"{k:064x}", block)
                begun, worked = time.perf_counter(), time.process_time()
                follower.add(named)
                seconds.append(time.perf_counter() - begun)
                cpu.append(time.process_time() - worked)
            sizes = [len(block) for block in last]
            median, maximum = np.quantile(seconds, 0.5), np.quantile(seconds, 0.99)
            print(
                f"{len(last)} blocks of {np.mean(sizes):,.0f} transactions: median "
                f"{1e3 * median:.1f} ms, 99 % {1e3 * maximum:.1f} ms, "
                f"worst {1e3 * max(seconds):.1f}"
            )
            half, nearly = np.quantile(cpu, 0.5), np.quantile(cpu, 0.99)
            print(f"of these on the CPU: median {1e3 * half:.1f} ms, 99 % {1e3 * nearly:.1f} ms")
            begun = time.perf_counter()
            back = follower.back_to(follower.height - 100)
            print(f"{back} blocks taken back: {1e3 * (time.perf_counter() - begun):.0f} ms")
        begun = time.perf_counter()
        Follower(path, draws=64, seed=1).close()
        print(f"opened again, {len(last) - back} blocks: {time.perf_counter() - begun:.1f} s")
        _origins(History.open(path))
    holds = bool(median <= MAX_MEDIAN and maximum <= MAX_NEARLY_ALL)
    print("holds" if holds else "does NOT hold")
    return holds


def _before(first: int, blocks: int, rest: list[CoinBlocks]) -> Iterator[CoinBlocks]:
    """Give the blocks before one; those from it on go to a list."""
    for part in bitcoin_history(blocks):
        if int(part.heights[-1]) < first:
            yield part
            continue
        for block in part.parts(1):
            if int(block.heights[0]) < first:
                yield block
            else:
                rest.append(block)


def _origins(history: History) -> None:
    live = history.tape.live_table("coins")
    draw = np.random.default_rng(1)
    some = np.sort(draw.choice(len(live), COINS, replace=False))
    numbers = live["transaction"].take(some).to_numpy().astype(np.int64)
    names, _, _ = history.tape.transactions(numbers)
    vouts = live["vout"].take(some).to_pylist()
    seconds, widths = [], []
    for name, vout in zip(names.to_pylist(), vouts, strict=True):
        begun = time.perf_counter()
        found = history.origins(f"{name}:{vout}")
        seconds.append(time.perf_counter() - begun)
        widths.append(found.bits_high - found.bits_low)
    print(
        f"origins of {COINS} coins: median {1e3 * np.median(seconds):.0f} ms, 95 % "
        f"{1e3 * np.quantile(seconds, 0.95):.0f} ms; widest {max(widths):.1e} bits"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--blocks", type=int, default=BLOCKS)
    parser.add_argument("--followed", type=int, default=FOLLOWED)
    given = parser.parse_args()
    main(given.blocks, given.followed)
