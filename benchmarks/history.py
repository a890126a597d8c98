"""What a whole history takes: simulated, indexed, and passed over with 64 draws, at several sizes.

Prints, for histories of so many simulated blocks: transactions made and indexed a second; bytes of
the tape and of all files a transaction; transactions a second of a pass that scores every row, and
of the same reads and writes without arithmetic, the floor, and of two passes of half the width;
bytes an unspent coin takes in memory
while it runs; and the slots a coin has. Seconds are of one core. The check is that a pass scores at
least 15 million transactions a second, and that the tape takes at most 20 bytes a transaction.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from coinhaze.history import History
from coinhaze.history.pass_kernels import HALF, pass_gathers
from coinhaze.history.score import TapeDraws
from coinhaze.ledger.coin_blocks import CoinBlocks
from coinhaze.simulate.history import bitcoin_history

BLOCKS = (600, 2400, 9600)
LEAST_PASS, MOST_TAPE = 15e6, 20.0


class Run(NamedTuple):
    """One history: transactions, then rates by the second of a core, then bytes."""

    transactions: int
    simulated: float
    indexed: float
    passed: float
    gathered: float
    halves: float
    tape_bytes: float
    all_bytes: float
    coin_bytes: float
    slots_a_coin: float


def main(blocks: tuple[int, ...] = BLOCKS) -> list[Run]:
    """Print the table, and whether the check holds."""
    with tempfile.TemporaryDirectory() as home:
        measure(Path(home) / "first", 12)  # compiles
        print(
            "a core: M tx/s simulated, indexed, passed, floor, halves; ratio; bytes a tx, all, coin"
        )
        found = []
        for number in blocks:
            run = measure(Path(home) / str(number), number)
            found.append(run)
            rates = (run.simulated, run.indexed, run.passed, run.gathered, run.halves)
            print(
                f"{run.transactions:>12,} " + " ".join(f"{rate / 1e6:>6.2f}" for rate in rates),
                f"{run.gathered / run.passed:>6.2f} {run.tape_bytes:>6.1f} {run.all_bytes:>6.1f}",
                f"{run.coin_bytes:>6.1f}  ({run.slots_a_coin:.3f} slots a coin)",
                flush=True,
            )
    holds = all(run.passed >= LEAST_PASS and run.tape_bytes <= MOST_TAPE for run in found)
    print("holds" if holds else "does NOT hold")
    return found


def measure(path: Path, blocks: int) -> Run:
    """Simulate, index and pass over one history."""
    begun = time.process_time()
    seconds = [0.0]

    def timed() -> Iterator[CoinBlocks]:
        made = bitcoin_history(blocks)
        while True:
            started = time.process_time()
            part = next(made, None)
            seconds[0] += time.process_time() - started
            if part is None:
                return
            yield part

    history = History.index_blocks(path, timed())
    simulated = seconds[0]
    indexed = time.process_time() - begun - simulated
    n = len(history)
    tape, about = history.tape, history.manifest
    every = tuple(tape.scored_in(np.arange(about.rows)))
    work = TapeDraws(tape, every, 1, np.float32)
    room = work.room()
    work.solve(0, room)
    started = time.process_time()
    work.solve(64, room)
    passed = time.process_time()
    for piece in tape.pieces:
        pass_gathers(piece.row_slot, piece.row_terms, piece.slot, room)
    gathered = time.process_time()
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
        simulated=n / simulated,
        indexed=n / indexed,
        passed=n / (passed - started),
        gathered=n / (gathered - passed),
        halves=n / (ended - halved),
        tape_bytes=sum(s["rows"] + s["terms"] for s in sizes) / n,
        all_bytes=sum(sum(s.values()) for s in sizes) / n,
        coin_bytes=room_bytes / about.coins,
        slots_a_coin=about.slots / about.coins,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--blocks", type=int, nargs="+", default=list(BLOCKS))
    main(tuple(parser.parse_args().blocks))
