"""Result files with their provenance: CSV, JSON or Parquet, written whole or not at all."""

from __future__ import annotations

import errno
import itertools
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from coinhaze import __version__
from coinhaze.errors import InputError, ResourceError, UsageError
from coinhaze.formats.lists.bip329 import ADDRESS, OUTPUT, Haze, label_lines
from coinhaze.formats.money import unit_of
from coinhaze.formats.registry import digest_of
from coinhaze.ledger import Ledger
from coinhaze.ledger.frozen import release_unused
from coinhaze.ledger.parquet import folder_files, is_folder
from coinhaze.ledger.text import text_buffers
from coinhaze.measures import Scores
from coinhaze.measures.comparators.side_by_side import correlations
from coinhaze.solve.planner.thresholds import WORKSPACE_MEMORY
from coinhaze.solve.pool import UNLIMITED, Budget, open_threads
from coinhaze.solve.pool.limits import memory_now, workers_for

SUFFIXES = (".csv", ".json", ".parquet")
AT_ONCE = 1 << 15  # rows of a piece
TEXT_ROWS = 1 << 13  # rows of CSV put in words at once: larger texts are moved as they grow
PIECE_BYTES = 1 << 26  # what making one takes: its table, and the text of that
ROW_SECONDS = 5e-7
# Columns of scores that repeat few values; names and amounts of coins are as good as all different,
# and looking for one of them again takes longer than writing it.
REPEATING = ("kind", "miss", "sources", "top_source")
# What spreadsheets take a text for a formula by, of all first letters.
_BEGINS_FORMULA = np.isin(np.arange(256), list(b"=+-@\t\r"))


def check_output(
    path: Path, inputs: Sequence[str | Path] = (), *, suffixes: Sequence[str] = SUFFIXES
) -> None:
    """Raise an error, before any work is done, for a file that cannot or should not be written."""
    if path.suffix not in suffixes:
        raise UsageError(f"{path}: write to a file ending in {', '.join(suffixes)}")
    check_place(path, inputs)


def check_place(path: Path, inputs: Sequence[str | Path] = ()) -> None:
    """Raise an error for a file whose folder is missing, or that would replace an input."""
    if not path.parent.is_dir():
        raise InputError(f"{path}: cannot be written: there is no folder {path.parent}")
    for name in inputs:
        if path.exists() and Path(name).exists() and path.samefile(name):
            raise UsageError(f"{path}: is one of the inputs; write somewhere else")


def scores_json(scores: Scores, provenance: dict[str, object]) -> str:
    """Return scores, their summary and provenance as JSON text; null where there is no answer."""
    document = {
        "provenance": provenance,
        "completeness": scores.completeness.line(),
        "summary": scores.summary().as_dict(),
        "scores": scores.to_arrow().to_pylist(),
    }
    if scores.informed:
        document["observers"] = [
            observer.record()
            for observer in (found.observer for found in scores.informed.values())
            if observer is not None
        ]
    if scores.comparators:
        document["correlations"] = correlations(scores).to_pylist()
    return json.dumps(document, indent=1, allow_nan=False) + "\n"


def score_labels(scores: Scores, labels: Mapping[str, str]) -> str:
    """Return scores as labels of coins or addresses, behind those they have (BIP-329)."""
    settings = scores.chain.graph.settings
    kinds = {"coin": OUTPUT, "address": ADDRESS}
    view = str(settings.get("view"))
    if view not in kinds or (view == "address" and settings.get("time") != "stationary"):
        raise UsageError(
            "labels are of coins, or of addresses whatever the time: take --view coin, or --view "
            "address with --time stationary"
        )
    exposures: list[tuple[float, float] | None] = [None] * len(scores)
    if scores.exposure is not None:
        low = scores.exposure if scores.exposure_low is None else scores.exposure_low
        high = scores.exposure if scores.exposure_high is None else scores.exposure_high
        exposures = list(zip(low.tolist(), high.tolist(), strict=True))
    hazes = (
        Haze(row.node, labels.get(row.node), (row.bits_low, row.bits_high), exposure)
        for row, exposure in zip(scores, exposures, strict=True)
        if not row.node.startswith("pool:")
    )
    return label_lines(hazes, kinds[view])


def write_scores(
    scores: Scores, path: Path, provenance: dict[str, object], *, budget: Budget = UNLIMITED
) -> list[Path]:
    """Write scores with their provenance, beside a CSV file; return the paths written.

    Rows are made and put in words by as many threads as the budget has; the bytes are the same.
    """
    check_output(path)
    if path.suffix == ".json":
        write_whole(path, lambda p: p.write_text(scores_json(scores, provenance), encoding="utf-8"))
        return [path]
    release_unused()
    work = RowWork(scores, as_text=path.suffix == ".csv")
    with threads_for(work, budget) as pieces:
        if work.as_text:
            return _write_csv(itertools.chain.from_iterable(pieces), path, provenance)
        return _write_parquet(pieces, path, provenance, repeating=REPEATING)


