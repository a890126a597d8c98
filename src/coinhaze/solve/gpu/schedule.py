"""What a GPU does for a tile of columns, as plain data: operations by level, and rows in slots.

A row of B is a sum over the rows its state moves to. Operations are sorted by level, so that those
of one level read only what earlier levels wrote and can run side by side. A row is stored in a slot
from the level that writes it to the last one that reads it; slots are used again, and so a tile
needs room for the rows alive at once, not for all. A dense core is solved between two levels.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from coinhaze.amounts import Bools, Floats, Ints
from coinhaze.errors import ResourceError
from coinhaze.solve.exact.core import DenseCore
from coinhaze.solve.exact.factor import Factor
from coinhaze.solve.exact.stream_kernels import WIDTH
from coinhaze.solve.gpu.schedule_kernels import (
    BACK,
    CARRY,
    READ,
    assign_slots,
    last_reads,
    operation_levels,
    run_levels,
)

# As the kernels in tiles.cu read them.
OPERATION = np.dtype(
    [
        ("begin", np.int32), ("counted", np.int32), ("slot", np.int32), ("column", np.int32),
        ("score", np.int32), ("lost", np.int32), ("unused", np.int64),
        ("own", np.float64), ("excess", np.float64),
    ]
)  # fmt: skip
ENTRY = np.dtype([("slot", np.int32), ("unused", np.int32), ("value", np.float64)])


class SolvedCore(NamedTuple):
    """A dense core: solved before a level, on rows in slots one after the other."""

    level: int
    slot: int
    inverse: Floats


@dataclass(frozen=True, eq=False)
class Schedule:
    """The operations of one tile; every tile of the same chain has the same ones."""

    level_start: Ints
    operations: npt.NDArray[np.void]
    entries: npt.NDArray[np.void]
    cores: tuple[SolvedCore, ...]
    slots: int
    chains: int  # that carry what their sums lose
    rows: int  # how many are scored

    @classmethod
    def of(
        cls, factor: Factor, own: Floats, column: Ints, scored: Ints, excess: Floats, needed: Bools
    ) -> Schedule:
        """Make the schedule of tiles; all arrays are in the order of the factors."""
        if not can_schedule(factor):
            raise ResourceError(
                "a core too large to be inverted is solved by sweeps, which the GPU does not do: "
                "leave --device at cpu"
            )
        return _Plan(factor, own, column, scored, excess, needed).schedule()

    @property
    def room_bytes(self) -> int:
        """The bytes one tile needs beside its sums."""
        largest = max((len(core.inverse) for core in self.cores), default=0)
        return (self.slots + self.chains + largest) * WIDTH * 8 + self.slots

    @property
    def phases(self) -> list[tuple[int, int, SolvedCore | None]]:
        """Give levels that run one after the other, with the core solved at their end."""
        phases: list[tuple[int, int, SolvedCore | None]] = []
        first = 0
        for core in self.cores:
            phases.append((first, core.level, core))
            first = core.level
        phases.append((first, len(self.level_start) - 1, None))
        return phases

    def run_tile(self, first: int) -> tuple[Floats, Bools, Floats]:
        """Solve one tile here as a GPU does: its scored rows, which have anything, and x^T B."""
        x, live = np.zeros((self.slots, WIDTH)), np.zeros(self.slots, dtype=np.bool_)
        lost, weighed = np.zeros((max(self.chains, 1), WIDTH)), np.zeros(WIDTH)
        rows, found = np.zeros((self.rows, WIDTH)), np.zeros(self.rows, dtype=np.bool_)
        op, entry = self.operations, self.entries
        for begin, end, core in self.phases:
            run_levels(
                begin, end, self.level_start, *(op[name] for name in _ORDER), entry["slot"],
                entry["value"], first, x, live, lost, weighed, rows, found,
            )  # fmt: skip
            if core is not None:
                part = slice(core.slot, core.slot + len(core.inverse))
                if np.any(live[part]):
                    x[part][~live[part]] = 0.0
                    x[part] = core.inverse @ x[part]
                    live[part] = True
        return rows, found, weighed


_ORDER = ("begin", "counted", "slot", "column", "score", "own", "excess", "lost")


def can_schedule(factor: Factor) -> bool:
    """Tell whether every core is an inverse."""
    return all(isinstance(core, DenseCore) for core in factor.cores.values())


@dataclass(frozen=True, eq=False)
class _Plan:
    """What a schedule is made from."""

    factor: Factor
    own: Floats
    column: Ints
    scored: Ints
    excess: Floats
    needed: Bools

    @cached_property
    def core_size(self) -> Ints:
        """How many states of each block are in its core."""
        sizes = np.zeros(self.factor.inner_blocks, dtype=np.int64)
        for block, core in self.factor.cores.items():
            sizes[block] = len(core)
        return sizes

    @cached_property
    def levels(self) -> tuple[Ints, Ints, Ints]:
        """The levels of forward and back operations, and of blocks' cores."""
        factor = self.factor
        is_scored = np.zeros(len(factor), dtype=np.bool_)
        is_scored[self.scored] = True
        forward, back, solved = operation_levels(
            factor.lower, factor.lower_at, factor.upper, factor.upper_at, factor.pivot,
            factor.block_start, factor.inner_blocks, self.core_size, self.needed, is_scored,
        )  # fmt: skip
        return forward, back, solved

    def schedule(self) -> Schedule:
        factor = self.factor
        n, inner = len(factor), factor.inner
        forward, back, solved = self.levels
        first, again = np.flatnonzero(forward >= 0), np.flatnonzero(back >= 0)
        in_core, core_level = self._core_states(solved)
        score = np.full(n, -1, dtype=np.int32)
        score[self.scored] = np.arange(len(self.scored), dtype=np.int32)
        weight = np.zeros(n)
        weight[: len(self.excess)] = self.excess
        weight[inner:] = 0.0  # leaves have passed theirs on
        is_read = (score[in_core] >= 0) | (weight[in_core] > 0)
        read, read_level = in_core[is_read], core_level[is_read]
        state = np.concatenate([first, again, read])
        level = np.concatenate([forward[first], back[again], read_level])
        kind = np.repeat([0, BACK, READ], [len(first), len(again), len(read)])
        order = np.lexsort((state, level))
        state, level, kind = state[order], level[order], kind[order]
        begin, count, at, values = self._entries(state, kind)
        slot = np.full(n, -1, dtype=np.int32)
        slot[in_core] = np.arange(len(in_core), dtype=np.int32)
        level_start = np.searchsorted(level, np.arange(level.max(initial=-1) + 2))
        last = last_reads(state, level, begin, count, at, kind > 0, n)
        slots = assign_slots(state, kind == 0, level_start, last, slot)
        if len(at) >= 1 << 28:
            raise ResourceError("the chain has more moves than a GPU schedule can number")
        final = (kind == READ) | (kind == BACK)
        later = np.zeros(n, dtype=np.bool_)
        later[again] = later[in_core] = True
        final |= ~later[state]
        operations = np.zeros(len(state), dtype=OPERATION)
        operations["begin"], operations["counted"] = begin, 8 * count + kind
        operations["slot"] = np.where(state < inner, slot[state], -1)
        operations["column"] = np.where(kind == 0, self.column[state], -1)
        operations["own"] = np.where(kind == BACK, factor.pivot[state], self.own[state])
        operations["score"] = np.where(final, score[state], -1)
        operations["excess"] = np.where(final, weight[state], 0.0)
        if len(factor.chain):
            carries = (kind == 0) & (factor.before[state] >= 0)
            operations["counted"] += np.where(carries, CARRY, 0)
            operations["lost"] = np.maximum(factor.chain[state], 0)
        entries = np.zeros(len(at), dtype=ENTRY)
        entries["slot"], entries["value"] = slot[at], values
        return Schedule(
            level_start=level_start,
            operations=operations,
            entries=entries,
            cores=self._cores(solved),
            slots=int(slots),
            chains=int(factor.chain.max(initial=-1)) + 1,
            rows=len(self.scored),
        )

    def _core_states(self, solved: Ints) -> tuple[Ints, Ints]:
        """Give the states of all cores, in the order their cores are solved, and those levels."""
        states, levels = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
        for block in self._core_blocks(solved):
            end = int(self.factor.block_start[block + 1])
            states.append(np.arange(end - self.core_size[block], end))
            levels.append(np.full(self.core_size[block], solved[block]))
        return np.concatenate(states), np.concatenate(levels)

    def _core_blocks(self, solved: Ints) -> list[int]:
        return sorted(self.factor.cores, key=lambda block: (solved[block], block))

    def _cores(self, solved: Ints) -> tuple[SolvedCore, ...]:
        cores, slot = [], 0
        for block in self._core_blocks(solved):
            core = self.factor.cores[block]
            assert isinstance(core, DenseCore)
            cores.append(SolvedCore(int(solved[block]), slot, core.inverse))
            slot += len(core)
        return tuple(cores)

    def _entries(self, state: Ints, kind: Ints) -> tuple[Ints, Ints, Ints, Floats]:
        """Gather the moves of every operation; the state before in a carrying chain comes first."""
        factor = self.factor
        upper = kind == BACK
        start = np.where(upper, factor.upper[state], factor.lower[state])
        count = np.where(upper, factor.upper[state + 1], factor.lower[state + 1]) - start
        count[kind == READ] = 0
        begin = np.concatenate([[0], np.cumsum(count)])[:-1]
        where = np.repeat(start - begin, count) + np.arange(int(count.sum()))
        of = np.repeat(upper, count)
        at, values = np.empty(len(where), dtype=np.int64), np.empty(len(where))
        at[of], values[of] = factor.upper_at[where[of]], factor.upper_v[where[of]]
        at[~of], values[~of] = factor.lower_at[where[~of]], factor.lower_v[where[~of]]
        if len(factor.before):
            operation = np.repeat(np.arange(len(state)), count)
            main = np.flatnonzero((at == factor.before[state][operation]) & ~of)
            first = begin[operation[main]]
            at[first], at[main] = at[main], at[first]
            values[first], values[main] = values[main], values[first]
        return begin, count, at, values
