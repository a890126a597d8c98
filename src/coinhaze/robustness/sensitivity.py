"""How much each of an analyst's choices moves the table: one choice changed at a time."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Unpack

import numpy as np
import pyarrow as pa

from coinhaze.errors import AccuracyError, ResourceError, UsageError
from coinhaze.ledger import AccountLedger, CoinLedger, Ledger
from coinhaze.ledger.window import last_part
from coinhaze.measures import Scores
from coinhaze.measures.summary import Summary
from coinhaze.observer.policies import UNIFORM, ordered_policies
from coinhaze.options import ScoreKeywords
from coinhaze.solve import score_or_reached
from coinhaze.solve.progress import Progress, silent

WINDOWS = (0.5, 0.25, 0.1)
DUST = (0.01, 0.1, 0.5)  # the smallest sinks left out, as a share of all sinks


@dataclass(frozen=True)
class Variation:
    """One change of method: settings, a shorter window, or coins left out of the table."""

    group: str
    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    window: float = 1.0
    dust: float = 0.0


@dataclass(frozen=True)
class VariedRow:
    """The table's row under a choice, or the reason why there is none."""

    choice: Variation
    summary: Summary | None
    refused: str = ""


@dataclass(frozen=True)
class Sensitivity:
    """The row of the table as it is, and under each choice."""

    base: Summary
    settings: Mapping[str, Any]
    varied: tuple[VariedRow, ...]

    def moved(self, one: VariedRow, figure: str = "bits_mean") -> float:
        """Return by how much a choice moves a figure of the table."""
        if one.summary is None:
            return float("nan")
        return float(getattr(one.summary, figure) - getattr(self.base, figure))

    def to_arrow(self) -> pa.Table:
        """Return a table with one row per choice, the unchanged one first."""
        rows = [{"choice": "as it is", "what": ""} | _figures(self.base)]
        for one in self.varied:
            row = {"choice": one.choice.group, "what": one.choice.name}
            if one.summary is not None:
                row |= _figures(one.summary) | {"bits_mean_moved": self.moved(one)}
            rows.append(row | ({"refused": one.refused} if one.refused else {}))
        columns = list(dict.fromkeys(key for row in [*rows, {"refused": ""}] for key in row))
        return pa.table({name: [row.get(name) for row in rows] for name in columns})


def sensitivity(
    ledger: Ledger,
    *,
    choices: Sequence[Variation] | None = None,
    progress: Progress = silent,
    **settings: Unpack[ScoreKeywords],
) -> Sensitivity:
    """Score a ledger as it is and under every choice, changing one at a time.

    `settings` are those of `score` for the table as it is. `seconds` bounds each solve; one that
    takes longer is stopped, and the result says so.

    >>> ledger = AccountLedger.from_transfers([("a", "c", 1), ("b", "c", 3), ("c", "d", 2)])
    >>> found = sensitivity(ledger)
    >>> {one.choice.name: round(found.moved(one), 2) for one in found.varied}["uniform"]
    0.19
    """
    seconds = settings.pop("seconds", None)
    base = score_or_reached(ledger, **settings)
    requested = choices_for(ledger, base.chain.settings) if choices is None else list(choices)
    varied = []
    for number, choice in enumerate(requested, 1):
        varied.append(_varied(ledger, base, choice, dict(settings), seconds))
        progress(number / len(requested))
    return Sensitivity(base.summary(), settings, tuple(varied))


def choices_for(ledger: Ledger, settings: Mapping[str, Any]) -> list[Variation]:
    """Return the choices that apply to a ledger, except those already made in `settings`."""
    all_ = [
        *(Variation("window", f"last {share:.0%}", window=share) for share in WINDOWS),
        *_views(ledger),
        *_openings(ledger, settings),
        Variation("policy", UNIFORM.name, {"policy": UNIFORM.name}),
        *(
            Variation("policy", p.name, {"policy": p.name})
            for p in ordered_policies()
            if settings.get("view") != "address"
        ),
        *(Variation("dust", f"{share:.0%} smallest left out", dust=share) for share in DUST),
        Variation("method", "series, published rule", {"method": "published"}),
        Variation("method", "the paper's conventions", {"preset": "paper"}),
        # A fixed seed: the table is the same whenever it is made.
        Variation("method", "preview", {"accuracy": "preview", "seed": 0}),
    ]
    if isinstance(ledger, CoinLedger) and ledger.has_rings:
        all_ = [c for c in all_ if c.group in ("window", "method") and "preset" not in c.settings]
    elif isinstance(ledger, CoinLedger) and len(ledger.flow_tx):
        all_.append(Variation("pools", "merged", {"pools": "merged"}))
    return [c for c in all_ if not c.settings or not c.settings.items() <= settings.items()]


def _views(ledger: Ledger) -> Iterator[Variation]:
    if isinstance(ledger, AccountLedger):
        yield Variation("view", "stationary", {"time": "stationary"})
        yield Variation("view", "temporal", {"time": "temporal"})
        return
    yield Variation("view", "coin", {"view": "coin"})
    yield Variation("view", "address, stationary", {"view": "address", "time": "stationary"})
    yield Variation("view", "address, temporal", {"view": "address", "time": "temporal"})


def _openings(ledger: Ledger, settings: Mapping[str, Any]) -> Iterator[Variation]:
    """Yield other assumptions about earlier money; in the coin view each coin is a source."""
    if isinstance(ledger, CoinLedger) and settings.get("view") == "address":
        yield Variation("opening", "observed", {"opening": "observed"})
    if isinstance(ledger, AccountLedger) and bool(ledger.is_zero_address().any()):
        yield Variation("opening", "one mint", {"mint": "one"})


def _varied(
    ledger: Ledger, base: Scores, choice: Variation, settings: dict[str, Any], seconds: float | None
) -> VariedRow:
    if choice.dust:
        return VariedRow(choice, _without_dust(base, choice.dust))
    settings |= choice.settings
    if settings.get("view") == "coin":
        settings.pop("time", None)
    try:
        part = last_part(ledger, choice.window)
        found = score_or_reached(part, progress=_within(seconds), **settings)
    except (UsageError, ResourceError, AccuracyError) as error:
        return VariedRow(choice, None, str(error))
    return VariedRow(choice, found.summary())


def _within(seconds: float | None) -> Progress:
    """Return a progress callback that stops a solve after `seconds`."""
    start = time.monotonic()

    def watch(done: float) -> None:
        if seconds is not None and time.monotonic() - start > seconds:
            raise ResourceError(f"stopped after {seconds:g} s, {done:.0%} done")

    return watch


def _without_dust(scores: Scores, share: float) -> Summary:
    """Summarise without the smallest sinks; they stay in the graph."""
    closing = scores.chain.graph.closing
    assert closing is not None
    worth = closing.take(scores.nodes).floats()
    return scores.take(worth > np.quantile(worth, share)).summary()


def _figures(summary: Summary) -> dict[str, Any]:
    names = (
        "nodes", "edges", "scored", "nulls", "bits_mean", "bits_median", "bits_variance",
        "bits_max", "bits_weighted_mean", "steps_mean", "steps_median", "method",
    )  # fmt: skip
    figures = summary.as_dict()
    return {name: figures[name] for name in names}