@dataclass(frozen=True, eq=False)
class RowWork:
    """The work of making the rows of a file of scores; a piece is the number of its first row.

    Names of millions of coins take gigabytes, so they are made some rows at a time.
    """

    scores: Scores
    as_text: bool
    room_bytes: int = 0
    waiting: int = 1

    @property
    def seconds(self) -> float:
        """About what all rows take one core."""
        return len(self.scores) * ROW_SECONDS

    @property
    def pieces(self) -> range:
        """The first row of each piece; of a table without rows there is one."""
        return range(0, max(len(self.scores), 1), AT_ONCE)

    def room(self) -> None:
        """Tables are made anew: there is nothing to use again."""

    def solve(self, first: int, room: None = None) -> Any:
        """Make a piece: as a table, or as text of a CSV file, which begins with its header."""
        rows = np.arange(first, min(first + AT_ONCE, len(self.scores)))
        table = self.scores.take(rows).to_arrow()
        return list(_csv(table, header=first == 0)) if self.as_text else table


@contextmanager
def threads_for(work: RowWork, budget: Budget) -> Iterator[Iterator[Any]]:
    """Make the pieces by as many threads as there is memory for, and by one where there is none."""
    room = WORKSPACE_MEMORY if budget.memory is None else max(budget.memory - memory_now(), 0)
    count = workers_for(len(work.pieces), budget.threads, bytes_each=PIECE_BYTES, room=room)
    with open_threads(work, len(work.pieces), Budget(threads=count)) as workers:
        yield workers.map(work.pieces)


def write_table(table: pa.Table, path: Path, provenance: dict[str, object]) -> list[Path]:
    """Write a table to CSV or Parquet, with provenance beside or inside; return the paths written.

    In CSV no name can be taken for a formula; Parquet has names unchanged.
    """
    if path.suffix == ".parquet":
        return _write_parquet([table], path, provenance)
    return _write_csv(_csv(table), path, provenance)


def _write_parquet(
    pieces: Iterable[pa.Table],
    path: Path,
    provenance: dict[str, object],
    *,
    repeating: Sequence[str] = (),
) -> list[Path]:
    """Write the pieces of a table below one another.

    Of scores some columns are known to be `repeating`: those alone get a dictionary.
    """
    about = {"coinhaze": _about(provenance)}

    def write(place: Path) -> None:
        parts = iter(pieces)
        first = next(parts)
        schema = first.schema.with_metadata(about)
        listed = [name for name in repeating if name in schema.names] or True
        with pa.parquet.ParquetWriter(place, schema, use_dictionary=listed) as writer:
            for part in itertools.chain([first], parts):
                writer.write_table(part.replace_schema_metadata(schema.metadata))

    write_whole(path, write)
    return [path]


def _write_csv(
    pieces: Iterable[pa.Buffer], path: Path, provenance: dict[str, object]
) -> list[Path]:
    """Write pieces of text below one another, and what made them beside it."""
    about = _about(provenance)

    def write(place: Path) -> None:
        with open(place, "wb") as file:
            for piece in pieces:
                file.write(piece)

    write_whole(path, write)
    beside = path.with_name(path.name + ".provenance.json")
    write_whole(beside, lambda p: p.write_text(about, encoding="utf-8"))
    return [path, beside]


def _about(provenance: dict[str, object]) -> str:
    return json.dumps(provenance, indent=1, allow_nan=False) + "\n"


def table_csv(table: pa.Table) -> str:
    """Return a table as the text of the CSV file that `write_table` writes."""
    return b"".join(piece.to_pybytes() for piece in _csv(table)).decode()


def _csv(table: pa.Table, *, header: bool = True) -> Iterator[pa.Buffer]:
    """Put a table in the words of a CSV file, some rows at a time."""
    for first in range(0, max(len(table), 1), TEXT_ROWS):
        sink = pa.BufferOutputStream()
        how = pa.csv.WriteOptions(include_header=header and first == 0)
        with pa.csv.CSVWriter(sink, table.schema, write_options=how) as writer:
            writer.write_table(for_spreadsheets(table.slice(first, TEXT_ROWS)))
        yield sink.getvalue()


