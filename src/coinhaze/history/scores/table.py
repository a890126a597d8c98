"""Tables of the unspent coins of a history: bits by year, value, age or script; one coin."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet

from coinhaze.amounts import Floats, Ints
from coinhaze.errors import InputError, UsageError
from coinhaze.formats.money import with_amount_texts
from coinhaze.history.scores.live_coins import POOL_SCRIPT
from coinhaze.history.scores.origins import CoinOrigins
from coinhaze.history.scores.score import HistoryScores
from coinhaze.ledger.script_types import SCRIPT_TYPES
from coinhaze.observer.chain import reading_words
from coinhaze.options import Grouping
from coinhaze.report.figures import axes_or_new, drawing, line_of, pyplot, save_picture
from coinhaze.report.files import write_table, write_whole
from coinhaze.report.grids import Grid
from coinhaze.units import NOT_KNOWN, Unit

if TYPE_CHECKING:
    from coinhaze.history.history import History

DAY = 86_400
AGES = ((1, "under a day"), (7, "under a week"), (30, "under a month"), (365, "under a year"))
YEARS = (2, 5, 10)
_BANDS = 40  # heights are shown in so many bands at most
_NONE = -1


def history_table(scores: HistoryScores, group: Grouping = "year") -> pa.Table:
    """Give, for each group of unspent coins: how many, their value, and their bits.

    `bits_mean` is over coins and `bits_by_value` over their value; the median is of coins;
    `certain` is the share of coins with one origin, proven.
    """
    if group not in _GROUPS:
        raise UsageError(f"group by {', '.join(_GROUPS)}, not {group!r}")
    number, labels = _GROUPS[group](scores)
    rows = [_row(scores, np.flatnonzero(number == k), label) for k, label in labels.items()]
    table = pa.Table.from_pylist([row for row in rows if row["coins"]], schema=_SCHEMA)
    return with_amount_texts(table, scores.unit, ["value"])


_SCHEMA = pa.schema(
    {
        "group": pa.string(),
        "coins": pa.int64(),
        "value": pa.int64(),
        "bits_mean": pa.float64(),
        "bits_median": pa.float64(),
        "bits_by_value": pa.float64(),
        "certain": pa.float64(),
        "steps_mean": pa.float64(),
    }
)


def _row(scores: HistoryScores, chosen: Ints, label: str) -> dict[str, object]:
    if not len(chosen):
        return {"coins": 0}
    bits, value = scores.bits[chosen], scores.coins.value[chosen]
    certain = (scores.bits_high[chosen] == 0.0) & (scores.miss[chosen] == 0.0)
    return {
        "group": label,
        "coins": len(chosen),
        "value": int(value.sum()),
        "bits_mean": float(bits.mean()),
        "bits_median": float(np.median(bits)),
        "bits_by_value": float((bits * value).sum() / value.sum()),
        "certain": float(certain.mean()),
        "steps_mean": float(scores.steps[chosen].mean()),
    }


Groups = tuple[npt.NDArray[np.int64], Mapping[int, str]]


def _by_year(scores: HistoryScores) -> Groups:
    times = _times(scores)
    years = times.astype("datetime64[s]").astype("datetime64[Y]").astype(np.int64) + 1970
    return years, {int(y): str(y) for y in np.unique(years)}


def _by_month(scores: HistoryScores) -> Groups:
    months = _times(scores).astype("datetime64[s]").astype("datetime64[M]")
    number = months.astype(np.int64)
    return number, {int(m): str(np.datetime64(int(m), "M")) for m in np.unique(number)}


def _by_height(scores: HistoryScores) -> Groups:
    heights, _ = scores.placed
    _refuse_unknown(heights, "heights", "value")
    low, high = (int(heights.min()), int(heights.max())) if len(heights) else (0, 0)
    step = 1
    while (high - low) // step >= _BANDS:
        step *= 10
    band = heights // step
    labels = {int(b): f"{b * step}-{(b + 1) * step - 1}" for b in np.unique(band)}
    return band, labels


def _by_value(scores: HistoryScores) -> Groups:
    digits = np.floor(np.log10(np.maximum(scores.coins.value, 1).astype(np.float64))).astype(int)
    unit = scores.unit
    labels = {
        int(d): f"{unit.number(10 ** int(d))} to {unit.words(10 ** (int(d) + 1))}"
        if unit.symbol
        else f"1e{d} to 1e{d + 1}"
        for d in np.unique(digits)
    }
    return digits, labels


def _by_age(scores: HistoryScores) -> Groups:
    times = _times(scores)
    days = (scores.tape.manifest.last_time - times) / DAY
    ends = [end for end, _ in AGES] + [365 * year for year in YEARS]
    words = [word for _, word in AGES] + [f"under {year} years" for year in YEARS]
    band = np.searchsorted(np.array(ends, dtype=np.float64), days, side="right")
    return band, dict(enumerate([*words, f"{YEARS[-1]} years or more"]))


def _by_script(scores: HistoryScores) -> Groups:
    return scores.coins.script, dict(enumerate(SCRIPT_TYPES)) | {POOL_SCRIPT: "pool"}


_GROUPS: dict[str, Callable[[HistoryScores], Groups]] = {
    "year": _by_year,
    "month": _by_month,
    "height": _by_height,
    "value": _by_value,
    "age": _by_age,
    "script-type": _by_script,
}


def _times(scores: HistoryScores) -> Ints:
    _, times = scores.placed
    _refuse_unknown(times, "times", "height or value")
    return times


def _refuse_unknown(column: Ints, what: str, other: str) -> None:
    if np.any(column == _NONE):
        raise InputError(f"the sources of the history give no {what}: group by {other}")


def words_of(group: Grouping) -> str:
    """Write a grouping as words.

    >>> words_of("script-type")
    'script type'
    """
    return group.replace("-", " ")


def table_grid(
    table: pa.Table, group: Grouping, title: str, captions: Sequence[str], unit: Unit
) -> Grid:
    """Give the table as it is shown, with values in `unit`."""
    rows = [
        (
            row["group"],
            f"{row['coins']:,}",
            unit.words(row["value"]),
            f"{row['bits_mean']:.3f}",
            f"{row['bits_median']:.3f}",
            f"{row['bits_by_value']:.3f}",
            f"{row['certain']:.1%}",
            f"{row['steps_mean']:.1f}",
        )
        for row in table.to_pylist()
    ]
    of = words_of(group)
    heads = (of, "coins", "value", "bits, mean", "median", "by value", "one origin", "steps")
    notes = (*captions, *((NOT_KNOWN,) if not unit.is_known else ()))
    return Grid(title=title, columns=heads, rows=rows, notes=notes)


def plot_table(table: pa.Table, group: Grouping, *, ax: Any = None) -> Any:
    """Plot mean bits of each group, over coins and over value."""
    ax = axes_or_new(ax)
    at = np.arange(len(table))
    for k, (name, label) in enumerate(_MEANS.items()):
        look = line_of(k)
        figures: Floats = table[name].to_numpy()
        ax.plot(at, figures, color=look.colour, linestyle=look.dash, marker=look.marker,
                markersize=2.5, label=label)  # fmt: skip
    shown = at[:: max(1, len(at) // 12)]
    ax.set_xticks(shown, [table["group"][int(k)].as_py() for k in shown], rotation=45, ha="right")
    # Groups of value name their unit themselves.
    ax.set_xlabel("value, in the smallest unit" if _in_smallest(table, group) else words_of(group))
    ax.set_ylabel("bits")
    ax.set_ylim(bottom=0)
    ax.legend()
    return ax


def months_grid(table: pa.Table, title: str, captions: Sequence[str], unit: Unit) -> Grid:
    """Give what was unspent at the end of each month as it is shown."""
    rows = [
        (
            row["month"],
            f"{row['coins']:,}",
            unit.words(row["value"]),
            *(
                f"{row[name]:.3f} ({row[f'{name}_low']:.2f} to {row[f'{name}_high']:.2f})"
                for name in _MEANS
            ),
        )
        for row in table.to_pylist()
    ]
    columns = ("month", "coins", "value", "bits, mean", "by value")
    notes = [*captions] if unit.is_known else [*captions, NOT_KNOWN]
    return Grid(title=title, columns=columns, rows=rows, notes=notes)


def plot_months(table: pa.Table, *, ax: Any = None) -> Any:
    """Plot mean bits of what was unspent at the end of each month, with their intervals."""
    ax = axes_or_new(ax)
    at = np.array(table["month"].to_pylist(), dtype="datetime64[M]")
    for k, (name, label) in enumerate(_MEANS.items()):
        look = line_of(k)
        low, high = (table[f"{name}_{end}"].to_numpy() for end in ("low", "high"))
        ax.plot(at, table[name].to_numpy(), color=look.colour, linestyle=look.dash, label=label)
        ax.fill_between(at, low, high, color=look.colour, alpha=0.12, linewidth=0)
    ax.set_xlabel("end of month")
    ax.set_ylabel("bits")
    ax.set_ylim(bottom=0)
    ax.legend()
    return ax


_MEANS = {"bits_mean": "mean of coins", "bits_by_value": "mean by value"}


def save_months(table: pa.Table, path: Path, *, title: str) -> None:
    """Save the figure of what was unspent at the end of each month."""
    with drawing() as plt:
        figure, ax = plt.subplots(figsize=(5.2, 3.4), layout="constrained")
        plot_months(table, ax=ax)
        ax.set_title(title, fontsize=8.5)
    save_picture(figure, path)
    pyplot().close(figure)


def _in_smallest(table: pa.Table, group: Grouping) -> bool:
    return group == "value" and "value_shown" not in table.column_names


def save_table(table: pa.Table, group: Grouping, path: Path, *, title: str) -> None:
    """Save the figure of a table."""
    with drawing() as plt:
        figure, ax = plt.subplots(figsize=(5.2, 3.4), layout="constrained")
        plot_table(table, group, ax=ax)
        ax.set_title(title, fontsize=8.5)
    save_picture(figure, path)
    pyplot().close(figure)


def origins_grid(found: CoinOrigins, top: int, history: History) -> Grid:
    """Give one coin as it is shown: bits, value, place and origins."""
    about, unit = history.manifest, history.unit
    rows = [(o.source, f"{o.probability:.4%}") for o in found.origins[:top]]
    worth = "spent, or never to be"
    if found.balance is not None:
        worth = f"worth {unit.words(found.balance)}"
    notes = [
        f"{found.bits:.6f} bits ({reading_words(about.settings)}); {found.steps:.2f} steps on "
        "average",
        f"{worth}; made in block {found.height if found.height is not None else 'unknown'}",
    ]
    if found.rank is not None:
        notes.append(
            f"place {found.rank:,} of {found.unspent:,} {about.scored_words}, most bits first"
        )
    shown = sum(o.probability for o in found.origins[:top])
    if not unit.is_known and found.balance is not None:
        notes.append(NOT_KNOWN)
    notes.append(f"{len(found.origins):,} origins, {shown:.2%} of the money from those shown")
    notes.append(history.completeness.line())
    return Grid(title=found.node, columns=("origin", "probability"), rows=rows, notes=notes)


def write_coins(scores: HistoryScores, path: Path, about: dict[str, object]) -> list[Path]:
    """Write the unspent coins to CSV or Parquet, a stretch of them at a time; give the paths."""
    if path.suffix != ".parquet" or len(scores) <= _STRETCH:
        return write_table(scores.to_arrow(), path, about)
    text = json.dumps(about, indent=1, allow_nan=False) + "\n"
    schema = scores.to_arrow(0, 1).schema.with_metadata({"coinhaze": text})

    def write(place: Path) -> None:
        with pa.parquet.ParquetWriter(place, schema) as writer:
            for first in range(0, len(scores), _STRETCH):
                writer.write_table(scores.to_arrow(first, first + _STRETCH).cast(schema))

    write_whole(path, write)
    return [path]


_STRETCH = 1 << 20
