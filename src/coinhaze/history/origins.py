"""One coin of a history: its score, its place among all unspent coins, and where it came from.

Origins are found by walking back over the tape. A past that is not too long is walked whole, from
the newest row to the oldest, each row once; of a longer one the largest flows are followed first,
and what was not followed widens the interval.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from coinhaze.errors import UnknownName
from coinhaze.measures.intervals import ROUNDING, from_missing_mass, phi
from coinhaze.solve.planner import thresholds

if TYPE_CHECKING:
    from coinhaze.history.history import History
    from coinhaze.history.tape import Tape

_CARE = 1e-12  # bits and probabilities that rounding may take or give


class CoinSource(NamedTuple):
    """A source of a coin's money."""

    source: str
    probability: float


@dataclass(frozen=True)
class CoinOrigins:
    """What a history says of one coin.

    `bits_low` and `bits_high` are proven by the walk, or, where `miss` is above 0, narrowed by the
    scores that the history keeps. `rank` is its place among the unspent coins, most bits first.
    """

    node: str
    height: int | None
    balance: int | None  # None: it is spent, or can never be
    steps: float
    bits: float
    bits_low: float
    bits_high: float
    miss: float
    rank: int | None
    unspent: int
    found: float  # the probability of all origins that were found
    origins: tuple[CoinSource, ...]  # largest first
    rows: int  # how many were walked through

    def as_dict(self, most: int | None = None) -> dict[str, object]:
        """Give it as plain values, with so many of the origins."""
        shown = self.origins if most is None else self.origins[:most]
        return {
            "node": self.node,
            "height": self.height,
            "balance": self.balance,
            "bits": self.bits,
            "bits_low": self.bits_low,
            "bits_high": self.bits_high,
            "miss": self.miss,
            "steps": self.steps,
            "rank": self.rank,
            "unspent_coins": self.unspent,
            "found": self.found,
            "rows_walked": self.rows,
            "origins": [{"source": o.source, "probability": o.probability} for o in shown],
        }


def coin_origins(history: History, name: str) -> CoinOrigins:
    """Find a coin by `txid:vout`, and walk back from it."""
    tape = history.tape
    txid, _, vout = name.rpartition(":")
    found = tape.find(txid) if txid and vout.isdecimal() else None
    if found is None:
        what = f"no coin {name!r} in {history.path}: name it txid:vout"
        raise UnknownName(what)
    transaction, row, steps = found
    if row < 0:
        raise UnknownName(f"{name!r}: its transaction moves no money, so it has no origins")
    kept = _kept(history, transaction, int(vout))
    mass, left, walked = walk(tape, row)
    ranked = sorted(mass.items(), key=lambda item: (-item[1], item[0]))
    sources = float(tape.fact("sources", np.array([row]))[0])
    low, high = _interval([p for _, p in ranked], left, sources)
    bits, miss = _entropy([p for _, p in ranked]), 0.0
    rank = balance = None
    unspent = 0
    if kept is not None:
        balance, rank, unspent, drawn, ends, chance = kept
        if drawn is not None and (ends[0] > low or ends[1] < high):
            # The walk's own interval is always right; one that draws narrow is as right as they.
            low, high, miss = max(low, ends[0]), min(high, ends[1]), chance
            low, high = min(low, high), max(low, high)
            bits = drawn if left > _CARE else bits
    _, heights, _ = tape.transactions(np.array([transaction]))
    return CoinOrigins(
        node=name,
        height=int(heights[0]) if heights[0] >= 0 else None,
        balance=balance,
        steps=steps + 1.0,
        bits=float(np.clip(bits, low, high)),
        bits_low=low,
        bits_high=high,
        miss=miss,
        rank=rank,
        unspent=unspent,
        found=min(1.0, sum(mass.values())),
        origins=tuple(CoinSource(tape.source_name(r), p) for r, p in ranked),
        rows=walked,
    )


_Kept = tuple[int, "int | None", int, "float | None", tuple[float, float], float]


def _kept(history: History, transaction: int, vout: int) -> _Kept | None:
    """Give value, rank and drawn bits of a coin, if it is unspent."""
    from coinhaze.history.score import LiveCoins

    coins = LiveCoins.of(history.tape)
    at = int(np.searchsorted(coins.transaction, transaction))
    while at < len(coins) and coins.transaction[at] == transaction and coins.vout[at] != vout:
        at += 1
    if at == len(coins) or coins.transaction[at] != transaction:
        return None
    value = int(coins.value[at])
    if history.manifest.scores is None:
        return value, None, len(coins), None, (0.0, np.inf), 0.0
    scores = history.scores()
    rank = int((scores.bits > scores.bits[at]).sum()) + 1
    ends = float(scores.bits_low[at]), float(scores.bits_high[at])
    return value, rank, len(coins), float(scores.bits[at]), ends, float(scores.miss[at])


def walk(tape: Tape, row: int) -> tuple[dict[int, float], float, int]:
    """Walk back from a row: the mass of each source by its row, what is left, and rows met."""
    whole = _follow(tape, row, lambda r, _: -float(r), once=True)
    return _follow(tape, row, lambda _, m: -m, once=False) if whole[1] else whole


def _follow(
    tape: Tape, row: int, order: Callable[[int, float], float], *, once: bool
) -> tuple[dict[int, float], float, int]:
    """Take rows in an order, giving their mass to those behind, until there are too many.

    By number, each row is met once, after all that lead to it. By mass, rows may be met again.
    """
    waiting = {row: 1.0}
    queue = [(order(row, 1.0), row)]
    ended: dict[int, float] = {}
    walked = 0
    while queue and walked < thresholds.MAX_HISTORY_WALK:
        _, r = heapq.heappop(queue)
        mass = waiting.pop(r, 0.0)
        if mass == 0.0:
            continue
        walked += 1
        behind, weights = tape.terms_of(r)
        if not behind:
            ended[r] = ended.get(r, 0.0) + mass
        for other, weight in zip(behind, weights, strict=True):
            known = waiting.get(other, 0.0)
            waiting[other] = known + mass * weight
            if known == 0.0 or not once:
                heapq.heappush(queue, (order(other, waiting[other]), other))
    return ended, sum(waiting.values()), walked


def _entropy(chances: list[float]) -> float:
    return sum(map(phi, chances))


def _interval(chances: list[float], left: float, sources: float) -> tuple[float, float]:
    """Bound the bits, whatever became of the mass that is left."""
    if len(chances) == 1 and left == 0.0:
        return 0.0, 0.0
    most = float(np.log2(max(sources, 1.0))) * (1 + 4 * ROUNDING)
    largest = max(chances, default=0.0)
    columns = [np.array([x]) for x in (_entropy(chances), left, largest, sources)]
    low, high = (float(end[0]) for end in from_missing_mass(*columns))
    return max(0.0, low - _CARE * (1 + low)), min(most, high + _CARE * (1 + high))
