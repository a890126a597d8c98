"""CSV read strictly: by column name, every field as text, every fault with its line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as csv

from coinhaze.errors import InputError, LedgerError


def read_columns(path: Path, columns: Sequence[str], *, optional: Sequence[str] = ()) -> pa.Table:
    """Read the named columns of a CSV file with a header; the optional ones if it has them."""

    def refuse(row: csv.InvalidRow) -> str:
        bad.append(row)
        return "skip"

    bad: list[csv.InvalidRow] = []
    try:
        with pa.input_stream(str(path), compression="detect") as stream:
            table = csv.read_csv(
                stream,
                read_options=csv.ReadOptions(use_threads=False),
                parse_options=csv.ParseOptions(
                    invalid_row_handler=refuse, ignore_empty_lines=False
                ),
                convert_options=csv.ConvertOptions(
                    column_types=dict.fromkeys([*columns, *optional], pa.string()),
                    strings_can_be_null=False,
                ),
            )
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (pa.ArrowInvalid, OSError) as error:
        raise InputError(f"{path}: cannot be read as CSV: {error}") from None
    if bad:
        row = bad[0]
        raise LedgerError(
            f"{path}:{row.number}",
            f"a row of {row.actual_columns} fields where the header has {row.expected_columns}",
            value=row.text,
        )
    for column in columns:
        if table.column_names.count(column) != 1:
            raise LedgerError(
                f"{path}:1",
                f"no column {column!r}" if column not in table.column_names else "two columns",
                value=table.column_names,
                fix=f"the header is {','.join(columns)}",
            )
    return table.select([*columns, *(c for c in optional if c in table.column_names)])
