"""Places of calls in the tree of a transaction, in bytes that sort as the tree is walked."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coinhaze.errors import LedgerError
from coinhaze.formats.tabular.arrow_columns import CheckedColumns


def places(columns: CheckedColumns, name: str, separator: str, deepest: int) -> pa.Array:
    """Give places in a tree, as text such as 0,8,1 or as lists, in bytes that sort as they do.

    Four bytes a step, the highest first; the root has none. Text would put 10 before 2.
    """
    column = columns.plain(name)
    kind = column.type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        steps, lengths = _listed(columns, name, column)
    elif pa.types.is_string(kind):
        steps, lengths = _split(columns, name, column, separator)
    else:
        raise columns.refused_type(name, column, "places in a tree")
    deep = np.flatnonzero(lengths > deepest)
    if len(deep):
        what = f"{name} is deeper than the {deepest} calls that are possible"
        raise LedgerError(columns.where(int(deep[0])), what, value=int(lengths[deep[0]]))
    return _as_binary(steps, lengths)


def _listed(columns: CheckedColumns, name: str, column: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
    steps = column.flatten()
    owners = np.repeat(np.arange(len(column)), lengths)
    if not pa.types.is_integer(steps.type):
        raise columns.refused_type(name, column, "lists of whole numbers")
    right = pc.and_(pc.greater_equal(steps, 0), pc.less(steps, 2**31))
    row = pc.index(pc.fill_null(right, False), False).as_py()
    if row >= 0:
        raise _no_place(columns, name, int(owners[row]))
    return steps.to_numpy(zero_copy_only=False), lengths.astype(np.int64)


def _split(
    columns: CheckedColumns, name: str, column: pa.Array, separator: str
) -> tuple[np.ndarray, np.ndarray]:
    # Most traces stand at few places: look at each once.
    codes = pc.fill_null(column, "").dictionary_encode()
    texts = codes.dictionary.to_pylist()
    code = codes.indices.to_numpy(zero_copy_only=False)
    parted = [text.split(separator) if text else [] for text in texts]
    for number, steps in enumerate(parted):
        if not all(s.isascii() and s.isdigit() and len(s) < 10 for s in steps):
            raise _no_place(columns, name, int(np.flatnonzero(code == number)[0]))
    lengths = np.array([len(steps) for steps in parted], dtype=np.int64)
    flat = np.array([int(s) for steps in parted for s in steps], dtype=np.int64)
    starts = np.cumsum(lengths) - lengths
    taken = lengths[code]
    before = np.cumsum(taken) - taken
    index = np.arange(int(taken.sum())) - np.repeat(before - starts[code], taken)
    return flat[index], taken


def _no_place(columns: CheckedColumns, name: str, row: int) -> LedgerError:
    value = columns.table[name][row].as_py()
    return LedgerError(columns.where(row), f"{name} is no place in a tree of calls", value=value)


def _as_binary(steps: np.ndarray, lengths: np.ndarray) -> pa.Array:
    offsets = np.zeros(len(lengths) + 1, dtype=np.int32)
    np.cumsum(4 * lengths, out=offsets[1:])
    letters = pa.py_buffer(steps.astype(">u4").tobytes())
    return pa.Array.from_buffers(
        pa.binary(), len(lengths), [None, pa.py_buffer(offsets.tobytes()), letters]
    )
