"""Summaries over sinks, as the paper's tables have them."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

import numpy as np

from coinhaze.amounts import Bools, Floats
from coinhaze.ledger.frames import called, shown
from coinhaze.observer.chain import reading_words

AT_LEAST = "\u2265"  # before bits that are a lower bound


@dataclass(frozen=True)
class Summary:
    """Sizes, and how bits and steps are distributed over sinks; variance is the population's.

    Burnt money lies in sinks too, but nobody holds it: burns are counted apart and enter no other
    figure.

    >>> import coinhaze
    >>> ledger = coinhaze.AccountLedger.from_transfers([("a", "c", 1), ("b", "c", 3)])
    >>> summary = coinhaze.score(ledger).summary()
    >>> summary.scored, round(summary.bits_mean, 4)
    (1, 0.8113)
    """

    nodes: int
    edges: int
    scored: int
    nulls: int
    burns: int
    burns_bits_mean: float
    bits_mean: float
    bits_median: float
    bits_variance: float
    bits_max: float
    bits_weighted_mean: float
    steps_mean: float
    steps_median: float
    steps_variance: float
    widest_interval: float
    mean_interval: float
    standard_error: float | None
    mean_error: float | None
    method: str
    lower_bounds: int = 0  # scored rows whose bits are lower bounds
    miss: float = 0.0  # the probability that a row's interval misses; 0 if all are proven
    joint_miss: float | None = None  # that any row's does, where that was requested
    bits_mean_low: float = math.nan  # the interval of the mean ...
    bits_mean_high: float = math.nan
    bits_weighted_mean_low: float = math.nan  # ... that of the mean by value ...
    bits_weighted_mean_high: float = math.nan
    mean_miss: float = math.nan  # ... and the probability that each misses
    view: str | None = None
    time: str | None = None
    policy: str | None = None

    def __repr__(self) -> str:
        return f"Summary({self.line()})"

    def _repr_html_(self) -> str:
        return shown("summary", self)

    def to_latex(self, name: str = "", *, label: str = "tab:summary") -> str:
        """Give a LaTeX table for the booktabs package, with the columns of the paper's.

        Where `name` is one of the paper's weeks, such as "dai-week", its own row stands below.
        """
        text: str = called("coinhaze.compare.tables", "summary_latex", self, name, label)
        return text

    def line(self) -> str:
        """Say it in one line."""
        if self.scored == 0:
            none = f"no scored node of {self.nodes}; {self.nulls} without an answer"
            return none + self._reading()
        return (
            f"{self.scored} of {self.nodes} nodes scored: bits mean "
            f"{self.mark}{self.bits_mean:.4g}, median {self.mark}{self.bits_median:.4g}, "
            f"max {self.mark}{self.bits_max:.4g}; {self.certainty()}; {self.method}"
            f"{self._reading()}"
        )

    @property
    def mark(self) -> str:
        """The sign that stands before mean, median, maximum and quantiles of lower bounds."""
        return AT_LEAST if self.lower_bounds else ""

    def _reading(self) -> str:
        words = reading_words(asdict(self))
        return f"; {words}" if words else ""

    def certainty(self) -> str:
        """Say how far the values can be trusted."""
        bounds = f"; {self.lower_bounds:,} are lower bounds" if self.lower_bounds else ""
        return self._accuracy() + bounds

    def _accuracy(self) -> str:
        mean = f", {self.mean_interval:.1e} on average" if self.widest_interval > 1e-6 else ""
        if self.standard_error is None:
            return f"proven intervals within {self.widest_interval:.1e}{mean}"
        of_mean = "" if self.mean_error is None else f", their mean of {self.mean_error:.2g}"
        words = f"estimates with a standard error of {self.standard_error:.2g} bits{of_mean}"
        if self.miss == 0:
            return words
        words += f"; intervals up to {self.widest_interval:.2f} bits wide, {self.missing_words()}"
        if not math.isnan(self.bits_mean_low):
            ends = f"{self.bits_mean_low:.2f} and {self.bits_mean_high:.2f}"
            words += f"; the mean lies between {ends}"
            if not math.isnan(self.bits_weighted_mean_low):
                ends = f"{self.bits_weighted_mean_low:.2f} and {self.bits_weighted_mean_high:.2f}"
                words += f" (by value {ends})"
            words += ", missed as seldom"
        return words

    def missing_words(self) -> str:
        """Say how often intervals miss, in words that no proven interval has.

        >>> import coinhaze
        >>> rows = [("a", "y", 1), ("b", "y", 1), ("a", "z", 2), ("b", "z", 1)]
        >>> ledger = coinhaze.AccountLedger.from_transfers(rows)
        >>> coinhaze.score(ledger, accuracy="preview", seed=1).summary().missing_words()
        'each misses with probability at most 1e-09'
        """
        if self.joint_miss is not None:
            return f"any of them misses with probability at most {self.joint_miss:.0e}"
        return f"each misses with probability at most {self.miss:.0e}"

    def as_dict(self) -> dict[str, object]:
        """Give all fields, not-a-number as None."""
        return {
            k: None if isinstance(v, float) and np.isnan(v) else v for k, v in asdict(self).items()
        }


def summarise(
    bits: Floats,
    steps: Floats,
    weights: Floats | None,
    *,
    nodes: int,
    edges: int,
    burnt: Bools,
    widths: Floats,
    standard_error: float | None,
    mean_error: float | None = None,
    lower_bound: Bools | None = None,
    method: str,
) -> Summary:
    """Sum up scored rows; nulls are counted apart, weighted means use closing balances."""
    answered = ~np.isnan(bits)
    known = answered & ~burnt
    b, t = bits[known], steps[known]
    weighted = np.nan
    if weights is not None and weights[known].sum() > 0:
        weighted = float(np.average(b, weights=weights[known]))
    some = len(b) > 0
    return Summary(
        nodes=nodes,
        edges=edges,
        scored=len(b),
        nulls=int((~answered).sum()),
        burns=int(burnt.sum()),
        burns_bits_mean=float(bits[burnt & answered].mean())
        if np.any(burnt & answered)
        else np.nan,
        bits_mean=float(b.mean()) if some else np.nan,
        bits_median=float(np.median(b)) if some else np.nan,
        bits_variance=float(b.var()) if some else np.nan,
        bits_max=float(b.max()) if some else np.nan,
        bits_weighted_mean=weighted,
        steps_mean=float(t.mean()) if some else np.nan,
        steps_median=float(np.median(t)) if some else np.nan,
        steps_variance=float(t.var()) if some else np.nan,
        widest_interval=float(widths.max(initial=0.0)),
        mean_interval=float(widths.mean()) if len(widths) else 0.0,
        standard_error=standard_error,
        mean_error=mean_error,
        method=method,
        lower_bounds=0 if lower_bound is None else int((lower_bound & known).sum()),
    )
