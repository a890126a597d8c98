"""The GPU behind the schedule: kernels compiled once, rooms for as many tiles as memory allows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

import numpy as np

from coinhaze.amounts import Floats, Ints
from coinhaze.errors import ResourceError, UsageError
from coinhaze.solve.exact.stream_kernels import WIDTH
from coinhaze.solve.gpu.schedule import Schedule
from coinhaze.solve.planner import thresholds
from coinhaze.solve.pool.limits import in_words

KEPT_FREE = 0.06  # of the memory, for the driver and other programs
INSTALL = "without an NVIDIA GPU leave --device at cpu, else pip install 'coinhaze[gpu]'"


@cache
def cupy() -> Any:
    """Import CuPy and find a GPU; say in one line what is missing."""
    try:
        import cupy
    except ImportError as error:
        raise UsageError(
            f"a GPU is used through CuPy, which is not installed: {INSTALL}"
        ) from error
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise ResourceError(f"no GPU can be used ({error}): leave --device at cpu") from error
    if count == 0:
        raise ResourceError("this machine has no GPU: leave --device at cpu")
    return cupy


def describe() -> str:
    """Name the GPU, its driver and CuPy, as provenance has them."""
    cp = cupy()
    name = cp.cuda.runtime.getDeviceProperties(cp.cuda.Device().id)["name"].decode()
    return f"{name}, CUDA {cp.cuda.runtime.driverGetVersion()}, CuPy {cp.__version__}"


@cache
def _kernels(draws: bool, threads: int) -> Any:
    code = resources.files("coinhaze.solve.gpu").joinpath("tiles.cu").read_text(encoding="utf-8")
    blocks = thresholds.GPU_RESIDENT_THREADS // threads
    options = ("-std=c++17", f"-DTHREADS={threads}", f"-DBLOCKS={blocks}", f"-DDRAWS={int(draws)}")
    return cupy().RawModule(code=code, options=options)


class Launch(NamedTuple):
    """How many threads solve one tile, and how many tiles have rooms."""

    threads: int
    at_once: int

    @classmethod
    def of(
        cls, tiles: int, fit: int, processors: int, level: float, threads: int | None = None
    ) -> Launch:
        """Choose for so many tiles, of which so many fit the memory, and multiprocessors.

        `level` is the number of operations in a level: where these are few, smaller groups of
        threads keep more tiles on their way, if there are as many that fit. Where all tiles fit
        they are launched together: as one ends the next begins. Else the last of each launch
        should not run alone.
        """
        if threads is None:
            threads = thresholds.GPU_WIDE_THREADS
            narrow = thresholds.GPU_NARROW_THREADS
            more = min(tiles, fit) >= processors * (thresholds.GPU_RESIDENT_THREADS // narrow)
            if more and level <= thresholds.MAX_GPU_NARROW_LEVEL:
                threads = narrow
        together = processors * (thresholds.GPU_RESIDENT_THREADS // threads)
        if tiles <= fit:
            return cls(threads, tiles)
        return cls(threads, fit - fit % together if fit > together else fit)


@dataclass(frozen=True, eq=False)
class Law:
    """What columns are: of tiles, how their entries are scored; of draws, how they are drawn."""

    inner: Floats  # bits inside a column; of draws, nats
    prior_bits: Floats | None = None
    prior_top: Floats | None = None
    elsewhere: int = -1
    source: np.ndarray[Any, np.dtype[np.uint64]] | None = None
    seed: int = 0
    mass: Floats | None = None

    @property
    def draws(self) -> bool:
        """Whether columns are draws."""
        return self.source is not None


class DeviceTiles:
    """A schedule on the GPU, ready to solve tiles, as many at once as memory allows."""

    def __init__(
        self, schedule: Schedule, law: Law, *, maximum: int, weigh: bool, threads: int | None = None
    ) -> None:
        cp = cupy()
        self.schedule, self.law = schedule, law
        self._priors = law.prior_bits is not None and bool(np.any(law.prior_bits))
        rows = max(schedule.rows, 1)
        fixed = schedule.operations.nbytes + schedule.entries.nbytes + 9 * 8 * rows
        fixed += sum(core.inverse.nbytes for core in schedule.cores)
        each = schedule.room_bytes + rows * (8 if law.draws else 25 + 8 * self._priors) + 1024
        free = int(cp.cuda.Device().mem_info[0] * (1 - KEPT_FREE))
        processors = cp.cuda.Device().attributes["MultiProcessorCount"]
        level = len(schedule.operations) / max(len(schedule.level_start) - 1, 1)
        launch = Launch.of(maximum, (free - fixed) // each, processors, level, threads)
        self.threads, self.at_once = launch
        self._module = _kernels(law.draws, self.threads)
        if self.at_once < 1:
            raise ResourceError(
                f"one tile needs {in_words(fixed + each)} of the GPU's memory, of which "
                f"{in_words(free)} are free: leave --device at cpu"
            )
        put = cp.asarray
        self._level_start = put(schedule.level_start.astype(np.int32))
        self._operations = put(schedule.operations.view(np.uint8))
        self._entries = put(schedule.entries.view(np.uint8))
        self._inverses = [put(np.ascontiguousarray(core.inverse)) for core in schedule.cores]
        slots, tiles = max(schedule.slots, 1), self.at_once
        self._rooms = cp.empty(tiles * slots * WIDTH, cp.float64)
        self._live = cp.zeros(tiles * slots, cp.uint8)
        self._lost = cp.empty(tiles * max(schedule.chains, 1) * WIDTH, cp.float64)
        self._largest = max((len(core.inverse) for core in schedule.cores), default=0)
        self._solved = cp.empty(tiles * self._largest * WIDTH, cp.float64)
        self._solve = cp.zeros(tiles, cp.uint8)
        self._weighed = cp.zeros(tiles * WIDTH, cp.float64) if weigh else None
        self._entropies = cp.empty(tiles * rows, cp.float64)
        self._given: list[Any] = [
            None if values is None else put(values)
            for values in (law.inner, law.prior_bits, law.prior_top, law.source, law.mass)
        ]
        if not law.draws:
            self._masses = cp.empty(tiles * rows, cp.float64)
            self._tops = cp.empty(tiles * rows, cp.float64)
            self._of_priors = cp.empty(tiles * rows, cp.float64) if self._priors else None
            self._top_columns = cp.empty(tiles * rows, cp.uint8)
            self._total = cp.zeros(8 * rows, cp.float64)
            self._apart = cp.zeros(rows, cp.float64)

    def run(self, first: int, tiles: int) -> None:
        """Solve tiles side by side, the first of which begins at a column or draw."""
        schedule, law = self.schedule, self.law
        assert tiles <= self.at_once
        inner, prior_bits, prior_top, source, mass = self._given
        if self._weighed is not None:
            self._weighed.fill(0)
        if not law.draws:
            self._masses[: tiles * schedule.rows] = 0
            self._tops[: tiles * schedule.rows] = 0
        run = self._module.get_function("run_levels")
        null = np.uintp(0)
        sums: tuple[Any, ...] = (self._entropies, null, null, null, null, null)
        if not law.draws:
            of_priors = self._of_priors if self._priors else null
            sums = (
                self._entropies, self._masses, of_priors, self._tops, self._top_columns,
                self._apart,
            )  # fmt: skip
        for number, (begin, end, core) in enumerate(schedule.phases):
            run(
                (tiles,),
                (self.threads,),
                (
                    self._level_start, np.int32(begin), np.int32(end), np.int32(number == 0),
                    self._operations, self._entries, self._rooms, self._live, self._lost,
                    np.int64(max(schedule.slots, 1)), np.int32(schedule.chains), np.int64(first),
                    np.int32(len(law.inner)), np.int32(law.elsewhere),
                    inner, null if prior_bits is None else prior_bits,
                    null if prior_top is None else prior_top, null if source is None else source,
                    np.uint64(law.seed), null if mass is None else mass, np.int64(schedule.rows),
                    *sums, null if self._weighed is None else self._weighed,
                ),
            )  # fmt: skip
            if core is not None:
                self._solve_core(number, core.slot, len(core.inverse), tiles)

    def _solve_core(self, number: int, slot: int, n: int, tiles: int) -> None:
        get = self._module.get_function
        where = (np.int64(max(self.schedule.slots, 1)), np.int32(slot), np.int32(n))
        get("begin_core")((tiles,), (256,), (*where, self._rooms, self._live, self._solve))
        get("multiply_core")(
            (tiles, math.ceil(n / 64)),
            (256,),
            (*where, self._inverses[number], self._rooms, self._solve, self._solved),
        )
        get("end_core")((tiles, 8), (256,), (*where, self._solve, self._solved, self._rooms))

    def add(self, first: int, begin: int, end: int) -> None:
        """Add some of the tiles last run, of which the first begins at a column, to the totals."""
        rows = self.schedule.rows
        null = np.uintp(0)
        self._module.get_function("add_tiles")(
            (math.ceil(rows / 256),),
            (256,),
            (
                np.int64(rows), np.int32(begin), np.int32(end), np.int64(first), self._entropies,
                self._masses, self._of_priors if self._priors else null, self._tops,
                self._top_columns, self._total,
            ),
        )  # fmt: skip

    def weighed(self, tiles: int) -> Floats:
        """Give x^T B of the tiles last run."""
        assert self._weighed is not None
        values: Floats = self._weighed[: tiles * WIDTH].get()
        return values

    def drawn(self, tiles: int) -> Floats:
        """Give the sums of exp(y) of the tiles of draws last run, a row for each tile."""
        rows = self.schedule.rows
        values: Floats = self._entropies[: tiles * rows].get().reshape(tiles, rows)
        return values

    def take_totals(self) -> tuple[Floats, Floats, Floats, Floats, Ints, Floats]:
        """Give entropy, mass, prior, top and its column, and what lies elsewhere; begin anew."""
        total = self._total.get().reshape(8, self.schedule.rows)
        entropy, mass, prior = (total[k] + total[k + 1] for k in (0, 2, 4))
        top = total[6]
        column = np.where(top > 0, total[7], -1).astype(np.int64)
        elsewhere = self._apart.get()
        self._total.fill(0)
        self._apart.fill(0)
        return entropy, mass, prior, top, column, elsewhere

    def compile(self) -> None:
        """Compile the kernels and wait until everything is on the GPU."""
        for name in ("run_levels", "add_tiles", "begin_core", "multiply_core", "end_core"):
            self._module.get_function(name)
        cupy().cuda.Device().synchronize()


def free_memory() -> None:
    """Hand the memory of tiles that are gone back to the driver."""
    cupy().get_default_memory_pool().free_all_blocks()
