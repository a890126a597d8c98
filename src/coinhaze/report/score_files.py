"""Score files of a comparison: one row per sink, compact Parquet, with complete provenance.

Tables, figures and the page of a comparison are computed from these files alone, so that every
number can be recomputed from them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from coinhaze.amounts import Bools, Floats
from coinhaze.errors import InputError
from coinhaze.graph.graph import Kind
from coinhaze.ledger.frozen import freeze
from coinhaze.measures import Scores
from coinhaze.report.files import write_whole

KEY = b"coinhaze"
CERTAIN = 1e-6  # bits: less than this is one origin, up to the rounding of exact solves
COLUMNS = ("bits", "bits_low", "bits_high", "steps", "balance", "sources", "top_probability")
OPTIONAL = ("exposure", "bits_unmodified", "bits_error", "miss")
# Format of score files and of their folder. 1 had no marks of lower bounds and not all notes; all
# intervals of 2 are proven.
FORMAT = 3
READ_FORMATS = (2, 3)


@dataclass(frozen=True, eq=False)
class ScoreFile:
    """Scores of one ledger's sinks for one reading of time; NaN where unknown.

    `time` is stationary or temporal. `view` says what nodes stand for: accounts, addresses, or
    coins, which are the temporal reading of a coin ledger. `about` is the provenance: software,
    inputs with digests, settings, method, sizes of the graph. Balances are floats, in the smallest
    unit: they serve as weights.
    """

    name: str
    time: str
    view: str
    about: Mapping[str, Any]
    bits: Floats
    bits_low: Floats
    bits_high: Floats
    steps: Floats
    balance: Floats
    sources: Floats
    top_probability: Floats
    burnt: Bools
    exposure: Floats | None = None
    bits_unmodified: Floats | None = None  # without the pools' histories
    bits_error: Floats | None = None  # standard error, where bits are estimates
    miss: Floats | None = None  # the probability that each interval misses; None if all are proven
    lower_bound: Bools | None = None  # rows whose bits are lower bounds, where some are

    def __post_init__(self) -> None:
        freeze(self)

    def __len__(self) -> int:
        return len(self.bits)

    def __repr__(self) -> str:
        return f"ScoreFile({self.label}, {len(self):,} rows, {self.method})"

    @property
    def label(self) -> str:
        """The name of the ledger and its reading of time."""
        return f"{self.name}, {self.time}"

    @property
    def method(self) -> str:
        """The method by which bits were computed."""
        return str(self.about["method"])

    @property
    def nodes(self) -> int:
        """The number of nodes of the graph."""
        return int(self.about["nodes"])

    @property
    def edges(self) -> int:
        """The number of edges of the graph."""
        return int(self.about["edges"])

    @cached_property
    def held(self) -> Bools:
        """Which rows have an answer and are not burns: those in tables and figures."""
        found: Bools = ~np.isnan(self.bits) & ~self.burnt
        return found

    @cached_property
    def one_origin(self) -> Bools:
        """Which rows are proven to have 0 bits; an estimate of 0, or a bound, is no proof."""
        found: Bools = self.held & (self.bits_high < CERTAIN)
        if self.miss is not None:
            found &= ~(self.miss > 0)
        return found if self.lower_bound is None else found & ~self.lower_bound

    @cached_property
    def lower_bounds(self) -> int:
        """The number of rows in tables and figures whose bits are lower bounds."""
        return 0 if self.lower_bound is None else int((self.lower_bound & self.held).sum())

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on the ledger, its graph and the solve."""
        return tuple(map(str, self.about.get("notes") or ()))

    @property
    def mean_error(self) -> float | None:
        """The standard error of the mean of bits, measured over draws; None where it is exact."""
        means = self.about["draw_means"]
        if means is None:
            return None
        return float(np.std(means, ddof=1)) / float(np.sqrt(len(means)))


def write_score_file(
    scores: Scores, path: Path, *, name: str, time: str, about: Mapping[str, object]
) -> None:
    """Write scores of sinks, with their provenance, to a Parquet file."""
    graph = scores.chain.graph
    hidden = np.full(len(scores), np.nan)
    columns = {c: getattr(scores, c) for c in COLUMNS if c != "balance"}
    closing = graph.closing
    columns["balance"] = hidden if closing is None else closing.take(scores.nodes).floats()
    columns |= {c: v for c in OPTIONAL if (v := getattr(scores, c)) is not None}
    arrays = {c: pa.array(v, mask=np.isnan(v)) for c, v in columns.items()}
    if scores.lower_bound is not None:
        arrays["lower_bound"] = pa.array(scores.lower_bound)
    arrays["burnt"] = pa.array(graph.kinds[scores.nodes] == Kind.burn)
    view = scores.chain.settings["view"]
    document = {"format": FORMAT, "name": name, "time": time, "view": view, **about}
    text = json.dumps(document, indent=1, allow_nan=False)
    table = pa.table(arrays).replace_schema_metadata({KEY: text})
    write_whole(path, lambda p: pa.parquet.write_table(table, p, compression="zstd"))


def read_score_file(path: Path) -> ScoreFile:
    """Read a score file of a comparison."""
    about = read_about(path)
    table = pa.parquet.read_table(path)
    missing = [c for c in (*COLUMNS, "burnt") if c not in table.column_names]
    if missing:
        raise InputError(f"{path}: no score file of a comparison: it has no column {missing[0]}")
    columns = {
        c: table[c].to_numpy().astype(np.float64)
        for c in (*COLUMNS, *OPTIONAL)
        if c in table.column_names
    }
    return ScoreFile(
        name=about["name"],
        time=about["time"],
        view=about["view"],
        about=about,
        burnt=table["burnt"].to_numpy(),
        lower_bound=table["lower_bound"].to_numpy()
        if "lower_bound" in table.column_names
        else None,
        **columns,
    )


def read_about(path: Path) -> dict[str, Any]:
    """Read the provenance of a score file, without its rows."""
    try:
        metadata = pa.parquet.read_schema(path).metadata or {}
    except (OSError, pa.ArrowInvalid) as error:
        raise InputError(f"{path}: cannot be read: {error}") from None
    try:
        about: dict[str, Any] = json.loads(metadata[KEY])
        _ = (about["name"], about["time"], about["view"], about["method"], about["draw_means"])
    except (KeyError, TypeError, ValueError):
        raise InputError(
            f"{path}: no score file of a comparison: it does not say what made it; "
            "make one with coinhaze compare"
        ) from None
    check_format(about, path)
    return about


def check_format(about: Mapping[str, Any], path: Path) -> None:
    """Raise an error for files of another version: fields it lacks would go missing unnoticed."""
    if about.get("format") not in READ_FORMATS:
        raise InputError(
            f"{path}: written by {about.get('software', 'another version')} in format "
            f"{about.get('format', 1)}; this version reads format {FORMAT}: compare the ledgers "
            "again, into another folder"
        )
