"""What a whole history takes: simulated, indexed, and passed over with 64 draws, at several sizes.

Prints, for histories of so many simulated blocks: transactions made a second, indexed a second of
all threads, and of the thread that numbers while two others write and hash; bytes of the tape and
of all files a transaction; transactions a second of a pass that scores every row, and of the same
reads and writes without arithmetic, the floor, and of two passes of half the width; bytes an
unspent coin takes in memory while it runs; and the slots a coin has. Each history is indexed three
times, and each rate is the best of its three: memory that a virtual machine has to get from its
host first makes a run longer, and says nothing of the program. Then the cost of indexing a
transaction at each size: all threads, the one that numbers, how much of that the system takes to
give out memory and to write, the same of the worst of the three, and the growth of numbering since
the first size. Then what lists of the largest sources cost and prove. Then which share of rows, and
of unspent coins, could be stored with 16 bits: their own rounding bound widens no interval by more
than a twentieth (of a simulated history, and of the real blocks of 2011 where COINHAZE_DATA is
set). Seconds are of one core. The check is that a pass scores at least 15 million transactions a
second, at the last size in at most twice the time of its floor, that 3 million are numbered a
second, and that the tape takes at most 20 bytes a transaction.
"""

from __future__ import annotations

import argparse
import math
import os
import resource
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from coinhaze.history import History
from coinhaze.history.scores.lists import bounds_by_lists, list_bytes
from coinhaze.history.scores.live_coins import LiveCoins
from coinhaze.history.scores.pass_kernels import HALF, pass_gathers
from coinhaze.history.scores.score import TapeDraws
from coinhaze.ledger.coin_blocks import CoinBlocks
from coinhaze.measures.confidence import rounding_slack, row_ends
from coinhaze.measures.elementary import expm1_at_most
from coinhaze.simulate.history import bitcoin_history
from coinhaze.solve.planner import thresholds

BLOCKS = (600, 2400, 9600)
MIN_PASS, MAX_RATIO, MIN_NUMBERED, MAX_TAPE = 15e6, 2.0, 3e6, 20.0
REPEATS = 3  # of indexing, and of a pass and its floor in turn: the least counts
LIST_BLOCKS, LISTS, MISS = 1200, (8, 32, 128), 1e-9
BF16, DRAWS = 2.0**-8, (64, 1024)  # a number of 8 bits is off by so much of itself at most


class Run(NamedTuple):
    """One history: transactions, then rates by the second of a core, then bytes."""

    transactions: int
    simulated: float
    indexed: float
    numbered: float
    system: float  # seconds a transaction
    worst: float  # transactions numbered a second, in the slowest of all times
    worst_system: float
    passed: float
    gathered: float
    halves: float
    tape_bytes: float
    all_bytes: float
    coin_bytes: float
    slots_a_coin: float


def main(blocks: tuple[int, ...] = BLOCKS, list_blocks: int = LIST_BLOCKS) -> list[Run]:
    """Print the table, and whether the check holds."""
    with tempfile.TemporaryDirectory() as home:
        measure(Path(home) / "first", 12)  # compiles
        print(
            "a core: M tx/s simulated, indexed, numbered, passed, floor, halves; ratio; "
            "bytes a tx, all, coin"
        )
        found = []
        for number in blocks:
            run = measure(Path(home) / str(number), number)
            found.append(run)
            rates = (run.simulated, run.indexed, run.numbered, run.passed, run.gathered, run.halves)
            print(
                f"{run.transactions:>12,} " + " ".join(f"{rate / 1e6:>6.2f}" for rate in rates),
                f"{run.gathered / run.passed:>6.2f} {run.tape_bytes:>6.1f} {run.all_bytes:>6.1f}",
                f"{run.coin_bytes:>6.1f}  ({run.slots_a_coin:.3f} slots a coin)",
                flush=True,
            )
        print(
            "indexing, ns a tx: all threads, numbering, of it the system; the worst time: "
            "numbering, of it the system; growth of numbering"
        )
        for run in found:
            each = [1e9 / run.indexed, 1e9 / run.numbered, 1e9 * run.system]
            each += [1e9 / run.worst, 1e9 * run.worst_system]
            growth = found[0].numbered / run.numbered
            print(f"{run.transactions:>12,} " + " ".join(f"{ns:>6.0f}" for ns in each), end="")
            print(f" {growth:>6.2f}", flush=True)
        lists(Path(home) / "lists", list_blocks)
        sixteen_bits(History.open(Path(home) / "lists"), "simulated")
        data = os.environ.get("COINHAZE_DATA")
        if data is not None:
            files = sorted((Path(data) / "btc_utxo_100000_104000").glob("[ev]*"))
            sixteen_bits(History.index(Path(home) / "2011", files), "blocks of 2011")
    holds = {
        "pass": all(run.passed >= MIN_PASS for run in found),
        "floor": found[-1].gathered <= MAX_RATIO * found[-1].passed,
        "numbering": all(run.numbered >= MIN_NUMBERED for run in found),
        "tape": all(run.tape_bytes <= MAX_TAPE for run in found),
    }
    for what, held in holds.items():
        print(f"{what}: {'holds' if held else 'does NOT hold'}")
    return found


