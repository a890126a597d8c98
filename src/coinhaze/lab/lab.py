"""The lab: bits that a privacy technology gains and what it costs, in one economy with and without.

Each seed draws once what people want to pay. The economies with and without the technology realise
the same intents, everybody's money is scored exactly in both, and people are compared with
themselves. Means over adopters are taken seed by seed, so the bands are those of paired
differences.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple, Unpack

import numpy as np
import pyarrow as pa

from coinhaze.amounts import Bools, Floats
from coinhaze.errors import UsageError
from coinhaze.measures.bands import Band, paired_band, ratio_band
from coinhaze.options import LabOptions, NamedScoreKeywords, SimulateOptions
from coinhaze.simulate.intents import Intents, draw_intents
from coinhaze.simulate.technologies import TECHNOLOGIES
from coinhaze.simulate.technology import Realised, Technology
from coinhaze.solve import score_or_reached
from coinhaze.solve.pool import Budget, WorkerCluster, open_workers
from coinhaze.solve.pool.cluster import opened
from coinhaze.solve.progress import Progress, silent
from coinhaze.solve.source import Source


class Cost(NamedTuple):
    """A cost as it is presented."""

    words: str
    times: float  # factor between the stored unit and the displayed one
    threshold: float  # in the table: less than this is shown as 0


COSTS: Mapping[str, Cost] = {
    "fees": Cost("more fees (% of money moved)", 100.0, 5e-6),
    "transactions": Cost("more transactions per payment", 1.0, 0.005),
    "waiting": Cost("hours money waits", 1.0, 0.05),
}


@dataclass(frozen=True, eq=False)
class Trials:
    """The results of every seed, in order: bits with and without, and additional costs."""

    bits: Floats  # of adopters; of all people where there are none
    bits_without: Floats
    others: Floats  # of people who do not adopt; NaN where everybody does
    others_without: Floats
    fees: Floats  # in addition to those without, relative to what adopters moved
    transactions: Floats  # in addition to those without, per payment an adopter makes or receives
    waiting: Floats  # hours, in addition to those without


class Point(NamedTuple):
    """A technology at one value of its parameter."""

    value: float
    trials: Trials
    level: float

    @property
    def gain(self) -> Band:
        """The bits that adopters gain, paired by seed."""
        return paired_band(self.trials.bits, self.trials.bits_without, level=self.level)

    @property
    def others_gain(self) -> Band:
        """The bits that other people gain, over seeds that have such people."""
        there = ~np.isnan(self.trials.others)
        if not there.any():
            return Band(np.nan, np.nan, np.nan)
        with_, without = self.trials.others[there], self.trials.others_without[there]
        return paired_band(with_, without, level=self.level)

    def per(self, cost: str) -> Band:
        """Return the bits gained per unit of a cost; NaN where it costs nothing."""
        gains = self.trials.bits - self.trials.bits_without
        return ratio_band(gains, getattr(self.trials, cost), level=self.level)


@dataclass(frozen=True, eq=False)
class ParameterScan:
    """A technology at several values, against one observer, over the same seeds."""

    technology: Technology
    observer: str
    points: tuple[Point, ...]
    seeds: tuple[int, ...]
    people: int
    payments: int
    level: float
    notes: tuple[str, ...] = ()

    def settings(self) -> dict[str, object]:
        """The settings of the run, for provenance."""
        return {
            "technology": self.technology.name,
            "observer": self.observer,
            "values": [p.value for p in self.points],
            "seeds": list(self.seeds),
            "people": self.people,
            "payments": self.payments,
            "level": self.level,
            "band": "Student's t over differences paired by seed",
        }

    def to_arrow(self) -> pa.Table:
        """Return one row per value; null where there is no answer."""
        return pa.Table.from_pylist([self._row(p) for p in self.points], schema=SCHEMA)

    def trials(self) -> pa.Table:
        """Return one row per value and seed, from which all other figures are computed."""
        parts = []
        for p in self.points:
            figures = {f.name: getattr(p.trials, f.name) for f in fields(Trials)}
            columns = {name: pa.array(x, mask=np.isnan(x)) for name, x in figures.items()}
            n = len(self.seeds)
            about = {"technology": [self.technology.name] * n, "observer": [self.observer] * n}
            parts.append(pa.table({**about, "value": [p.value] * n, "seed": self.seeds} | columns))
        return pa.concat_tables(parts)

    def _row(self, point: Point) -> dict[str, object]:
        trials = point.trials
        row: dict[str, object] = {
            "technology": self.technology.name,
            "observer": self.observer,
            "parameter": self.technology.parameter,
            "value": point.value,
            "bits": float(trials.bits.mean()),
            "bits_without": float(trials.bits_without.mean()),
            **_band("gained", point.gain),
            **_band("others_gained", point.others_gain),
            **{cost: float(getattr(trials, cost).mean()) for cost in COSTS},
        }
        for cost in COSTS:
            row |= _band(f"per_{cost}", point.per(cost))
        return {k: None if v != v else v for k, v in row.items()}


def _band(name: str, band: Band) -> dict[str, object]:
    return {f"{name}_bits": band.mean, f"{name}_low": band.low, f"{name}_high": band.high}


_WORDS = ("technology", "observer", "parameter")
_BANDS = ("gained", "others_gained", *(f"per_{cost}" for cost in COSTS))
_NUMBERS = (
    "value", "bits", "bits_without",
    *(f"{b}_{end}" for b in _BANDS[:2] for end in ("bits", "low", "high")), *COSTS,
    *(f"{b}_{end}" for b in _BANDS[2:] for end in ("bits", "low", "high")),
)  # fmt: skip
SCHEMA = pa.schema([(w, pa.string()) for w in _WORDS] + [(n, pa.float64()) for n in _NUMBERS])


def lab(
    name: str,
    *,
    values: Sequence[float] | None = None,
    observer: str | None = None,
    seeds: int = SimulateOptions.seeds,
    seed: int = 1,
    people: int = LabOptions.people,
    payments: int = LabOptions.payments,
    level: float = LabOptions.level,
    threads: int | None = None,
    workers: int | str | WorkerCluster | None = None,
    progress: Progress = silent,
) -> ParameterScan:
    """Vary a technology's parameter; compute gains and costs at each value over several seeds.

    Seeds are solved side by side, by threads or by `workers`, which are those of `coinhaze.score`.

    >>> sweep = lab("rings", values=[1, 4], seeds=2, people=10, payments=20)
    >>> [p.gain.mean > 0 for p in sweep.points]
    [False, True]
    """
    technology = technology_of(name)
    if seeds < 1 or seed < 0:
        raise UsageError(f"the lab needs a seed or more, from 0 on, not {seeds} from {seed}")
    requested = tuple(map(float, technology.values if values is None else values))
    if not requested or len(set(requested)) != len(requested):
        raise UsageError(f"name each value once, and one at least, not {list(requested)}")
    drawn = tuple(range(seed, seed + seeds))
    seen = observer or next(iter(technology.observers))
    work = SeedWork(technology.name, requested, seen, people, payments)
    found: list[SeedTrials] = []
    with opened(workers) as cluster:
        budget = Budget(threads) if cluster is None else Budget(backend=cluster.open)
        with open_workers(work, len(drawn), budget) as solving:
            for one in solving.map(drawn):
                found.append(one)
                progress(len(found) / len(drawn))
    notes = dict.fromkeys(note for one in found for note in one.notes)
    points = tuple(
        Point(value, Trials(**{c: np.array([t[c] for t in trials]) for c in trials[0]}), level)
        for value, trials in zip(
            requested, zip(*(f.trials for f in found), strict=True), strict=True
        )
    )
    return ParameterScan(technology, seen, points, drawn, people, payments, level, tuple(notes))


class SeedTrials(NamedTuple):
    """What one seed shows at each value."""

    trials: list[dict[str, float]]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class SeedWork:
    """The work of the lab; a piece is a seed. Economies are small: one thread scores each."""

    technology: str
    values: tuple[float, ...]
    observer: str
    people: int
    payments: int
    room_bytes: int = 0
    seconds: float = math.inf
    waiting: int = 2

    def room(self) -> None:
        """Make nothing: an economy is made for each seed."""

    def solve(self, seed: int, room: None = None) -> SeedTrials:
        """Realise the payments of a seed with and without the technology, and compare."""
        technology, observer = technology_of(self.technology), self.observer
        intents = draw_intents(people=self.people, payments=self.payments, seed=seed)
        without = _Scored.of(technology.realise(intents, technology.without, observer=observer))
        trials, notes = [], dict[str, None]()
        for value in self.values:
            realised = technology.realise(intents, value, observer=observer)
            notes |= dict.fromkeys(realised.notes)
            trials.append(_trial(intents, _Scored.of(realised), without))
        return SeedTrials(trials, tuple(notes))


def lab_all(
    *,
    seeds: int = SimulateOptions.seeds,
    seed: int = 1,
    people: int = LabOptions.people,
    payments: int = LabOptions.payments,
    level: float = LabOptions.level,
    threads: int | None = None,
    workers: int | str | WorkerCluster | None = None,
    progress: Progress = silent,
) -> tuple[ParameterScan, ...]:
    """Run every technology at its usual value, against each of its observers."""
    pairs = [(t, o) for t in TECHNOLOGIES.values() for o in t.observers]
    with opened(workers) as cluster:
        return tuple(
            lab(
                technology.name, values=[technology.usual], observer=observer, seeds=seeds,
                seed=seed, people=people, payments=payments, level=level, threads=threads,
                workers=cluster, progress=lambda done, k=k: progress((k + done) / len(pairs)),
            )
            for k, (technology, observer) in enumerate(pairs)
        )  # fmt: skip


def technology_of(name: str) -> Technology:
    """Return the technology of a given name."""
    if name not in TECHNOLOGIES:
        raise UsageError(f"no technology {name!r}: one of {', '.join(TECHNOLOGIES)}")
    return TECHNOLOGIES[name]


class _Scored(NamedTuple):
    realised: Realised
    bits: Floats  # one per person

    @classmethod
    def of(cls, realised: Realised) -> _Scored:
        return cls(realised, realised.bits(threads=1))


def _trial(intents: Intents, with_: _Scored, without: _Scored) -> dict[str, float]:
    """Compare one economy with and without; sums are over people who have an answer in both."""
    adopt = with_.realised.adopters
    watched = adopt if adopt.any() else np.ones(intents.people, dtype=np.bool_)
    answered = ~np.isnan(with_.bits) & ~np.isnan(without.bits)
    mine, theirs = watched & answered, ~watched & answered
    touched = watched[intents.payer] | watched[intents.payee]
    moved = int(intents.amount[touched].sum())
    more = int(with_.realised.fees.sum()) - int(without.realised.fees.sum())
    extra = with_.realised.transactions - without.realised.transactions
    return {
        "bits": _mean(with_.bits, mine),
        "bits_without": _mean(without.bits, mine),
        "others": _mean(with_.bits, theirs),
        "others_without": _mean(without.bits, theirs),
        "fees": more / moved if moved else 0.0,
        "transactions": extra / int(touched.sum()) if moved else 0.0,
        "waiting": with_.realised.waiting - without.realised.waiting,
    }


def _mean(bits: Floats, people: Bools) -> float:
    return float(bits[people].mean()) if people.any() else float("nan")


def churn(source: Source, coins: Sequence[str], **settings: Unpack[NamedScoreKeywords]) -> pa.Table:
    """Return the bits of a coin before and after each hop; `coins` are its names in order.

    `source` and settings are those of `score`.

    >>> import coinhaze
    >>> ledger = coinhaze.CoinLedger.from_transactions([
    ...     {"txid": "a", "rings": [["w:0", "x:0"]], "outputs": 1},
    ...     {"txid": "b", "rings": [["a:0", "y:0"]], "outputs": 1},
    ... ])
    >>> churn(ledger, ["a:0", "b:0"])["bits"].to_pylist()
    [1.0, 1.5]
    """
    if isinstance(coins, str) or not coins:
        raise UsageError("churn follows one coin: name it as it was and after each hop, in order")
    settings.setdefault("count_sources", settings.get("accuracy") != "preview")
    scores = score_or_reached(source, nodes=coins, **settings)
    return pa.table(
        {
            "hop": np.arange(len(coins)),
            "coin": pa.array(list(coins), pa.string()),
            "bits": scores.bits,
            "bits_low": scores.bits_low,
            "bits_high": scores.bits_high,
            "effective_sources": scores.effective_sources,
            "possible_sources": scores.sources,
        }
    )


def churn_apart(ring: int, hops: int, *, start: float = 0.0, decoys: float = 0.0) -> list[float]:
    """Return the bits after 0 to `hops` hops through rings whose members share no past.

    With n members the chain rule gives U' = log2 n + (U + (n - 1) D) / n, where D is the bits of a
    decoy. With decoys of a single origin each (D = 0) no number of hops exceeds log2(n) n / (n -
    1): what a hop adds is the worth of its decoys' own pasts.

    >>> [round(bits, 4) for bits in churn_apart(16, 3)]
    [0.0, 4.0, 4.25, 4.2656]
    """
    if ring < 1 or hops < 0 or not (start >= 0 and decoys >= 0):
        raise UsageError("rings have a member or more; hops and bits are not below 0")
    bits = [float(start)]
    for _ in range(hops):
        bits.append(math.log2(ring) + (bits[-1] + (ring - 1) * decoys) / ring)
    return bits
