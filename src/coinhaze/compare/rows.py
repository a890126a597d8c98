"""Score files -> rows of the paper's two tables, and further information on each ledger."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import PurePath
from typing import Any

import numpy as np
import pyarrow as pa

from coinhaze.amounts import Floats
from coinhaze.ledger.completeness import Completeness
from coinhaze.measures.summary import AT_LEAST, summarise
from coinhaze.report.score_files import CERTAIN, ScoreFile
from coinhaze.units import unit_named

TIMES = ("stationary", "temporal")
EXACT = 1e-6  # bits: mean interval widths below this are those of exact solves


@dataclass(frozen=True)
class Published:
    """A row as printed, where sizes are in thousands."""

    nodes: int
    edges: int
    bits_mean: float
    bits_median: float
    bits_variance: float
    bits_max: float
    steps_mean: float
    steps_median: float
    steps_variance: float
    sinks: int | None = None  # given in the text


# fmt: off
PUBLISHED = {
    ("bitcoin-week", "stationary"): Published(
        8_598_000, 12_801_000, 3.96, 4.07, 10.12, 11.82, 25.23, 23.56, 615.32, 4_237_925),
    ("zcash-week", "stationary"): Published(
        170_000, 748_000, 2.63, 0.89, 15.36, 15.70, 52.66, 56.61, 1755.94, 94_100),
    ("ethereum-week", "stationary"): Published(
        3_031_000, 5_863_000, 3.45, 3.94, 5.97, 10.86, 7.27, 2.0, 80.51, 1_768_192),
    ("dai-week", "stationary"): Published(
        46_000, 70_000, 2.60, 3.30, 1.98, 5.14, 26.39, 33.69, 414.49, 18_494),
    ("usdc-week", "stationary"): Published(
        146_000, 234_000, 3.32, 4.10, 2.91, 8.12, 16.40, 18.35, 74.13, 47_888),
    ("bitcoin-week", "temporal"): Published(
        11_441_000, 13_679_000, 3.97, 1.18, 4.81, 10.34, 20.64, 12.0, 632.21),
    ("zcash-week", "temporal"): Published(
        946_000, 1_042_000, 1.02, 0.0, 11.47, 15.94, 533.96, 286.0, 394_000.0),
    ("dai-week", "temporal"): Published(
        172_000, 252_000, 3.13, 3.23, 4.00, 8.64, 37.39, 23.80, 1489.19),
    ("usdc-week", "temporal"): Published(
        508_000, 723_000, 3.62, 3.68, 3.83, 9.48, 39.80, 27.87, 1577.23),
}
# Without what entered the pools before the week.
UNMODIFIED = {
    ("zcash-week", "stationary"): Published(
        170_000, 748_000, 1.40, 0.68, 1.99, math.nan, 52.66, 56.61, 1755.94, 94_100),
}
# fmt: on

HELD_DIGITS = 6  # of what sinks hold together, a sum of floats


@dataclass(frozen=True)
class ComparisonRow:
    """One ledger in one reading of time; NaN where unknown.

    Figures are over sinks that have an answer and are not burns. Variances are the population's;
    means by value are weighted by what sinks hold. `one_origin` is the share proven to have 0 bits.
    Where some bits are lower bounds, so are their mean, quantiles and maximum; variances are of the
    bounds.
    """

    ledger: str
    variant: str  # a variant of the same ledger: without histories, or as printed in the paper
    time: str
    view: str
    nodes: int
    edges: int
    sinks: int | None  # these three are None where the paper does not state them
    nulls: int | None
    burns: int | None
    bits_mean: float
    bits_median: float
    bits_variance: float
    bits_max: float
    bits_05: float
    bits_25: float
    bits_75: float
    bits_95: float
    bits_by_value: float
    one_origin: float
    bits_low_mean: float  # the interval of the mean
    bits_high_mean: float
    mean_miss: float  # the probability that it misses; 0 if it is proven
    mean_error: float  # standard error of the mean, measured over draws
    steps_mean: float
    steps_median: float
    steps_variance: float
    top_probability_mean: float
    exposure_mean: float
    exposure_by_value: float
    method: str
    data: str  # which files were read, or which week was simulated
    rules: str = ""  # view, policy, and settings that differ from the comparison's
    lower_bounds: int | None = None  # the number of sinks whose bits are lower bounds
    notes: tuple[str, ...] = ()  # notes on ledger, graph and solve
    completeness: str = ""  # the ledger's completeness checks, in one line
    held: str = (
        ""  # what these sinks hold together, with its unit; nothing where amounts are hidden
    )

    @property
    def label(self) -> str:
        """The name in a table in which rows of one ledger follow each other."""
        return f"  {self.variant}" if self.variant else self.ledger

    @property
    def mark(self) -> str:
        """The sign before mean, quantiles and maximum of bits."""
        return AT_LEAST if self.lower_bounds else ""

    @property
    def known(self) -> str:
        """Describe the accuracy of the mean of bits."""
        if self.method == PRINTED:
            return ""
        if self.sinks == 0:
            return "no sinks"
        if not np.isnan(self.mean_error):
            bound = ", lower bound" if self.lower_bounds else ""
            between = ""
            if self.mean_miss > 0:
                between = f"{self.bits_low_mean:.2f} to {self.bits_high_mean:.2f}, "
                between += f"misses with probability at most {self.mean_miss:.0e}; "
            return f"{between}s.e. {self.mean_error:.3f}{bound}"
        if self.bits_high_mean - self.bits_low_mean < EXACT:
            return "lower bound" if self.lower_bounds else "exact"
        if self.lower_bounds:
            return f"{AT_LEAST}{self.bits_low_mean:.2f}"
        return f"{self.bits_low_mean:.2f} to {self.bits_high_mean:.2f}"


PRINTED = "as published"


def comparison_rows(
    files: Sequence[ScoreFile], time: str, *, published: bool = False
) -> list[ComparisonRow]:
    """Return the rows of one table, in the order of the files.

    A ledger with a history of its pools has a second row without it. With `published` the paper's
    own rows follow those of ledgers named like its weeks.
    """
    rows = []
    for file in files:
        if file.time != time:
            continue
        rows.append(row_of(file))
        if published and (file.name, time) in PUBLISHED:
            rows.append(_printed(file.name, "paper", time, PUBLISHED[file.name, time]))
        if file.bits_unmodified is None:
            continue
        rows.append(row_of(file, unmodified=True))
        if published and (file.name, time) in UNMODIFIED:
            variant = "no history, paper"
            rows.append(_printed(file.name, variant, time, UNMODIFIED[file.name, time]))
    return rows


def row_of(file: ScoreFile, *, unmodified: bool = False) -> ComparisonRow:
    """Summarise one score file; `unmodified` leaves out the histories of pools."""
    bits, low, high = file.bits, file.bits_low, file.bits_high
    if unmodified:
        assert file.bits_unmodified is not None
        # What a history adds is known as accurately as the rest, so intervals shift with it.
        shift = file.bits - file.bits_unmodified
        bits, low, high = file.bits_unmodified, low - shift, high - shift
    summary = summarise(
        bits,
        file.steps,
        file.balance,
        nodes=file.nodes,
        edges=file.edges,
        burnt=file.burnt,
        widths=np.zeros(0),
        standard_error=None,
        method=file.method,
    )
    held = file.held
    low, high = np.maximum(low[held], 0.0), high[held]
    one_origin = high < CERTAIN
    if file.miss is not None:
        one_origin &= ~(file.miss[held] > 0)
    if file.lower_bound is not None:
        one_origin &= ~file.lower_bound[held]
    mean_low, mean_high, mean_miss = _mean(low), _mean(high), 0.0
    interval = file.about.get("mean_interval")
    if interval is not None and unmodified:
        # Drawn bits without a history are cut off at 0: what it adds is not known from them.
        mean_low, mean_high, mean_miss = np.nan, np.nan, np.nan
    elif interval is not None:
        mean_low, mean_high, mean_miss = interval["low"], interval["high"], interval["miss"]
    at = (0.05, 0.25, 0.75, 0.95)
    bits_05, bits_25, bits_75, bits_95 = (_quantile(bits[held], q) for q in at)
    return ComparisonRow(
        ledger=file.name,
        variant="no history" if unmodified else "",
        time=file.time,
        view=file.view,
        nodes=file.nodes,
        edges=file.edges,
        sinks=summary.scored,
        nulls=summary.nulls,
        burns=summary.burns,
        bits_mean=summary.bits_mean,
        bits_median=summary.bits_median,
        bits_variance=summary.bits_variance,
        bits_max=summary.bits_max,
        bits_05=bits_05,
        bits_25=bits_25,
        bits_75=bits_75,
        bits_95=bits_95,
        bits_by_value=summary.bits_weighted_mean,
        one_origin=_mean(one_origin),
        bits_low_mean=mean_low,
        bits_high_mean=mean_high,
        mean_miss=mean_miss,
        mean_error=np.nan if file.mean_error is None else file.mean_error,
        steps_mean=summary.steps_mean,
        steps_median=summary.steps_median,
        steps_variance=summary.steps_variance,
        top_probability_mean=_mean(file.top_probability[held]),
        exposure_mean=np.nan if file.exposure is None else _mean(file.exposure[held]),
        exposure_by_value=np.nan
        if file.exposure is None
        else _weighted(file.exposure[held], file.balance[held]),
        method=file.method,
        data=_data(file.about),
        rules=rules_of(file),
        lower_bounds=file.lower_bounds,
        notes=file.notes,
        completeness=_completeness(file.about),
        held=_held(file),
    )


def _held(file: ScoreFile) -> str:
    """Say what the sinks in tables hold together; in the smallest unit if the file tells none."""
    balance = file.balance[file.held]
    if not len(balance) or np.isnan(balance).any():
        return ""
    unit = unit_named(str(file.about.get("unit") or "smallest"))
    return unit.words(round(math.fsum(balance)), significant=HELD_DIGITS)


def rows_table(rows: Sequence[ComparisonRow]) -> pa.Table:
    """Return rows with all their figures in full, null where unknown."""
    columns = {}
    for field in fields(ComparisonRow):
        values = [getattr(row, field.name) for row in rows]
        if field.name == "notes":
            columns[field.name] = pa.array([" | ".join(notes) for notes in values], pa.string())
        elif field.type == "float":
            numbers = np.array(values, dtype=np.float64)
            columns[field.name] = pa.array(numbers, mask=np.isnan(numbers))
        else:
            kind = pa.int64() if str(field.type).startswith("int") else pa.string()
            columns[field.name] = pa.array(values, kind)
    columns["mean_known"] = pa.array([row.known for row in rows], pa.string())
    return pa.table(columns)


def _mean(values: Floats | np.typing.NDArray[np.bool_]) -> float:
    return float(values.mean()) if len(values) else np.nan


def _quantile(values: Floats, share: float) -> float:
    return float(np.quantile(values, share)) if len(values) else np.nan


def _weighted(values: Floats, weights: Floats) -> float:
    return float(np.average(values, weights=weights)) if weights.sum() > 0 else np.nan


def _completeness(about: Mapping[str, Any]) -> str:
    record = about.get("completeness")
    return "" if record is None else Completeness.of_record(record, "score file").line()


def _data(about: Mapping[str, Any]) -> str:
    """Describe what was read or simulated."""
    week = about.get("simulated")
    if week:
        return f"made up, {week['size']:.4g} of a week, seed {week['seed']}"
    names = [str(given["file"]) for given in about["inputs"]]
    return ", ".join(names) if len(names) < 3 else f"{names[0]} and {len(names) - 1} more files"


def rules_of(file: ScoreFile) -> str:
    """Describe how a ledger was scored: what nodes are, the policy, its own settings."""
    used = file.about.get("settings") or {}
    own = (file.about.get("key") or {}).get("settings") or {}
    words = [f"{file.view} view", *([str(used["policy"])] if "policy" in used else [])]
    for name, value in own.items():
        if name not in ("view", "time", "policy"):
            given = "" if value is True else f"={PurePath(str(value)).name}"
            words.append(f"{name.replace('_', '-')}{given}")
    return ", ".join(words)


def _printed(name: str, variant: str, time: str, p: Published) -> ComparisonRow:
    unknown: dict[str, Any] = {f.name: np.nan for f in fields(ComparisonRow) if f.type == "float"}
    published = {f.name: getattr(p, f.name) for f in fields(Published) if f.name != "sinks"}
    return ComparisonRow(
        **unknown
        | published
        | {
            "ledger": name,
            "variant": variant,
            "time": time,
            "view": "",
            "sinks": p.sinks,
            "nulls": None,
            "burns": None,
            "method": PRINTED,
            "data": "1 to 8 February 2021",
        }
    )