def lists(path: Path, blocks: int) -> None:
    """Print what lists of so many sources a row cost and prove, beside 64 draws."""
    history = History.index_blocks(path, bitcoin_history(blocks))
    tape, about = history.tape, history.manifest
    rows, of_coin = np.unique(LiveCoins.of(tape).row, return_inverse=True)
    drawn = history.score(draws=64, seed=1, miss=MISS, threads=1)
    width = float((drawn.bits_high - drawn.bits_low).mean())
    print(f"{len(history):,} transactions, {about.terms:,} terms; 64 draws: {width:.2f} bits wide")
    print("lists: sources a row; mean width; M terms/s; MB")
    bounds_by_lists(tape, rows, 1)  # compiles
    for maximum in LISTS:
        started = time.process_time()
        low, high = bounds_by_lists(tape, rows, maximum)
        seconds = time.process_time() - started
        width = float((high - low)[of_coin].mean())
        size = list_bytes(about.slots, about.sources, maximum)
        rate = about.terms / seconds / 1e6
        print(f"{maximum:>6} {width:>6.2f} {rate:>6.2f} {size / 1e6:>6.0f}", flush=True)


def sixteen_bits(history: History, name: str) -> list[tuple[int, float, float]]:
    """Print by numbers of draws which share of rows and of coins 16 bits would be enough for.

    A row that has been rounded on every row of its longest way is off by so many roundings; where a
    row is stored with more bits its own rounding does not count, but those behind it do.
    """
    tape = history.tape
    rows = np.arange(history.manifest.rows)
    depth, sources = tape.fact("depth", rows).astype(np.float64), tape.fact("sources", rows)
    error = expm1_at_most(BF16 * (depth + 1.0))
    slack = rounding_slack(np.log(np.maximum(sources, 1.0)), error)
    live = LiveCoins.of(tape).row
    found = []
    for draws in DRAWS:
        limit = thresholds.MAX_HISTORY_SINGLE_SHARE * row_ends(draws, MISS).bits
        fits = (2 * slack / math.log(2.0) <= limit) | (sources == 1)
        mixed = sources > 1
        found.append((draws, float(fits.mean()), float(fits[live].mean())))
        print(
            f"{name}, {draws} draws: 16 bits for {fits.mean():.1%} of rows, "
            f"{fits[live].mean():.1%} of coins; of those with several sources "
            f"{fits[mixed].mean():.1%} and {fits[live[mixed[live]]].mean():.1%}",
            flush=True,
        )
    return found


class Indexing(NamedTuple):
    """What indexing a history once took, in seconds; `system` is a part of `numbered`."""

    simulated: float
    indexed: float
    numbered: float
    system: float


def index(path: Path, blocks: int) -> tuple[History, Indexing]:
    """Simulate and index one history; what it takes to simulate is no part of indexing."""
    seconds = np.zeros(2)

    def timed() -> Iterator[CoinBlocks]:
        made = bitcoin_history(blocks)
        while True:
            started = np.array([time.thread_time(), _system()])
            part = next(made, None)
            seconds[:] += np.array([time.thread_time(), _system()]) - started
            if part is None:
                return
            yield part

    began = np.array([time.process_time(), time.thread_time(), _system()])
    history = History.index_blocks(path, timed())
    every, one, system = np.array([time.process_time(), time.thread_time(), _system()]) - began
    simulated, its_system = (float(number) for number in seconds)
    return history, Indexing(simulated, every - simulated, one - simulated, system - its_system)


def measure(path: Path, blocks: int) -> Run:
    """Simulate, index and pass over one history."""
    times = []
    path.mkdir()
    for k in range(REPEATS):
        history, taken = index(path / str(k), blocks)
        times.append(taken)
        if k:
            shutil.rmtree(path / str(k - 1))
    best, worst = min(times, key=_numbered), max(times, key=_numbered)
    n = len(history)
    tape, about = history.tape, history.manifest
    every = tuple(tape.scored_in(np.arange(about.rows)))
    work = TapeDraws(tape, every, 1, np.float32)
    room = work.room()
    work.solve(0, room)
    passed = gathered = math.inf
    for _ in range(REPEATS):
        started = time.process_time()
        work.solve(64, room)
        between = time.process_time()
        for piece in tape.pieces:
            pass_gathers(piece.row_slot, piece.row_terms, piece.slot, room)
        passed = min(passed, between - started)
        gathered = min(gathered, time.process_time() - between)
    room_bytes = room.nbytes
    del room
    half = replace(work, width=HALF)
    room = half.room()
    halved = time.process_time()
    half.solve(64, room)
    ended = time.process_time()
    sizes = [{table: mark[0] for table, mark in piece.files.items()} for piece in about.pieces]
    return Run(
        transactions=n,
        simulated=n / min(taken.simulated for taken in times),
        indexed=n / min(taken.indexed for taken in times),
        numbered=n / best.numbered,
        system=best.system / n,
        worst=n / worst.numbered,
        worst_system=worst.system / n,
        passed=n / passed,
        gathered=n / gathered,
        halves=n / (ended - halved),
        tape_bytes=sum(s["rows"] + s["terms"] for s in sizes) / n,
        all_bytes=sum(sum(s.values()) for s in sizes) / n,
        coin_bytes=room_bytes / about.coins,
        slots_a_coin=about.slots / about.coins,
    )


def _numbered(taken: Indexing) -> float:
    return taken.numbered


def _system() -> float:
    """Give the seconds that the system has worked for this thread."""
    return resource.getrusage(resource.RUSAGE_THREAD).ru_stime


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--blocks", type=int, nargs="+", default=list(BLOCKS))
    main(tuple(parser.parse_args().blocks))