def for_spreadsheets(table: pa.Table) -> pa.Table:
    """Prevent spreadsheets from reading a name as a formula: put ' before = + - @ tab return."""
    for k, column in enumerate(table.column_names):
        if not pa.types.is_string(table[column].type):
            continue
        # Looking for one takes far less time than replacing takes where there is none.
        if any(map(_has_formula, table[column].chunks)):
            safe = pa.compute.replace_substring_regex(table[column], "^([=+\\-@\t\r])", "'\\1")
            table = table.set_column(k, column, safe)
    return table


def _has_formula(column: pa.Array) -> bool:
    """Tell whether any text begins like a formula."""
    offsets, letters = text_buffers(column)
    first = letters[offsets[:-1][offsets[1:] > offsets[:-1]]]
    return bool(_BEGINS_FORMULA[first].any())


def write_text(path: Path, text: str) -> Path:
    """Write a text, whole or not at all; return its path."""
    write_whole(path, lambda place: place.write_text(text, encoding="utf-8"))
    return path


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Write beside the target, then rename the file in one step."""
    try:
        handle, name = tempfile.mkstemp(dir=path.parent or ".", prefix=f".{path.name}.")
        os.close(handle)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from None
    temporary = Path(name)
    try:
        write(temporary)
        with open(temporary, "rb") as file:
            os.fsync(file.fileno())
        # mkstemp creates files only their owner can read; results get the permissions of the umask.
        mask = os.umask(0)
        os.umask(mask)
        temporary.chmod(0o666 & ~mask)
        temporary.replace(path)
    except OSError as error:
        kind = ResourceError if error.errno in (errno.ENOSPC, errno.EDQUOT) else InputError
        raise kind(f"{path}: cannot be written: {error.strerror}; it is as it was") from None
    finally:
        temporary.unlink(missing_ok=True)


def provenance(
    scores: Scores, *, inputs: Sequence[str | Path] = (), command: str = ""
) -> dict[str, object]:
    """Return the provenance of scores, identical for the same inputs and command."""
    chain = scores.chain
    return made_by(inputs=inputs, command=command) | {
        "settings": chain.settings,
        "method": scores.method,
        "widest_interval_bits": scores.width,
        "miss": scores.summary().miss,
        "joint_miss": scores.joint_miss,
        "standard_error_bits": scores.summary().standard_error,
        "conservation_error": scores.conservation,
        "lower_bounds": scores.summary().lower_bounds,
        "unit": unit_of(chain.graph.ledger).spelling,
        "completeness": scores.completeness.record(),
        "notes": list(scores.notes),
    }


def made_by(*, inputs: Sequence[str | Path] = (), command: str = "") -> dict[str, object]:
    """Return the software, the command, and every file that was read with its digest."""
    return {
        "software": f"coinhaze {__version__}",
        "command": command,
        "inputs": input_digests(inputs),
    }


def made_from(
    ledger: Ledger, made_by: Mapping[str, object], notes: Sequence[str] = ()
) -> dict[str, object]:
    """Add to what made a report all that is known of its ledger's completeness, and the notes."""
    return {**made_by, "completeness": ledger.completeness.record(), "notes": list(notes)}


def today() -> str:
    """Return the date and time in UTC; that of SOURCE_DATE_EPOCH where it is set."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    if epoch is None:
        now = datetime.now(UTC)
    elif epoch.isascii() and epoch.isdigit():
        now = datetime.fromtimestamp(int(epoch), UTC)
    else:
        raise UsageError(f"SOURCE_DATE_EPOCH is a number of seconds since 1970, not {epoch!r}")
    return _MOMENT.format(now)


def moment_words(seconds: int) -> str:
    """Write seconds since 1970 as a date and time in UTC; what no calendar has, as they are.

    >>> moment_words(1612137785), moment_words(10**18)
    ('2021-02-01 00:03 UTC', '1000000000000000000')
    """
    try:
        return _MOMENT.format(datetime.fromtimestamp(seconds, UTC))
    except (ValueError, OverflowError, OSError):
        return str(seconds)


_MOMENT = "{:%Y-%m-%d %H:%M UTC}"


def input_digests(inputs: Sequence[str | Path]) -> list[dict[str, str]]:
    """Return every file that was read, with its SHA-256."""
    return [{"file": name, "sha256": digest_of(path)} for name, path in _files(inputs)]


def _files(inputs: Sequence[str | Path]) -> list[tuple[str, Path]]:
    """Return every file that was read; those of a ledger folder as `folder/file`."""
    found = []
    for path in map(Path, inputs):
        if is_folder(path):
            found += [(f"{path.name}/{file.name}", file) for file in folder_files(path)]
        else:
            found.append((path.name, path))
    return found
