"""Exact scores of whole simulated weeks on one GPU, beside the bytes they must move.

`python -m benchmarks.gpu` prints for each week what is built on the host, the schedule, the
transfer, and the solve by itself; the widest interval; and the least time in which the GPU could
read and write the rows that the chain mixes, if all of them were full. The same tiles are solved
again, fewer at once where that is quick, and must give the same bytes. A tenth of the weeks is also
solved by all cores of the machine. `--only WORD` takes some of them, `--size` a part of a week.
Needs CuPy and a GPU.
"""

from __future__ import annotations

import argparse
import math
import os
import time
from typing import Any, NamedTuple

import numpy as np

from coinhaze.simulate import simulate_week
from coinhaze.solve.certify import certified
from coinhaze.solve.exact.engines import exact_method, rounding_of
from coinhaze.solve.exact.stream import Tiles, blocks_of, stream_sums
from coinhaze.solve.exact.stream_kernels import WIDTH
from coinhaze.solve.gpu.backend import TileWorkers, schedule_of
from coinhaze.solve.gpu.device import describe, free_memory
from coinhaze.solve.gpu.schedule import can_schedule
from coinhaze.solve.pool import Budget
from coinhaze.solve.progress import silent
from coinhaze.solve.sketch.sketch import sketch
from coinhaze.solve.source import chain_of
from coinhaze.solve.structure.structure import Structure
from coinhaze.solve.sums import Sums

REPEATED = 15  # seconds: what takes longer is not solved twice
BYTES_PER_SECOND = 4.3e12  # a copy on an H200, read and written, as measured


class Week(NamedTuple):
    """A simulated week, how its graph is read, and the part that all cores solve too."""

    name: str
    size: float
    cores: bool
    settings: dict[str, Any]


WEEKS = (
    Week("ethereum-week", 0.1, True, {"time": "temporal"}),
    Week("ethereum-week", 0.1, True, {"time": "stationary"}),
    Week("ethereum-week", 1.0, False, {"time": "temporal"}),
    Week("bitcoin-week", 1.0, False, {}),
    Week("ethereum-week", 1.0, False, {"time": "stationary"}),
    Week("bitcoin-week", 1.0, False, {"view": "address", "time": "stationary"}),
)


def show(*words: object) -> None:
    print(*words, flush=True)


def solved(work: Tiles, columns: int, at_once: int | None) -> tuple[Sums, float, float, int]:
    """Solve all tiles; give their sums, seconds before and during the solve, and tiles at once."""
    begin = time.perf_counter()
    workers = TileWorkers(work, at_once=at_once)
    workers.compile()
    ready = time.perf_counter()
    parts = list(workers.map(blocks_of(columns)))
    total = parts[0].sums
    for part in parts[1:]:
        total.add(part.sums)
    return total, ready - begin, time.perf_counter() - ready, workers.at_once


def measure(week: Week) -> None:
    """Print all figures of one week."""
    show(f"\n{week.name}, {week.size:.0%}, {week.settings or 'coins'}")
    begin = time.perf_counter()
    chain = chain_of(simulate_week(week.name, size=week.size), **week.settings)
    built = time.perf_counter()
    rows = np.flatnonzero(chain.graph.sinks)
    lumped = Structure(chain).lump(rows, np.zeros(0))
    query, columns = lumped.query, lumped.columns
    factor = query.factor
    reduced = time.perf_counter() - built
    show(f"  host: graph and chain {built - begin:.1f} s, reduced {reduced:.1f} s")
    show(f"  {len(factor):,} states, {len(columns):,} columns, {len(query.scored):,} scored rows")
    if not can_schedule(factor):
        sizes = [len(core) for core in factor.cores.values()]
        show(f"  cores of {sizes} states are solved by sweeps, on the CPU: a preview instead")
        begin = time.perf_counter()
        drawn = sketch(chain, rows, draws=1024, seed=1, lumped=lumped)
        took = time.perf_counter() - begin
        show(f"  1,024 draws, {os.cpu_count()} cores, in {took:.1f} s: {drawn.summary().line()}")
        return
    # The number of sources enters the bound by its logarithm: all of them is enough.
    counts = np.full(len(query.scored), float(len(chain.outcomes)))
    rounding, scaled = rounding_of(lumped, counts, by_fours=True)
    solving = query if scaled is None else scaled.query
    work = Tiles.of(solving, columns, np.zeros(0))[0]
    begin = time.perf_counter()
    schedule = schedule_of(work)
    made = time.perf_counter() - begin
    sums, before, seconds, at_once = solved(work, len(columns), None)
    moved = (len(schedule.operations) + len(schedule.entries)) * len(columns) * 8
    floor = moved / BYTES_PER_SECOND
    show(
        f"  schedule {made:.1f} s: {len(schedule.level_start) - 1:,} levels, "
        f"{schedule.slots:,} slots, {schedule.chains} carrying chains; "
        f"transfer and compiling {before:.2f} s"
    )
    show(
        f"  solve {seconds:.2f} s, {at_once} tiles at once; bytes of full rows take {floor:.2f} s: "
        f"{seconds / floor:.2f}x"
    )
    if seconds < REPEATED:
        again, _, second, fewer = solved(work, len(columns), max(1, at_once // 2 - 1))
        pairs = zip(sums.arrays(), again.arrays(), strict=True)
        same = all(a.tobytes() == b.tobytes() for a, b in pairs)
        show(f"  again, {fewer} at once: {second:.2f} s, same bytes: {same}")
    if scaled is not None:
        scaled.restore(sums, np.zeros(0))
    scores = certified(
        query, columns, sums, counts, counted=False, by_fours=True, rounding=rounding,
        method=exact_method(query), width=math.inf, renyi=(), weights=None,
    )  # fmt: skip
    lost = float(np.nanmax(np.abs(scores.mass - 1)))
    show(f"  widest interval {scores.width:.1e} bits; rows sum to 1 within {lost:.1e}")
    show(f"  mean {np.nanmean(scores.bits):.6f} bits")
    free_memory()
    if week.cores:
        begin = time.perf_counter()
        cpu, _ = stream_sums(solving, columns, np.zeros(0), budget=Budget(), progress=silent)
        took = time.perf_counter() - begin
        if scaled is not None:
            scaled.restore(cpu, np.zeros(0))
        apart = float(np.abs(cpu.entropy - sums.entropy).max())
        show(
            f"  {os.cpu_count()} cores: {took:.1f} s, {took / seconds:.0f}x; apart {apart:.1e} bits"
        )


def main() -> None:
    """Measure every week."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="weeks with this text in name or settings")
    parser.add_argument("--size", type=float, help="another part of every week")
    given = parser.parse_args()
    show(describe(), f"tiles of {WIDTH} columns")
    for week in WEEKS:
        if given.only in f"{week.name} {week.size} {week.settings}":
            measure(week if given.size is None else week._replace(size=given.size))


if __name__ == "__main__":
    main()
