from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

from coinhaze.errors import LedgerError
from coinhaze.ledger.columns import CheckedColumns

KINDS = [pa.int8(), pa.int32(), pa.int64(), pa.uint32(), pa.string()]


def columns(values: Sequence[int | None], kind: pa.DataType) -> CheckedColumns:
    texts = pa.array([None if v is None else str(v) for v in values], pa.string())
    return CheckedColumns(pa.table({"vout": texts.cast(kind)}), "row {}".format)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_whole_numbers_of_every_kind_are_the_same(kind: pa.DataType) -> None:
    found = columns([3, 0, 9], kind).whole("vout", 9)
    assert found.tolist() == [3, 0, 9]
    assert len(columns([], kind).whole("vout", 0)) == 0


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_what_is_too_large_or_missing_is_refused(kind: pa.DataType) -> None:
    for values, row in (([3, 10], 1), ([None, 3], 0)):
        with pytest.raises(LedgerError, match=f"row {row}"):
            columns(values, kind).whole("vout", 9)


@pytest.mark.parametrize("kind", [pa.int32(), pa.int64()], ids=str)
def test_what_is_below_zero_is_refused(kind: pa.DataType) -> None:
    with pytest.raises(LedgerError, match="row 2"):
        columns([3, 0, -1], kind).whole("vout", 9)


def test_numbers_of_four_bytes_are_not_copied() -> None:
    column = pa.array([3, 0, 9], pa.int32())
    found = CheckedColumns(pa.table({"vout": column}), "row {}".format).whole("vout", 9)
    assert np.shares_memory(found, column.to_numpy())
    assert not found.flags.writeable
